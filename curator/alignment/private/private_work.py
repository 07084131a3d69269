"""One curator's work in one session of a private alignment: it makes its flows from its ids and what others made."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import IntegrityError, InvalidInputError, NotReadyError, UnavailableError
from veiltab.common.observe.steps import step
from veiltab.common.storage.disk import Room
from veiltab.common.storage.files import file_digest, written_whole
from veiltab.curator.alignment.exchange import own_order, own_tokens
from veiltab.curator.alignment.intersection import common_tokens, slices, token_pieces, tokens_of
from veiltab.curator.alignment.private.masking import MAX_IDS, Masking, among, count, elements_of, is_ascending, sort
from veiltab.curator.alignment.private.ristretto import ELEMENT_BYTES, is_in_balance, summed
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.ring import Flow, FlowKind
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.curator.table.table import Table
from veiltab.curator.table.tokens import TOKEN_LENGTH

ROOM = "larger tables of others"
"""Name of the room that is kept for them."""


class ChangedQueryError(IntegrityError):
    """The query did not come back under one scalar."""


class SilentCuratorError(NotReadyError):
    """A curator, which `where` names, has not said what it made of the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one curator does in one session.

    Args:
        alignment: the name of the alignment.
        session: its name, and this curator's secrets.
        folder: holds the files of the session.
        flows: all flows of the study's curators; see `ring.flows`.
        room: of the disk of the folder.
        most_ids: curator -> the ids that it may have.
    """

    curator: str
    alignment: str
    session: PrivateSession
    folder: Path
    flows: tuple[Flow, ...]
    table: Table
    masking: Masking
    peers: Peers
    room: Room
    most_ids: Mapping[str, int]
    _beyond: dict[Flow, int] = field(default_factory=dict, init=False)

    async def run(self) -> Mapping[str, Path]:
        """Make every flow of this curator's, and return the file of its common respondents' tokens, by who names them.

        Raises:
            NotReadyError, UnavailableError: a peer has not made what is needed; repeat it.
            IntegrityError, TransferError: a peer sent what no honest curator sends.
        """
        for flow in self.flows:
            if flow.producer == self.curator and not self._made(flow).exists():
                await self._make(flow)
        last = self.flows[-1]
        return {last.producer: await self._here(last)}

    async def _make(self, flow: Flow) -> None:
        match flow.kind:
            case FlowKind.QUERY | FlowKind.SET:
                await self._mask(flow)
            case FlowKind.COMMON:
                owners = dict.fromkeys(flow.owner for flow in self.flows if flow.kind is FlowKind.SET)
                finals = [await self._here(self._last(FlowKind.SET, owner)) for owner in owners]
                await asyncio.to_thread(_write_common, finals, self._made(flow))
            case FlowKind.RESPONDENTS:
                rows = await self._own_among_common()
                await asyncio.to_thread(self._write_respondents, rows, self._made(flow))
            case _:
                assert_never(flow.kind)

    async def _mask(self, flow: Flow) -> None:
        """Mask one's own ids, or what another has masked; all but a query on its way are then sorted."""
        masked, begins = self._unsorted(flow), flow.owner == self.curator
        if begins:
            await self.masking.mask_ids(self.table, self.session.scalar, masked)
        else:
            before = next(
                f for f in self.flows if (f.kind, f.owner, f.producer) == (flow.kind, flow.owner, flow.source)
            )
            source = await self._here(before)
            with _multiplying({before.producer: source}, masked):
                what = f"masking the ids of {flow.owner}"
                await self.masking.mask_elements(source, self.session.scalar, masked, what)
        match flow.kind:
            case FlowKind.SET:
                await asyncio.to_thread(sort, masked, self._made(flow))
                masked.unlink()
            case _ if begins:
                # The unsorted query says which id each of its elements is. The check is one element more.
                weigh = partial(self.masking.weigh, masked, masked, self.session.seed, self._check_sums)
                check = await weigh("preparing the check of one's own ids")
                await asyncio.to_thread(sort, masked, self._made(flow), check)
            case _:
                masked.rename(self._made(flow))

    async def _own_among_common(self) -> NDArray[np.int64]:
        """Return the querier's common respondents: positions among its ascending tokens.

        Raises:
            ChangedQueryError: the query did not come back under one scalar.
        """
        returned = await self._here(self._last(FlowKind.QUERY, self.curator))
        if not await self._is_under_one_scalar(returned, self._last(FlowKind.QUERY, self.curator).producer):
            raise ChangedQueryError("one's own ids did not come back under one scalar", where="private alignment")
        commons = {flow.producer: await self._here(flow) for flow in self.flows if flow.kind is FlowKind.COMMON}
        digests = {name: await asyncio.to_thread(file_digest, path) for name, path in commons.items()}
        if len(set(digests.values())) > 1:
            for path in commons.values():
                path.unlink()
            raise IntegrityError("disagree about the masked ids that they share", where=named(tuple(commons)))
        common = self.folder / "common.unsorted"
        source = next(iter(commons.values()))
        with _multiplying(commons, common):
            await self.masking.mask_elements(source, self.session.scalar, common, "masking what the others share")
        return await asyncio.to_thread(self._matched, returned, common)

    async def _is_under_one_scalar(self, returned: Path, sender: str) -> bool:
        """Whether one's own query came back as itself times one scalar; docs/private-alignment.md has the proof."""
        query, seed = self._made(self._query), self.session.seed
        sums = returned.with_suffix(".sums")
        with _multiplying({sender: returned}, sums):
            total = await self.masking.weigh(query, returned, seed, sums, "checking what came back of one's own ids")
        place = self._place_of_check()
        key, element = (elements_of(path)[place : place + 1].tobytes() for path in (query, returned))
        return is_in_balance(total, key, element, seed)

    def _place_of_check(self) -> int:
        """Return where the query has its check."""
        check = np.array(summed(self._check_sums.read_bytes()), f"S{ELEMENT_BYTES}")
        return int(np.searchsorted(elements_of(self._made(self._query)), check))

    async def deviating(self) -> tuple[str, ...]:
        """Return who changed one's own query on its way, or the two who differ about it.

        Raises:
            SilentCuratorError: a curator has not said what it made of the query; repeat this.
        """
        sent, *hops = (flow for flow in self.flows if flow.kind is FlowKind.QUERY)
        given = await asyncio.to_thread(file_digest, self._made(sent))
        for hop in hops:
            try:
                stated = await self.peers.session(hop.producer, self.alignment)
                if stated.failed != self.session.name:
                    raise SilentCuratorError("has not said what it made of the query", where=f"curator {hop.producer}")
                if stated.received != given:
                    return hop.source, hop.producer
                if hop is hops[-1] or not await self._is_passed_on(hop, stated.passed_on):
                    break
            except (NotReadyError, UnavailableError):
                raise SilentCuratorError(
                    "has not said what it made of the query", where=f"curator {hop.producer}"
                ) from None
            given = stated.passed_on
        return (hop.producer,)

    async def _is_passed_on(self, hop: Flow, digest: bytes) -> bool:
        """Whether a curator gives out what it says that it passed on, which is the query under one scalar."""
        try:
            passed = await self._here(hop)
            if await asyncio.to_thread(file_digest, passed) != digest:
                return False
            return await self._is_under_one_scalar(passed, hop.producer)
        except IntegrityError:
            return False

    def _matched(self, returned: Path, common: Path) -> NDArray[np.int64]:
        """Return which of one's own ids are common: positions among one's own ascending tokens."""
        is_common = np.zeros(self.table.rows, np.bool_)
        # The query left in ascending order with the check among it, and came back in the same.
        found = among(elements_of(returned), np.sort(elements_of(common)))
        is_common[np.argsort(elements_of(self._unsorted(self._query)))] = np.delete(found, self._place_of_check())
        return np.flatnonzero(is_common[np.fromfile(own_order(self.folder.parent), np.int64)])

    def _write_respondents(self, rows: NDArray[np.int64], path: Path) -> None:
        own = tokens_of(own_tokens(self.folder.parent))
        with written_whole(path) as file:
            for piece in slices(len(rows)):
                file.write(own.take(rows[piece], axis=0).data)

    async def _here(self, flow: Flow) -> Path:
        """Return the file of a flow: one's own, or a peer's, fetched and checked."""
        if flow.producer == self.curator:
            return self._made(flow)
        path = self.folder / flow.received_name
        if not path.exists():
            fetched = path.with_suffix(".unchecked")
            with (
                step("fetch masked ids") as measured,
                self.masking.stage.of(f"fetching masked ids of {flow.producer}", None) as progress,
                written_whole(fetched) as file,
            ):

                def admit(total: int) -> None:
                    self._check_size(flow, total)
                    self._keep_room(flow, total, file.tell())
                    progress.expect(total)

                most = self._most_bytes(flow)
                async for data in self.peers.flow(flow, self.alignment, self.session.name, most, admit):
                    file.write(data)
                    progress.advance(len(data))
                measured.bytes = file.tell()
            if flow.kind is FlowKind.RESPONDENTS:
                await asyncio.to_thread(self._check_named, fetched, flow.producer)
            else:
                await self._check(flow, fetched)
            fetched.rename(path)
        return path

    def _check_size(self, flow: Flow, total: int) -> None:
        """Refuse a column of more ids than its owner may have: each may be a guess."""
        most = self.most_ids[flow.owner]
        if flow.kind is not FlowKind.RESPONDENTS and total > ELEMENT_BYTES * (most + self._checks(flow)):
            raise InvalidInputError(
                f"shows {total // ELEMENT_BYTES - self._checks(flow):,} ids; it may have {most:,} here",
                where=f"curator {flow.owner}",
                remedy=f"If its table is as large as that, say so by `most_ids` of {flow.owner} in the study file, at"
                " every party.",
            )

    @staticmethod
    def _checks(flow: Flow) -> int:
        """Return how many elements of a column stand for no id."""
        return int(flow.kind is FlowKind.QUERY)

    def _keep_room(self, flow: Flow, total: int, written: int) -> None:
        """Keep room for what a flow of more ids than one's own table has needs beyond `private_alignment_bytes`.

        That is what is left of itself, what is made from it, and the batches on the way to that.
        """
        excess = max(0, total - ELEMENT_BYTES * (self.table.rows + self._checks(flow)))
        self._beyond[flow] = 2 * excess + min(excess, total - written)
        self.room.keep(ROOM, sum(self._beyond.values()))

    def _check_named(self, named: Path, who: str) -> None:
        """Refuse tokens that are not one's own, or not in ascending order."""
        own = token_pieces(own_tokens(self.folder.parent))
        known = sum(int(np.count_nonzero(common)) for common in common_tokens(own, {who: token_pieces(named)}))
        if known * TOKEN_LENGTH != named.stat().st_size:
            raise IntegrityError("named respondents that are not here", where=f"curator {who}")

    def _most_bytes(self, flow: Flow) -> int:
        """Return how much a peer may send."""
        if flow.kind is FlowKind.RESPONDENTS:
            return TOKEN_LENGTH * self.table.rows
        return ELEMENT_BYTES * ((self.table.rows if flow.owner == self.curator else MAX_IDS) + self._checks(flow))

    async def _check(self, flow: Flow, path: Path) -> None:
        """Refuse elements that no honest curator sends.

        Raises:
            IntegrityError: they are cut short, or not as many as they were; out of order; repeated; or no elements, in
                a final set. What is no element is refused elsewhere when it is multiplied.
        """
        who = f"curator {flow.producer}"
        if path.stat().st_size % ELEMENT_BYTES:
            raise IntegrityError("sent masked ids that are cut short", where=who)
        sent = self.table.rows + self._checks(flow)
        if flow.owner == self.curator and count(path) != sent:
            raise IntegrityError(f"sent back {count(path)} masked ids of {sent}", where=who)
        if flow.kind is FlowKind.QUERY and flow.producer != flow.owner:
            if not await asyncio.to_thread(lambda: is_ascending(np.sort(elements_of(path)))):
                raise IntegrityError("masked two ids alike", where=who)
        elif not await asyncio.to_thread(lambda: is_ascending(elements_of(path))):
            raise IntegrityError("masked ids are not in ascending order", where=who)
        if flow == self._last(flow.kind, flow.owner) and flow.kind is FlowKind.SET:
            await self.masking.check(path, who)

    @property
    def _query(self) -> Flow:
        """The query as the querier makes it."""
        return next(flow for flow in self.flows if flow.kind is FlowKind.QUERY)

    @property
    def _check_sums(self) -> Path:
        """The file of the sums that make the query's check."""
        return self._made(self._query).with_suffix(".sums")

    def _made(self, flow: Flow) -> Path:
        return self.folder / flow.file_name

    def _unsorted(self, flow: Flow) -> Path:
        return self._made(flow).with_suffix(".unsorted")

    def _last(self, kind: FlowKind, owner: str) -> Flow:
        """Return where the ids of a curator arrive."""
        return [flow for flow in self.flows if (flow.kind, flow.owner) == (kind, owner)][-1]


@contextmanager
def _multiplying(received: Mapping[str, Path], result: Path) -> Iterator[None]:
    """Name who sent what is no element, and delete it with the batches of the result: it is fetched anew."""
    try:
        yield
    except IntegrityError:
        for path in (*received.values(), *result.parent.glob(f"{result.name}.*")):
            path.unlink()
        raise IntegrityError(
            "sent what is no element of the group, or the identity", where=named(tuple(received))
        ) from None


def named(curators: Sequence[str]) -> str:
    """Return how a message names some curators."""
    return f"{'curator' if len(curators) == 1 else 'curators'} {', '.join(curators)}"


def _write_common(finals: Sequence[Path], path: Path) -> None:
    """Write the elements that all of some ascending files have, in ascending order."""
    common = elements_of(finals[0])
    for other in finals[1:]:
        common = common[among(common, elements_of(other))]
    with written_whole(path) as file:
        file.write(np.ascontiguousarray(common).data)
