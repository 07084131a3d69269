"""The rows of a sample in their secret order, in scratch space; they are the longest list that a release needs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veiltab.common.core.domain import Symbols
from veiltab.common.core.numbers.pieces import Pieces
from veiltab.common.core.sampling import Early, Gathering, Grouping, Rows, Words, held_in_memory, in_memory, words_of
from veiltab.common.core.symbols import CHUNK
from veiltab.common.storage.partitions import PART, PARTITION_BITS, Partitions, bits_for, leading_bits
from veiltab.common.storage.scratch import Scratch

if TYPE_CHECKING:
    from veiltab.curator.alignment.intersection import AlignedTable

_ROW_BYTES = 8

MOST_HELD = 2**20
"""Rows that are ordered, and rows of a first stage that are looked up, in memory."""


class SampleRows:
    """Row numbers that were drawn piece by piece, and are read in slices.

    Args:
        folder: on whose disk they lie, under a key in memory.
    """

    def __init__(self, pieces: Iterable[Rows], folder: Path) -> None:
        self._scratch = Scratch(folder)
        self._rows = 0
        source = Pieces(pieces)
        # A chunk of all but the last is a whole number of blocks, so they lie side by side.
        while len(chunk := source.take(CHUNK)):
            self._scratch.append(chunk)
            self._rows += len(chunk)

    def __len__(self) -> int:
        """Number of rows, repetitions counted."""
        return self._rows

    def __getitem__(self, part: slice) -> Rows:
        """Return the rows of a slice without a step."""
        start, stop, _ = part.indices(self._rows)
        return self._scratch.read(_ROW_BYTES * start, _ROW_BYTES * (stop - start)).view(np.int64)

    def column(self, table: "AlignedTable", attribute: str) -> "SampledColumn":
        """Return the symbols of the rows, each slice gathered when it is read."""
        return SampledColumn(table.column(attribute), self)


class SampledColumn:
    """The symbols of sampled rows; each slice is gathered when it is read.

    Args:
        column: (n,) symbols of all respondents, mapped from disk.
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
        if n <= MOST_HELD:
            yield from in_memory(n, early)
            return
        bits = bits_for(n)
        partitions = Partitions(Scratch(folder), bits=bits, joins=False)
        for some in early:
            partitions.append(leading_bits(some[0], bits), [words_of(some, shared=bits)])
        for (part,) in partitions.parts():
            yield part.view(np.uint64)

    return group


def gathering_on(folder: Path) -> Gathering:
    """Return what looks rows up outside of memory.

    Places are put aside by where they point; what is found there is put aside by the order in which the places came.
    """

    def gather(rows: Iterable[Rows], length: int, places: Iterable[Rows], count: int) -> Iterator[Rows]:
        if length <= MOST_HELD:
            return held_in_memory(rows, length, places, count)
        return _in_order(_looked_up(rows, length, _spread(places, length, count, folder), count, folder), count)

    return gather


def _spread(places: Iterable[Rows], length: int, count: int, folder: Path) -> Partitions:
    """Return places, and the order in which they came, by the span of rows into which they point."""
    spread, span, start = _spans(folder), _span(length, count), 0
    for some in places:
        spread.append((some // span).astype(np.uint16), [some, np.arange(start, start + len(some))])
        start += len(some)
    return spread


def _looked_up(rows: Iterable[Rows], length: int, spread: Partitions, count: int, folder: Path) -> Partitions:
    """Return the rows at some places, and the order in which these came, by spans of that order."""
    answers, span, width = _spans(folder), _span(length, count), _span(count, count)
    pieces, number, here = Pieces(rows), -1, np.empty(0, np.int64)
    for places, order in spread.parts():
        while number < places[0] // span:
            number, here = number + 1, pieces.take(span)
        answers.append((order // width).astype(np.uint16), [order, here[places - number * span]])
    return answers


def _in_order(answers: Partitions, count: int) -> Iterator[Rows]:
    """Yield the rows of each span in their order; each is whole."""
    width = _span(count, count)
    for order, rows in answers.parts():
        ordered = np.empty_like(rows)
        ordered[order % width] = rows
        yield ordered


def _spans(folder: Path) -> Partitions:
    return Partitions(Scratch(folder), joins=False)


def _span(length: int, count: int) -> int:
    """Return how many of `length` rows are looked up at once: they fit the cache, and so do the places among them."""
    return max(-(-length >> PARTITION_BITS), min(PART, PART * length // count))


def are_different(rows: Iterable[Rows], n: int, folder: Path) -> bool:
    """Return whether rows are all different ones of 0 to n - 1; they are put aside on the disk of a folder.

    Args:
        rows: in pieces, none of them empty.
        n: rows that there may be.
        folder: on whose disk they are compared.
    """
    spread, span = _spans(folder), _span(n, n)
    for some in rows:
        if some.min() < 0 or some.max() >= n:
            return False
        spread.append((some // span).astype(np.uint16), [some])
    # Of more than there are numbers two are equal; anyone who sends them must not fill the memory.
    return spread.largest <= span and all(np.diff(np.sort(part)).all() for (part,) in spread.parts())
