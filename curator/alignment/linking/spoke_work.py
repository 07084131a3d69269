"""A spoke's work in one session: it asks pass by pass, and says to which rows of the hub its own are linked."""

import asyncio
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.errors import IntegrityError
from veiltab.common.linkage.hub_rule import accept
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.placebo import moved_fields
from veiltab.common.linkage.row_keys import most_variants
from veiltab.common.storage.mapped import mapped_array
from veiltab.common.storage.sorted_records import Bytes, Kept, SortedRecords
from veiltab.curator.alignment.linking.agreement import MOST_LINE, HubLine, SpokeLine, check_rows, read_hub_line
from veiltab.curator.alignment.linking.leg import COMPARED, MOST_PAIRS, PAD, Leg, check_ascending, check_whole, write
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage
from veiltab.curator.alignment.linking.oblivious import (
    DIGEST_BYTES,
    HANDLE_BYTES,
    VALUE_BYTES,
    elements,
    inverse,
    scalar_of,
    unblinded_values,
)
from veiltab.curator.alignment.linking.own_keys import Rows, SpokeKeys, compared, numbered, numbers_of, secret_order
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, masked

_FOUND = np.dtype([("row", "<i8"), ("handle", f"V{HANDLE_BYTES}")])
_PIECE = 2**16  # proposals that are resolved together, or a few more
_OUT = 255  # in place of a pass, of a row that does not run with moved dates


