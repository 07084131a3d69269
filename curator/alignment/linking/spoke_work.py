"""A spoke's work in one session: it asks pass by pass, and finds to which rows of the hub its own are linked.

What it asks and when depends on its number of rows alone. It refuses nothing for what it finds: a refusal would say
whom it has.
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
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.sorted_records import Bytes, SortedRecords
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message
from veiltab.curator.alignment.joining.row_numbers import NOBODY, Numbers, own_numbers
from veiltab.curator.alignment.joining.spoke_leg import own_values, spoke_pass
from veiltab.curator.alignment.linking.agreement import MOST_LINE, HubLine, read_hub_line
from veiltab.curator.alignment.linking.leg import COMPARED, MOST_SHOWN, PAD, LinkLeg
from veiltab.curator.alignment.linking.own_keys import Asked, Rows, SpokeKeys, compared
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


class SpokeWork:
    """What a spoke does in one session; each file is durable, so a spoke that is killed goes on.

    Args:
        leg: what it has at hand.
        rows: that the hub takes part with.
    """

    def __init__(self, leg: LinkLeg, rows: int) -> None:
        self._leg = leg
        self._hub_rows = rows
        self._keys: tuple[int, SpokeKeys] | None = None
        self._done = 0
        self._passes = np.zeros(2 * leg.rows, np.uint8)
        self.passes, self._moved = np.split(self._passes, 2)
        """Of each row, the pass in which it has its candidate; 0 before, or if none. The same with moved dates."""
        self._moved[:] = _OUT
        if moved := leg.placebo_rows:
            self._moved[own_numbers(leg.derived("moved"), leg.rows)[:moved]] = 0
        self._candidates, self._numbers = np.full(leg.rows, NOBODY), None  # type: Numbers, Numbers | None
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
        leg, line = self._leg, await self._agreement()
        for step in line.running(leg.identity)[self._done :]:
            await self._pass(step, line)
            self._done += 1
        if self._numbers is None:
            self._numbers = await asyncio.to_thread(self._resolve, line)
        if compared(leg.identity):
            await self._compare(line)
        return line, self._numbers

    def _resolve(self, line: HubLine) -> Numbers:
        """Return of each row the number of the hub's row that it is linked with."""
        leg = self._leg
        rows, self.ties = accept(self.passes, self._candidates)
        complete = leg.table.respondents.kept()[rows] & (self._candidates[rows] < line.complete)
        self.incomplete, self.accepted = int(np.count_nonzero(~complete)), rows[complete]
        running = line.running(leg.identity)
        keys = {field: [one.number for one in running if field in one.fields] for field in leg.identity.kinds}
        self.crowded = leg.own.crowded(self.passes, keys)
        numbers = np.full(leg.rows, NOBODY)
        numbers[self.accepted] = self._candidates[self.accepted]
        return numbers

    def placebo(self, line: HubLine) -> tuple[int, dict[int, int]]:
        """Return the rows that ran with moved dates, and pass -> those that proposed in it, where a key was moved."""
        counts, identity = np.bincount(self._moved, minlength=_OUT + 1), self._leg.identity
        moved = [step.number for step in line.running(identity) if moved_fields(step, identity.kinds)]
        rows = len(self._moved) - int(counts[_OUT])
        return rows, {number: int(counts[number]) for number in moved if rows}

    async def _agreement(self) -> HubLine:
        """Read what the hub states."""
        files, identity = self._leg.files, self._leg.identity

        def read(path: Path) -> HubLine:
            return read_hub_line(path.read_bytes(), identity, self._hub_rows, files.other)

        def check(path: Path) -> None:
            read(path)

        return read(await files.fetched(JoinKind.AGREEMENT, most=MOST_LINE, check=check))

    async def _pass(self, step: Pass, line: HubLine) -> None:
        """Find the candidates of the rows that have none yet."""
        leg, path = self._leg, self._leg.files.folder / f"found-{step.number}.bin"
        if not path.exists():
            keys = await self._made(step.number, lambda: self._pass_records(step))
            shown = line.rows * most_variants(step, leg.identity)
            numbers = await self._looked_up(step.number, keys, leg.asked(step), shown, 2 * leg.rows)
            records = np.zeros(np.count_nonzero(numbers != NOBODY), _FOUND)
            records["row"] = np.flatnonzero(numbers != NOBODY)
            # Whom a row with moved dates found is not kept.
            records["number"] = np.where(records["row"] < leg.rows, numbers[records["row"]], NOBODY)
            await asyncio.to_thread(_write, path, records)
            self._forget(step.number)
        records = np.fromfile(path, _FOUND)
        self._passes[records["row"]] = step.number
        records = records[records["row"] < leg.rows]
        self._candidates[records["row"]] = records["number"]

    async def _compare(self, line: HubLine) -> None:
        """Find in which fields some linked pairs agree."""
        leg = self._leg
        shown = min(line.complete, MOST_SHOWN)
        pairs = self.accepted[self._candidates[self.accepted] < shown][: leg.pairs]
        self.pairs = np.sort(pairs)
        fields = compared(leg.identity)
        path = leg.files.folder / "compared.bin"
        if not path.exists():
            keys = await self._made(COMPARED, lambda: self._pair_records(fields))
            numbers = await self._looked_up(COMPARED, keys, leg.asked_of_pairs, shown * len(fields), 8 * len(pairs))
            await asyncio.to_thread(_write, path, numbers != NOBODY)
            self._forget(COMPARED)
        self.agreed = np.fromfile(path, np.bool_).reshape(-1, 8)
        if name := leg.identity.number_beside:
            self.forms = await asyncio.to_thread(leg.own.forms, name, self.pairs)
            shared = await asyncio.to_thread(leg.own.crowded, np.ones(leg.rows, np.uint8), {name: [1]})
            self.agreed[shared[self.pairs], 7] = False
        self.dated = (await asyncio.to_thread(leg.own.filled, fields[2][1]) if 2 in fields else 0), line.dated

    async def _looked_up(self, number: int, keys: SpokeKeys, asked: int, most: int, rows: int) -> Numbers:
        """Return the candidate of each row in a pass, or NOBODY.

        Args:
            asked: digests that the hub is asked about, whatever the keys are.
            most: keys that the hub may show.
            rows: how many the keys are of.
        """
        leg, files = self._leg, self._leg.files
        if leg.is_private:
            await spoke_pass(leg.legs, leg.session, files, DigestedKeys(keys.digests, leg.key, asked), number)
        table = await files.fetched(
            JoinKind.TABLE, number, most=ENTRY_BYTES * (most + PAD), check=partial(check_table, files.other)
        )
        with files.stage.of(f"looking up {leg.named(number)}", None):
            if leg.is_private:
                own = await own_values(leg.session, files, DigestedKeys(keys.digests, leg.key), asked, number)
            else:
                own = await asyncio.to_thread(self._token_values, keys, number)
            return await asyncio.to_thread(self._read, table, own, keys, rows, number)

    def _read(self, table: Path, own: Bytes, keys: SpokeKeys, rows: int, number: int) -> Numbers:
        said = numbers_in(np.fromfile(table, np.uint8).reshape(-1, ENTRY_BYTES), own)
        # A number that no row has is that of nobody, and no error.
        said[said >= (8 * MOST_SHOWN if number == COMPARED else self._hub_rows)] = MANY
        return keys.candidates(said, rows)

    def _token_values(self, keys: SpokeKeys, number: int) -> Bytes:
        digests = keys.digests
        made = [token_values(digests.read(at), self._leg.key, number) for at in range(0, digests.count, BATCH)]
        return np.concatenate([np.empty((0, ENTRY_BYTES), np.uint8), *made])

    def _pair_records(self, fields: Asked) -> SortedRecords:
        leg, numbers = self._leg, self._candidates[self.pairs]
        return leg.own.pair_records(self.pairs, numbers, fields, leg.files.alignment)

    def _pass_records(self, step: Pass) -> SortedRecords:
        """Return the keys of the rows without a candidate."""
        leg, left = self._leg, np.flatnonzero(self._passes == 0)
        return leg.own.records(step, left, leg.files.alignment)

    async def _made(self, number: int, records: Callable[[], SortedRecords]) -> SpokeKeys:
        """Return the keys of a pass; those of the latest are kept."""
        if self._keys is None or self._keys[0] != number:
            folder = self._leg.files.folder
            self._keys = number, await asyncio.to_thread(lambda: SpokeKeys(records(), folder))
        return self._keys[1]

    def _forget(self, number: int) -> None:
        """Delete what the hub showed in a pass, and what it was asked: it has shown its answer."""
        files = self._leg.files
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


def _write(path: Path, made: NDArray[np.generic]) -> None:
    with written_whole(path) as file:
        file.write(made.data)
