"""A curator's report on the identity fields of its own table: what is there, what depends on them, which passes run.

It holds counts and names of columns, and values that far too many rows share: for the curator's own terminal.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.core.texts.spelling import quoted
from veiltab.common.dataclass import asdict, dataclass
from veiltab.common.linkage.dominance import dominating, dominating_dates
from veiltab.common.linkage.identity_rule import FieldKind, IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.row_keys import NormalColumn, NormalRows, identity_columns, normal_rows, pass_keys
from veiltab.common.linkage.self_match import SelfMatch, self_matches
from veiltab.common.study.coding.dates import today
from veiltab.common.study.file import Study
from veiltab.common.study.members import CuratorMember
from veiltab.curator.formats.columns.refusals import first_rows
from veiltab.curator.formats.columns.source import FIRST_ROW
from veiltab.curator.table.table_reading import Reading

_MOST_ROWS = 2_000_000
"""Rows of which the self-match shares are computed here; the memory holds the keys of one pass."""

_FEWEST_PAIRS = 50
"""Pairs of rows with one value of a field, from which it is said whether an attribute depends on it."""

_MUCH_LESS = 4
"""Times that rows with one value of a field disagree less often than any rows do, where an attribute depends on it."""


_READABLE = 0.5
"""Share of the dates that are there of which at least as many can be read in a table that is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldInspection:
    """One identity field of a table.

    Args:
        columns: that make it up; none if the table lacks it.
        present: rows with a value once it is normalised.
        distinct: different values among them.
        dominating: values that far more rows share than others, with their rows; 01-01 is that day of any year.
    """

    name: str
    columns: tuple[str, ...]
    present: int
    distinct: int
    dominating: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityInspection:
    """What a table has of people's identity.

    Args:
        hub: the curator to whose rows all others link.
        rows: all, which take part in the linkage.
        leaving: of them those that leave after it, because they miss a value of an attribute.
        unlinkable: rows that lack a field of every key whose fields this table has.
        ambiguous: rows that agree with another one on the first key of these without a deletion.
        fields: in the order of the identity.
        derived: attribute -> why a change of somebody's identity fields changes it.
        passes: of the hub, each pass of the ladder; none for other curators.
        problems: what keeps rows from being linked.
    """

    hub: str
    rows: int
    leaving: int
    unlinkable: int
    ambiguous: int
    fields: tuple[FieldInspection, ...]
    derived: dict[str, str]
    passes: tuple[SelfMatch, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data for JSON."""
        return {
            **same_fields(self, ("hub", "leaving", "unlinkable", "ambiguous", "derived")),
            "fields": [asdict(one) for one in self.fields],
            "passes": [
                {
                    "key": one.step.name,
                    "self_match": float(one.share),
                    "foreseen_wrong": float(one.foreseen),
                    "runs": one.does_run,
                }
                for one in self.passes
            ],
        }

    def lines(self) -> list[str]:
        """Return it for people."""
        rows = ["  identity fields, once they are normalised:"]
        for one in self.fields:
            columns = f"column {' + '.join(one.columns)}" if one.columns else "not in this table"
            rows.append(f"    {one.present:>12,}  {one.name} ({columns}), {one.distinct:,} different")
        if self.rows:
            rows.append(
                f"  {self.unlinkable:,} of {self.rows:,} rows ({self.unlinkable / self.rows:.1%}) cannot be linked:"
                f" they lack a field of every key; {self.ambiguous:,} agree with another row on the first key"
            )
        if self.leaving:
            rows.append(
                f"  {self.leaving:,} of {self.rows:,} rows leave after the linkage, in which they take part: they miss"
                " a value of an attribute"
            )
        rows.append(f"  {hub_sentence(self.hub)}")
        rows += [f"  attribute {name} {why}" for name, why in self.derived.items()]
        if self.derived:
            rows.append(
                "    the guarantee for attributes given the links does not cover them: another value of such a field"
                " can make other links"
            )
        if self.passes:
            rows.append("  passes, in their order, with the share of rows that one other row could be taken for:")
            for step in self.passes:
                runs = "runs" if step.does_run else "does not run"
                rows.append(f"    {float(step.share):>12.5%}  {step.step.name}: {runs}")
        return rows


def hub_sentence(hub: str) -> str:
    """Say what being the hub means."""
    return (
        f"{hub} is the hub: nobody's presence in its table is protected, and its identity fields are taken as they are."
        " Choose the table in which presence is no secret, such as a register of residents."
    )


def inspect_identity(
    reading: Reading, study: Study, identity: IdentityRule, curator: CuratorMember
) -> IdentityInspection:
    """Report on the identity fields of a table that was read."""
    rows, symbols, filled, complete = _rows(reading, identity, curator)
    columns = dict(curator.identity)
    passes: tuple[SelfMatch, ...] = ()
    notes: list[str] = []
    if curator.name == identity.hub and not reading.errors:
        if len(rows) <= _MOST_ROWS:
            passes = self_matches(identity, rows)
            notes += _pass_notes(identity, passes)
        else:
            notes.append(f"which passes run is decided when it aligns: the table has more than {_MOST_ROWS:,} rows")
    present = {name: _present(rows.columns[name]) for name in identity.names}
    common = columns.keys() & dict(study.curator(identity.hub).identity).keys()
    keys = [step for step in identity.ladder if step.fields <= common]
    ambiguous, repeated = _ambiguous(keys, rows)
    notes += repeated if curator.name != identity.hub else []
    linkable = [np.logical_and.reduce([present[name] for name in step.fields]) for step in keys]
    fields = tuple(_field(name, columns.get(name, ()), rows.columns[name]) for name in identity.names)
    notes += [
        f"identity field {one.name}: {count:,} rows ({count / len(rows):.1%}) share {quoted(value)}, far more than"
        " share others: if it stands for a missing value, write it into"
        f" {'default_dates' if identity.kinds[one.name] is FieldKind.BIRTH else 'missing_values'} of [identity]; else"
        " strangers agree on it"
        for one in fields
        for value, count in one.dominating
    ]
    order = f", and with date_order = {curator.date_order!r}"
    notes += [
        f"identity field {one.name}: {1 - one.present / len(rows):.1%} of the rows have none that can be read; compare"
        f" how the column is written with its kind{order if identity.kinds[one.name] is FieldKind.BIRTH else ''}"
        for one in fields
        if one.columns and len(rows) and one.present < 0.9 * len(rows)
    ]
    return IdentityInspection(
        hub=identity.hub,
        rows=len(rows),
        leaving=reading.rows_dropped,
        unlinkable=len(rows) - int(np.logical_or.reduce(linkable).sum()) if linkable else len(rows),
        ambiguous=ambiguous,
        fields=fields,
        derived=dict(_derived(study, identity, curator, rows, symbols, complete)),
        passes=passes,
        problems=(*_unreadable(identity, curator, fields, filled), *_after_today(identity, rows, reading)),
        notes=tuple(notes),
    )


def _unreadable(
    identity: IdentityRule, curator: CuratorMember, fields: Sequence[FieldInspection], filled: Sequence[int]
) -> Iterator[str]:
    """Yield the fields whose values cannot be read, though they are there."""
    for one, there in zip(fields, filled, strict=True):
        is_birth = identity.kinds[one.name] is FieldKind.BIRTH
        if one.present < min(there, _READABLE * there if is_birth else 1):
            yield (
                f"identity field {one.name}: {one.present / there:.1%} of the dates can be read with date_order ="
                f" {curator.date_order!r}; write the order in which the table has them into the study file, and"
                " first_year where years have two digits"
                if is_birth
                else f"identity field {one.name}: no value can be read; docs/linkage-keys.md says how it is written"
            )


def _rows(
    reading: Reading, identity: IdentityRule, curator: CuratorMember
) -> tuple[NormalRows, dict[str, Symbols], list[int], NDArray[np.bool_]]:
    """Return the identity fields of all rows, normalised, symbols of complete ones, filled rows, and who is complete.

    Of a table with errors it has the complete rows alone.
    """
    parts: list[list[pa.Array]] = [[] for _ in identity.fields]
    symbols: dict[str, list[Symbols]] = {column.rule.name: [] for column in reading.columns}
    complete = reading.respondents.mask()
    if reading.errors:  # a row may have no fields, or no symbols for another reason than a missing value
        complete = complete[complete]
    for ids in (b.ids for b in reading.respondents.batches()) if reading.errors else reading.respondents.all_ids():
        for part, column in zip(parts, identity_columns(ids, identity), strict=True):
            part.append(column)
    for batch in reading.respondents.batches():
        for name, some in symbols.items():
            some.append(batch.columns[name])
    arrays = [pa.chunked_array(part, pa.large_string()).combine_chunks() for part in parts]
    filled = [len(one) - int(pc.sum(pc.equal(pc.utf8_trim_whitespace(one), "")).as_py() or 0) for one in arrays]
    together = {name: np.concatenate([np.empty(0, np.uint8), *some]) for name, some in symbols.items()}
    return normal_rows(identity, curator.dates, arrays), together, filled, complete


def _field(name: str, columns: tuple[str, ...], column: NormalColumn) -> FieldInspection:
    """Return the inspection of one field."""
    rows = np.bincount(np.asarray(column.places, np.int64), minlength=len(column.values)).tolist()
    counts = Counter[str]()
    for value, count in zip(column.values, rows, strict=True):
        counts[value] += count
    present = sum(rows) - counts.pop("", 0)
    often = dominating_dates if column.kind is FieldKind.BIRTH else dominating
    shared = () if column.kind is FieldKind.SEX else often(counts)
    return FieldInspection(name=name, columns=columns, present=present, distinct=len(counts), dominating=shared)


def _after_today(identity: IdentityRule, rows: NormalRows, reading: Reading) -> Iterator[str]:
    """Yield that dates of birth are after today, in which rows if all were read."""
    day = today().strftime("%Y%m%d")
    for name in (name for name, kind in identity.fields if kind is FieldKind.BIRTH):
        column = rows.columns[name]
        late = np.array([*(value > day for value in column.values), False])[np.asarray(column.places, np.int64)]
        if count := int(late.sum()):
            first = "" if reading.errors else first_rows((np.flatnonzero(late)[:3] + FIRST_ROW).tolist())
            yield (
                f"identity field {name}: {count:,} dates are after today{first}; correct them, or write them into"
                " default_dates of [identity] if they stand for a missing one"
            )


def _present(column: NormalColumn) -> NDArray[np.bool_]:
    there = np.array([*map(bool, column.values), False])
    return np.asarray(there[np.asarray(column.places, np.int64)])


def _pass_notes(identity: IdentityRule, passes: tuple[SelfMatch, ...]) -> Iterator[str]:
    """Yield what keeps passes from running."""
    absent = [one for one in passes if not one.does_run]
    if len(absent) == len(passes):
        yield "no pass of the ladder runs: too many rows of this table could be taken for one another"
    for one in absent:
        yield (
            f"the pass {one.step.name!r} does not run: {float(one.share):.3%} of the rows could be taken for another,"
            f" and {float(one.foreseen):.3%} wrong links are foreseen with it, of at most {float(identity.cap):.3%}"
        )


def _ambiguous(keys: Sequence[Pass], rows: NormalRows) -> tuple[int, list[str]]:
    """Return how many rows agree with another one on the first key without a deletion, and a note for spokes."""
    step = next((step for step in keys if not step.deletion), None)
    if step is None or len(rows) > _MOST_ROWS:
        return 0, []
    times = Counter(key for keys_of_row in pass_keys(step, rows) for key in keys_of_row)
    alike = sum(count for count in times.values() if count > 1)
    advice = (
        f"{alike:,} rows agree on the key {step.name!r} with another row of this table: the hub's row accepts none"
        " of them; remove duplicates"
    )
    return alike, [advice] if alike else []


def _derived(  # noqa: PLR0913, PLR0917 - what a table has
    study: Study,
    identity: IdentityRule,
    curator: CuratorMember,
    rows: NormalRows,
    symbols: dict[str, Symbols],
    complete: NDArray[np.bool_],
) -> Iterator[tuple[str, str]]:
    """Yield the attributes that depend on identity fields, and why."""
    own = {column: name for name, columns in curator.identity for column in columns}
    codes = {what: places[complete] for what, places in _codes(identity, rows)}
    for rule in study.attributes_of(curator.name):
        if rule.column in own:
            yield rule.name, f"is made of the column of the identity field {own[rule.column]}"
            continue
        values = symbols[rule.name].astype(np.int64)
        for what, places in codes.items():
            if _depends(places, values, rule.attribute.size):
                yield rule.name, f"is as good as known from {what}"
                break


def _codes(identity: IdentityRule, rows: NormalRows) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield each field's values as numbers, and the year of a date; -1 is missing."""
    for name, kind in identity.fields:
        column = rows.columns[name]
        for what, length in [(name, None), *([(f"the year of {name}", 4)] if kind is FieldKind.BIRTH else [])]:
            numbers: dict[str, int] = {}
            of_value = [numbers.setdefault(value[:length], len(numbers)) if value else -1 for value in column.values]
            yield what, np.array([*of_value, -1])[np.asarray(column.places, np.int64)]


def _depends(places: NDArray[np.int64], values: NDArray[np.int64], size: int) -> bool:
    """Return whether rows with one value of a field disagree on an attribute much less often than any two rows."""
    there = places >= 0
    groups, attribute = places[there], values[there]
    if not len(groups):
        return False
    pairs = _pairs(groups)
    if pairs < _FEWEST_PAIRS:
        return False
    disagree = 1 - _pairs(groups * size + attribute) / pairs
    all_pairs = len(attribute) * (len(attribute) - 1) / 2
    usual = 1 - _pairs(attribute) / all_pairs
    return usual > 0 and disagree * _MUCH_LESS < usual


def _pairs(codes: NDArray[np.int64]) -> float:
    """Return how many pairs of rows have one code."""
    _, counts = np.unique(codes, return_counts=True)
    return float((counts * (counts - 1.0) / 2).sum())
