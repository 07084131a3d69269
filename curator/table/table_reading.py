"""A curator's own table: ids and symbols of its respondents, checked, coded and digested in one pass over the file."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.texts.canonical import canonical_json
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.study.coding.coding import DROP
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.common.study.file import Study
from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.columns.numerals import Notation
from veiltab.curator.formats.columns.refusals import NotedRows, first_rows, refusal, row_count, rows_have
from veiltab.curator.formats.columns.source import FIRST_ROW, Batch, Source
from veiltab.curator.formats.opening import open_table
from veiltab.curator.table.column_coding import FIRST, ColumnReader, ColumnReading
from veiltab.curator.table.content_digest import ContentDigest
from veiltab.curator.table.ids import RepeatedIds, joined_identity, normalised_ids
from veiltab.curator.table.table import IdRow, Table
from veiltab.curator.table.table_rows import TableRows, rows_on_disk

Watch = Mapping[str, Callable[[pa.Array], None]]
"""Id columns, and what looks at their values as they are in the table, batch by batch."""

_NOBODY: Watch = MappingProxyType({})
_COMPLETE = ""
"""In the place of an attribute's name in a digest: which rows are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of one pass over a table's file; it makes a table if there are no errors.

    Args:
        respondents: normalised ids and symbols of the kept rows.
        columns: one a wanted attribute, in study order.
        rows_read: rows of the file, as far as it could be read.
        rows_dropped: rows that left because an attribute is missing.
        empty_ids: rows with an empty id.
        repeated_ids: rows whose id an earlier row has too.
        errors: what keeps the file from being a table, gravest first; none quotes a value or an id.
        description: how the table looks, for people; "" if it could not be opened.
        content_digest: as that of a table.
        header: names of its columns; none if it could not be opened.
        lines: lines of a text file that are not empty, with the header's.
        ends: the first row and the last one.
    """

    respondents: TableRows
    columns: tuple[ColumnReading, ...]
    rows_read: int
    rows_dropped: int
    empty_ids: int
    repeated_ids: int
    errors: tuple[InvalidInputError, ...]
    description: str
    content_digest: str
    header: frozenset[str] = frozenset()
    lines: int | None = None
    ends: tuple[IdRow, ...] = ()


def load_table(table: TableAddress | Path, study: Study, curator_name: str, *, run: RunFiles | None = None) -> Table:
    """Load the table of a curator.

    Args:
        study: says which columns are ids and attributes, and how they are coded.
        curator_name: the curator whose table this is.
        run: holds its rows from then on; without one they are among the temporary files, for this process alone.

    Raises:
        InvalidInputError: for the gravest thing wrong with the file or its rows; it names counts and row numbers (the
            header is row 1), never an id or a value.
    """
    reading = read_table(table, study, curator_name, run=run)
    if reading.errors:
        raise reading.errors[0]
    return Table(
        respondents=reading.respondents,
        rows_read=reading.rows_read,
        rows_dropped=reading.rows_dropped,
        missing={c.rule.name: c.missing for c in reading.columns if c.rule.coding.missing is None},
        content_digest=_digest_of(reading, study, curator_name),
        description=reading.description,
        lines=reading.lines,
        ends=reading.ends,
    )


def _digest_of(reading: Reading, study: Study, curator_name: str) -> str:
    """Return the digest of a table that is kept: rows that are linked by other rules count as another table."""
    if study.identity is None:
        return reading.content_digest
    rules = study.identity.description(), study.curator(curator_name).dates
    return hashlib.sha256(canonical_json([reading.content_digest, *rules]).encode()).hexdigest()


def read_table(
    table: TableAddress | Path, study: Study, curator_name: str, *, watch: Watch = _NOBODY, run: RunFiles | None = None
) -> Reading:
    """Read a curator's table and gather all errors, not only the first; `run` as for `load_table`."""
    curator = study.curator(curator_name)
    rules = study.attributes_of(curator_name)
    reading = read_respondents(
        table,
        curator.id_columns,
        curator.normalise,
        rules,
        watch=watch,
        run=run,
        most_rows=study.maximum_respondents,
        identity=[dict(curator.identity).get(name, ()) for name in study.identity.names] if study.identity else (),
    )
    has_no_rows = reading.description and reading.errors and not reading.rows_read
    if has_no_rows and (other := _whose(reading.header, study, curator_name)):
        problem = f"this seems to be the table of curator {other}, whose columns its header has"
        error = refusal(reading.errors[0].where, problem, f"Give that of {curator_name}, or --name {other}.")
        reading = replace(reading, errors=(error, *reading.errors))
    if curator.complete and reading.rows_dropped:
        names = ", ".join(one.rule.name for one in reading.columns if one.missing and one.rule.coding.missing is None)
        problem = f"a complete table leaves no row out, and {rows_have(reading.rows_dropped)} no value of {names}"
        remedy = 'Give these attributes missing = "category", or the curator no `complete`, in the study file.'
        error = refusal(TableAddress.of(table).label, problem, remedy)
        reading = replace(reading, errors=(*reading.errors, error))
    return reading


