"""A curator's table in the ascending order of its tokens, and what of it all others have: three passes of tasks.

Spread: rows in file order get tokens, and are written by the leading bits of these. Sort: a section, which is a range
of leading bits, is put in order. Join: a sorted section is compared with the tokens of all others. Between the passes
the rows are in files of a run, as they belong to respondents whom nobody shares; only the sorted tokens, which all
others read, are in a file of the alignment.
"""

import secrets
import weakref
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from veiltab.common.observe.progress import Stage
from veiltab.common.storage.disk import named_in_errors
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.partitions import (
    PARTITION_BITS,
    Batch,
    Edges,
    leading_bits,
    sections,
    width_of,
    write_batch,
)
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.stored import PlainFile, Readable, Stored
from veiltab.common.tasks.engine import in_order
from veiltab.curator.alignment.intersection import PIECE, CommonRows, Tokens, common_tokens, sorted_order, tokens_of
from veiltab.curator.table.spread import SPREAD, Section, SpreadRows
from veiltab.curator.table.table_rows import TableRows, WrittenBatch
from veiltab.curator.table.tokens import TOKEN_LENGTH, tokens
from veiltab.curator.table.workplace import Workplace

_Array = NDArray[np.generic]

_TOKENS = np.empty((0, TOKEN_LENGTH // 8), "<u8")

_Types = tuple[tuple[str, str], ...]
"""Attribute and type of its symbols, as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """Writes tokens, symbols and perhaps row numbers of consecutive rows by the leading bits of the tokens.

    Args:
        table: the rows in file order.
        start: the number of the first row.
        types: of the symbols.
        has_rows: whether the row numbers are wanted.
        name: of the file to write.
    """

    table: Stored
    batches: tuple[WrittenBatch, ...]
    start: int
    types: _Types
    has_rows: bool
    key: bytes = field(repr=False)
    run: RunFiles
    name: str

    def perform(self) -> Batch:
        types = {name: np.dtype(type_) for name, type_ in self.types}
        with self.table.opened() as table:
            batches = [batch.read(table, types) for batch in self.batches]
        made = np.concatenate([tokens(batch.ids, self.key) for batch in batches])
        fields: list[_Array] = [made.view("<u8")]
        fields += (np.concatenate([batch.columns[name] for batch in batches]) for name in types)
        if self.has_rows:
            fields.append(np.arange(self.start, self.start + len(made), dtype="<i8"))
        with self.run.written(self.name) as file:
            return write_batch(file, leading_bits(made.view(">u8")[:, 0]), fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Sorted rows: how many they are, and where each field begins in the file that holds it."""

    rows: int
    starts: tuple[int, ...]

    def read(self, file: Readable, place: int, form: _Array) -> _Array:
        """Return a field."""
        data = file.read(self.starts[place], self.rows * width_of(form))
        return data.view(form.dtype).reshape(self.rows, *form.shape[1:])


_Parts = tuple[_Part, ...]
"""The parts of a section, in ascending order."""

_Outputs = Mapping[int, Path]
"""Fields of which a file of this machine holds those of all rows, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sort:
    """Sorts a section.

    Args:
        section: its rows.
        types: of the symbols.
        has_rows: whether there are row numbers.
        first: the number of the first row among all sorted ones.
        outputs: holds the result, but for what these do not name.
        name: of the file to write there.
    """

    section: Section
    types: _Types
    has_rows: bool
    first: int
    outputs: _Outputs
    run: RunFiles
    name: str

    def perform(self) -> _Parts:
        made, row = list[_Part](), self.first
        with ExitStack() as files:
            sealed = files.enter_context(self.run.written(self.name))
            outputs = {place: files.enter_context(_opened(path)) for place, path in self.outputs.items()}
            for part in self.section.parts(_forms(self.types, has_rows=self.has_rows)):
                ascending = sorted_order(part[0].view(np.uint8))
                starts = list[int]()
                for place, unsorted in enumerate(part):
                    field_ = unsorted.take(ascending, axis=0)
                    if place in outputs:
                        starts.append(row * width_of(field_))
                        outputs[place].seek(starts[-1])
                        outputs[place].write(field_.data)
                    else:
                        starts.append(sealed.append(field_))
                made.append(_Part(rows=len(ascending), starts=tuple(starts)))
                row += len(ascending)
        return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """The tokens of another curator that have some leading bits: its tokens number `start` to `stop`.

    Args:
        tokens: all of them, ascending.
        stop: the one after the last.
    """

    curator: str
    tokens: Stored
    start: int
    stop: int

    def pieces(self, file: Readable) -> Iterator[Tokens]:
        """Yield them piece by piece."""
        for start in range(self.start, self.stop, PIECE):
            length = TOKEN_LENGTH * (min(start + PIECE, self.stop) - start)
            yield file.read(TOKEN_LENGTH * start, length).reshape(-1, TOKEN_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Join:
    """Says which rows of a sorted section all other curators have.

    Args:
        tokens: those of the section, and perhaps of others.
        section: its rows.
        others: every other curator's tokens of the same leading bits.
    """

    tokens: Stored
    section: _Parts
    others: tuple[_Others, ...]

    def perform(self) -> tuple[bytes, ...]:
        """Return a bit a row, for each part."""
        with ExitStack() as files:
            tokens = files.enter_context(self.tokens.opened())
            own = (part.read(tokens, 0, _TOKENS).view(np.uint8) for part in self.section)
            theirs = {one.curator: one.pieces(files.enter_context(one.tokens.opened())) for one in self.others}
            return tuple(np.packbits(common).tobytes() for common in common_tokens(own, theirs))


class TokenOrder:
    """A curator's table in the ascending order of its tokens.

    Args:
        table: the rows.
        workplace: performs the passes; its files hold the rows between them, until nothing refers to this object.
        stage: says how far a pass is, if anybody asks.
    """

    def __init__(self, table: TableRows, workplace: Workplace, stage: Stage | None = None) -> None:
        self._table = table
        self._stage = stage or Stage()
        self._run = workplace.run
        self._engine = workplace.engine_for(len(table))
        self._workplace = workplace
        self._types = tuple((name, type_.str) for name, type_ in table.types.items())
        self._name = secrets.token_hex(8)
        self._sections: list[_Parts] = []
        self._own = Path()
        # At which partition each section ends.
        self._ends: list[int] = []
        weakref.finalize(self, self._run.delete_all, self._name)

    def write(self, key: bytes, own: Path, order: Path | None) -> None:
        """Sort the table.

        Args:
            own: file to write the tokens to; it is there whole or not at all.
            order: file to write the rows of the tokens to, int64, or None.
        """
        has_rows = order is not None
        if self._workplace.is_remote:
            self._table.sync()
        with self._stage.of("computing tokens", len(self._table)) as progress:
            spread = SpreadRows(self._run, self._name)
            for batch in in_order(self._engine.perform(self._spreads(key, spread, has_rows=has_rows))):
                spread.append(batch)
                progress.advance(int(batch.counts.sum()))
        edges = list(sections(spread.counts))
        forms = _forms(self._types, has_rows=has_rows)
        with ExitStack() as files:
            progress = files.enter_context(self._stage.of("sorting tokens", len(self._table)))
            outputs = {0: files.enter_context(written_whole(own))}
            if order is not None:
                outputs[len(forms) - 1] = files.enter_context(written_whole(order))
            # Tasks elsewhere leave all of it in the run.
            direct = {} if self._workplace.is_remote else {place: Path(file.name) for place, file in outputs.items()}
            sorts = self._sorts(edges, spread, direct, has_rows=has_rows)
            for number, section in enumerate(in_order(self._engine.perform(sorts))):
                if self._workplace.is_remote:
                    with self._run.file(self._sorted(number)).opened() as file:
                        for part, (place, output) in product(section, outputs.items()):
                            output.write(part.read(file, place, forms[place]).data)
                self._sections.append(section)
                progress.advance(sum(part.rows for part in section))
        self._own = own
        self._ends = [edge[-1] for edge in edges]
        spread.delete()

    def common(self, others: Mapping[str, Path]) -> Iterator[CommonRows]:
        """Yield the rows whose tokens all others have, in ascending order, piece by piece.

        Args:
            others: every other curator's file of ascending tokens.

        Raises:
            IntegrityError: the tokens of one of them are not strictly ascending.
        """
        forms = _forms(self._types, has_rows=False)
        types = list(self._table.types.items())
        stored = {curator: self._workplace.stored(path, self._copied(curator)) for curator, path in others.items()}
        joins = (self._join(number, others, stored) for number in range(len(self._sections)))
        with self._stage.of("comparing tokens", len(self._table)) as progress:
            for number, masks in enumerate(in_order(self._engine.perform(joins))):
                section = self._sections[number]
                with self._run.file(self._sorted(number)).opened() as symbols, self._tokens(number).opened() as tokens:
                    for part, mask in zip(section, masks, strict=True):
                        rows = np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), count=part.rows))
                        made = part.read(tokens, 0, forms[0]).take(rows, axis=0)
                        yield (
                            made.view(np.uint8),
                            {
                                name: part.read(symbols, place, forms[place]).take(rows).view(type_)
                                for place, (name, type_) in enumerate(types, 1)
                            },
                        )
                progress.advance(sum(part.rows for part in section))
        self._run.delete_all(self._copied(""))

    def _spreads(self, key: bytes, spread: SpreadRows, *, has_rows: bool) -> Iterator[_Spread]:
        """Yield the tasks that spread the rows."""
        start = 0
        for number, batches in enumerate(self._groups()):
            yield _Spread(
                table=self._table.stored,
                batches=batches,
                start=start,
                types=self._types,
                has_rows=has_rows,
                key=key,
                run=self._run,
                name=spread.file(number),
            )
            start += sum(batch.respondents for batch in batches)

    def _groups(self) -> Iterator[tuple[WrittenBatch, ...]]:
        """Yield consecutive batches of SPREAD rows or a few more."""
        group, rows = list[WrittenBatch](), 0
        for batch in self._table.written():
            group.append(batch)
            rows += batch.respondents
            if rows >= SPREAD:
                yield tuple(group)
                group, rows = [], 0
        if group:
            yield tuple(group)

    def _sorts(
        self, edges: Iterable[Edges], spread: SpreadRows, outputs: _Outputs, *, has_rows: bool
    ) -> Iterator[_Sort]:
        """Yield the tasks that sort the sections."""
        first = 0
        for number, edge in enumerate(edges):
            yield _Sort(
                section=spread.section(edge),
                types=self._types,
                has_rows=has_rows,
                first=first,
                outputs=outputs,
                run=self._run,
                name=self._sorted(number),
            )
            first += int(spread.counts[edge[0] : edge[-1]].sum())

    def _join(self, number: int, others: Mapping[str, Path], stored: Mapping[str, Stored]) -> _Join:
        """Return the task that joins a section; all tasks together see all tokens of the others."""
        least = _beginning(self._ends[number - 1]) if number else b""
        end = _beginning(self._ends[number]) if number + 1 < len(self._ends) else None
        return _Join(
            tokens=self._tokens(number),
            section=self._sections[number],
            others=tuple(_others(curator, path, stored[curator], least, end) for curator, path in others.items()),
        )

    def _tokens(self, number: int) -> Stored:
        """Return the file that holds the sorted tokens of a section."""
        return self._run.file(self._sorted(number)) if self._workplace.is_remote else PlainFile(path=self._own)

    def _sorted(self, number: int) -> str:
        return f"{self._name}-sorted-{number}"

    def _copied(self, curator: str) -> str:
        return f"{self._name}-from-{curator}"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, of which others write other places."""
    with named_in_errors(path), path.open("r+b") as file:
        yield file


def _forms(types: _Types, *, has_rows: bool) -> list[_Array]:
    """Return empty arrays like tokens, symbols and perhaps row numbers."""
    forms: list[_Array] = [_TOKENS, *(np.empty(0, type_) for _, type_ in types)]
    return [*forms, np.empty(0, "<i8")] if has_rows else forms


def _beginning(partition: int) -> bytes:
    """Return the beginning of the least tokens of a partition."""
    return (partition << (16 - PARTITION_BITS)).to_bytes(2, "big")


def _others(curator: str, path: Path, stored: Stored, least: bytes, end: bytes | None) -> _Others:
    """Find the tokens of another curator between two beginnings of tokens; tasks read them where they are `stored`.

    The first and the last of them lie between the two, whatever the others are, since both were looked at; tasks see
    whether those in between ascend.
    """
    theirs = tokens_of(path)
    start = bisect_left(theirs, least, key=bytes)
    stop = len(theirs) if end is None else bisect_left(theirs, end, key=bytes)
    return _Others(curator=curator, tokens=stored, start=start, stop=stop)
