"""Reads columns of a source by the names of the study: finds them in the header, and refuses types without a text."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from veiltab.common.command.cli import note
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.progress import Progress
from veiltab.common.study.limits import MAX_RESPONDENTS
from veiltab.curator.formats.columns.numerals import Numerals
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Batch, Column, ColumnKind, Selection, Source

_MOST_NAMES = 20
_MOST_CHARACTERS = 40
_OTHER_ENCODING = "It has signs that are no letters, so the file may be in another encoding: save it as UTF-8. "
_UNREADABLE = {ColumnKind.OTHER}
_NO_ID = {ColumnKind.OTHER, ColumnKind.FLOATING}


class NamedColumns:
    """Columns of a table, found in its header by their names in the study.

    Args:
        texts: columns wanted as text (ids).
        coded: columns wanted dictionary-encoded (attributes).
        floats_as_ids: whether floating-point numbers may be ids; whole ones then come as 1234.0.

    Raises:
        InvalidInputError: the source lacks a column, or has it twice or in a type without plain texts.
    """

    def __init__(
        self, source: Source, texts: Collection[str], coded: Collection[str], *, floats_as_ids: bool = False
    ) -> None:
        self._source, self._texts, self._coded = source, frozenset(texts), frozenset(coded)
        self._columns = _find_columns(source, sorted(self._texts | self._coded))
        for name, column in self._columns.items():
            if column.kind in (_NO_ID if name in texts and not floats_as_ids else _UNREADABLE):
                raise refusal(source.where, f"column {name!r} has the type {column.type_name}", _remedy(column.kind))

    def numerals(self, name: str, decimal: str) -> Numerals | None:
        """Return how the numbers of a column are read; None if nobody wrote them, so that they are plain."""
        column = self._columns[name]
        if column.kind is not ColumnKind.WRITTEN:
            return None
        return Numerals(self._source.where, column.name, decimal, has_grouped_points=column.has_grouped_points)

    def batches(self, *, most_rows: int | None = None) -> Iterator[Batch]:
        """Read the columns of every row, batch by batch and in order; where that takes long, say how far it is.

        Args:
            most_rows: of a table, by default those of any study: a query or a small compressed file may not end.

        Raises:
            InvalidInputError: the source has too many rows, or cannot be read.
        """
        source, rows, most = self._source, 0, MAX_RESPONDENTS if most_rows is None else most_rows
        spellings = {name: column.spelling for name, column in self._columns.items()}
        batches = source.batches(Selection(spellings=spellings, texts=self._texts, coded=self._coded))
        progress = Progress("reading the table", source.rows, tell=note)
        for batch in batches:
            rows += batch.rows
            if rows > most:
                raise refusal(
                    source.where,
                    f"the table has more than {most:,} rows, the most that the study takes (maximum_respondents)",
                    "Check that its query, view or file ends; if it does, raise maximum_respondents at every party.",
                )
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


def _find_columns(source: Source, names: Collection[str]) -> dict[str, Column]:
    """Return name -> its one column.

    Raises:
        InvalidInputError: the header lacks some, or has one several times.
    """
    header = [column.name for column in source.columns]
    normal = {name: unicodedata.normalize("NFC", name) for name in names}
    if absent := [name for name in names if normal[name] not in header]:
        raise _absent_columns(source.where, absent, header, source.description)
    for name in names:
        if (times := header.count(normal[name])) > 1:
            problem = f"column {name!r} is {times} times in the header"
            raise refusal(source.where, problem, "Give each column a name of its own.")
    return {name: source.columns[header.index(normal[name])] for name in names}


def _remedy(kind: ColumnKind) -> str:
    if kind is ColumnKind.FLOATING:
        return 'Store it as text or as whole numbers, or give this curator normalise = [..., "integer"] in the study.'
    return "Store it as text or as whole numbers."


def _absent_columns(where: str, names: Sequence[str], header: Sequence[str], looks: str) -> InvalidInputError:
    """Return the refusal of a header without some columns: it names the nearest ones, and shows the header.

    A first row of values is not shown: the file has no header then, and the row is data.
    """
    are = f"column {names[0]!r} is" if len(names) == 1 else f"columns {header_text(names)} are"
    problem = f"{are} not in the header ({looks})"
    if not _looks_like_header(header):
        return refusal(where, problem, "The first row seems to hold values: put the names of the columns above it.")
    nearest = [(name, near) for name in names[:_MOST_NAMES] if (near := _nearest(name, header))]
    hint = "".join(f"The column nearest to {name!r} is {near!r}. " for name, near in nearest)
    is_strange = any(not sign.isascii() and not sign.isalnum() for one in header for sign in one)
    strange = _OTHER_ENCODING if is_strange else ""
    rename = "Rename what is meant there (with `as`, in a query), or in the study at every party."
    return refusal(where, problem, f"{hint}The header is: {header_text(header)}. {strange}{rename}")


def header_text(names: Sequence[str]) -> str:
    """Return names of columns for people, the first 40 characters of up to 20 of them."""
    listing = ", ".join(repr(one[:_MOST_CHARACTERS]) for one in names[:_MOST_NAMES])
    return listing + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _nearest(name: str, header: Sequence[str]) -> str:
    """Return the column whose name is nearest to another one, letter case and punctuation apart; "" if none is."""
    plain = {_plain(one): one for one in reversed(header)}
    near = get_close_matches(_plain(name), plain, 1, cutoff=0.6)
    if near:
        return plain[near[0]]
    return next((one for text, one in plain.items() if text and (text in _plain(name) or _plain(name) in text)), "")


def _looks_like_header(names: Sequence[str]) -> bool:
    """Return whether a first row may be a header: a number or a date is no name."""
    return not any(name[:1].isdigit() or (name[:1] in "+-." and name[1:2].isdigit()) for name in names)


def _plain(name: str) -> str:
    return "".join(one for one in name.casefold() if one.isalnum())