def _whose(header: frozenset[str], study: Study, curator_name: str) -> str:
    """Return the curator whose columns a header has, if it has not those of this one; "" if nobody's are."""
    columns = {one.name: {rule.column for rule in study.attributes_of(one.name)} for one in study.curators}
    needs = {one.name: {*one.id_columns} | columns[one.name] for one in study.curators if columns[one.name]}
    if needs.get(curator_name, set()) <= header:
        return ""
    return next((name for name, own_columns in needs.items() if own_columns <= header), "")


def read_respondents(  # noqa: PLR0913 - what reading a table consists of
    table: TableAddress | Path,
    id_columns: Sequence[str],
    normalise: Sequence[str],
    rules: Sequence[AttributeRule],
    *,
    watch: Watch = _NOBODY,
    run: RunFiles | None = None,
    source: Source | None = None,
    most_rows: int | None = None,
    identity: Sequence[Sequence[str]] = (),
) -> Reading:
    """Read a table by rules of its own; see `CuratorMember` for what makes a respondent, and `read_table`.

    Anyone who has opened it gives the `source`: opening a spreadsheet reads all of it. With an `identity`, which has
    the columns of each field, rows are kept whatever is empty or occurs twice: linking leaves out whom it cannot name.
    Rows that miss a value take part in it, and leave then.
    """
    rows = _Rows(id_columns, normalise, rules, run, watch=watch, identity=identity)
    address, errors = TableAddress.of(table), list[InvalidInputError]()
    description, header, lines = "", frozenset[str](), None
    try:
        source = source or open_table(address)
        if query := address.query:
            from veiltab.curator.formats.databases.own_rows import check_own_rows  # noqa: PLC0415 - not without a query

            check_own_rows(source.where, query, id_columns)
        description, header = source.description, frozenset(column.name for column in source.columns)
        names, floats_as_ids = {rule.column for rule in rules}, "integer" in normalise or bool(identity)
        columns = NamedColumns(source, id_columns, names, floats_as_ids=floats_as_ids)
        for reader in rows.columns:
            if reader.rule.coding.are_numbers:
                reader.numerals = columns.numerals(reader.rule.column, address.decimal)
        for batch in columns.batches(most_rows=most_rows):
            rows.take(batch)
        # The description of a query of a file has now the rows that it read.
        lines, description = source.lines, source.description
    except InvalidInputError as error:
        errors.append(error)
    return replace(rows.reading(address.label, description, errors), header=header, lines=lines)


