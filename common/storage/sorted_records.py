"""Records of one length on encrypted scratch space, in ascending order or in batches: a part is in memory at a time."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.storage.partitions import PARTITION_BITS, Partitions
from veiltab.common.storage.scratch import Scratch

Bytes = NDArray[np.uint8]
"""(n, length) byte strings of one length, one a row."""

_BATCH = 2**17
"""Records that are written at once, and those that are read at once."""


class SortedRecords:
    """Takes records in any order and yields them in ascending order of their bytes.

    Their leading bits should be uniform, as those of a digest: that makes the parts alike.

    Args:
        folder: on whose disk they lie meanwhile.
        width: bytes of a record, at least 2.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self._width = width
        self._partitions = Partitions(Scratch(folder), batch=_BATCH)
        self.count = 0
        """Records so far."""

    def add(self, records: Bytes) -> None:
        """Take some records, (n, width)."""
        leading = np.ascontiguousarray(records[:, :2]).view(">u2").ravel() >> (16 - PARTITION_BITS)
        self._partitions.append(leading.astype(np.uint16), [records])
        self.count += len(records)

    def parts(self) -> Iterator[Bytes]:
        """Yield all records, ascending; equal beginnings of two bytes are in one part. They may be read again."""
        for (part,) in self._partitions.parts():
            records = part.view(f"S{self._width}")
            records.sort(axis=0)
            yield records.view(np.uint8)


class RecordFile:
    """Records on disk that are read back in batches, each of which begins at a multiple of `batch`.

    Args:
        folder: on whose disk they lie.
        batch: how many are read at a time.
    """

    def __init__(self, parts: Iterable[Bytes], folder: Path, batch: int) -> None:
        self._file, self._starts, self._batch = Scratch(folder), list[int](), batch
        self._width = 0
        self.count = 0
        """How many records."""
        rest: Bytes | None = None
        for part in parts:
            rest = part if rest is None else np.concatenate([rest, part])
            while len(rest) >= batch:
                self._append(rest[:batch])
                rest = rest[batch:]
        if rest is not None and len(rest):
            self._append(rest)

    def read(self, start: int) -> bytes:
        """Return the batch of records that begins there."""
        length = min(self._batch, self.count - start) * self._width
        return self._file.read(self._starts[start // self._batch], length).tobytes()

    def _append(self, records: Bytes) -> None:
        self._starts.append(self._file.append(records))
        self.count += len(records)
        self._width = records.shape[1]
