"""A table in a Parquet file."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from veiltab.curator.tables.arrow_columns import batch_of, errors_refused, header_of
from veiltab.curator.tables.source import BATCH_CHARACTERS, BATCH_ROWS, Batch, Column, Selection

_BUFFER_BYTES = 1 << 18
"""Compressed bytes of a column that are read at once; without this, all of a row group."""


class ParquetFile:
    """A Parquet file; numbers, dates and truth values are taken as their text.

    Args:
        path: the file.

    Raises:
        InvalidInputError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)
        with self._open([]) as file:
            self._columns = header_of(file.schema_arrow)
            self.rows: int = file.metadata.num_rows
            """As the file states."""

    @property
    def description(self) -> str:
        """What the file is."""
        return "a Parquet file"

    def columns(self) -> list[Column]:
        """Return the header."""
        return self._columns

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read the file by and by, whatever the size of its row groups."""
        spellings = selection.spellings
        with self._open([]) as file:
            rows = _batch_rows(file.metadata, frozenset(spellings.values()))
        # pyarrow keeps all different values that it encodes of a row group.
        coded = [spellings[name] for name in selection.coded - selection.texts] if rows == BATCH_ROWS else []
        with self._open(coded) as file:
            for batch in file.iter_batches(batch_size=rows, columns=list(spellings.values()), use_threads=False):
                yield batch_of(self.where, batch, selection)

    @contextmanager
    def _open(self, coded: list[str]) -> Iterator[pq.ParquetFile]:
        """Open the file."""
        # Without pre_buffer, pyarrow does not keep what it has read.
        with (
            errors_refused(self.where, "Parquet file", "Write it again, as Parquet or as CSV."),
            pq.ParquetFile(self._path, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file,
        ):
            yield file


def _batch_rows(metadata: pq.FileMetaData, names: Collection[str]) -> int:
    """Return how many rows of some columns to read at once: fewer where their values are long.

    How long they are is what the file states, on average over each row group.
    """
    rows = BATCH_ROWS
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        columns = (group.column(column) for column in range(group.num_columns))
        size = sum(column.total_uncompressed_size for column in columns if column.path_in_schema in names)
        rows = min(rows, max(1, BATCH_CHARACTERS * group.num_rows // max(1, size)))
    return rows
