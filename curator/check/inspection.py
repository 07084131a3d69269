"""A curator's report on its own table, before anyone else is involved.

It quotes raw values that the study does not know, so it is for the curator's own terminal: never log or send it.
"""

from collections.abc import Mapping
from pathlib import Path

from veiltab.common.core.texts.record_fields import field_values
from veiltab.common.core.texts.spelling import quoted
from veiltab.common.dataclass import dataclass
from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.study.file import Study
from veiltab.common.study.form_matching import (
    LOST_DIGITS,
    after,
    how_to_match,
    lost_digits,
    lost_zeros,
    without_partner,
)
from veiltab.common.study.forms import rows_of, sentence
from veiltab.common.study.members import CuratorMember
from veiltab.curator.check.id_forms import FormPart, FormReader, column_forms, few_alike, forms_text, plain_forms
from veiltab.curator.check.identity_check import IdentityInspection, inspect_identity
from veiltab.curator.check.identity_forms import identity_forms, written_columns
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.refusals import first_rows
from veiltab.curator.table.column_coding import ColumnReading, UnknownValue
from veiltab.curator.table.table import IdRow, size_text
from veiltab.curator.table.table_reading import Reading, read_table
from veiltab.curator.table.unknown_values import unknown_values

_SHOWN = 20

_MUCH_DROPPED = 0.01
"""Part of the rows that an attribute may drop before the report says what keeps them."""


