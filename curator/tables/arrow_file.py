"""A table in an Arrow file, which is also called Feather."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from veiltab.curator.tables.arrow_columns import batch_of, errors_refused, header_of
from veiltab.curator.tables.source import BATCH_ROWS, Batch, Column, Selection


class ArrowFile:
    """An Arrow file (Feather of version 2); numbers, dates and truth values are taken as their text.

    Args:
        path: the file.

    Raises:
        InvalidInputError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        with self._open(pa.ipc.IpcReadOptions()) as file:
            self._columns = header_of(file.schema)

    @property
    def description(self) -> str:
        """What the file is."""
        return "an Arrow file"

    def columns(self) -> list[Column]:
        """Return the header."""
        return self._columns

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read the file record batch by record batch, of which one is in memory."""
        places = {column.spelling: place for place, column in enumerate(self._columns)}
        wanted = sorted({places[spelling] for spelling in selection.spellings.values()})
        with self._open(pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)) as file:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                batch.validate(full=True)
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch_of(self.where, batch.slice(start, BATCH_ROWS), selection)

    @contextmanager
    def _open(self, options: pa.ipc.IpcReadOptions) -> Iterator[pa.ipc.RecordBatchFileReader]:
        """Open the file."""
        remedy = "Write it again as an Arrow file (Feather of version 2, no stream), as Parquet or as CSV."
        with (
            errors_refused(self.where, "Arrow file", remedy),
            pa.OSFile(self.where) as source,
            pa.ipc.open_file(source, options=options) as file,
        ):
            yield file