class _Rows:
    """A table while its file is read."""

    def __init__(  # noqa: PLR0913 - what reading a table consists of
        self,
        id_columns: Sequence[str],
        normalise: Sequence[str],
        rules: Sequence[AttributeRule],
        run: RunFiles | None,
        *,
        watch: Watch,
        identity: Sequence[Sequence[str]],
    ) -> None:
        self._id_columns, self._normalise, self._identity = id_columns, normalise, identity
        self.columns = [ColumnReader(rule) for rule in rules]
        self._watch = watch
        self._count = self._dropped = 0
        self._empty, self._separated, self._broken = NotedRows(), NotedRows(), NotedRows()
        self._ends: list[IdRow] = []
        types = {column.rule.name: column.dtype for column in self.columns}
        self._respondents = rows_on_disk(types, run)
        self._repeats = RepeatedIds(None if run is None else run.folder)
        self._digest = ContentDigest([*(rule.name for rule in rules), *([_COMPLETE] if identity else [])])

    def take(self, batch: Batch) -> None:
        """Code the rows of a batch, and note the rows to keep."""
        first_row = FIRST_ROW + self._count
        if self._identity:
            ids = joined_identity(batch.texts, self._identity)
        else:
            ids = normalised_ids([batch.texts[name] for name in self._id_columns], self._normalise)
        mask = ids.whole.copy()
        drops = np.zeros(batch.rows, np.bool_)
        codes = [
            column.codes(batch.coded[column.rule.column], first_row, batch.exact.get(column.rule.column))
            for column in self.columns
        ]
        for code in codes:
            mask &= code >= 0
            drops |= code == DROP
        for place in sorted({0, batch.rows - 1} if batch.rows else ()):
            values = [batch.texts[name][place].as_py() or "" for name in self._id_columns]
            self._ends[1:] = [IdRow(row=first_row + place, id=", ".join(values))]
        all_kept = bool(mask.all())
        symbols = {
            column.rule.name: (code if all_kept else code[mask]).astype(column.dtype)
            for column, code in zip(self.columns, codes, strict=True)
        }
        self._count += batch.rows
        self._dropped += int(np.count_nonzero(drops))
        for noted, rows in (self._empty, ids.empty), (self._separated, ids.separated), (self._broken, ids.broken):
            noted.note_all(np.flatnonzero(rows) + first_row)
        for name, look_at in self._watch.items():
            look_at(batch.texts[name])
        if not self._identity:
            self._repeats.take(ids.values)
        self._respondents.append(ids.values, mask, symbols)
        if self._identity:  # a row that leaves after the linkage has a part in it
            digested, symbols = ids.values, symbols | {_COMPLETE: mask.view(np.uint8)}
        else:
            digested = ids.values if all_kept else ids.values.filter(pa.array(mask))
        self._digest.update(digested, symbols)

    @property
    def _number_step(self) -> str:
        """What keeps a step of numbers from taking an id."""
        if {"first", "last", "digits"} & {*self._normalise}:
            return "is a number with decimals or an exponent, of which normalise would make another number"
        return 'is not a whole number, though normalise has "integer"'

    def reading(self, where: str, description: str, errors: Sequence[InvalidInputError]) -> Reading:
        """Find repeated ids among all rows, those that are not kept too."""
        repeats = self._repeats.rows(self._respondents.all_ids)
        columns = tuple(column.reading() for column in self.columns)
        problems = [*errors, *self._id_errors(where, repeats + FIRST_ROW)]
        problems += [_unknown(where, column) for column in columns if column.unknown_rows]
        if not problems and not len(self._respondents):
            problems.append(_no_rows(where, self._count))
        return Reading(
            respondents=self._respondents,
            columns=columns,
            rows_read=self._count,
            rows_dropped=self._dropped,
            empty_ids=self._empty.count,
            repeated_ids=len(repeats),
            errors=tuple(problems),
            content_digest=self._digest.hexdigest(),
            ends=tuple(self._ends),
            description=", ".join(text for text in (description, _commas(columns)) if text),
        )

    def _id_errors(self, where: str, repeats: NDArray[np.int64]) -> list[InvalidInputError]:
        """Say what is wrong with the ids, by counts and row numbers."""
        repeat = "repeats" if len(repeats) == 1 else "repeat"
        pairs = ", ".join(f"row {row} that of row {first}" for row, first in repeats[:FIRST].tolist())
        ids = f"id ({', '.join(self._id_columns)})"
        number = 'Correct them, or change normalise: "integer" is for whole numbers, "digits" for what holds others.'
        problems = [
            (noted.count, f"{rows_have(noted.count)} {lack}{first_rows(noted.first)}", remedy)
            for noted, lack, remedy in (
                (self._empty, f"an empty {ids}", "Give every respondent an id, or leave the row out."),
                (self._separated, f"the control character U+001F in an {ids}", "Remove it."),
                (self._broken, f"an {ids} that {self._number_step}", number),
            )
        ]
        problems.append(
            (
                len(repeats),
                f"{row_count(len(repeats))} {repeat} the {ids} of an earlier row, spelling apart: {pairs}",
                one_row_each(self._id_columns),
            )
        )
        return [InvalidInputError(problem, where=where, remedy=remedy) for count, problem, remedy in problems if count]


def one_row_each(id_columns: Sequence[str]) -> str:
    """Return what to do with a table that has several rows of a person."""
    ids = ", ".join(f'"{column}"' for column in id_columns)
    query = f"--query 'select {ids}, count(*) as visits from t group by {ids} order by {ids}'"  # noqa: S608 - for a person
    return f"Keep one row a respondent. Of visits and the like a query makes one: {query}; see docs/tables.md."


def _unknown(where: str, column: ColumnReading) -> InvalidInputError:
    from veiltab.curator.table.unknown_values import unknown_values  # noqa: PLC0415 - not for tables without such

    return unknown_values(where, column)


def _commas(columns: Sequence[ColumnReading]) -> str:
    """Say which columns have a decimal comma."""
    names = [column.rule.column for column in columns if column.notation is Notation.COMMA]
    return f"decimal comma in {', '.join(names)}" if names else ""


def _no_rows(where: str, rows: int) -> InvalidInputError:
    """Say that nobody is left."""
    problem = f"all {rows} rows miss a value" if rows else "the file has no rows"
    return InvalidInputError(problem, where=where, remedy="Give a table with at least one complete row.")
