"""Records on disk in the order of their leading bits, a part at a time: they are never in memory all at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veiltab.common.storage.scratch import Scratch

PARTITION_BITS = 12
"""Leading bits by which records are told apart on disk, at the most."""

BATCH = 2**19
"""Records that are put in order and written at once."""

PART = 2**17
"""Records that a part has on average: as many as fit the cache; more if there are more than PART 2^PARTITION_BITS."""

_Array = NDArray[np.generic]


def leading_bits(words: NDArray[np.uint64], bits: int = PARTITION_BITS) -> NDArray[np.uint16]:
    """Return some leading bits of words, as `Partitions.append` takes them."""
    return (words >> np.uint64(64 - bits)).astype(np.uint16)


def bits_for(records: int) -> int:
    """Return how many leading bits cut so many records into partitions of at most PART, 1 to PARTITION_BITS bits."""
    return min(max((records // PART).bit_length(), 1), PARTITION_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A batch on disk: where each field begins, and which record is the first of each partition."""

    starts: tuple[int, ...]
    edges: NDArray[np.uint32]


class Partitions:
    """Records that come in any order, and are read back in parts, each with larger leading bits than the one before.

    Records of the same leading bits stay in the order in which they came.

    Args:
        scratch: holds them.
        bits: how many leading bits tell partitions apart.
        joins: whether a part may have several partitions; else it has one.
    """

    def __init__(self, scratch: Scratch, *, bits: int = PARTITION_BITS, joins: bool = True) -> None:
        self._scratch = scratch
        self._bits = bits
        self._least = PART if joins else 1
        self._written: list[_Written] = []
        self._waiting: list[tuple[_Array, ...]] = []
        self._waiting_rows = 0
        self._forms: tuple[_Array, ...] = ()
        self._counts = np.zeros(1 << bits, np.int64)

    def append(self, leading: NDArray[np.uint16], fields: Sequence[_Array]) -> None:
        """Take some records.

        Args:
            leading: (rows,) their leading bits.
            fields: arrays of (rows, ...), of the same types and widths each time.
        """
        self._forms = tuple(field[:0] for field in fields)
        self._waiting.append((leading, *fields))
        self._waiting_rows += len(leading)
        if self._waiting_rows >= BATCH:
            self._write()

    def parts(self) -> Iterator[list[_Array]]:
        """Yield the fields of each part."""
        self._write()
        ends = np.cumsum(self._counts)
        # Where enough records have come for another part.
        edges = np.flatnonzero(np.diff(ends // self._least)) + 1
        for first, stop in pairwise([0, *edges.tolist(), len(ends)]):
            if ends[stop - 1] > (ends[first - 1] if first else 0):
                yield self._part(first, stop)

    def _part(self, first: int, stop: int) -> list[_Array]:
        """Return the fields of the records of some partitions."""
        pieces: list[list[_Array]] = [[form] for form in self._forms]
        for batch in self._written:
            begin, end = int(batch.edges[first]), int(batch.edges[stop])
            for form, start, found in zip(self._forms, batch.starts, pieces, strict=True) if begin < end else ():
                width = form.dtype.itemsize * int(np.prod(form.shape[1:]))
                data = self._scratch.read(start + begin * width, (end - begin) * width)
                found.append(data.view(form.dtype).reshape(end - begin, *form.shape[1:]))
        return [found[1] if len(found) == 2 else np.concatenate(found) for found in pieces]

    def _write(self) -> None:
        if not self._waiting:
            return
        leading, *fields = (np.concatenate(pieces) for pieces in zip(*self._waiting, strict=True))
        self._waiting, self._waiting_rows = [], 0
        order = np.argsort(leading, kind="stable")
        counts = np.bincount(leading, minlength=1 << self._bits)
        self._counts += counts
        edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
        starts = tuple(self._scratch.append(field.take(order, axis=0)) for field in fields)
        self._written.append(_Written(starts=starts, edges=edges))
