"""Strict reading of a configuration table: every key is read by name and type, and unknown keys are refused."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import TypeVar, cast

from veiltab.common.errors import InvalidInputError

T = TypeVar("T")

_PLAIN_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


class Fields:
    """One table of a configuration file, read key by key; `finish` refuses the keys that nobody read.

    Args:
        where: the file and the table, for messages.
    """

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        self.where = where
        self._table = table
        self._read_keys: list[str] = []

    def holds(self, key: str, kind: type) -> bool:
        """Return whether a key has a value of this kind; `object` is any kind."""
        self._read_keys.append(key)
        return key in self._table and isinstance(self._table[key], kind)

    def keys(self) -> tuple[str, ...]:
        """Return the keys that are there, in the order of the file; they still have to be read."""
        return tuple(self._table)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; without a default the key must be there."""
        return cast("str", self._value(key, str, "a text in quotes", default))

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number."""
        return cast("int", self._value(key, int, "a whole number", default))

    def number(self, key: str) -> Decimal:
        """Return a finite decimal number, exactly as it is written."""
        return self._finite(key, self._value(key, (int, Decimal), "a number", None))

    def truth(self, key: str) -> bool:
        """Return a truth value; false if the key is absent."""
        self._read_keys.append(key)
        value = self._table.get(key, False)
        if not isinstance(value, bool):
            raise self.refuse(f"{key} is of another kind", "It must be true or false.")
        return value

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self._value(key, list, "a list of texts", None if default is None else list(default))
        return tuple(cast("str", self._typed(key, v, str, "a list of texts")) for v in cast("list[object]", values))

    def numbers(self, key: str) -> tuple[Decimal, ...]:
        """Return a list of finite decimal numbers; empty if the key is absent."""
        values = cast("list[object]", self._value(key, list, "a list of numbers", []))
        return tuple(self._finite(key, self._typed(key, v, (int, Decimal), "a list of numbers")) for v in values)

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return a table from text to text as pairs; empty if the key is absent."""
        kind = "a table from text to text"
        table = cast("dict[str, object]", self._value(key, dict, kind, {}))
        return tuple((name, cast("str", self._typed(key, value, str, kind))) for name, value in table.items())

    def lists(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return a table from text to one text, or to a list of texts; empty if the key is absent."""
        table = Fields(cast("dict[str, object]", self._value(key, dict, "a table", {})), f"{self.where} {key}")
        names = table.keys()
        return tuple((name, (table.text(name),) if table.holds(name, str) else table.texts(name)) for name in names)

    def number_pairs(self, key: str) -> tuple[tuple[str, Decimal], ...]:
        """Return a table from text to finite decimal number as pairs; empty if the key is absent."""
        kind = "a table from text to number"
        table = cast("dict[str, object]", self._value(key, dict, kind, {}))
        return tuple(
            (name, self._finite(key, self._typed(key, value, (int, Decimal), kind))) for name, value in table.items()
        )

    def row_tables(self, key: str) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
        """Return a table from text to tables from text to whole number, as pairs; empty if the key is absent."""
        tables = self.table(key, required=False)
        parts = [(name, tables.table(name)) for name in tuple(tables.keys())]
        return tuple((name, tuple((one, part.integer(one)) for one in tuple(part.keys()))) for name, part in parts)

    def table(self, key: str, *, required: bool = True) -> "Fields":
        """Return a table inside this one."""
        value = self._value(key, dict, f"a table [{key}]", None if required else {})
        return Fields(cast("dict[str, object]", value), f"{self.where} [{key}]")

    def tables(self, key: str, *, required: bool = True) -> "tuple[Fields, ...]":
        """Return the tables of a list of tables, each named by its own name or, without one, its place."""
        kind = f"tables [[{key}]]"
        values = [
            cast("dict[str, object]", self._typed(key, value, dict, kind))
            for value in cast("list[object]", self._value(key, list, kind, None if required else []))
        ]
        names = [str(value.get("name", f"number {place}"))[:40] for place, value in enumerate(values, 1)]
        return tuple(Fields(v, f"{self.where} [[{key}]] {name}") for v, name in zip(values, names, strict=True))

    def finish(self) -> None:
        """Refuse keys that nobody read, and suggest the one that may have been meant."""
        for key in self._table:
            if key not in self._read_keys:
                keys = list(dict.fromkeys(self._read_keys))
                near = get_close_matches(key, keys, 1)
                remedy = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(keys)}."
                raise InvalidInputError(f"unknown key {key!r}", where=self.where, remedy=remedy)

    def checked(self, build: Callable[[], T]) -> T:
        """Return the result of `build`; add this table's place to a refusal that names none."""
        try:
            return build()
        except InvalidInputError as error:
            if error.where:
                raise
            raise InvalidInputError(error.problem, where=self.where, remedy=error.remedy) from None

    def refuse(self, problem: str, remedy: str) -> InvalidInputError:
        """Return a refusal that names this table."""
        return InvalidInputError(problem, where=self.where, remedy=remedy)

    def _value(self, key: str, types: type | tuple[type, ...], kind: str, default: object) -> object:
        """Return the value of a key, of one of the types, or the default."""
        self._read_keys.append(key)
        if key not in self._table:
            if default is None:
                near = get_close_matches(key, set(self._table) - set(self._read_keys), 1, cutoff=0.8)
                meant = f"Did you mean it by {near[0]!r}?" if near else f"Add {key}: {kind}."
                raise self.refuse(f"{key} is not there", meant)
            return default
        return self._typed(key, self._table[key], types, kind)

    def _typed(self, key: str, value: object, types: type | tuple[type, ...], kind: str) -> object:
        """Return a value of one of the types; a truth value is not a number."""
        if not isinstance(value, types) or isinstance(value, bool):
            raise self.refuse(f"{key} is of another kind", f"It must be {kind}.{_rewritten(value, kind)}")
        return value

    def _finite(self, key: str, value: object) -> Decimal:
        """Return a number as a finite Decimal of an ordinary size."""
        number = Decimal(cast("int | Decimal", value))
        if (
            not number.is_finite()
            or (number and not -30 <= number.adjusted() <= 30)
            or len(number.as_tuple().digits) > 60
        ):
            raise self.refuse(f"{key} is not a finite number of an ordinary size", "Write it out in decimal digits.")
        return number


def _rewritten(value: object, kind: str) -> str:
    """Return how a value of another kind is written as one of this kind, if that can be said; else nothing."""
    match value:
        case bool() if "text" in kind:
            return f' Write "{str(value).lower()}" in quotes, as the column has it.'
        case int() | Decimal() if "text" in kind:
            return f' Write "{value}" in quotes.'
        case str() if kind == "a list of texts":
            listed = ", ".join(f'"{one.strip()}"' for one in value.split(","))
            return f" Write [{listed}]."
        case str() if kind == "a list of numbers":
            return f" Write [{value.strip('[]')}], without quotes."
        case str() if "number" in kind and _PLAIN_NUMBER.fullmatch(value):
            return f" Write {value.replace(',', '.')}, without quotes."
        case _:
            return ""
