"""Records of one length in ascending order, through encrypted scratch space: a sixteenth is in memory at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from veiltab.common.storage.scratch import Scratch
from veiltab.curator.alignment.linking.oblivious import Bytes

_PARTS = 16


class SortedRecords:
    """Takes records in any order and yields them in ascending order of their bytes.

    Their leading bits should be uniform, as those of a digest: that makes the parts alike.

    Args:
        folder: on whose disk they lie meanwhile.
        width: bytes of a record.
    """

    def __init__(self, folder: Path, width: int) -> None:
        self._width = width
        self._files = [Scratch(folder) for _ in range(_PARTS)]
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(_PARTS)]
        self.count = 0
        """Records so far."""

    def add(self, records: Bytes) -> None:
        """Take some records, (n, width)."""
        part = records[:, 0] >> 4
        for number in range(_PARTS):
            piece = records[part == number]
            if len(piece):
                self._pieces[number].append((self._files[number].append(piece), piece.size))
        self.count += len(records)

    def parts(self) -> Iterator[Bytes]:
        """Yield all records, ascending; equal beginnings are in one part. They may be read again."""
        for file, pieces in zip(self._files, self._pieces, strict=True):
            if pieces:
                data = np.concatenate([file.read(start, length) for start, length in pieces])
                records = data.view(f"S{self._width}")
                records.sort()
                yield records.view(np.uint8).reshape(-1, self._width)
