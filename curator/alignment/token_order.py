"""A curator's table in the ascending order of its tokens, and by the rows of the hub: three passes of tasks.

Spread: rows in file order get tokens, and are written by the leading bits of these. Sort: a section, which is a range
of leading bits, is put in order. Join: a sorted section is compared with the tokens of the hub. Between the passes the
rows are in files of a run, as they belong to people whom the hub may not have; only the sorted tokens are in a file of
the alignment.
"""

import secrets
import weakref
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.dataclass import dataclass, field
from veiltab.common.observe.progress import Stage
from veiltab.common.storage.files import named_in_errors, written_whole
from veiltab.common.storage.partitions import (
    PARTITION_BITS,
    Batch,
    Edges,
    sections,
    width_of,
    write_batch,
)
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.stored import PlainFile, Readable, StoredFile
from veiltab.common.tasks.engine import in_order
from veiltab.curator.alignment.intersection import (
    HubRows,
    Joined,
    Lacking,
    Tokens,
    matches,
    slices,
    sorted_order,
    tokens_of,
)
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.partition_files import SPREAD, Section, SpreadRows
from veiltab.curator.table.table_rows import TableRows, WrittenBatch
from veiltab.curator.table.tokens import TOKEN_LENGTH, tokens

_Array = NDArray[np.generic]

