"""A table in a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from veiltab.curator.tables.arrow_columns import batch_of, errors_refused, header_of
from veiltab.curator.tables.source import BATCH_ROWS, Batch, Column, Selection

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
        with self._open(coded) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(spellings.values()), use_threads=False):
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
