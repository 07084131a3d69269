"""A curator's own table: ids and symbols of its respondents, checked, coded and digested."""

from collections.abc import Mapping

from veiltab.common.core.texts.spelling import quoted
from veiltab.common.dataclass import dataclass
from veiltab.curator.table.table_rows import TableRows


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRow:
    """A row of a table's file and the id in it, for the curator's own eyes."""

    row: int
    id: str

    def __str__(self) -> str:
        return f"row {self.row:,} has the id {quoted(self.id)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The respondents of one curator that enter an alignment, in file order.

    Args:
        respondents: their ids, normalised and all different, and their symbols in the narrowest type.
        rows_read: rows of the file.
        rows_dropped: rows that left because an attribute is missing.
        missing: attribute -> rows that miss it, of those attributes whose missing values drop rows; a row may miss
            several.
        content_digest: SHA-256 over ids, symbols and their order, in hexadecimal; the same for the same content
            whatever the file's format, and without ids for the same rules of linking.
        description: how the table looks, for people.
        lines: lines of a text file that are not empty, with the header's.
        ends: the first row and the last one.
    """

    respondents: TableRows
    rows_read: int
    rows_dropped: int
    missing: Mapping[str, int]
    content_digest: str
    description: str = ""
    lines: int | None = None
    ends: tuple[IdRow, ...] = ()

    @property
    def rows(self) -> int:
        """Number of respondents."""
        return len(self.respondents)

    @property
    def size(self) -> str:
        """How much was read, so that a loss shows."""
        return size_text(self.lines, self.rows_read, self.rows)

    @property
    def left_out(self) -> str:
        """How many rows left and why, for the curator's own eyes; empty if none did."""
        if not self.rows_dropped:
            return ""
        causes = ", ".join(f"{name} ({rows:,})" for name, rows in self.missing.items() if rows)
        return f"{self.rows_dropped:,} of {self.rows_read:,} rows left out, which miss {causes}"


def size_text(lines: int | None, rows: int, respondents: int) -> str:
    """Return how much of a file was read, for people."""
    beginning = "" if lines is None else f"{lines:,} lines, "
    return f"{beginning}{rows:,} rows, {respondents:,} respondents"