_MUCH_CLIPPED = 0.01
"""Part of the rows that may lie outside a grid before the report says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeInspection:
    """The values of one attribute's column, over all rows read.

    Args:
        column: the column of the table.
        counts: category -> rows, in symbol order; missing values that become a category are among them.
        missing: rows with a missing value.
        clipped: rows with a number outside the grid that became an end of it.
        missing_rule: "drop", or the category that missing values become.
        unknown_rows: rows with a value that the study does not know.
        unknown: those values, at most a thousand different ones.
    """

    name: str
    column: str
    counts: dict[str, int]
    missing: int
    clipped: int
    missing_rule: str
    unknown_rows: int
    unknown: tuple[UnknownValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The report on one table.

    Args:
        path: where the table is, without a password.
        lines: lines of a text file that are not empty, with the header's.
        rows: rows of the file, as far as it could be read.
        respondents: rows that stay: a good id, and no attribute dropped or unknown.
        first_id_row: the first row and its id.
        dropped: rows that leave because an attribute is missing.
        empty_ids: rows with an empty id.
        repeated_ids: rows whose id an earlier row has too.
        forms: how the columns that name respondents are written in the table; see `veiltab.common.study.forms`.
        normal_forms: how the id columns, or identity fields, are written once they are normalised.
        identity: what the table has of people's identity; None if it has ids.
        attributes: one report an attribute, in study order.
        problems: what keeps the table from being loaded, gravest first.
        notes: what does not, but deserves attention.
    """

    path: str
    description: str
    curator: str
    study: str
    study_digest: str
    lines: int | None
    rows: int
    respondents: int
    first_id_row: IdRow | None
    last_id_row: IdRow | None
    dropped: int
    empty_ids: int
    repeated_ids: int
    forms: Mapping[str, tuple[FormPart, ...]]
    normal_forms: Mapping[str, tuple[FormPart, ...]]
    alignment: str
    identity: IdentityInspection | None
    attributes: tuple[AttributeInspection, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the table can be loaded."""
        return not self.problems

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain data for JSON."""
        identity = None if self.identity is None else self.identity.as_dict()
        forms = {name: [one.without_value() for one in parts] for name, parts in self.forms.items()}
        plain = {"ok": self.ok, **field_values(self), "identity": identity, "forms": forms}
        del plain["normal_forms"]
        return plain

    def as_text(self) -> str:
        """Return the report for people: plain lines, raw values quoted so that none can control the terminal."""
        lines = [f"{self.path}: {'ready' if self.ok else 'not ready'} for curator {self.curator} of study {self.study}"]
        lines += [f"  problem: {problem}" for problem in self.problems]
        lines += [f"  {self.description}"] if self.description else []
        if self.rows or self.ok:
            lines += self._table_lines()
        return "\n".join(lines)

    def _table_lines(self) -> list[str]:
        """Return what the rows hold, as far as they could be read."""
        size = size_text(self.lines, self.rows, self.respondents)
        lines = [f"  {size}, {self.dropped:,} dropped as missing"]
        if self.first_id_row and self.last_id_row:
            lines.append(f"  {self.first_id_row}; {self.last_id_row}")
        if self.identity is not None:
            lines += self.identity.lines()
            lines += [f"  column {name}: written as {forms_text(parts)}" for name, parts in self.forms.items()]
        else:
            raw, normal = (", ".join(map(forms_text, forms.values())) for forms in (self.forms, self.normal_forms))
            is_same = [*map(plain_forms, self.forms.values())] == [*map(plain_forms, self.normal_forms.values())]
            ids_text = f"written as {raw}" + ("" if is_same or not self.rows else f", and as {normal} once normalised")
            lines.append(f"  ids: {self.empty_ids:,} empty, {self.repeated_ids:,} repeated; {ids_text}")
        for attribute in self.attributes:
            lines += _attribute_lines(attribute)
        return [*lines, *(f"  note: {note}" for note in self.notes)]


def inspect_table(table: TableAddress | Path, study: Study, curator_name: str) -> Inspection:
    """Report on a curator's table; what is wrong with the file or its rows is in the report, not raised.

    Raises:
        InvalidInputError: if the study has no such curator.
    """
    curator = study.curator(curator_name)
    kinds = study.identity.kinds if study.identity else {}
    columns = written_columns(dict(curator.identity), kinds) if kinds else curator.id_columns
    readers = {name: FormReader() for name in columns}
    reading = read_table(table, study, curator_name, watch={name: one.take for name, one in readers.items()})
    identity = None if study.identity is None else inspect_identity(reading, study, study.identity, curator)
    normal = _normal_forms(reading, curator, kinds)
    mismatches, remarks = _mismatches(study, curator, normal)
    return Inspection(
        path=TableAddress.of(table).label,
        description=reading.description,
        curator=curator_name,
        study=study.id,
        study_digest=study.digest,
        lines=reading.lines,
        rows=reading.rows_read,
        respondents=len(reading.respondents),
        first_id_row=reading.ends[0] if reading.ends else None,
        last_id_row=reading.ends[-1] if reading.ends else None,
        dropped=reading.rows_dropped,
        empty_ids=reading.empty_ids,
        repeated_ids=reading.repeated_ids,
        forms={name: reader.parts() for name, reader in readers.items()},
        normal_forms=normal,
        alignment=study.alignment,
        identity=identity,
        attributes=tuple(_attribute(column) for column in reading.columns),
        problems=(*_problems(reading), *mismatches, *(identity.problems if identity else ())),
        notes=(*remarks, *_notes(reading, study), *(identity.notes if identity else ())),
    )


def _problems(reading: Reading) -> list[str]:
    """Return what is wrong with a table, with the values that the study does not know."""
    columns = [column for column in reading.columns if column.unknown_rows]
    lines = {
        str(unknown_values(error.where, column)): str(unknown_values(error.where, column, is_shown=True))
        for error in reading.errors
        for column in columns
    }
    return [lines.get(str(error), str(error)) for error in reading.errors]


def _normal_forms(
    reading: Reading, curator: CuratorMember, kinds: Mapping[str, FieldKind]
) -> dict[str, tuple[FormPart, ...]]:
    """Return how ids, or identity fields, are written once they are normalised."""
    ids = reading.respondents.all_ids()
    if kinds:
        there = dict(curator.identity)
        return {name: parts for name, parts in identity_forms(ids, kinds).items() if name in there}
    return dict(zip(curator.id_columns, column_forms(ids, len(curator.id_columns)), strict=True))


def _mismatches(
    study: Study, curator: CuratorMember, normal: Mapping[str, tuple[FormPart, ...]]
) -> tuple[list[str], list[str]]:
    """Return why ids cannot be those of another curator, and notes on rows that are written as none of its rows."""
    problems, notes = [], []
    for name, parts in normal.items():
        own = plain_forms(parts)
        notes += few_alike(name, parts)
        if lost := lost_digits(own):
            problems.append(
                f"{lost:,} ids ({name}) {LOST_DIGITS}: export the column as text from where its digits are whole"
            )
        if lost_zeros(own) and not curator.identity:
            notes.append(
                f"{name} has numbers with leading zeros beside others that may have lost them: {forms_text(parts)};"
                ' "integer" or "zfill:N" in normalise of all makes them alike'
            )
        for other in study.curators:
            there = dict(zip(curator.id_columns, other.id_columns, strict=False))
            recorded = dict(other.forms).get(name if curator.identity else there.get(name, ""), ())
            if other.name == curator.name or not own or not recorded or lost:
                continue
            theirs = after(recorded, other.normalise)
            alone = without_partner(own, theirs)
            mismatch = f"{name} is written as {sentence(own)}, by {other.name} as {sentence(theirs)}"
            if alone == own and not curator.identity:
                problems.append(f"ids cannot match: {mismatch}. {how_to_match(curator.name, own, other.name, theirs)}")
            elif alone:
                notes.append(f"{rows_of(alone):,} of {rows_of(own):,} rows can be none of {other.name}: {mismatch}")
    return problems, notes


def _attribute(column: ColumnReading) -> AttributeInspection:
    """Name the counts of a column."""
    rule = column.rule
    return AttributeInspection(
        name=rule.name,
        column=rule.column,
        counts=dict(zip(rule.coding.categories, column.counts, strict=True)),
        missing=column.missing,
        clipped=column.clipped,
        missing_rule=rule.coding.missing or "drop",
        unknown_rows=column.unknown_rows,
        unknown=column.unknown,
    )


def _notes(reading: Reading, study: Study) -> tuple[str, ...]:
    """Return notes about a table that can be loaded."""
    notes = []
    if len(reading.respondents) < study.minimum_population:
        notes.append(
            f"{len(reading.respondents)} respondents are fewer than the study's minimum_population of"
            f" {study.minimum_population}: every release would be refused"
        )
    for column in reading.columns if reading.rows_read else ():
        if column.missing > _MUCH_DROPPED * reading.rows_read and column.rule.coding.missing is None:
            notes.append(
                f"attribute {column.rule.name}: {column.missing / reading.rows_read:.1%} of the rows miss it and leave"
                f' every release, also those without {column.rule.name}; missing = "category" in the study keeps them'
            )
        if column.clipped > _MUCH_CLIPPED * reading.rows_read:
            notes.append(
                f"attribute {column.rule.name}: {column.clipped / reading.rows_read:.1%} of the rows lie outside the"
                " grid and count at its ends, which shifts means; compare the units of the column and the grid"
            )
        if column.rule.coding.grid:  # that nobody is near a point matters to nobody
            continue
        empty = [c for c, n in zip(column.rule.coding.categories, column.counts, strict=True) if n == 0]
        if empty:
            notes.append(f"attribute {column.rule.name}: no row is {', '.join(empty[:_SHOWN])}")
    return tuple(notes)


def _attribute_lines(attribute: AttributeInspection) -> list[str]:
    """Return one attribute's report as lines."""
    lines = [f"  {attribute.name} (column {attribute.column})"]
    lines += [f"    {count:>12,}  {category}" for category, count in attribute.counts.items()]
    if attribute.missing and attribute.missing != attribute.counts.get(attribute.missing_rule):
        rule = "dropped" if attribute.missing_rule == "drop" else f"counted as {attribute.missing_rule}"
        lines.append(f"    {attribute.missing:>12,}  missing, {rule}")
    if attribute.clipped:
        lines.append(f"    {attribute.clipped:>12,}  outside the grid, counted at its ends")
    for unknown in attribute.unknown[:_SHOWN]:
        lines.append(f"    {unknown.rows:>12,}  unknown value {quoted(unknown.value)}{first_rows(unknown.first_rows)}")
    if len(attribute.unknown) > _SHOWN:
        lines.append(f"    {attribute.unknown_rows:>12,}  unknown in all")
    return lines
