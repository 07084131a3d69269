"""The rows of a curator's table while it runs: in scratch space on its disk, read again batch by batch, in file order.

A table is read once. What was digested is what is aligned, whatever becomes of the file meanwhile.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.storage.scratch import Scratch
from veiltab.curator.respondents import string_buffers


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
class _Written:
    """Where a batch lies: the ids of all of its rows, which of them are respondents, and the symbols of these."""

    rows: int
    kept: int
    lengths: int
    texts: int
    text_bytes: int
    is_kept: int
    symbols: tuple[int, ...]


class TableRows:
    """The rows of a table, of which some are no respondents: an id or a value is missing, or is unknown.

    Args:
        scratch: holds them.
        types: attribute -> type of its symbols.
    """

    def __init__(self, scratch: Scratch, types: Mapping[str, np.dtype[np.unsignedinteger]]) -> None:
        self._scratch = scratch
        self.types = dict(types)
        """Attribute -> type of its symbols."""
        self._batches: list[_Written] = []

    def __len__(self) -> int:
        """Number of respondents."""
        return sum(batch.kept for batch in self._batches)

    def append(self, ids: pa.Array, kept: NDArray[np.bool_], columns: Mapping[str, Symbols]) -> None:
        """Take a batch.

        Args:
            ids: of all rows, null where a row has none.
            kept: which rows are respondents.
            columns: attribute -> symbols of the respondents.
        """
        offsets, text = string_buffers(ids.fill_null("") if ids.null_count else ids)
        self._batches.append(
            _Written(
                rows=len(ids),
                kept=int(np.count_nonzero(kept)),
                lengths=self._scratch.append(np.diff(offsets).astype("<u4")),
                texts=self._scratch.append(text),
                text_bytes=len(text),
                is_kept=self._scratch.append(kept),
                symbols=tuple(self._scratch.append(columns[name]) for name in self.types),
            )
        )

    def all_ids(self) -> Iterator[pa.Array]:
        """Yield the ids of all rows, "" where there is none."""
        return (self._ids(batch) for batch in self._batches)

    def batches(self) -> Iterator[RowBatch]:
        """Yield the respondents."""
        return (self._batch(batch) for batch in self._batches if batch.kept)

    def ids(self, start: int, length: int) -> pa.ChunkedArray:
        """Return the ids of some respondents, by their places."""
        edges = [0, *accumulate(batch.kept for batch in self._batches)]
        first, chunks = bisect_right(edges, start) - 1, []
        for place in range(first, len(self._batches)):
            if edges[place] >= start + length:
                break
            chunks.append(self._kept_ids(self._batches[place]))
        ids = pa.chunked_array(chunks, pa.large_string())
        return ids.slice(start - edges[first], length)

    def _batch(self, batch: _Written) -> RowBatch:
        symbols = {
            name: self._scratch.read(start, batch.kept * dtype.itemsize).view(dtype)
            for (name, dtype), start in zip(self.types.items(), batch.symbols, strict=True)
        }
        return RowBatch(ids=self._kept_ids(batch), columns=symbols)

    def _kept_ids(self, batch: _Written) -> pa.Array:
        ids = self._ids(batch)
        if batch.kept == batch.rows:
            return ids
        return ids.filter(pa.array(self._scratch.read(batch.is_kept, batch.rows).view(np.bool_)))

    def _ids(self, batch: _Written) -> pa.Array:
        offsets = np.zeros(batch.rows + 1, np.int64)
        lengths = self._scratch.read(batch.lengths, 4 * batch.rows).view("<u4")
        np.cumsum(lengths, out=offsets[1:])
        text = self._scratch.read(batch.texts, batch.text_bytes)
        return pa.LargeStringArray.from_buffers(batch.rows, pa.py_buffer(offsets), pa.py_buffer(text))
