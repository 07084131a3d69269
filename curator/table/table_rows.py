"""The rows of a curator's table while it runs: on its disk, encrypted, read again batch by batch, in file order.

A table is read once. What was digested is what is aligned, whatever becomes of the file meanwhile.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import TransferError
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.scratch import Scratch
from veiltab.common.storage.sealed import SealedFile
from veiltab.common.storage.stored import Readable, StoredFile
from veiltab.curator.formats.columns.arrow_buffers import string_array, string_buffers

Types = Mapping[str, np.dtype[np.unsignedinteger]]
"""Attribute -> type of its symbols."""

_NAME = "table"


class LostTableError(TransferError):
    """A table's rows are not on the disk as they were written; its curator has them again once it reads its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Some consecutive respondents.

    Args:
        ids: a large_string array without nulls.
        columns: attribute -> symbols.
    """

    ids: pa.Array
    columns: Mapping[str, Symbols]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """Where a batch lies: the ids of all of its rows, which of them are respondents (None: all), and their symbols.

    Ids of one length are one text after the other, without lengths (None).
    """

    rows: int
    respondents: int
    lengths: int | None
    texts: int
    text_bytes: int
    mask_start: int | None
    symbols: tuple[int, ...]

    def read(self, file: Readable, types: Types) -> RowBatch:
        """Return its respondents."""
        symbols = {
            name: file.read(start, self.respondents * dtype.itemsize).view(dtype)
            for (name, dtype), start in zip(types.items(), self.symbols, strict=True)
        }
        return RowBatch(ids=self.kept_ids(file), columns=symbols)

    def kept_ids(self, file: Readable) -> pa.Array:
        """Return the ids of its respondents."""
        return self.ids(file) if self.mask_start is None else self.ids(file).filter(pa.array(self.mask(file)))

    def mask(self, file: Readable) -> NDArray[np.bool_]:
        """Return which of its rows are respondents."""
        start = self.mask_start
        return np.ones(self.rows, np.bool_) if start is None else file.read(start, self.rows).view(np.bool_)

    def ids(self, file: Readable) -> pa.Array:
        """Return the ids of all of its rows, "" where there is none."""
        offsets = np.arange(self.rows + 1) * (self.text_bytes // max(self.rows, 1))
        if self.lengths is not None:
            np.cumsum(file.read(self.lengths, 4 * self.rows).view("<u4"), out=offsets[1:])
        return string_array(offsets, file.read(self.texts, self.text_bytes))


class TableRows:
    """The rows of a table, of which some are not respondents: an id or a value is missing, or is unknown.

    Args:
        types: attribute -> type of its symbols.
        task_file: the same file for tasks; None if only this process reads it.
    """

    def __init__(self, file: SealedFile, types: Types, task_file: StoredFile | None = None) -> None:
        self._file = file
        self.task_file = file if task_file is None else task_file
        """The file for tasks."""
        self.types = dict(types)
        """Attribute -> type of its symbols."""
        self._batches: list[WrittenBatch] = []

    def __len__(self) -> int:
        """Number of respondents."""
        return sum(batch.respondents for batch in self._batches)

    def append(self, ids: pa.Array, mask: NDArray[np.bool_], columns: Mapping[str, Symbols]) -> None:
        """Take a batch.

        Args:
            ids: of all rows, null where a row has none.
            mask: which rows are respondents.
            columns: attribute -> symbols of the respondents.
        """
        offsets, text = string_buffers(ids.fill_null("") if ids.null_count else ids)
        lengths = np.diff(offsets).astype("<u4")
        respondents = int(np.count_nonzero(mask))
        self._batches.append(
            WrittenBatch(
                rows=len(ids),
                respondents=respondents,
                lengths=None if (lengths == lengths[:1]).all() else self._file.append(lengths),
                texts=self._file.append(text),
                text_bytes=len(text),
                mask_start=None if respondents == len(ids) else self._file.append(mask),
                symbols=tuple(self._file.append(columns[name]) for name in self.types),
            )
        )

    def sync(self) -> None:
        """Let tasks on other machines read the rows."""
        self._file.sync()

    def check(self) -> None:
        """Read all rows as tasks do.

        Raises:
            LostTableError: somebody altered or deleted their file.
            OSError: the disk fails.
        """
        try:
            with self.task_file.opened() as file:
                for batch in self._batches:
                    batch.read(file, self.types)
        except (TransferError, FileNotFoundError):
            raise _lost() from None

    def all_ids(self) -> Iterator[pa.Array]:
        """Yield the ids of all rows, "" where there is none."""
        return (batch.ids(self._file) for batch in self._batches)

    def mask(self) -> NDArray[np.bool_]:
        """Return which of all rows are respondents."""
        return np.concatenate([np.empty(0, np.bool_), *(batch.mask(self._file) for batch in self._batches)])

    def batches(self) -> Iterator[RowBatch]:
        """Yield the respondents."""
        return (batch.read(self._file, self.types) for batch in self.batch_places())

    def batch_places(self) -> Iterator[WrittenBatch]:
        """Yield where the batches lie that have respondents."""
        return (batch for batch in self._batches if batch.respondents)

    def ids(self, start: int, length: int) -> pa.ChunkedArray:
        """Return the ids of some respondents, by their places.

        Raises:
            LostTableError: somebody altered their file.
            OSError: the disk fails.
        """
        edges = [0, *accumulate(batch.respondents for batch in self._batches)]
        first, stop = bisect_right(edges, start) - 1, bisect_left(edges, start + length)
        try:
            chunks = [batch.kept_ids(self._file) for batch in self._batches[first:stop]]
        except TransferError:
            raise _lost() from None
        ids = pa.chunked_array(chunks, pa.large_string())
        return ids.slice(start - edges[first], length)


def _lost() -> LostTableError:
    return LostTableError(
        "somebody altered or deleted the rows of the table, in the folder `run`",
        where="table",
        remedy="Start the curator again: it reads its table again, as the table is then.",
    )


def rows_on_disk(types: Types, run: RunFiles | None) -> TableRows:
    """Return a table without rows.

    Args:
        types: attribute -> type of its symbols.
        run: holds the rows, for tasks too, one table a run; None for scratch space among the temporary files.
    """
    return TableRows(Scratch(None), types) if run is None else TableRows(run.create(_NAME), types, run.file(_NAME))
