"""Reads columns of a source by the names of the study: finds them in the header, and refuses types without a text."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator

from veiltab.common.command.cli import note
from veiltab.common.observe.progress import Progress
from veiltab.common.study.limits import MAX_RESPONDENTS
from veiltab.curator.formats.columns.refusals import absent_column, refusal
from veiltab.curator.formats.columns.source import Batch, Column, ColumnKind, Selection, Source

_UNREADABLE = {ColumnKind.OTHER}
_NO_ID = {ColumnKind.OTHER, ColumnKind.FLOATING}


def read_batches(
    source: Source,
    texts: Collection[str],
    coded: Collection[str],
    *,
    floats_as_ids: bool = False,
    most_rows: int | None = None,
) -> Iterator[Batch]:
    """Read columns of a table, batch by batch, in the order of its rows; where that takes long, say how far it is.

    Args:
        texts: columns wanted as text (ids).
        coded: columns wanted dictionary-encoded (attributes).
        floats_as_ids: whether floating-point numbers may be ids; whole ones then come as 1234.0.
        most_rows: of a table, by default as many as any study takes: a query or a small compressed file may not end.

    Returns:
        Batches that together hold every row.

    Raises:
        InvalidInputError: the source lacks a column, has it twice or in a type without plain texts, has too many rows,
            or cannot be read.
    """
    columns = {name: find_column(source, name) for name in sorted({*texts, *coded})}
    for name, column in columns.items():
        if column.kind in (_NO_ID if name in texts and not floats_as_ids else _UNREADABLE):
            raise refusal(source.where, f"column {name!r} has the type {column.type_name}", _remedy(column.kind))
    spellings = {name: column.spelling for name, column in columns.items()}
    rows, most = 0, MAX_RESPONDENTS if most_rows is None else most_rows
    progress = Progress("reading the table", source.rows, tell=note)
    for batch in source.batches(Selection(spellings=spellings, texts=frozenset(texts), coded=frozenset(coded))):
        rows += batch.rows
        if rows > most:
            problem = f"the table has more than {most:,} rows, the most that the study takes (maximum_respondents)"
            remedy = "Check that its query, view or file ends; if it does, raise maximum_respondents at every party."
            raise refusal(source.where, problem, remedy)
        yield batch
        progress.advance(batch.rows)


def read_header(source: Source) -> dict[str, str]:
    """Return the columns of a table, in its order.

    Returns:
        column -> the type that keeps it from being read as an attribute; "" if it can be read.

    Raises:
        InvalidInputError: two columns have one name; several without one count as one.
    """
    columns = source.columns
    for name, times in Counter(column.name for column in columns).items():
        if name and times > 1:
            raise refusal(source.where, f"{times} columns are named {name!r}", "Give each column a name of its own.")
    return {column.name: column.type_name if column.kind in _UNREADABLE else "" for column in columns}


def find_column(source: Source, name: str) -> Column:
    """Return the one column of a name.

    Raises:
        InvalidInputError: the header has none, or several.
    """
    columns = source.columns
    named = [column for column in columns if column.name == unicodedata.normalize("NFC", name)]
    if not named:
        raise absent_column(source.where, name, [column.name for column in columns], source.description)
    if len(named) > 1:
        problem = f"column {name!r} is {len(named)} times in the header"
        raise refusal(source.where, problem, "Give each column a name of its own.")
    return named[0]


def _remedy(kind: ColumnKind) -> str:
    if kind is ColumnKind.FLOATING:
        return 'Store it as text or as whole numbers, or give this curator normalise = [..., "integer"] in the study.'
    return "Store it as text or as whole numbers."
