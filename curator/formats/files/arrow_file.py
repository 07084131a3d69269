"""A table in an Arrow file, which is also called Feather."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from veiltab.curator.formats.columns.arrow_columns import batches_of, errors_refused, header_of
from veiltab.curator.formats.columns.refusals import refusal
from veiltab.curator.formats.columns.source import Batch, Selection
from veiltab.curator.formats.files.arrow_sizes import largest_batch

_MOST_BYTES = 4 << 30
"""Most bytes of a record batch, dictionaries included."""


class ArrowFile:
    """An Arrow file (Feather of version 2); numbers, dates and truth values are taken as their text.

    Raises:
        InvalidInputError: it cannot be read.
    """

    description = "an Arrow file"
    rows = lines = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)
        with self._open(pa.ipc.IpcReadOptions()) as file:
            self.columns = header_of(file.schema)

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read the file record batch by record batch, of which one is in memory."""
        places = {column.spelling: place for place, column in enumerate(self.columns)}
        fields = sorted({places[spelling] for spelling in selection.spellings.values()})
        with self._open(pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)) as file:
            self._check_size()
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                batch.validate(full=True)
                yield from batches_of(self.where, batch, selection)

    def _check_size(self) -> None:
        """Refuse a file whose record batches are more than the memory should hold, before one is unpacked."""
        size = largest_batch(self._path)
        if size > _MOST_BYTES:
            problem = f"a record batch of the file takes {size >> 20:,} MiB of memory, more than {_MOST_BYTES >> 20:,}"
            raise refusal(self.where, problem, "Write it again in record batches of fewer rows, or as Parquet.")

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