class SpokeWork:
    """What a spoke does in one session; each file is durable, so a spoke that is killed goes on.

    Args:
        leg: what it has at hand.
        hub: the curator to whose rows it links.
    """

    def __init__(self, leg: Leg, hub: str) -> None:
        self._leg = leg
        self.hub = hub
        self._line: HubLine | None = None
        self._keys: tuple[int, SpokeKeys] | None = None
        self._done = 0
        self._numbers = np.zeros(2 * leg.table.rows_read, np.uint8)
        self.numbers, self._moved = np.split(self._numbers, 2)
        """Of each row, the pass in which it has its candidate; 0 before, or if none. The same with moved dates."""
        self._moved[:] = _OUT
        if moved := leg.placebo_rows(leg.table.rows_read):
            self._moved[secret_order(leg.table.rows_read, leg.derived("moved"))[:moved]] = 0
        self._handle = np.zeros((leg.table.rows_read, HANDLE_BYTES), np.uint8)
        self._links: tuple[Rows, Bytes] | None = None
        self.accepted = np.empty(0, np.int64)
        """The complete rows that are linked by this curator alone, whatever others link."""
        self.incomplete = 0
        """Rows that the rule links and that are not named, because they miss a value of an attribute."""
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

    async def run(self) -> tuple[HubLine, NDArray[np.int64], bytes]:
        """Return what the hub stated, the rows that all curators link, in the order of handles, and those handles.

        Raises:
            NotReadyError, UnavailableError: the hub has not made what is needed; repeat it.
            IntegrityError, InvalidInputError: the hub sent what no honest curator sends.
        """
        leg, line = self._leg, await self._agreement()
        for step in line.running(leg.identity)[self._done :]:
            await self._pass(step, line)
            self._done += 1
        if self._links is None:
            rows, handles = await asyncio.to_thread(self._resolved, line.rows)
            steps, own = line.running(leg.identity), await leg.own()
            keys = {field: [one.number for one in steps if field in one.fields] for field in leg.identity.kinds}
            self.crowded = await asyncio.to_thread(own.crowded, self.numbers, keys)
            complete = leg.table.respondents.kept()[rows]
            self.incomplete, self._links = int(np.count_nonzero(~complete)), (rows[complete], handles[complete])
            self._handle = self._handle[:0].copy()
        rows, handles = self._links
        self.accepted = rows
        path = leg.path(self._message(LinkKind.ACCEPTED))
        if not path.exists():
            await asyncio.to_thread(write, path, handles.tobytes())
        joint = await leg.here(
            self.hub, self._message(LinkKind.JOINT), 2 * HANDLE_BYTES * len(rows), partial(self._check_joint, handles)
        )
        both = _pairs_in(joint)
        places = np.searchsorted(_words(handles), _words(both[:, :HANDLE_BYTES]))
        if compared(leg.identity):
            await self._compare(line, rows[:MOST_PAIRS], handles[:MOST_PAIRS])
        return line, rows[places], both[:, HANDLE_BYTES:].tobytes()

    def placebo(self, line: HubLine) -> tuple[int, dict[int, int]]:
        """Return the rows that ran with moved dates, and pass -> those that proposed in it, where a key was moved."""
        counts, identity = np.bincount(self._moved, minlength=_OUT + 1), self._leg.identity
        moved = [step.number for step in line.running(identity) if moved_fields(step, identity.kinds)]
        rows = len(self._moved) - int(counts[_OUT])
        return rows, {number: int(counts[number]) for number in moved if rows}

    @property
    def elements(self) -> int:
        """How many blinded keys it asked for."""
        names = self._message(LinkKind.ASKED).file_name.removesuffix("0.bin")
        return sum(masking.count(path) for path in self._leg.folder.glob(f"{names}*.bin"))

    def _message(self, kind: LinkKind, number: int = 0) -> LinkMessage:
        return LinkMessage(kind=kind, spoke=self._leg.curator, number=number)

    async def _agreement(self) -> HubLine:
        """Read what the hub states, and state one's own rows."""
        if self._line is None:
            leg = self._leg

            def read(path: Path) -> HubLine:
                return read_hub_line(path.read_bytes(), leg.identity, self.hub)

            def check(path: Path) -> None:
                check_rows(read(path).rows, leg.most_rows[self.hub], self.hub)

            line = read(await leg.here(self.hub, self._message(LinkKind.AGREEMENT), MOST_LINE, check))
            own = leg.path(self._message(LinkKind.AGREEMENT))
            if not own.exists():
                mine = SpokeLine(rows=leg.table.rows_read, agreed=line.digest)
                await asyncio.to_thread(write, own, canonical_text(mine).encode())
            self._line = line
        return self._line

    async def _pass(self, step: Pass, line: HubLine) -> None:
        """Find the candidates of the rows that have none yet."""
        found = self._leg.folder / f"found-{step.number}.bin"
        if not found.exists():
            await self._find(step, line, found)
        records = np.fromfile(found, _FOUND)
        self._numbers[records["row"]] = step.number
        records = records[records["row"] < len(self.numbers)]
        self._handle[records["row"]] = np.ascontiguousarray(records["handle"]).view(np.uint8).reshape(-1, HANDLE_BYTES)

    async def _find(self, step: Pass, line: HubLine, path: Path) -> None:
        """Write the candidates of a pass."""
        keys, most = await self._pass_keys(step), line.rows * most_variants(step, self._leg.identity)
        rows, handles = await self._looked_up(step.number, keys, most)
        handles[rows >= len(self.numbers)] = 0  # whom a row with moved dates found is not kept
        records = np.zeros(len(rows), _FOUND)
        records["row"], records["handle"] = rows, handles.view(f"V{HANDLE_BYTES}").ravel()
        await asyncio.to_thread(write, path, records.data)

    async def _compare(self, line: HubLine, rows: Rows, handles: Bytes) -> None:
        """Find in which fields some linked pairs agree."""
        if self.agreed is not None:
            return
        own, leg, order = await self._leg.own(), self._leg, np.argsort(rows)
        self.pairs = rows[order]
        asked, shown = compared(leg.identity), compared(leg.identity, at_hub=True)

        def made() -> SpokeKeys:
            records = own.pair_records(self.pairs, handles[order], asked, leg.session.alignment, leg.folder)
            return SpokeKeys(records, leg.folder, masking.BATCH, self._order_key(COMPARED))

        found, _ = await self._looked_up(COMPARED, await asyncio.to_thread(made), len(shown) * len(rows))
        self.agreed = np.zeros((len(rows), 8), np.bool_)
        self.agreed.reshape(-1)[found] = True
        if name := leg.identity.number_beside:
            self.forms = await asyncio.to_thread(own.forms, name, self.pairs)
            shared = await asyncio.to_thread(own.crowded, np.ones(len(own), np.uint8), {name: [1]})
            self.agreed[shared[self.pairs], 7] = False
        self.dated = (await asyncio.to_thread(own.filled, asked[2][1]) if 2 in asked else 0), line.dated

    async def _looked_up(self, number: int, keys: SpokeKeys, most: int) -> tuple[Rows, Bytes]:
        """Return the rows that have a candidate in a pass, given what the hub shows at most, and their handles."""
        leg = self._leg
        values, what = leg.folder / f"values-{number}.bin", f"preparing {leg.named(number)}"
        digests = keys.digests
        if leg.key is not None:
            tokens = leg.values_of(number, bytes)
            await leg.masking.write(values, digests.count, digests.read, tokens, what, size=DIGEST_BYTES)
        else:
            await self._ask(number, digests)
            await self._unblind(number, digests, values)
        message, most_bytes = self._message(LinkKind.TABLE, number), VALUE_BYTES * (most + PAD)
        table = await leg.here(self.hub, message, most_bytes, self._check_table)
        found, handles = await asyncio.to_thread(_found_in, table, values)
        for path in (table, values, leg.folder / self._message(LinkKind.ANSWERED, number).received_name):
            path.unlink(missing_ok=True)
        return await asyncio.to_thread(keys.candidates, found, handles)

    async def _pass_keys(self, step: Pass) -> SpokeKeys:
        """Return the keys of the rows without a candidate."""
        if self._keys is None or self._keys[0] != step.number:
            own, leg = await self._leg.own(), self._leg

            def made() -> SpokeKeys:
                left = np.flatnonzero(self._numbers == 0)
                records = own.records(step, left, leg.session.alignment, leg.folder)
                return SpokeKeys(records, leg.folder, masking.BATCH, self._order_key(step.number))

            self._keys = step.number, await asyncio.to_thread(made)
        return self._keys[1]

    async def _ask(self, number: int, digests: Kept) -> None:
        """Write the blinded keys of a pass."""
        leg, blind = self._leg, self._blind(number)
        await leg.masking.write(
            leg.path(self._message(LinkKind.ASKED, number)),
            digests.count,
            digests.read,
            lambda part: masked(elements(number, part), blind),
            f"asking {leg.named(number)}",
            size=DIGEST_BYTES,
        )

    async def _unblind(self, number: int, digests: Kept, path: Path) -> None:
        """Write the values of one's own keys, from what the hub answers."""
        leg, total = self._leg, digests.count

        def check(answered: Path) -> None:
            if check_whole(answered, ELEMENT_BYTES, self.hub) != total:
                raise IntegrityError("answered for more or fewer keys than asked", where=f"curator {self.hub}")

        answered = await leg.here(self.hub, self._message(LinkKind.ANSWERED, number), ELEMENT_BYTES * total, check)
        rest, size = inverse(self._blind(number)), ELEMENT_BYTES * masking.BATCH

        def read(start: int) -> bytes:
            with answered.open("rb") as file:
                file.seek(ELEMENT_BYTES * start)
                parts = digests.read(start), file.read(size)
            return np.stack([np.frombuffer(part, f"V{ELEMENT_BYTES}") for part in parts], axis=1).tobytes()

        def compute(part: bytes) -> bytes:
            both = np.frombuffer(part, np.uint8).reshape(-1, DIGEST_BYTES + ELEMENT_BYTES)
            return unblinded_values(number, both[:, :DIGEST_BYTES].tobytes(), both[:, DIGEST_BYTES:].tobytes(), rest)

        what = f"reading the answers of {leg.named(number)}"
        try:
            await leg.masking.write(path, total, read, compute, what, size=DIGEST_BYTES + ELEMENT_BYTES)
        except IntegrityError:
            for one in (answered, *path.parent.glob(f"{path.name}.*")):
                one.unlink()
            raise IntegrityError(
                "sent what is no element of the group, or the identity", where=f"curator {self.hub}"
            ) from None

    def _order_key(self, number: int) -> bytes:
        return self._leg.derived(f"order {number}")

    def _blind(self, number: int) -> bytes:
        return scalar_of(self._leg.secret, f"linkage blind {number}")

    def _check_table(self, path: Path) -> None:
        check_ascending(path, VALUE_BYTES, HANDLE_BYTES, self.hub)
        count = check_whole(path, VALUE_BYTES, self.hub)
        if not count or count % PAD:
            raise IntegrityError("shows keys that are not padded", where=f"curator {self.hub}")

    def _check_joint(self, accepted: Bytes, path: Path) -> None:
        """Refuse handles that were not accepted here, and common ones that stand twice."""
        check_ascending(path, 2 * HANDLE_BYTES, HANDLE_BYTES, self.hub)
        both = _pairs_in(path)
        joint, own = np.sort(_words(both[:, HANDLE_BYTES:])), _words(both[:, :HANDLE_BYTES])
        if (joint[1:] == joint[:-1]).any() or not masking.among(own, _words(accepted)).all():
            raise IntegrityError("named links that are not here", where=f"curator {self.hub}")

    def _resolved(self, most: int) -> tuple[Rows, Bytes]:
        """Return the linked rows and their handles, of `most` of the hub, by handle, as the hub rule accepts them."""
        linked, handles, count, ties, tied = list[Rows](), list[Bytes](), 0, 0, 0
        for first in range(256):  # handles are uniform
            rows = np.flatnonzero((self.numbers > 0) & (self._handle[:, 0] == first))
            distinct, place = np.unique(_words(self._handle[rows]), return_inverse=True)
            numbers = self.numbers[rows]
            links = accept(list(zip(numbers.tolist(), place.tolist(), strict=True)))
            is_linked = np.zeros(len(distinct), np.bool_)
            is_linked[list(links)] = True
            linked.append(rows[list(links.values())])
            handles.append(distinct[is_linked].view(np.uint8).reshape(-1, HANDLE_BYTES))
            # Without those that lost to an earlier pass.
            earliest = np.full(len(distinct), np.iinfo(np.uint8).max, np.uint8)
            np.minimum.at(earliest, place, numbers)
            count += len(distinct)
            ties += int(np.count_nonzero(~is_linked[place] & (numbers == earliest[place])))
            tied += int(np.count_nonzero(~is_linked))
        if count > most:
            raise IntegrityError("gave handles to more of its rows than it states", where=f"curator {self.hub}")
        self.ties = ties, tied
        return np.concatenate(linked), np.concatenate(handles)


