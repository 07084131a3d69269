"""The canonical text of plain data, which databases store, parties compare and digests cover.

A record is a frozen dataclass of whole numbers, truth values, texts, decimals, enums, tuples and further records. Its
text is one JSON object with sorted keys and without white space. A field that is None is left out.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property, partial
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from types import UnionType
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
Kind: TypeAlias = Any
"""A type whose values have a canonical text."""

Plain: TypeAlias = Any
"""A value as JSON has it, or what is read from one."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_AS_THEY_ARE = frozenset({bool, int, str})
_LONGEST_OF_MANY = 1 << 14
"""Longest text, in characters, of those of which many are kept: a party reads them at every step of a release."""

_SHORT, _LONG = OrderedDict[tuple[Kind, str], Plain](), OrderedDict[tuple[Kind, str], Plain]()


def canonical_text(record: Plain, *, without: frozenset[str] = frozenset()) -> str:
    """Return the canonical text of a record.

    Args:
        without: names of fields to leave out.

    Raises:
        TypeError: a value that has no canonical text, such as a float.
    """
    values = [(name, getattr(record, name)) for name in _field_names(record.__class__) if name not in without]
    texts = [f'"{name}":{_writer(one.__class__)(one)}' for name, one in values if one is not None]
    return f"{{{','.join(texts)}}}"


def canonical_json(plain: object) -> str:
    """Return plain data as JSON with sorted keys, without white space, in ASCII."""
    return _ENCODER.encode(plain)


def canonical_digest(text: str) -> bytes:
    """Return the SHA-256 of a canonical text."""
    return hashlib.sha256(text.encode()).digest()


def read_canonical(kind: type[Record], text: str) -> Record:
    """Return the record of a kind that has this canonical text.

    Raises:
        KeyError: a field that the kind does not have.
        TypeError: a field is missing, or its type has no canonical text.
    """
    kept, _ = _kept(text)
    record: Record = kept.get((kind, text)) or _keep(text, _record(kind, json.loads(text)))
    return record


class KeptRecord:
    """A record that a party often reads back: while it is kept, its text gives the record itself."""

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        text = canonical_text(self)
        _keep(text, self)
        return text


def _kept(text: str) -> tuple[OrderedDict[tuple[Kind, str], Plain], int]:
    """Return the records that are kept with texts such as this, and how many are: of long ones few."""
    return (_SHORT, 512) if len(text) <= _LONGEST_OF_MANY else (_LONG, 16)


def _keep(text: str, record: Plain) -> Plain:
    kept, most = _kept(text)
    kept[record.__class__, text] = record
    if len(kept) > most:
        kept.popitem(last=False)
    return record


@cache
def _writer(kind: Kind) -> Callable[[Plain], str]:
    """Return the function that writes the values of a kind."""
    if kind in _WRITERS:
        return _WRITERS[kind]
    if issubclass(kind, tuple):
        return lambda value: f"[{','.join([_writer(one.__class__)(one) for one in value])}]"
    if issubclass(kind, Enum):
        return lambda value: encode_basestring_ascii(value._value_)
    if issubclass(kind, KeptRecord):
        return attrgetter("text")
    if is_dataclass(kind):
        return canonical_text
    raise TypeError(f"a {kind.__name__} has no canonical text")


_WRITERS: dict[type, Callable[[Plain], str]] = {
    str: encode_basestring_ascii,
    int: str,
    bool: canonical_json,
    Decimal: lambda value: f'"{value}"',
}


@cache
def _field_names(kind: Kind) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in fields(kind)))


@cache
def _reader(kind: Any) -> Callable[[Plain], Plain]:  # noqa: ANN401 - a type
    """Return the function that makes a value of a kind of plain data."""
    if get_origin(kind) is tuple:
        return partial(_tuple, _reader(get_args(kind)[0]))
    if kind in _AS_THEY_ARE:
        return partial(_checked, kind)
    if issubclass(kind, Decimal | Enum):
        return cast("Callable[[Plain], Plain]", kind)
    if issubclass(kind, KeptRecord):
        return lambda plain: read_canonical(kind, canonical_json(plain))
    if is_dataclass(kind):
        return partial(_record, kind)
    raise TypeError(f"a {kind.__name__} has no canonical text")


def _tuple(read: Callable[[Plain], Plain], plain: Plain) -> tuple[Plain, ...]:
    return tuple(map(read, _checked(list, plain)))


def _record(kind: Kind, plain: Plain) -> Plain:
    readers = _field_readers(kind)
    named = _checked(dict, plain).items()
    return kind(**{name: one if type(one) is (read := readers[name])[0] else read[1](one) for name, one in named})


def _checked(kind: type, plain: Plain) -> Plain:
    if type(plain) is not kind:
        raise TypeError(f"a {type(plain).__name__} stands where a {kind.__name__} belongs")
    return plain


@cache
def _field_readers(kind: type) -> dict[str, tuple[Kind, Callable[[Plain], Plain]]]:
    """Return each field's kind, whose values plain data may have as they are, and what makes one of what it has."""
    kinds = {name: _without_none(hint) for name, hint in get_type_hints(kind).items()}
    return {name: (one, _reader(one)) for name, one in kinds.items()}


def _without_none(kind: Kind) -> Kind:
    return next(one for one in get_args(kind) if one is not type(None)) if isinstance(kind, UnionType) else kind
