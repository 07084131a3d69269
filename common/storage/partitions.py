"""Records on disk in the order of their leading bits, a part at a time: they are never in memory all at once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.scratch import Scratch
from veiltab.common.storage.sealed import SealedFile
from veiltab.common.storage.stored import Readable

PARTITION_BITS = 12
"""Leading bits by which records are told apart on disk, at most."""

BATCH = 2**19
"""Records that are put in order and written at once."""

SECTION = 2**25
"""Bytes of records that are read at once, on average or fewer: from many batches, each of which takes a reading."""

PART = 2**17
"""Records that a part has on average: as many as fit the cache; more if there are more than PART 2^PARTITION_BITS."""

Fields = Sequence[NDArray[np.generic]]
"""Arrays of (records, ...)."""

Edges = tuple[int, ...]
"""Partitions at which parts begin, and the one before which the last of them ends."""


def leading_bits(words: NDArray[np.uint64], bits: int = PARTITION_BITS) -> NDArray[np.uint16]:
    """Return some leading bits of words."""
    return (words >> np.uint64(64 - bits)).astype(np.uint16)


def bits_for(records: int) -> int:
    """Return how many leading bits cut so many records into partitions of at most PART, 1 to PARTITION_BITS bits."""
    return min(max((records // PART).bit_length(), 1), PARTITION_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some records in a file, in the order of their leading bits.

    Args:
        firsts: uint32, the first record of each partition, and their number.
    """

    start: int
    firsts: bytes

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records of each partition."""
        return np.diff(np.frombuffer(self.firsts, np.uint32)).astype(np.int64)

    def cut(self, edges: Edges) -> "Cut":
        """Return what there is of some parts."""
        firsts = np.frombuffer(self.firsts, np.uint32)
        return Cut(start=self.start, firsts=tuple(firsts[list(edges)].tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Those records of a batch that belong to some parts: the first record of each part, and where the last ends."""

    start: int
    firsts: tuple[int, ...]

    def read(self, file: Readable, width: int) -> NDArray[np.uint8]:
        """Return the records, (records, width) bytes."""
        first, stop = self.firsts[0], self.firsts[-1]
        return file.read(self.start + first * width, (stop - first) * width).reshape(-1, width)


def write_batch(file: SealedFile, leading: NDArray[np.uint16], fields: Fields, *, bits: int = PARTITION_BITS) -> Batch:
    """Write records in the order of their leading bits; those of the same bits stay in order."""
    # One sort of leading bits with the record's number behind them takes half the time of a stable argsort.
    type_ = np.dtype(np.uint32 if len(leading) <= 1 << 32 - bits else np.uint64)
    width = 8 * type_.itemsize - bits
    words: NDArray[Any] = np.left_shift(leading, width, dtype=type_)
    words |= np.arange(len(leading), dtype=type_)
    words.sort()
    edges = np.left_shift(np.arange(1 << bits, dtype=type_), width, dtype=type_)
    firsts = np.append(np.searchsorted(words, edges), len(words))
    words &= type_.type((1 << width) - 1)
    start = file.append(_records(fields, words.astype(np.int64)))
    return Batch(start=start, firsts=firsts.astype(np.uint32).tobytes())


