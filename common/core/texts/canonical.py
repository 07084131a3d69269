"""The canonical text of plain data, which databases store, parties compare and digests cover.

A record is a frozen dataclass of whole numbers, truth values, texts, decimals, enums, tuples and further records. Its
text is one JSON object with sorted keys and without white space. A field that is None is left out.
"""

import hashlib
import json
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def canonical_text(record: object, *, without: frozenset[str] = frozenset()) -> str:
    """Return the canonical text of a record.

    Args:
        without: names of fields to leave out.

    Raises:
        TypeError: a value that has no canonical text, such as a float.
    """
    plain = {name: value for name, value in _plain_fields(record).items() if name not in without}
    return canonical_json(plain)


def canonical_json(plain: object) -> str:
    """Return plain data as JSON with sorted keys, without white space, in ASCII."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def canonical_digest(text: str) -> bytes:
    """Return the SHA-256 of a canonical text."""
    return hashlib.sha256(text.encode()).digest()


def read_canonical(kind: type[Record], text: str) -> Record:
    """Return the record of a kind that has this canonical text.

    Raises:
        KeyError: a field that the kind does not have.
        TypeError: a field is missing, or its type has no canonical text.
    """
    record: Record = _record(kind, json.loads(text))
    return record


def _plain_fields(record: Any) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case bool() | int() | str():
            return value
        case Decimal():
            return str(value)
        case tuple():
            return [_plain(element) for element in value]
        case _ if is_dataclass(value):
            return _plain_fields(value)
        case _:
            raise TypeError(f"a {type(value).__name__} has no canonical text")


def _value(kind: Any, plain: Any) -> Any:  # noqa: ANN401 - a type, and a value of it
    if get_origin(kind) is UnionType:
        (kind,) = (member for member in get_args(kind) if member is not type(None))
    if get_origin(kind) is tuple:
        element, _ = get_args(kind)
        _check_type(plain, list)
        return tuple(_value(element, one) for one in plain)
    if kind in {bool, int, str}:
        _check_type(plain, kind)
        return plain
    if issubclass(kind, Decimal | Enum):
        return kind(plain)
    if is_dataclass(kind):
        return _record(kind, plain)
    raise TypeError(f"a {kind.__name__} has no canonical text")


def _record(kind: Any, plain: dict[str, Any]) -> Any:  # noqa: ANN401 - a dataclass, and one of its kind
    types = _field_types(kind)
    _check_type(plain, dict)
    return kind(**{name: _value(types[name], one) for name, one in plain.items()})


def _check_type(plain: object, kind: type) -> None:
    if type(plain) is not kind:
        raise TypeError(f"a {type(plain).__name__} stands where a {kind.__name__} belongs")


@cache
def _field_types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
