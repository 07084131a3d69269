"""A table in a Parquet file."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from veiltab.curator.formats.columns.arrow_columns import batches_of, errors_refused, header_of, rows_at_once
from veiltab.curator.formats.columns.refusals import too_long
from veiltab.curator.formats.columns.source import BATCH_CHARACTERS, BATCH_ROWS, LONGEST, Batch, Selection

_BUFFER_BYTES = 1 << 18
"""Compressed bytes of a column that are read at once; without this, all of a row group."""


class ParquetFile:
    """A Parquet file; numbers, dates and truth values are taken as their text.

    Raises:
        InvalidInputError: it cannot be read.
    """

    description = "a Parquet file"
    lines = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)
        with self._open([]) as file:
            self.columns = header_of(file.schema_arrow)
            self.rows: int = file.metadata.num_rows
            """As the file states."""

    def batches(self, selection: Selection) -> Iterator[Batch]:
        """Read the file by and by, whatever the size of its row groups."""
        spellings = selection.spellings
        coded = [spellings[name] for name in selection.coded - selection.texts]
        names = list(spellings.values())
        with (
            self._open([]) as plain,
            self._open(coded, plain.metadata) as encoded,
            self._open(names, plain.metadata) as looked_at,
        ):
            metadata = plain.metadata
            places = [place for place in range(metadata.num_columns) if metadata.schema.column(place).path in names]
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                self._check_lengths(group, places)
                rows = _batch_rows(group, places)
                # pyarrow keeps all different values that it encodes of a row group.
                file = encoded if rows == BATCH_ROWS else plain
                rows = min(rows, self._rows_at_once(looked_at, number, names))
                for batch in file.iter_batches(rows, row_groups=[number], columns=names, use_threads=False):
                    batch.validate(full=True)
                    yield from batches_of(self.where, batch, selection)

    def _check_lengths(self, group: pq.RowGroupMetaData, places: Collection[int]) -> None:
        """Refuse a column whose values are too long by what the file states, before they are unpacked."""
        for column in map(group.column, places):
            if column.total_uncompressed_size > LONGEST * (group.num_rows + 1):
                raise too_long(self.where, column.path_in_schema)

    def _rows_at_once(self, file: pq.ParquetFile, group: int, names: list[str]) -> int:
        """Return how many rows of a row group to read, by the values that it stores once for many rows.

        They come with its first row.
        """
        first = next(file.iter_batches(1, row_groups=[group], columns=names, use_threads=False), None)
        return BATCH_ROWS if first is None else rows_at_once(self.where, dict(zip(names, first.columns, strict=True)))

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
