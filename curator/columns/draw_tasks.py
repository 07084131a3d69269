"""Samples without replacement of large tables, in tasks: the rows in their secret order, and one's own symbols of them.

Spread: consecutive rows get priorities, and those that may be drawn are written by the leading bits of these, together
with their symbols. Order: a range of leading bits is put in order. So no symbol is looked up at random.

A table of fewer than SMALL rows (curator/table/execution.py) is drawn in this process. Else there is a task for each
SPREAD rows (curator/table/partition_files.py), and then one for each section of them (common/storage/partitions.py).
"""

import secrets
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.block_order import BLOCK_BYTES, Blocks, ordered_rows, renumber
from veiltab.common.core.domain import Symbols
from veiltab.common.core.sampling import Priorities, Rows, TokensOf, thresholds, words_of
from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.observe.progress import Stage
from veiltab.common.storage.partitions import Batch, bits_for, leading_bits, sections, write_batch
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.stored import Readable, StoredFile
from veiltab.common.tasks.engine import in_order
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.partition_files import SPREAD, Section, SpreadRows

if TYPE_CHECKING:
    from veiltab.curator.alignment.intersection import AlignedTable

_ROWS = "<u4"
"""Type of row numbers, of which a word has half."""

_Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of the aligned table: its file, where its symbols begin, and their type."""

    file: StoredFile
    start: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """Writes the rows that may be drawn, of some consecutive ones, by the leading bits of their priorities.

    Args:
        tokens: of all rows.
        columns: whose symbols are wanted.
        stop: the row after the last.
        threshold: most leading 64 bits of a row that may be drawn.
        bits: how many leading bits tell partitions apart.
        name: of the file to write.
    """

    tokens: StoredFile
    columns: tuple[_Column, ...]
    start: int
    stop: int
    threshold: int
    bits: int
    key: bytes = field(repr=False)
    run: RunFiles
    name: str

    def perform(self) -> Batch:
        with self.tokens.opened() as file:
            early = Priorities(self.key, _tokens_in(file)).up_to(self.threshold, self.start, self.stop)
            leads, rows = (np.concatenate(pieces) for pieces in zip(*early, strict=True))
        symbols = [self._symbols(column) for column in self.columns]
        if len(rows) < self.stop - self.start:
            symbols = [column.take(rows - self.start) for column in symbols]
        leading = leading_bits(leads, self.bits)
        with self.run.writing(self.name) as file:
            return write_batch(file, leading, [words_of((leads, rows), shared=self.bits), *symbols], bits=self.bits)

    def _symbols(self, column: _Column) -> _Array:
        """Return the symbols of all rows from the first to the last."""
        width = np.dtype(column.type).itemsize
        with column.file.opened() as file:
            return file.read(column.start + self.start * width, (self.stop - self.start) * width).view(column.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Drawn rows in a file of a run, in their order: how many, and where rows and symbols of each column begin."""

    name: str
    rows: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """Puts the rows of some partitions in the order of their priorities.

    Args:
        section: the rows.
        tokens: of all rows.
        name: of the file to write.
    """

    section: Section
    types: tuple[str, ...]
    tokens: StoredFile
    key: bytes = field(repr=False)
    run: RunFiles
    name: str

    def perform(self) -> tuple[Part, ...]:
        parts = list[Part]()
        with self.tokens.opened() as tokens, self.run.writing(self.name) as file:
            priorities = Priorities(self.key, _tokens_in(tokens))
            for words, *symbols in self.section.parts(_forms(self.types)):
                numbered = words.view(np.uint64)
                rows = renumber(numbered)
                order = ordered_rows(numbered, _blocks_of(priorities, rows))
                fields: list[_Array] = [rows.astype(_ROWS, copy=False), *symbols]
                starts = tuple(file.append(unordered.take(order)) for unordered in fields)
                parts.append(Part(name=self.name, rows=len(rows), starts=starts))
        return tuple(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnField:
    """Row numbers or symbols of drawn rows, for tasks; each slice is read when it is asked for.

    Args:
        parts: in their order, or those among which are all slices that are asked for.
        firsts: the first drawn row of each part.
        place: which of the fields of a part.
        length: rows that are drawn.
    """

    run: RunFiles
    parts: tuple[Part, ...]
    firsts: tuple[int, ...]
    place: int
    type: str
    length: int

    def __len__(self) -> int:
        """Number of drawn rows."""
        return self.length

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Return the elements of a slice without a step."""
        start, stop, _ = part.indices(self.length)
        pieces = [np.empty(0, self.type)]
        for here, first in zip(*self._among(start, stop), strict=True):
            low, high = max(start - first, 0), min(stop - first, here.rows)
            width = pieces[0].itemsize
            with self.run.file(here.name).opened() as file:
                data = file.read(here.starts[self.place] + low * width, (high - low) * width)
            pieces.append(data.view(self.type))
        return np.concatenate(pieces)

    def cut(self, start: int, stop: int) -> "DrawnField":
        """Return what some drawn rows need, and little more."""
        parts, firsts = self._among(start, stop)
        return replace(self, parts=parts, firsts=firsts)

    def _among(self, start: int, stop: int) -> tuple[tuple[Part, ...], tuple[int, ...]]:
        """Return the parts that have some drawn rows, and the first row of each."""
        low, high = max(bisect_right(self.firsts, start) - 1, 0), bisect_right(self.firsts, stop - 1)
        return self.parts[low:high], self.firsts[low:high]


class DrawnSample:
    """The rows of least priority in their order, and one's own symbols of them.

    Args:
        table: all rows.
        sample: how many are drawn.
        attributes: whose symbols are wanted.
        execution: performs the tasks; its files hold the result until nothing refers to this object.
        stage: says how far the draw is, if anybody asks.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a draw consists of
        self,
        table: "AlignedTable",
        sample: int,
        key: bytes,
        attributes: Sequence[str],
        execution: Execution,
        stage: Stage | None = None,
    ) -> None:
        self._run = execution.run
        self._name = secrets.token_hex(8)
        weakref.finalize(self, self._run.delete_all, self._name)
        self._sample, self._key = sample, key
        self._rows = len(table.tokens())
        self.engine = execution.engine_for(self._rows)
        """Performs what is done with the rows."""
        self._types = {name: table.column(name).dtype.str for name in attributes}
        copies = {name: f"{self._name}-copy-{name}" for name in ("", *attributes)}
        tokens = execution.for_tasks(table.tokens_file, copies[""])
        columns = tuple(
            _Column(
                file=execution.for_tasks(table.column_file(name), copies[name]),
                start=table.column_start,
                type=self._types[name],
            )
            for name in attributes
        )
        self._parts = tuple(self._draw(tokens, columns, stage or Stage()))
        self._firsts = tuple(accumulate((part.rows for part in self._parts[:-1]), initial=0))
        self._run.delete(*copies.values())

    def __len__(self) -> int:
        """Number of drawn rows."""
        return self._sample

    def __getitem__(self, part: slice) -> Rows:
        """Return the rows of a slice without a step."""
        rows: Rows = self._field(0, _ROWS)[part].astype(np.int64, copy=False)
        return rows

    def column(self, _table: "AlignedTable", attribute: str) -> "DrawnColumn":
        """Return the symbols of the rows."""
        place = list(self._types).index(attribute) + 1
        return DrawnColumn(self, self._field(place, self._types[attribute]))

    def _field(self, place: int, type_: str) -> DrawnField:
        return DrawnField(
            run=self._run, parts=self._parts, firsts=self._firsts, place=place, type=type_, length=self._sample
        )

    def _draw(self, tokens: StoredFile, columns: tuple[_Column, ...], stage: Stage) -> Iterator[Part]:
        """Yield the drawn rows in their order."""
        bits, types = bits_for(self._rows), tuple(self._types.values())
        for threshold in thresholds(self._rows, self._sample):
            spread = SpreadRows(self._run, self._name, bits=bits)
            with stage.of("drawing the sample", self._rows) as progress:
                for batch in in_order(self.engine.perform(self._spreads(tokens, columns, threshold, bits, spread))):
                    spread.append(batch)
                    progress.advance(SPREAD)
            if spread.counts.sum() >= self._sample:
                break
        # Partitions that begin after the last drawn row are not put in order.
        needed = int(np.searchsorted(np.cumsum(spread.counts), self._sample)) + 1
        orders = (
            _Order(
                section=spread.section(edges),
                types=types,
                tokens=tokens,
                key=self._key,
                run=self._run,
                name=f"{self._name}-ordered-{number}",
            )
            for number, edges in enumerate(sections(spread.counts[:needed], _forms(types), part=1))
        )
        with stage.of("ordering the sample", self._sample) as progress:
            for parts in in_order(self.engine.perform(orders)):
                yield from parts
                progress.advance(sum(part.rows for part in parts))
        spread.delete()

    def _spreads(
        self, tokens: StoredFile, columns: tuple[_Column, ...], threshold: int, bits: int, spread: SpreadRows
    ) -> Iterator[_Spread]:
        for number, start in enumerate(range(0, self._rows, SPREAD)):
            yield _Spread(
                tokens=tokens,
                columns=columns,
                start=start,
                stop=min(start + SPREAD, self._rows),
                threshold=threshold,
                bits=bits,
                key=self._key,
                run=self._run,
                name=spread.file(number),
            )


