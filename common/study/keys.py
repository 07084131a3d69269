"""A key of a study file or a draft stands once: as the field of a record that it fills, with its meaning beside it.

The field's type is its kind, and the field's default holds without it. Reading a file, `veiltab study check`,
`veiltab study merge` without drafts and the tables of docs/study-file.md (`make study-page`) are made from it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, get_args

from veiltab.common.dataclass import dataclass
from veiltab.common.study.forms import Forms
from veiltab.common.study.toml_fields import Fields
from veiltab.common.study.toml_text import toml_value

R = TypeVar("R")


class Kind(NamedTuple):
    """What a key's value is: its words, and what reads it and refuses a value of another kind."""

    words: str
    read: Callable[[Fields, str], object]


_KINDS: Mapping[object, Kind] = {
    str: Kind("text", Fields.text),
    int: Kind("whole number", Fields.integer),
    bool: Kind("true or false", Fields.truth),
    Decimal: Kind("number", Fields.number),
    tuple[str, ...]: Kind("list of texts", Fields.texts),
    tuple[Decimal, ...]: Kind("list of numbers", Fields.numbers),
    tuple[tuple[str, tuple[str, ...]], ...]: Kind("table from text to text or texts", Fields.lists),
    tuple[tuple[str, str], ...]: Kind("table from text to text", Fields.pairs),
    tuple[tuple[str, Forms], ...]: Kind("table from text to the rows of each form", Fields.row_tables),
    tuple[tuple[str, Decimal], ...]: Kind("table from text to number", Fields.number_pairs),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a table.

    Args:
        field: the record's field that it fills.
        meaning: for people, without a full stop.
        default: what holds without it, in TOML or in words; None if the key must be there.
    """

    field: str
    kind: Kind
    meaning: str
    default: str | None


def key(meaning: str, without: str | None = None, *, table: str = "", name: str | None = None) -> Mapping[str, object]:
    """Return the metadata of a field that a key fills.

    Args:
        meaning: for people, without a full stop.
        without: what holds without it, if the field's default does not say that.
        table: the table in which it stands, if the record is made of several.
        name: the key's name, if it is not the field's.
    """
    return {"meaning": meaning, "without": without, "table": table, "name": name}


def optional_key(
    default: R, meaning: str, without: str | None = None, *, table: str = "", name: str | None = None
) -> R:
    """Return a field with a default that a key fills; see `key`."""
    return dataclasses.field(default=default, metadata=key(meaning, without, table=table, name=name))


@cache
def keys_of(record: type, table: str = "") -> Mapping[str, Key]:
    """Return the keys that fill a record, or those of them that stand in one table, by name."""
    return MappingProxyType(
        {
            one.metadata["name"] or one.name: Key(
                field=one.name, kind=_kind(one.type), meaning=one.metadata["meaning"], default=_default(one)
            )
            for one in dataclasses.fields(record)
            if one.metadata and one.metadata["table"] == table
        }
    )


def read_keys(record: type, fields: Fields, table: str = "", without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the record's fields whose keys are there, by name; a key that must be there and is not is refused.

    Args:
        fields: the table of the file.
        table: its name, if the record is made of several.
        without: fields whose keys are refused.
    """
    return {
        one.field: one.kind.read(fields, name)
        for name, one in keys_of(record, table).items()
        if one.field not in without and (one.default is None or fields.holds(name, object))
    }


def read_table(record: type[R], fields: Fields, **extra: object) -> R:
    """Return the record that a table stands for, read whole: a key that is not one of its keys is refused.

    Args:
        fields: the table of the file.
        given: fields that no key fills.
    """
    result = fields.checked(lambda: record(**read_keys(record, fields, without=tuple(extra)), **extra))
    fields.finish()
    return result


def _kind(hint: object) -> Kind:
    if isinstance(hint, UnionType):
        hint = next(one for one in get_args(hint) if one is not NoneType)
    return _KINDS[hint]


def _default(field: dataclasses.Field[object]) -> str | None:
    without: str | None = field.metadata["without"]
    return toml_value(field.default) if without is None and field.default is not dataclasses.MISSING else without
