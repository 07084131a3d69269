"""What a form, the query of an address or a body of JSON says.

A form has few fields of plain text, each read by its name. A name that comes twice in JSON is refused, for readers
disagree which of its values counts.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import parse_qsl

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError

MOST_FIELDS = 100
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Fields of a form; browsers send one field more than once for a list.

    Args:
        values: name -> what was given, in its order.
    """

    values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def text(self, name: str, default: str = "") -> str:
        """Return one field without white space around it.

        Raises:
            InvalidInputError: the field was given twice.
        """
        values = self.values.get(name, (default,))
        if len(values) != 1:
            raise InvalidInputError("this field was given more than once", where=name)
        return values[0].strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that may be given any number of times."""
        return self.values.get(name, ())


def whole_number(text: str, least: int, most: int) -> int | None:
    """Return the whole number that a field has, in plain digits; None if it has none, or one out of range."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if least <= number <= most else None


def parse_form(encoded: bytes) -> Form:
    """Read an encoded form or query.

    Raises:
        InvalidInputError: too many fields, text that is not UTF-8, or control characters in it.
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(encoded),
            max_num_fields=MOST_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise InvalidInputError("the form cannot be read", where="form") from None
    values: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        if any((ord(one) < 0x20 and one not in "\r\n\t") or one == "\x7f" for one in name + value):
            raise InvalidInputError("the form has control characters", where="form")
        values[name] = (*values.get(name, ()), value)
    return Form(values=MappingProxyType(values))


def parse_json(body: bytes, remedy: str = "") -> object:
    """Return the value of a JSON body.

    Args:
        remedy: what to do if it cannot be read.

    Raises:
        InvalidInputError: it is not JSON, or has a name twice; nothing of it is repeated.
    """
    try:
        value: object = _DECODER.decode(body.decode())
    except (ValueError, RecursionError):
        raise InvalidInputError("the body is not JSON, or has a name twice", where="body", remedy=remedy) from None
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