class DrawnColumn:
    """The symbols of a sample.

    Args:
        sample: the rows; while anything refers to it, their files are there.
    """

    def __init__(self, sample: DrawnSample, symbols: DrawnField) -> None:
        self.sample = sample
        self.symbols = symbols

    def __len__(self) -> int:
        """Number of drawn rows."""
        return len(self.symbols)

    def __getitem__(self, part: slice) -> Symbols:
        """Return the symbols of a slice without a step."""
        return self.symbols[part]


def _forms(types: tuple[str, ...]) -> list[_Array]:
    """Return empty arrays like the words and the symbols of some rows."""
    return [np.empty(0, type_) for type_ in ("<u8", *types)]


def _blocks_of(priorities: Priorities, rows: Rows) -> Callable[[Rows], Blocks]:
    """Return what gives the priorities of some of these rows, by their places."""
    return lambda places: priorities.of(rows[places])


def _tokens_in(file: Readable) -> TokensOf:
    """Return what reads the tokens of some rows: consecutive ones, or a few that begin alike."""

    def tokens(rows: slice | Rows) -> Blocks:
        if isinstance(rows, slice):
            data = file.read(BLOCK_BYTES * rows.start, BLOCK_BYTES * (rows.stop - rows.start))
        else:
            pieces = (file.read(BLOCK_BYTES * row, BLOCK_BYTES) for row in rows.tolist())
            data = np.concatenate([np.empty(0, np.uint8), *pieces])
        return data.reshape(-1, BLOCK_BYTES)

    return tokens
