"""The rows of a sample in their secret order, in scratch space; they are the longest list that a release needs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from veiltab.common.core.domain import Symbols
from veiltab.common.core.pieces import Pieces
from veiltab.common.core.sampling import Early, Grouping, Words, words_of
from veiltab.common.core.symbols import CHUNK
from veiltab.common.schemes.scheme import Rows
from veiltab.common.storage.partitions import Partitions, bits_for, leading_bits
from veiltab.common.storage.scratch import Scratch

_ROW_BYTES = 8


class SampleRows:
    """Row numbers that were drawn piece by piece, and are read in slices.

    Args:
        pieces: the row numbers.
        folder: on whose disk they lie, under a key in memory.
    """

    def __init__(self, pieces: Iterable[Rows], folder: Path) -> None:
        self._scratch = Scratch(folder)
        self._rows = 0
        drawn = Pieces(pieces)
        # A chunk of all but the last is a whole number of blocks, so they lie side by side.
        while len(chunk := drawn.take(CHUNK)):
            self._scratch.append(chunk)
            self._rows += len(chunk)

    def __len__(self) -> int:
        """Number of rows, repetitions counted."""
        return self._rows

    def __getitem__(self, part: slice) -> Rows:
        """Return the rows of a slice without a step."""
        start, stop, _ = part.indices(self._rows)
        return self._scratch.read(_ROW_BYTES * start, _ROW_BYTES * (stop - start)).view(np.int64)


class SampledColumn:
    """The symbols of sampled rows; each slice is gathered when it is read.

    Args:
        column: (n,) symbols of all respondents, mapped from disk.
        rows: of the sample.
    """

    def __init__(self, column: Symbols, rows: SampleRows) -> None:
        self._column = column
        self._rows = rows

    def __len__(self) -> int:
        """Number of sampled rows."""
        return len(self._rows)

    def __getitem__(self, part: slice) -> Symbols:
        """Return the symbols of a slice without a step."""
        return self._column.take(self._rows[part])


def grouping_on(folder: Path) -> Grouping:
    """Return what groups rows by the leading bits of their priorities outside of memory."""

    def group(n: int, early: Iterable[Early]) -> Iterable[Words]:
        bits = bits_for(n)
        partitions = Partitions(Scratch(folder), bits=bits, joins=False)
        for some in early:
            partitions.append(leading_bits(some[0], bits), [words_of(some, shared=bits)])
        for (part,) in partitions.parts():
            yield part.view(np.uint64)

    return group