def _words(handles: Bytes) -> NDArray[np.bytes_]:
    """Return handles as they are compared."""
    words: NDArray[np.bytes_] = np.ascontiguousarray(handles).view(f"S{HANDLE_BYTES}").ravel()
    return words


def _pairs_in(path: Path) -> Bytes:
    """Return what a file has of linked rows, two handles each, mapped from disk."""
    return masking.elements_of(path).view(np.uint8).reshape(-1, 2 * HANDLE_BYTES)


def _found_in(table: Path, values: Path) -> tuple[NDArray[np.bool_], Bytes]:
    """Return which values the hub has, and what it says of each: a handle, or the mark of many.

    Args:
        table: file of tags and masked handles, ascending.
        values: file of F of one's own keys.
    """
    count, pieces = values.stat().st_size // VALUE_BYTES, SortedRecords(values.parent, VALUE_BYTES + 8)
    with values.open("rb") as file:
        for start in range(0, count, _PIECE):
            data = np.frombuffer(file.read(_PIECE * VALUE_BYTES), np.uint8).reshape(-1, VALUE_BYTES)
            pieces.add(np.concatenate([data, numbered(np.arange(start, start + len(data)))], axis=1))
    shown, found, handles = (
        mapped_array(table, f"S{VALUE_BYTES}"),
        np.zeros(count, np.bool_),
        np.zeros((count, HANDLE_BYTES), np.uint8),
    )
    for part in pieces.parts():
        # A tag alone comes right before the record that begins with it.
        tags = _words(part[:, :HANDLE_BYTES])
        first, last = np.searchsorted(shown, tags[[0, -1]].astype(shown.dtype))
        for start in range(first, min(last + 1, len(shown)), _PIECE):
            records = np.fromfile(table, np.uint8, VALUE_BYTES * _PIECE, offset=VALUE_BYTES * start).reshape(
                -1, VALUE_BYTES
            )
            there = _words(records[:, :HANDLE_BYTES])
            own = part[np.searchsorted(tags, there[0]) : np.searchsorted(tags, there[-1], side="right")]
            same = np.searchsorted(there, _words(own[:, :HANDLE_BYTES]))
            is_there = there[same] == _words(own[:, :HANDLE_BYTES])
            own, same = own[is_there], same[is_there]
            places = numbers_of(own).astype(np.int64)
            found[places] = True
            handles[places] = records[same, HANDLE_BYTES:] ^ own[:, HANDLE_BYTES:VALUE_BYTES]
    return found, handles
