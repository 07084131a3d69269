"""The hub's work in one session: it decides which passes run, shows its keys, answers, and says who is linked."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.row_keys import most_variants
from veiltab.common.observe.progress import Progress
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.sorted_records import Kept, SortedRecords
from veiltab.curator.alignment.linking.agreement import MOST_LINE, HubLine, read_hub_line, read_spoke_line, stated
from veiltab.curator.alignment.linking.leg import (
    COMPARED,
    MOST_PAIRS,
    PAD,
    Leg,
    check_ascending,
    check_whole,
    write,
)
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage
from veiltab.curator.alignment.linking.oblivious import HANDLE_BYTES, VALUE_BYTES, Handles, scalar_of
from veiltab.curator.alignment.linking.own_keys import (
    RECORD_BYTES,
    OwnRows,
    compared,
    hub_entries,
    hub_keys,
    matching_rows,
)
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.masking import count
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES


class UnknownHandleError(IntegrityError):
    """A spoke named a handle that it was not given, or one twice."""


class HubWork:
    """What the hub does in one session; each file is durable, so a hub that is killed goes on.

    Args:
        leg: what it has at hand.
        handle_key: of the rows that all spokes link, for all curators of this alignment.
    """

    def __init__(self, leg: Leg, spokes: Sequence[str], handle_key: bytes) -> None:
        self._leg = leg
        self._spokes = tuple(spokes)
        self._joint = Handles(handle_key)
        self._line: HubLine | None = None
        self._keys: tuple[int, Kept] | None = None
        self.asked: dict[str, dict[int, int]] = {spoke: {} for spoke in spokes}
        """Spoke -> pass -> elements that it asked for."""
        self.accepted: dict[str, int] = {}
        """Spoke -> rows of the hub that it links."""
        self.incomplete = 0
        """Rows that all spokes link and that are not in the joint list, because they miss a value of an attribute."""

    async def run(self) -> tuple[HubLine, NDArray[np.int64], bytes]:
        """Return what was stated, the rows that all spokes link, ascending, and their handles.

        Raises:
            NotReadyError, UnavailableError: a spoke has not made what is needed; repeat it.
            UnknownHandleError: a spoke ends the session by what it names.
            IntegrityError: a spoke sent what no honest curator sends.
        """
        line = await self._agreement()
        passes = line.running(self._leg.identity)
        for step in passes:
            for spoke in self._spokes:
                await self._show(step.number, spoke, partial(self._pass_keys, step))
        stated_rows = {spoke: await self._spoke_rows(spoke, line) for spoke in self._spokes}
        if self._leg.key is None:
            for step in passes:
                for spoke, rows in stated_rows.items():
                    asked = rows + self._leg.placebo_rows(rows)
                    await self._answer(step.number, spoke, asked * most_variants(step, self._leg.identity))
        linked = {spoke: await self._linked(spoke, rows) for spoke, rows in stated_rows.items()}
        self.accepted = {spoke: len(rows) for spoke, rows in linked.items()}
        joint = reduce(np.intersect1d, linked.values())
        complete = self._leg.table.respondents.kept()[joint]
        self.incomplete, joint = int(np.count_nonzero(~complete)), joint[complete]
        for spoke in self._spokes:
            await asyncio.to_thread(self._name, spoke, joint)
        for spoke in self._spokes if compared(self._leg.identity) else ():
            await self._compare(spoke)
        return line, joint, self._joint.of(joint).tobytes()

    async def _agreement(self) -> HubLine:
        """State which passes run; of one's own table alone."""
        if self._line is None:
            leg = self._leg
            paths = [leg.path(LinkMessage(kind=LinkKind.AGREEMENT, spoke=spoke)) for spoke in self._spokes]
            if not paths[-1].exists():
                own = await leg.own()
                passes = len(leg.identity.ladder)
                with leg.masking.stage.of("counting rows that agree with another", passes) as progress:
                    text = await asyncio.to_thread(self._stated, own, progress)
                for path in paths:
                    await asyncio.to_thread(write, path, text)
            self._line = read_hub_line(paths[-1].read_bytes(), leg.identity, leg.curator)
        return self._line

    def _stated(self, own: OwnRows, progress: Progress) -> bytes:
        """Return what is stated."""
        leg, every = self._leg, np.arange(len(own))
        fields = compared(leg.identity)

        def matching(step: Pass) -> set[int]:
            rows = matching_rows(own.records(step, every, leg.session.alignment, leg.folder))
            progress.advance(1)
            return rows

        dated = own.filled(fields[2][1]) if 2 in fields else 0
        return stated(leg.identity, len(own), dated, matching).text.encode()

    async def _spoke_rows(self, spoke: str, line: HubLine) -> int:
        """Return how many rows a spoke states."""
        message = LinkMessage(kind=LinkKind.AGREEMENT, spoke=spoke)
        most = self._leg.most_rows[spoke]

        def check(path: Path) -> None:
            read_spoke_line(path.read_bytes(), line, most, spoke)

        path = await self._leg.here(spoke, message, MOST_LINE, check)
        return read_spoke_line(path.read_bytes(), line, most, spoke).rows

    async def _pass_keys(self, step: Pass) -> Kept:
        """Return the keys of a pass; those of one are kept."""
        if self._keys is None or self._keys[0] != step.number:
            own, leg = await self._leg.own(), self._leg

            def made() -> Kept:
                records = own.records(step, np.arange(len(own)), leg.session.alignment, leg.folder)
                return hub_keys(records, leg.folder, masking.BATCH, has_many=bool(step.deletion))

            self._keys = step.number, await asyncio.to_thread(made)
        return self._keys[1]

    async def _compare(self, spoke: str) -> None:
        """Let a spoke see in which fields some of its linked pairs agree."""
        own, leg = await self._leg.own(), self._leg
        accepted = LinkMessage(kind=LinkKind.ACCEPTED, spoke=spoke)
        with (leg.folder / accepted.received_name).open("rb") as file:
            rows = np.sort(self._handles(spoke).rows(file.read(MOST_PAIRS * HANDLE_BYTES), len(own)))

        async def keys() -> Kept:
            asked = compared(leg.identity, at_hub=True)
            handles = self._handles(spoke).of(rows)
            records = await asyncio.to_thread(own.pair_records, rows, handles, asked, leg.session.alignment, leg.folder)
            return hub_keys(records, leg.folder, masking.BATCH, has_many=False)

        await self._show(COMPARED, spoke, keys)
        if leg.key is None:
            await self._answer(COMPARED, spoke, len(compared(leg.identity)) * len(rows))

    async def _show(self, number: int, spoke: str, made: Callable[[], Awaitable[Kept]]) -> None:
        """Write the hub's keys of a pass for a spoke."""
        leg = self._leg
        path = leg.path(LinkMessage(kind=LinkKind.TABLE, spoke=spoke, number=number))
        if path.exists():
            return
        keys, unsorted = await made(), path.with_suffix(".unsorted")
        values, handles = leg.values_of(number, lambda: self._scalar(spoke, number)), self._handles(spoke, number)
        await leg.masking.write(
            unsorted,
            keys.count,
            keys.read,
            lambda records: hub_entries(records, values, handles.of),
            f"preparing {leg.named(number)} for {spoke}",
            size=RECORD_BYTES,
        )
        await asyncio.to_thread(_write_padded, unsorted, path)
        unsorted.unlink()

    async def _answer(self, number: int, spoke: str, most: int) -> None:
        """Multiply what a spoke asks in a pass, which are at most so many keys."""
        leg = self._leg
        asked = LinkMessage(kind=LinkKind.ASKED, spoke=spoke, number=number)

        def check(path: Path) -> None:
            check_whole(path, ELEMENT_BYTES, spoke)
            for part in SortedRecords.of_file(path, ELEMENT_BYTES).parts():
                if (part[1:] == part[:-1]).all(axis=1).any():
                    raise IntegrityError("asked for one key twice", where=f"curator {spoke}")

        path, what = await leg.here(spoke, asked, most * ELEMENT_BYTES, check), f"answering {leg.named(number)}"
        self.asked[spoke][number] = count(path)
        made = leg.path(LinkMessage(kind=LinkKind.ANSWERED, spoke=spoke, number=number))
        try:
            await leg.masking.mask_elements(path, self._scalar(spoke, number), made, what)
        except IntegrityError:
            for one in (path, *made.parent.glob(f"{made.name}.*")):
                one.unlink()
            raise IntegrityError(
                "asked for what is no element of the group, or the identity", where=f"curator {spoke}"
            ) from None

    async def _linked(self, spoke: str, rows: int) -> NDArray[np.int64]:
        """Return the rows that a spoke links, ascending."""
        message = LinkMessage(kind=LinkKind.ACCEPTED, spoke=spoke)
        handles, count_ = self._handles(spoke), len(await self._leg.own())

        def check(path: Path) -> None:
            try:
                check_ascending(path, HANDLE_BYTES, HANDLE_BYTES, spoke)
                handles.rows(path.read_bytes(), count_)
            except IntegrityError:
                raise UnknownHandleError(
                    "named a handle that it was not given, or one twice", where=f"curator {spoke}"
                ) from None

        path = await self._leg.here(spoke, message, min(rows, count_) * HANDLE_BYTES, check)
        return np.sort(handles.rows(path.read_bytes(), count_))

    def _name(self, spoke: str, joint: NDArray[np.int64]) -> None:
        """Write for a spoke its handle and the common one of each row that all link."""
        path = self._leg.path(LinkMessage(kind=LinkKind.JOINT, spoke=spoke))
        if not path.exists():
            records, own = SortedRecords(path.parent, 2 * HANDLE_BYTES), self._handles(spoke)
            for start in range(0, len(joint), masking.BATCH):
                rows = joint[start : start + masking.BATCH]
                records.add(np.concatenate([own.of(rows), self._joint.of(rows)], axis=1))
            _write_sorted(records, path)

    def _scalar(self, spoke: str, number: int) -> bytes:
        """Return the scalar of a pass: another one for each, else elements of one pass would test keys of another."""
        return scalar_of(self._leg.secret, f"linkage scalar {spoke} {number}")

    def _handles(self, spoke: str, number: int = 0) -> Handles:
        # What the comparison shows is no row, and no name of one.
        return Handles(self._leg.derived(f"{'compared' if number == COMPARED else 'handles'} {spoke}"))


def _write_padded(source: Path, path: Path) -> None:
    """Write keys in ascending order with random ones among them, so that they are as many as a multiple of PAD."""
    records = SortedRecords.of_file(source, VALUE_BYTES)
    missing = -records.count % PAD or (0 if records.count else PAD)
    if missing:
        records.add(np.frombuffer(secrets.token_bytes(missing * VALUE_BYTES), np.uint8).reshape(-1, VALUE_BYTES))
    _write_sorted(records, path)


def _write_sorted(records: SortedRecords, path: Path) -> None:
    with written_whole(path) as file:
        for part in records.parts():
            file.write(part.data)
