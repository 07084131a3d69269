"""A spoke's work in one session: it asks pass by pass, and finds to which rows of the hub its own are linked.

What it asks depends on its number of rows alone; how long a pass takes it, also on how many rows are linked. It refuses
nothing for what it finds: a refusal would say whom it has.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError
from veiltab.common.linkage.hub_rule import accept
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.placebo import moved_fields
from veiltab.common.linkage.row_keys import most_variants
from veiltab.common.storage.files import write_whole
from veiltab.common.storage.sorted_records import Bytes, SortedRecords
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message
from veiltab.curator.alignment.joining.join_spoke import own_values, spoke_pass
from veiltab.curator.alignment.joining.row_numbers import NOBODY, Numbers, own_numbers
from veiltab.curator.alignment.linking.agreement import MOST_LINE, HubLine, read_hub_line
from veiltab.curator.alignment.linking.link_session import COMPARED, MOST_SHOWN, PAD, LinkSession
from veiltab.curator.alignment.linking.own_keys import ComparedFields, Rows, SpokeKeys, compared
from veiltab.curator.alignment.linking.shown_keys import (
    BATCH,
    ENTRY_BYTES,
    MANY,
    DigestedKeys,
    numbers_in,
    token_values,
)

_FOUND = np.dtype([("row", "<i8"), ("number", "<i8")])
_OUT = 255  # in place of a pass, of a row that does not run with moved dates


class SpokeLinking:
    """What a spoke does in one session; each file is durable, so a spoke that is killed goes on.

    Args:
        link: what it has at hand.
        rows: that the hub takes part with.
    """

    def __init__(self, link: LinkSession, rows: int) -> None:
        self._link = link
        self._hub_rows = rows
        self._keys: tuple[int, SpokeKeys] | None = None
        self._done = 0
        self._passes = np.zeros(2 * link.rows, np.uint8)
        self.passes, self._moved = np.split(self._passes, 2)
        """Of each row, the pass in which it has its candidate; 0 before, or if none. The same with moved dates."""
        self._moved[:] = _OUT
        if moved := link.placebo_rows:
            self._moved[own_numbers(link.derived("moved"), link.rows)[:moved]] = 0
        self._candidates, self._numbers = np.full(link.rows, NOBODY), None  # type: Numbers, Numbers | None
        self.accepted: Rows = np.empty(0, np.int64)
        """The complete rows that are linked with complete rows of the hub, in the order of the hub's numbers."""
        self.incomplete = 0
        """Rows that the rule links and that are not there, because they or the hub's miss a value of an attribute."""
        self.ties = 0, 0
        """The rows that tie with another one in the earliest pass that proposes to a row of the hub, and those rows."""
        self.crowded = np.zeros(0, np.bool_)
        """Of each row, whether the key of its pass has a value that far more rows share than others."""
        self.agreed: NDArray[np.bool_] | None = None
        """(n, 8): of some linked pairs what agrees, by the places of `compared`, without numbers that a crowd shares.

        None where pairs are not compared.
        """
        self.pairs: Rows = np.empty(0, np.int64)
        """The rows of these pairs."""
        self.forms = list[str]()
        """Of the same pairs how the number that no key takes is written here."""
        self.dated = 0, 0
        """Rows with a birth date, here and at the hub."""

    async def run(self) -> tuple[HubLine, Numbers]:
        """Return what the hub stated, and of each row the number of the hub's row that it is linked with, or NOBODY.

        Raises:
            NotReadyError, UnavailableError: the hub has not made what is needed; repeat it.
            IntegrityError, InvalidInputError: the hub sent what no honest curator sends.
        """
        link, line = self._link, await self._agreement()
        for step in line.running(link.identity)[self._done :]:
            await self._pass(step, line)
            self._done += 1
        if self._numbers is None:
            self._numbers = await asyncio.to_thread(self._resolve, line)
        if compared(link.identity):
            await self._compare(line)
        return line, self._numbers

    def _resolve(self, line: HubLine) -> Numbers:
        """Return of each row the number of the hub's row that it is linked with."""
        link = self._link
        rows, self.ties = accept(self.passes, self._candidates)
        complete = link.table.respondents.mask()[rows] & (self._candidates[rows] < line.complete)
        self.incomplete, self.accepted = int(np.count_nonzero(~complete)), rows[complete]
        running = line.running(link.identity)
        keys = {field: [one.number for one in running if field in one.fields] for field in link.identity.kinds}
        self.crowded = link.own.crowded(self.passes, keys)
        numbers = np.full(link.rows, NOBODY)
        numbers[self.accepted] = self._candidates[self.accepted]
        return numbers

    def placebo(self, line: HubLine) -> tuple[int, dict[int, int]]:
        """Return the rows that ran with moved dates, and pass -> those that proposed in it, where a key was moved."""
        counts, identity = np.bincount(self._moved, minlength=_OUT + 1), self._link.identity
        moved = [step.number for step in line.running(identity) if moved_fields(step, identity.kinds)]
        rows = len(self._moved) - int(counts[_OUT])
        return rows, {number: int(counts[number]) for number in moved if rows}

    async def _agreement(self) -> HubLine:
        """Read what the hub states."""
        files, identity = self._link.files, self._link.identity

        def read(path: Path) -> HubLine:
            return read_hub_line(path.read_bytes(), identity, self._hub_rows, files.other)

        def check(path: Path) -> None:
            read(path)

        return read(await files.fetched(JoinKind.AGREEMENT, most=MOST_LINE, check=check))

    async def _pass(self, step: Pass, line: HubLine) -> None:
        """Find the candidates of the rows that have none yet."""
        link, path = self._link, self._link.files.folder / f"found-{step.number}.bin"
        if not path.exists():
            keys = await self._pass_keys(step.number, lambda: self._pass_records(step))
            most = line.rows * most_variants(step, link.identity)
            numbers = await self._looked_up(step.number, keys, link.key_count(step), most, 2 * link.rows)
            records = np.zeros(np.count_nonzero(numbers != NOBODY), _FOUND)
            records["row"] = np.flatnonzero(numbers != NOBODY)
            # Whom a row with moved dates found is not kept.
            records["number"] = np.where(records["row"] < link.rows, numbers[records["row"]], NOBODY)
            await asyncio.to_thread(write_whole, path, records.data)
            self._forget(step.number)
        records = np.fromfile(path, _FOUND)
        self._passes[records["row"]] = step.number
        records = records[records["row"] < link.rows]
        self._candidates[records["row"]] = records["number"]

    async def _compare(self, line: HubLine) -> None:
        """Find in which fields some linked pairs agree."""
        link = self._link
        most = min(line.complete, MOST_SHOWN)
        pairs = self.accepted[self._candidates[self.accepted] < most][: link.pairs]
        self.pairs = np.sort(pairs)
        fields = compared(link.identity)
        path = link.files.folder / "compared.bin"
        if not path.exists():
            keys = await self._pass_keys(COMPARED, lambda: self._pair_records(fields))
            numbers = await self._looked_up(COMPARED, keys, link.pair_key_count, most * len(fields), 8 * len(pairs))
            await asyncio.to_thread(write_whole, path, (numbers != NOBODY).data)
            self._forget(COMPARED)
        self.agreed = np.fromfile(path, np.bool_).reshape(-1, 8)
        if name := link.identity.number_beside:
            self.forms = await asyncio.to_thread(link.own.forms, name, self.pairs)
            shared = await asyncio.to_thread(link.own.crowded, np.ones(link.rows, np.uint8), {name: [1]})
            self.agreed[shared[self.pairs], 7] = False
        self.dated = (await asyncio.to_thread(link.own.filled, fields[2][1]) if 2 in fields else 0), line.dated

    async def _looked_up(self, number: int, keys: SpokeKeys, size: int, most: int, rows: int) -> Numbers:
        """Return the candidate of each row in a pass, or NOBODY.

        Args:
            size: digests that the hub is asked about, whatever the keys are.
            most: keys that the hub may show.
            rows: how many the keys are of.
        """
        link, files = self._link, self._link.files
        if link.is_private:
            await spoke_pass(link.sessions, link.session, files, DigestedKeys(keys.digests, link.key, size), number)
        table = await files.fetched(
            JoinKind.TABLE, number, most=ENTRY_BYTES * (most + PAD), check=partial(check_table, files.other)
        )
        with files.stage.of(f"looking up {link.named(number)}", None):
            if link.is_private:
                own = await own_values(link.session, files, DigestedKeys(keys.digests, link.key), size, number)
            else:
                own = await asyncio.to_thread(self._token_values, keys, number)
            return await asyncio.to_thread(self._read, table, own, keys, rows, number)

    def _read(self, table: Path, own: Bytes, keys: SpokeKeys, rows: int, number: int) -> Numbers:
        numbers = numbers_in(np.fromfile(table, np.uint8).reshape(-1, ENTRY_BYTES), own)
        # A number that no row has is that of nobody, and no error.
        numbers[numbers >= (8 * MOST_SHOWN if number == COMPARED else self._hub_rows)] = MANY
        return keys.candidates(numbers, rows)

    def _token_values(self, keys: SpokeKeys, number: int) -> Bytes:
        digests = keys.digests
        values = [token_values(digests.read(at), self._link.key, number) for at in range(0, digests.count, BATCH)]
        return np.concatenate([np.empty((0, ENTRY_BYTES), np.uint8), *values])

    def _pair_records(self, fields: ComparedFields) -> SortedRecords:
        link, numbers = self._link, self._candidates[self.pairs]
        return link.own.pair_records(self.pairs, numbers, fields, link.files.alignment)

    def _pass_records(self, step: Pass) -> SortedRecords:
        """Return the keys of the rows without a candidate."""
        link, rows = self._link, np.flatnonzero(self._passes == 0)
        return link.own.records(step, rows, link.files.alignment)

    async def _pass_keys(self, number: int, records: Callable[[], SortedRecords]) -> SpokeKeys:
        """Return the keys of a pass; those of the latest are kept."""
        if self._keys is None or self._keys[0] != number:
            folder = self._link.files.folder
            self._keys = number, await asyncio.to_thread(lambda: SpokeKeys(records(), folder))
        return self._keys[1]

    def _forget(self, number: int) -> None:
        """Delete what the hub showed in a pass, and what it was asked: it has shown its answer."""
        files = self._link.files
        (files.folder / Message(kind=JoinKind.TABLE, number=number).received_name).unlink()
        files.path(JoinKind.COLUMNS, number).unlink(missing_ok=True)


def check_table(curator: str, path: Path) -> None:
    """Refuse keys that are cut short, or not padded.

    Raises:
        IntegrityError: they are.
    """
    count, rest = divmod(path.stat().st_size, ENTRY_BYTES)
    if rest or not count or count % PAD:
        raise IntegrityError("shows keys that are not padded", where=f"curator {curator}")