_TOKENS = np.empty((0, TOKEN_LENGTH // 8), "<u8")

_Types = tuple[tuple[str, str], ...]
"""Attribute and type of its symbols, as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """Writes tokens and symbols of consecutive rows by the leading bits of the tokens.

    Args:
        table: the rows in file order.
        name: of the file to write.
    """

    table: StoredFile
    batches: tuple[WrittenBatch, ...]
    types: _Types
    key: bytes = field(repr=False)
    run: RunFiles
    name: str

    def perform(self) -> Batch:
        types = {name: np.dtype(type_) for name, type_ in self.types}
        with self.table.opened() as table:
            batches = [batch.read(table, types) for batch in self.batches]
        row_tokens = np.concatenate([tokens(batch.ids, self.key) for batch in batches])
        fields: list[_Array] = [row_tokens.view("<u8")]
        fields += (np.concatenate([batch.columns[name] for batch in batches]) for name in types)
        with self.run.writing(self.name) as file:
            leading = row_tokens.view(">u2")[:, 0] >> 16 - PARTITION_BITS
            return write_batch(file, leading.astype(np.uint16), fields)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sort:
    """Sorts a section.

    Args:
        first: the number of the first row among all sorted ones.
        output: file of this machine that has all tokens, one after the other; None if the other file has them too.
        name: of the file to write there.
    """

    section: Section
    types: _Types
    first: int
    output: Path | None
    run: RunFiles
    name: str

    def perform(self) -> _Parts:
        parts, row = list[_Part](), self.first
        with ExitStack() as files:
            sealed = files.enter_context(self.run.writing(self.name))
            output = None if self.output is None else files.enter_context(_opened(self.output))
            for part in self.section.parts(_forms(self.types)):
                ascending = sorted_order(part[0].view(np.uint8))
                starts = list[int]()
                for place, whole in enumerate(part):
                    field_ = whole.take(ascending, axis=0)
                    if output is not None and place == 0:
                        starts.append(row * width_of(field_))
                        output.seek(starts[-1])
                        output.write(field_.data)
                    else:
                        starts.append(sealed.append(field_))
                parts.append(_Part(rows=len(ascending), starts=tuple(starts)))
                row += len(ascending)
        return tuple(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HubTokens:
    """The tokens of the hub that have some leading bits: its tokens number `start` to `stop`.

    Args:
        tokens: all of them, ascending.
        stop: the one after the last.
    """

    tokens: StoredFile
    start: int
    stop: int

    def pieces(self, file: Readable) -> Iterator[Tokens]:
        """Yield them piece by piece."""
        for piece in slices(self.stop - self.start):
            place, rows = self.start + piece.start, piece.stop - piece.start
            yield file.read(TOKEN_LENGTH * place, TOKEN_LENGTH * rows).reshape(-1, TOKEN_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Join:
    """Says which rows of a sorted section the hub has, and which of the hub's rows are there.

    Args:
        tokens: those of the section, and perhaps of others.
        hub: the hub's tokens of the same leading bits.
    """

    tokens: StoredFile
    section: _Parts
    hub: _HubTokens

    def perform(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Return a bit for each row of each part, and for each token of each piece of the hub's."""
        with ExitStack() as files:
            tokens = files.enter_context(self.tokens.opened())
            theirs = files.enter_context(self.hub.tokens.opened())
            own = (part.read(tokens, 0, _TOKENS).view(np.uint8) for part in self.section)
            in_hub, here = matches(own, self.hub.pieces(theirs))
            return tuple(map(_packed, in_hub)), tuple(map(_packed, here))


def _packed(bits: NDArray[np.bool_]) -> bytes:
    return np.packbits(bits).tobytes()


def _bits(bits: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).view(np.bool_)


class TokenOrder:
    """A curator's table in the ascending order of its tokens.

    Args:
        execution: performs the passes; its files hold the rows between them, until nothing refers to this object.
        stage: says how far a pass is, if anybody asks.
    """

    def __init__(self, table: TableRows, execution: Execution, stage: Stage | None = None) -> None:
        self._table = table
        self._stage = stage or Stage()
        self._run = execution.run
        self._engine = execution.engine_for(len(table))
        self._execution = execution
        self._types = tuple((name, type_.str) for name, type_ in table.types.items())
        self._name = secrets.token_hex(8)
        self._sections: list[_Parts] = []
        self._own = Path()
        # At which partition each section ends.
        self._ends: list[int] = []
        weakref.finalize(self, self._run.delete_all, self._name)

    def write(self, key: bytes, own: Path) -> None:
        """Sort the table.

        Args:
            own: file to write the tokens to; it is there whole or not at all.
        """
        if self._execution.is_remote:
            self._table.sync()
        with self._stage.of("computing tokens", len(self._table)) as progress:
            spread = SpreadRows(self._run, self._name)
            for batch in in_order(self._engine.perform(self._spreads(key, spread))):
                spread.append(batch)
                progress.advance(int(batch.counts.sum()))
        edges = list(sections(spread.counts, _forms(self._types)))
        with self._stage.of("sorting tokens", len(self._table)) as progress, written_whole(own) as output:
            # Tasks elsewhere leave all of it in the run.
            sorts = self._sorts(edges, spread, None if self._execution.is_remote else Path(output.name))
            for number, section in enumerate(in_order(self._engine.perform(sorts))):
                if self._execution.is_remote:
                    with self._run.file(self._sorted(number)).opened() as file:
                        for part in section:
                            output.write(part.read(file, 0, _TOKENS).data)
                self._sections.append(section)
                progress.advance(sum(part.rows for part in section))
        self._own = own
        self._ends = [edge[-1] for edge in edges]
        spread.delete()

    def rows(self, hub: Path | None, lacking: Mapping[str, Lacking], joined: Joined) -> Iterator[HubRows]:
        """Yield the rows of the hub in ascending order of their tokens, piece by piece, with one's own symbols.

        Args:
            hub: file of the hub's ascending tokens; None at the hub, whose own rows they are.
            lacking: attribute -> what stands for people who are not here.
            joined: counts rows of people who are here.

        Raises:
            IntegrityError: the tokens of the hub are not strictly ascending.
        """
        if hub is None:
            for number, section in enumerate(self._sections):
                with self._run.file(self._sorted(number)).opened() as symbols, self._tokens(number).opened() as own:
                    for part in section:
                        joined.matched += part.rows
                        yield part.read(own, 0, _TOKENS).view(np.uint8), self._symbols(part, symbols)
            return
        theirs, hub_file = tokens_of(hub), self._execution.for_tasks(hub, self._copied())
        joins = [self._join(number, theirs, hub_file) for number in range(len(self._sections))]
        with self._stage.of("comparing tokens", len(self._table)) as progress, hub_file.opened() as file:
            for number, (in_hub, here) in enumerate(in_order(self._engine.perform(joins))):
                section, columns = self._sections[number], list[Mapping[str, Symbols]]()
                with self._run.file(self._sorted(number)).opened() as symbols:
                    for part, mask in zip(section, in_hub, strict=True):
                        columns.append(self._symbols(part, symbols, _bits(mask, part.rows)))
                yield from self._filled(joins[number].hub.pieces(file), here, columns, lacking, joined)
                progress.advance(sum(part.rows for part in section))
            if not self._sections:
                every = [theirs[piece] for piece in slices(len(theirs))]
                yield from self._filled(every, [b""] * len(every), [], lacking, joined)
        self._run.delete_all(self._copied())

    def _symbols(self, part: _Part, file: Readable, rows: NDArray[np.bool_] | None = None) -> Mapping[str, Symbols]:
        """Return the symbols of some rows of a part; of all by default."""
        forms, types = _forms(self._types), self._table.types
        columns = {name: part.read(file, place, forms[place]) for place, name in enumerate(types, 1)}
        return {name: (one if rows is None else one[rows]).view(types[name]) for name, one in columns.items()}

    def _filled(
        self,
        pieces: Iterable[Tokens],
        here: Iterable[bytes],
        parts: Sequence[Mapping[str, Symbols]],
        lacking: Mapping[str, Lacking],
        joined: Joined,
    ) -> Iterator[HubRows]:
        """Yield rows of the hub: the next of one's own symbols where a person is here, else what says otherwise."""
        types = self._table.types
        own = {name: np.concatenate([np.empty(0, type_), *(f[name] for f in parts)]) for name, type_ in types.items()}
        start = 0
        for piece, bits in zip(pieces, here, strict=True):
            is_here = _bits(bits, len(piece)) if parts else np.zeros(len(piece), np.bool_)
            stop = start + int(np.count_nonzero(is_here))
            columns = {name: np.empty(len(piece), type_) for name, type_ in types.items()}
            for name, column in columns.items():
                column[is_here] = own[name][start:stop]
                column[~is_here] = lacking[name].values(piece[~is_here], column.dtype)
            joined.matched += stop - start
            start = stop
            yield piece, columns

    def _spreads(self, key: bytes, spread: SpreadRows) -> Iterator[_Spread]:
        """Yield the tasks that spread the rows."""
        for number, batches in enumerate(self._groups()):
            yield _Spread(
                table=self._table.task_file,
                batches=batches,
                types=self._types,
                key=key,
                run=self._run,
                name=spread.file(number),
            )

    def _groups(self) -> Iterator[tuple[WrittenBatch, ...]]:
        """Yield consecutive batches of SPREAD rows or a few more."""
        group, rows = list[WrittenBatch](), 0
        for batch in self._table.batch_places():
            group.append(batch)
            rows += batch.respondents
            if rows >= SPREAD:
                yield tuple(group)
                group, rows = [], 0
        if group:
            yield tuple(group)

    def _sorts(self, edges: Iterable[Edges], spread: SpreadRows, output: Path | None) -> Iterator[_Sort]:
        """Yield the tasks that sort the sections."""
        first = 0
        for number, edge in enumerate(edges):
            yield _Sort(
                section=spread.section(edge),
                types=self._types,
                first=first,
                output=output,
                run=self._run,
                name=self._sorted(number),
            )
            first += int(spread.counts[edge[0] : edge[-1]].sum())

    def _join(self, number: int, theirs: Tokens, hub_file: StoredFile) -> _Join:
        """Return the task that joins a section; all tasks together see all tokens of the hub."""
        start, stop = self._range(number, theirs)
        hub = _HubTokens(tokens=hub_file, start=start, stop=stop)
        return _Join(tokens=self._tokens(number), section=self._sections[number], hub=hub)

    def _range(self, number: int, theirs: Tokens) -> tuple[int, int]:
        """Return where the hub's tokens of a section begin and end.

        The first and the last of them lie between its ends, whatever the others are, since both were looked at; tasks
        see whether those in between ascend.
        """
        start = bisect_left(theirs, _beginning(self._ends[number - 1]), key=bytes) if number else 0
        if number + 1 == len(self._ends):
            return start, len(theirs)
        return start, bisect_left(theirs, _beginning(self._ends[number]), key=bytes)

    def _tokens(self, number: int) -> StoredFile:
        """Return the file that holds the sorted tokens of a section."""
        return self._run.file(self._sorted(number)) if self._execution.is_remote else PlainFile(path=self._own)

    def _sorted(self, number: int) -> str:
        return f"{self._name}-sorted-{number}"

    def _copied(self) -> str:
        return f"{self._name}-from-hub"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, of which others write other places."""
    with named_in_errors(path), path.open("r+b") as file:
        yield file


def _forms(types: _Types) -> list[_Array]:
    """Return empty arrays like tokens and symbols."""
    return [_TOKENS, *(np.empty(0, type_) for _, type_ in types)]


def _beginning(partition: int) -> bytes:
    """Return the beginning of the least tokens of a partition."""
    return (partition << (16 - PARTITION_BITS)).to_bytes(2, "big")