def section_records(records: int, width: int) -> int:
    """Return how many of so many records, of `width` bytes, are read at once: a 32nd of many, for as many tasks."""
    return max(min(SECTION // width, max(records >> 5, BATCH)), 1)


def sections(
    counts: NDArray[np.int64], forms: Fields, *, part: int | None = None, batch: int | None = None
) -> Iterator[Edges]:
    """Cut partitions into sections, and each section into parts; nothing is empty.

    Args:
        forms: as for `parts_of`.
        part: records that a part has on average, or more where one partition has more; PART by default.
        batch: records of a section, likewise; as `section_records` says by default.

    Yields:
        The edges of a section's parts.
    """
    ends = np.cumsum(counts)
    # Where enough records have come for another part, or another section.
    whole = batch or section_records(int(ends[-1]), _record_type(forms).itemsize or 1)
    parts, wholes = (np.flatnonzero(np.diff(ends // size)) + 1 for size in (part or PART, whole))
    bounds = [0, *sorted({*parts.tolist(), *wholes.tolist()}), len(ends)]
    section = [0]
    for first, stop in pairwise(bounds):
        if ends[stop - 1] == (ends[first - 1] if first else 0):
            section[-1] = stop
        else:
            section.append(stop)
        if len(section) > 1 and (stop in wholes or stop == len(ends)):
            yield tuple(section)
            section = [stop]


def parts_of(cuts: Iterable[tuple[Readable, Cut]], forms: Fields) -> Iterator[list[NDArray[np.generic]]]:
    """Yield the fields of each part of a section.

    Args:
        cuts: what each batch has of it, in the order in which the batches came.
        forms: empty arrays of the fields' types and widths.
    """
    type_ = _record_type(forms)
    sections = [(cut.firsts, cut.read(file, type_.itemsize)) for file, cut in cuts if cut.firsts[0] < cut.firsts[-1]]
    for part in range(len(sections[0][0]) - 1):
        pieces = [records[firsts[part] - firsts[0] : firsts[part + 1] - firsts[0]] for firsts, records in sections]
        yield _fields(np.concatenate(pieces).view(type_)[:, 0], forms)


class Partitions:
    """Records that come in any order, and are read back in parts, each with larger leading bits than the one before.

    Records of the same leading bits stay in the order in which they came.

    Args:
        bits: how many leading bits tell partitions apart.
        joins: whether a part may have several partitions; else it has one.
        batch: records that are written at once, and that are read at once; BATCH and a section by default.
    """

    def __init__(
        self, scratch: Scratch, *, bits: int = PARTITION_BITS, joins: bool = True, batch: int | None = None
    ) -> None:
        self._scratch = scratch
        self._bits = bits
        self._least = PART if joins else 1
        self._batch = batch
        self._batches: list[Batch] = []
        self._waiting: list[Fields] = []
        self._waiting_rows = 0
        self._forms: Fields = ()
        self._counts = np.zeros(1 << bits, np.int64)

    def append(self, leading: NDArray[np.uint16], fields: Fields) -> None:
        """Take some records.

        Args:
            leading: (rows,) their leading bits.
            fields: arrays of (rows, ...), of the same types and widths each time.
        """
        self._forms = tuple(field[:0] for field in fields)
        self._waiting.append((leading, *fields))
        self._waiting_rows += len(leading)
        if self._waiting_rows >= (self._batch or BATCH):
            self._write()

    @property
    def largest(self) -> int:
        """Records of the largest partition."""
        self._write()
        return int(self._counts.max())

    def parts(self) -> Iterator[list[NDArray[np.generic]]]:
        """Yield the fields of each part."""
        self._write()
        for edges in sections(self._counts, self._forms, part=self._least, batch=self._batch):
            yield from parts_of(((self._scratch, batch.cut(edges)) for batch in self._batches), self._forms)

    def _write(self) -> None:
        if not self._waiting:
            return
        leading, *fields = (np.concatenate(pieces) for pieces in zip(*self._waiting, strict=True))
        self._waiting, self._waiting_rows = [], 0
        batch = write_batch(self._scratch, leading, fields, bits=self._bits)
        self._counts += batch.counts
        self._batches.append(batch)


def width_of(form: NDArray[np.generic]) -> int:
    """Return the bytes of a field of one record."""
    return form.dtype.itemsize * int(np.prod(form.shape[1:]))


def _record_type(forms: Fields) -> np.dtype[np.void]:
    """Return the type of a record that has a field of each form, one after the other."""
    return np.dtype([(f"{place}", f"V{width_of(form)}") for place, form in enumerate(forms)])


def _records(fields: Fields, order: NDArray[np.int64]) -> NDArray[np.void]:
    """Put fields side by side, in an order: what a part has of a batch is one piece."""
    count, type_ = len(fields[0]), _record_type(fields)
    records = np.empty(count, type_)
    for place, field in enumerate(fields):
        data = np.ascontiguousarray(field).view(np.uint8).reshape(count, width_of(field))
        records[f"{place}"] = data.view(type_[place])[:, 0].take(order)
    return records


def _fields(records: NDArray[np.void], forms: Fields) -> list[NDArray[np.generic]]:
    """Return the fields of records, each an array of its form."""
    columns = (np.ascontiguousarray(records[f"{place}"]) for place in range(len(forms)))
    return [
        column.view(form.dtype).reshape(len(records), *form.shape[1:])
        for column, form in zip(columns, forms, strict=True)
    ]
