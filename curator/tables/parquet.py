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
        coded = [spellings[name] for name in selection.coded - selection.texts]
        with self._open([]) as plain, self._open(coded, plain.metadata) as encoded:
            metadata, names = plain.metadata, list(spellings.values())
            places = [place for place in range(metadata.num_columns) if metadata.schema.column(place).path in names]
            for number in range(metadata.num_row_groups):
                rows = _batch_rows(metadata.row_group(number), places)
                # pyarrow keeps all different values that it encodes of a row group.
                file = encoded if rows == BATCH_ROWS else plain
                for batch in file.iter_batches(rows, row_groups=[number], columns=names, use_threads=False):
                    yield batch_of(self.where, batch, selection)

    @contextmanager
    def _open(self, coded: list[str], metadata: pq.FileMetaData | None = None) -> Iterator[pq.ParquetFile]:
        """Open the file."""
        # Without pre_buffer, pyarrow does not keep what it has read.
        with (
            errors_refused(self.where, "Parquet file", "Write it again, as Parquet or as CSV."),
            pq.ParquetFile(
                self._path, metadata=metadata, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER_BYTES
            ) as file,
        ):
            yield file


def _batch_rows(group: pq.RowGroupMetaData, places: Collection[int]) -> int:
    """Return how many rows of some columns of a row group to read at once: fewer where their values are long.

    How long they are is what the file states, on average.
    """
    size = sum(group.column(place).total_uncompressed_size for place in places)
    return (
        BATCH_ROWS if size <= BATCH_CHARACTERS else max(1, min(BATCH_ROWS, BATCH_CHARACTERS * group.num_rows // size))
    )
