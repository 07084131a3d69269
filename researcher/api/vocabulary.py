"""Parameters of requests over HTTP, made from the records and functions that take them: there is no second model.

A parameter has the name, the type, the default and the description that a field of a record or an argument of a
function has in Python. JSON Schema says it to others, and texts of a query or values of a JSON body are read by it.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import Enum
from types import GenericAlias, NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

MOST_ITEMS = 50
"""Texts of a list."""

_ITEM = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_DECIMAL = r"^[0-9]{0,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"
_LEAST, _MOST = Decimal("1e-12"), Decimal("1e12")
"""Of decimals that are not 0."""

_WHOLE = 2**53
"""Whole numbers are below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A part of a request.

    Args:
        name: of the field or argument.
        kind: str, int, float, bool, Decimal, an enumeration, or a tuple of texts or of tuples of them.
        default: if it is left out.
        is_required: whether it may not be left out.
    """

    name: str
    kind: Any
    default: Any
    is_required: bool
    description: str

    @property
    def schema(self) -> dict[str, Any]:
        """The parameter as JSON Schema."""
        schema = _schema(self.kind)
        default = self.default.value if isinstance(self.default, Enum) else self.default
        if not self.is_required and isinstance(default, str | int | float | bool) and default != "":
            schema["default"] = default
        return schema

    def from_texts(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - of the kind
        """Read the texts that a query has under its name.

        Raises:
            InvalidInputError: they are not of its kind.
        """
        if get_origin(self.kind) is tuple:
            return self.from_json(list(texts))
        if len(texts) != 1:
            raise InvalidInputError("this was given more than once", where=self.name)
        return self._from_text(texts[0])

    def from_json(self, value: object) -> Any:  # noqa: ANN401 - of the kind
        """Read a value of a JSON body.

        Raises:
            InvalidInputError: it is not of its kind.
        """
        return _of_kind(self.kind, value, self)

    def _from_text(self, text: str) -> Any:  # noqa: ANN401 - of the kind
        if self.kind is bool:
            if text not in {"true", "false"}:
                raise self.refusal
            return text == "true"
        if self.kind in {int, float}:
            try:
                return self.from_json(int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else float(text))
            except ValueError:
                raise self.refusal from None
        return self.from_json(text)

    @property
    def refusal(self) -> InvalidInputError:
        """Says what it has to be."""
        schema = _schema(self.kind)
        choices = f"a text of {', '.join(schema['enum'])}" if "enum" in schema else "a text"
        words = {"array": f"a list of at most {MOST_ITEMS} texts", "string": choices, "integer": "a whole number"}
        kind = "a number, as a text" if self.kind is Decimal else words.get(schema["type"], f"a {schema['type']}")
        return InvalidInputError(f"this is not {kind}", where=self.name)


def parameters_of(record: Callable[..., object], leave_out: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Return the parameters that make a record, or that a function takes.

    Args:
        record: a dataclass, or a function; its docstring has an entry for each under Args.
        leave_out: names that do not travel.
    """
    described = {name: " ".join(text.split()) for name, text in _ITEM.findall(inspect.getdoc(record) or "")}
    return tuple(
        Parameter(
            name=one.name,
            kind=_kind(one.annotation),
            default=None if one.default is one.empty else one.default,
            is_required=one.default is one.empty,
            description=described[one.name],
        )
        for one in inspect.signature(record).parameters.values()
        if one.name not in {"self", *leave_out} and one.kind is not one.VAR_KEYWORD
    )


def read(
    parameters: Sequence[Parameter], values: Mapping[str, Any], reader: Callable[[Parameter, Any], Any]
) -> dict[str, Any]:
    """Return name -> value of the parameters that were given.

    Args:
        parameters: what may be given.
        values: name -> as it came.
        reader: reads it, by `from_texts` or `from_json`.

    Raises:
        InvalidInputError: an unknown name, one that is missing, or a value of another kind.
    """
    by_name = {one.name: one for one in parameters}
    unknown = [name for name in values if name not in by_name]
    if unknown:
        raise InvalidInputError(
            f"{unknown[0][:60]!r} is not asked for here", where="request", remedy=f"Known: {', '.join(by_name)}."
        )
    missing = [one.name for one in parameters if one.is_required and one.name not in values]
    if missing:
        raise InvalidInputError("this is missing", where=missing[0])
    return {name: reader(by_name[name], value) for name, value in values.items()}


def _kind(hint: Any) -> Any:  # noqa: ANN401 - a type
    """Return what a value is if it is there; texts and decimals for what is exact."""
    if get_origin(hint) in {Union, UnionType}:
        kinds = [one for one in get_args(hint) if one is not NoneType]
        enums = [one for one in kinds if inspect.isclass(one) and issubclass(one, Enum)]
        return enums[0] if enums else Decimal if Decimal in kinds else _kind(kinds[0])
    if get_origin(hint) in {tuple, Sequence}:
        return GenericAlias(tuple, (_kind(get_args(hint)[0]), ...))
    return hint


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0]), "maxItems": MOST_ITEMS}
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return {"type": "string", "enum": [one.value for one in kind]}
    if kind is Decimal:
        return {"type": "string", "pattern": _DECIMAL, "maxLength": 70}
    if kind is int:
        return {"type": "integer", "minimum": 1 - _WHOLE, "maximum": _WHOLE - 1}
    return {"type": {str: "string", float: "number", bool: "boolean"}[kind]}


def _of_kind(kind: Any, value: object, parameter: Parameter) -> Any:  # noqa: ANN401 - of the kind
    """Return a JSON value as a kind, or refuse it."""
    try:
        match value:
            case list() if get_origin(kind) is tuple and len(value) <= MOST_ITEMS:
                return tuple(_of_kind(get_args(kind)[0], one, parameter) for one in value)
            case str() if kind is str or (inspect.isclass(kind) and issubclass(kind, Enum)):
                value.encode()  # no half of a pair of surrogates
                return kind(value)
            case str() if kind is Decimal and re.fullmatch(_DECIMAL, value):
                number = Decimal(value)
                if number == 0 or _LEAST <= number <= _MOST:
                    return number
            case bool() if kind is bool:
                return value
            case int() if kind is int and not isinstance(value, bool) and -_WHOLE < value < _WHOLE:
                return value
            case int() | float() if kind is float and not isinstance(value, bool) and abs(value) < 1e300:
                return float(value)
    except (ValueError, InvalidOperation):
        pass
    raise parameter.refusal
