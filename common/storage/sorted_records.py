"""Records of one length in ascending order, through encrypted scratch space: a part of them is in memory at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.storage.partitions import PARTITION_BITS, Partitions
from veiltab.common.storage.scratch import Scratch

Bytes = NDArray[np.uint8]
"""(n, length) byte strings of one length, one a row."""

_BATCH = 2**17
"""Records that are written at once, and those that are read at once."""

_PIECE = 2**16
"""Records of a file that are read at once."""


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

    @classmethod
    def of_file(cls, path: Path, width: int) -> "SortedRecords":
        """Return the records of a file, sorted on the disk where it lies."""
        made = cls(path.parent, width)
        with path.open("rb") as file:
            while data := file.read(_PIECE * width):
                made.add(np.frombuffer(data, np.uint8).reshape(-1, width))
        return made

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
