"""The keys of rows: what two rows must share in a pass.

A key is the pass number as one byte and the pass's components, joined by U+001F. Equal keys of different passes differ.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import Part, Pass
from veiltab.common.linkage.normalisation import normaliser
from veiltab.common.linkage.soundex import soundex

Keys = tuple[bytes, ...]
"""Of one row in one pass: none if a component is missing, one, or the variants of a deletion pass."""

MOST_BYTES = 256
"""Of a key; a row whose key is longer sits out the pass."""

_SEPARATOR = "\x1f"
_NAME_LETTERS = 12
"""Letters of a name of which a deletion pass leaves out one; the rest of a longer name does not count there."""

_NAME_VARIANTS, _DATE_VARIANTS, _LONGEST_VARIANTS = 13, 9, 257
"""Most variants of a name of 12 letters, of a date of 8 digits, and of what fits a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalColumn:
    """One field of all rows.

    Args:
        values: distinct normalised values; "" is missing.
        places: of each row's value among them.
    """

    kind: FieldKind
    values: Sequence[str]
    places: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalRows:
    """The identity fields of some rows, normalised.

    Args:
        rows: how many.
    """

    columns: dict[str, NormalColumn]
    rows: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows

    def values(self, field: str) -> list[str]:
        """Return one field's normalised value of each row; "" is missing."""
        column = self.columns[field]
        return [column.values[place] for place in column.places]


def normal_rows(identity: IdentityRule, date_order: str, columns: Sequence[Any]) -> NormalRows:
    """Normalise the identity fields of some rows.

    Args:
        date_order: how this table writes dates; see `normaliser`.
        columns: one a field, in the order of the identity's fields, all of one length: a pyarrow text array or a
            sequence of texts; None is missing.

    Raises:
        InvalidInputError: columns are too few or too many, or differ in length.
    """
    if len(columns) != len(identity.fields) or len({len(column) for column in columns}) > 1:
        raise InvalidInputError(
            f"there are {len(columns)} columns of identity fields, or they differ in length",
            remedy=f"Give one for each of: {', '.join(identity.names)}.",
        )
    return NormalRows(
        columns={
            name: _normal_column(
                kind, column, normaliser(kind, date_order, identity.default_dates, identity.missing_values)
            )
            for (name, kind), column in zip(identity.fields, columns, strict=True)
        },
        rows=len(columns[0]),
    )


def pass_keys(step: Pass, rows: NormalRows) -> list[Keys]:
    """Return the keys of each row in one pass.

    Returns:
        One entry a row: () where a component is missing or the key is longer than 256 bytes, one key in an exact pass,
        and in a deletion pass one for each variant. Rows agree in a pass if they share a key.
    """
    components = [
        _component(rows, component)
        for component in step.parts
        if step.deletion not in {part.field for part in component}
    ]
    head = chr(step.number)
    plain = [
        head + _SEPARATOR.join(values) if all(values) else ""
        for values in (zip(*components, strict=True) if components else repeat((), len(rows)))
    ]
    if not step.deletion:
        return [(key,) if 0 < len(key) <= MOST_BYTES else () for key in map(str.encode, plain)]
    column = rows.columns[step.deletion]
    variants = [[one.encode() for one in _variants(value, column.kind)] for value in column.values]
    return [
        _checked(tuple(map((key + _SEPARATOR).encode().__add__, variants[place]))) if key else ()
        for key, place in zip(plain, column.places, strict=True)
    ]


def most_variants(step: Pass, identity: IdentityRule) -> int:
    """Return how many keys a row has in a pass at most."""
    if not step.deletion:
        return 1
    match identity.kinds[step.deletion]:
        case FieldKind.GIVEN | FieldKind.FAMILY:
            return _NAME_VARIANTS
        case FieldKind.BIRTH:
            return _DATE_VARIANTS
        case _:
            return _LONGEST_VARIANTS


def _normal_column(kind: FieldKind, column: Any, normal: Callable[[str], str]) -> NormalColumn:  # noqa: ANN401 - pyarrow ships no types
    if hasattr(column, "dictionary_encode"):
        encoded = column.fill_null("").dictionary_encode()
        raw, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().tolist()
    else:
        numbers: dict[str, int] = {}
        places = [numbers.setdefault(value or "", len(numbers)) for value in column]
        raw = list(numbers)
    return NormalColumn(kind=kind, values=[normal(value) for value in raw], places=places)


def _component(rows: NormalRows, parts: Sequence[Part]) -> list[str]:
    """Return one component of each row; "" if one of its parts is missing."""
    columns = [_part(rows.columns[part.field], part.cut) for part in parts]
    if len(columns) == 1:
        return columns[0]
    return [_SEPARATOR.join(sorted(pair)) if all(pair) else "" for pair in zip(*columns, strict=True)]


def _part(column: NormalColumn, cut: str) -> list[str]:
    values = _cut(column.values, cut)
    return [values[place] for place in column.places]


def _cut(values: Sequence[str], cut: str) -> Sequence[str]:
    match cut:
        case "":
            return values
        case "sound":
            return [soundex(value) for value in values]
        case "year":
            part = slice(4)
        case "month":
            part = slice(4, 6)
        case "day":
            part = slice(6, None)
        case _:
            part = slice(int(cut))
    return [value[part] for value in values]


def _variants(value: str, kind: FieldKind) -> tuple[str, ...]:
    """Return a value, and what is left of it without each one of its characters; nothing of an empty value."""
    if kind in {FieldKind.GIVEN, FieldKind.FAMILY}:
        value = value[:_NAME_LETTERS]
    if len(value) > MOST_BYTES:  # no key holds it, and its variants would take the square of its length
        return ()
    return tuple({one: None for one in (value, *(value[:i] + value[i + 1 :] for i in range(len(value)))) if one})


def _checked(keys: Keys) -> Keys:
    return keys if max(map(len, keys), default=0) <= MOST_BYTES else ()


def identity_columns(ids: Any, identity: IdentityRule) -> list[Any]:  # noqa: ANN401 - pyarrow ships no types
    """Return the columns of the identity's fields from the texts that stand in the place of ids.

    Args:
        ids: pyarrow Array or ChunkedArray of large_string: of each row its fields in the order of the identity, as they
            are in the table, joined by U+001F; "" where the table has none.

    Returns:
        One large_string array a field.

    Raises:
        InvalidInputError: a text has more or fewer fields.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - not for keys of lists

    count = len(identity.fields)
    if count == 1:
        return [ids]
    parts = pc.split_pattern(ids, _SEPARATOR)
    if not pc.all(pc.equal(pc.list_value_length(parts), count), min_count=0).as_py():
        raise InvalidInputError(
            f"a row has other than {count} identity fields", remedy="Start the curator again: it reads its table again."
        )
    return [pc.list_element(parts, place) for place in range(count)]
