"""What every source of a table gives: its header, a description for people, and batches of columns.

Columns of categories come dictionary-encoded (each distinct value of a batch once), all others as text. Errors of the
source itself are raised as refusals; a parser's messages are never passed on, because they quote the data.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Protocol, TypeVar

import pyarrow as pa

from veiltab.common.dataclass import dataclass, field

FIRST_ROW = 2
"""Row number of the first respondent: the header is row 1, and empty lines are not counted."""

BATCH_ROWS = 1 << 16
"""Most rows of a batch, where the source lets the reader choose."""

BATCH_CHARACTERS = 1 << 23
"""Characters that end a batch, where the source gives row after row: long ones fill no memory."""

LONGEST = 1 << 20
"""Most bytes of a value, and of a row of a text."""

_FEW_ROWS = 4
"""Rows whose characters are counted together."""

Row = TypeVar("Row")


class ColumnKind(Enum):
    """What the values of a column are, before they become text."""

    WRITTEN = "texts, as somebody wrote them"
    EXACT = "values with one plain text each"
    FLOATING = "floating-point numbers"
    OTHER = "values without a plain text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a header.

    Args:
        spelling: its name as the source spells it; white space around it does not count.
        type_name: the source's own name of that type; "" in a text file.
        has_grouped_points: whether a point may stand between thousands in its numbers, as where commas do not
            separate values.
    """

    spelling: str
    kind: ColumnKind
    type_name: str = ""
    has_grouped_points: bool = False

    @property
    def name(self) -> str:
        """Its name in Unicode form C, without white space and byte order marks around it."""
        return unicodedata.normalize("NFC", self.spelling).replace("\ufeff", "").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which columns of a source are wanted, and in which form.

    Args:
        spellings: name of the study -> spelling of the source.
        texts: names of those wanted as text (ids).
        coded: names of those wanted dictionary-encoded (attributes); a name may stand in both.
    """

    spellings: Mapping[str, str]
    texts: frozenset[str]
    coded: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some consecutive rows of a table.

    Args:
        rows: number of rows.
        texts: column -> plain text, null where absent.
        coded: column -> dictionary-encoded text, null where absent.
        exact: coded column -> the texts of it that are numbers with decimals in the source and never written, where
            each cell has a type of its own.
    """

    rows: int
    texts: Mapping[str, pa.Array]
    coded: Mapping[str, pa.DictionaryArray]
    exact: Mapping[str, frozenset[str]] = field(default_factory=dict)


def cut(rows: Iterator[Row], characters: Callable[[Sequence[Row]], int]) -> Iterator[list[Row]]:
    """Cut rows into those of batches.

    Args:
        characters: called with each few rows when they are read; returns how many characters they have.
    """
    some, size = list[Row](), 0
    while few := list(islice(rows, min(_FEW_ROWS, BATCH_ROWS - len(some)))):
        some += few
        size += characters(few)
        if len(some) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


class Source(Protocol):
    """A table that has been opened far enough to know its header."""

    @property
    def where(self) -> str:
        """Where the table is, for messages: without passwords."""

    @property
    def description(self) -> str:
        """How the table looks, such as "looks semicolon-separated, Latin-1"."""

    @property
    def columns(self) -> Sequence[Column]:
        """The header, in the order of the source."""

    @property
    def rows(self) -> int | None:
        """How many rows it has, if that is known before they are read."""

    @property
    def lines(self) -> int | None:
        """How many lines of a text file are not empty, once it is read; the header's are among them."""

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read some columns, in the order of the source's rows.

        Raises:
            InvalidInputError: the source cannot be read to its end, or is malformed. Rows with too few or too many
                values are counted to the end and raised there.
        """
