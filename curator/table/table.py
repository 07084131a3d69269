"""A curator's own table: ids and symbols of its respondents, checked, coded and digested."""

from collections.abc import Mapping
from dataclasses import dataclass

from veiltab.curator.table.table_rows import TableRows


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
    """

    respondents: TableRows
    rows_read: int
    rows_dropped: int
    missing: Mapping[str, int]
    content_digest: str
    description: str = ""

    @property
    def rows(self) -> int:
        """Number of respondents."""
        return len(self.respondents)

    @property
    def left_out(self) -> str:
        """How many rows left and why, for the curator's own eyes; empty if none did."""
        if not self.rows_dropped:
            return ""
        causes = ", ".join(f"{name} ({rows:,})" for name, rows in self.missing.items() if rows)
        return f"{self.rows_dropped:,} of {self.rows_read:,} rows left out, which miss {causes}"
