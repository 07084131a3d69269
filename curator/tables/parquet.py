"""A table in a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from veiltab.curator.tables.arrow_columns import batch_of, header_of
from veiltab.curator.tables.refusals import refusal
from veiltab.curator.tables.source import BATCH_ROWS, Batch, Column, Selection


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
        """Read the file row group by row group."""
        spellings = selection.spellings
        coded = [spellings[name] for name in selection.coded - selection.texts]
        with self._open(coded) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(spellings.values()), use_threads=False):
                yield batch_of(batch, selection)

    @contextmanager
    def _open(self, coded: list[str]) -> Iterator[pq.ParquetFile]:
        """Open the file; errors of the disk and of the format become refusals that quote nothing of it."""
        try:
            # Without pre_buffer, pyarrow does not keep what it has read: the memory is that of a row group.
            with pq.ParquetFile(self._path, read_dictionary=coded, pre_buffer=False) as file:
                yield file
        except OSError:
            remedy = "Check the disk and the file's rights."
            raise refusal(self.where, "the file cannot be read to its end", remedy) from None
        except pa.ArrowException:
            remedy = "Write it again, as Parquet or as CSV."
            raise refusal(self.where, "the file is not a readable Parquet file", remedy) from None
