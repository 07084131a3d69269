"""Private alignment: Diffie-Hellman private set intersection, so that a curator learns of no other id than its own.

H(id) is an element of ristretto255. Every curator multiplies by a secret scalar of its own, fresh for each session; the
columns travel as curator/peers/ring.py says. docs/private-alignment.md says who learns what, and why.

A session is named after the alignment and a random part of each curator. A curator that has lost what it needs draws
another part: the session is then another one, with other scalars, at everybody. Each file of a session is durable once
it is there, and the scalar lies in the database until this curator has made all that it must make; then it is erased.

The querier checks that its query came back under one scalar. If not, the session has failed: that is recorded before
anything else is done, the querier finds out at whom the query was changed, and it aligns again once a person allows it.
"""

import asyncio
import hashlib
import logging
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from veiltab.common.errors import DeniedError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.release.table_spec import ALIGNMENT_ID
from veiltab.common.storage.disk import Room
from veiltab.common.storage.files import file_digest
from veiltab.curator.alignment.exchange import Exchange
from veiltab.curator.alignment.private.masking import MAX_IDS, Masking
from veiltab.curator.alignment.private.private_disk import private_alignment_bytes
from veiltab.curator.alignment.private.private_work import ROOM, ChangedQueryError, SilentCuratorError, Work, named
from veiltab.curator.alignment.private.ristretto import fresh_scalar, fresh_seed
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import alignment_coin
from veiltab.curator.peers.ring import MOST_SESSIONS, PART_BYTES, Flow, FlowKind, Standing, flows
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table

_TIMES_OWN = 2
"""As many times one's own ids as another curator may have, if the study does not say."""

_log = logging.getLogger(__name__)


class PrivateExchange(Exchange):
    """One curator's part in private alignments; see `Exchange`.

    Args:
        curators: all curators of the study, in its order.
        folder: where the alignments lie, each in a folder of its name.
        store: keeps parts and secrets.
        room: of the disk where they lie.
        most_ids: curator -> the ids that it may have, if the study says so.
        maximum: ids that any curator may have.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a part consists of
        self,
        name: str,
        curators: Sequence[str],
        folder: Path,
        store: CuratorStore,
        masking: Masking,
        room: Room,
        *,
        most_ids: Mapping[str, int] = MappingProxyType({}),
        maximum: int = MAX_IDS,
    ) -> None:
        self._name = name
        self._querier = curators[0]
        self._flows = flows(curators)
        self._folder = folder
        self._store = store
        self._sessions = store.private
        self._masking = masking
        self._room = room
        self._most_ids = most_ids
        self._maximum = maximum
        # The alignment whose files are whole, and that is begun again only because a peer wants another session.
        self._has_whole = ""
        # Session that failed -> digests of the query as it came and as it was passed on.
        self._passed: dict[str, tuple[bytes, bytes]] = {}

    needs_order = True

    @property
    def progress(self) -> str:
        """What is done with masked ids, for people."""
        return str(self._masking.stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return private_alignment_bytes(table.rows, table.respondents.types.values(), self._flows, self._name)

    # Called by the RPCs

    def check_tokens_are_shared(self) -> None:
        """Refuse: anyone who has tokens of all ids can test ids that it guesses."""
        raise DeniedError("the study aligns privately: no tokens are shared", where=f"curator {self._name}")

    def standing(self, name: str) -> Standing:
        """Say how one takes part in an alignment, for a peer.

        Raises:
            NotReadyError: it is not begun here.
        """
        own = self._own(name)
        standing = Standing(part=own.part, finished=own.finished)
        if self._name == self._querier:
            return replace(standing, failed=own.failed, suspects=own.suspects)
        if own.failed not in self._passed:
            return standing  # also between the record of a failure and the digests: without them one would be suspected
        received, made = self._passed[own.failed]
        return replace(standing, failed=own.failed, suspects=own.suspects, received=received, passed_on=made)

    def flow_file(self, name: str, session: str, kind: FlowKind, owner: str, peer: str) -> Path:
        """Return the file of a flow that one has made, for a peer.

        Raises:
            InvalidInputError: there is no such flow.
            DeniedError: it is not for this peer.
            NotReadyError: it is not made yet.
        """
        flow = next((f for f in self._own_flows if (f.kind, f.owner) == (kind, owner)), None)
        if flow is None or not (is_name(name) and is_name(session)):
            raise InvalidInputError("there is no such flow", where=f"curator {self._name}")
        own = self._sessions.session(name)
        has_failed = own is not None and own.failed == session
        # What the querier compares once its query came back changed.
        compared = frozenset((flow.owner,)) if flow.kind is FlowKind.QUERY else frozenset[str]()
        if peer not in (compared if has_failed else flow.receivers):
            raise DeniedError("this flow is not for the caller", where=f"curator {peer}")
        path = self._folder / name / session / flow.file_name
        if not path.exists():
            raise NotReadyError("has not masked these ids yet", where=f"curator {self._name}")
        return path

    # Called by the alignment

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Mapping[str, Path]:
        """Take part in the session of an alignment until one's own common respondents are known."""
        if table.rows > MAX_IDS:
            raise InvalidInputError(
                f"more than {MAX_IDS} ids cannot be aligned privately",
                where="table",
                remedy='Align by tokens: `alignment = "tokens"` in the study file, at every party.',
            )
        await self._masking.load()
        version = self._store.alignments.table_version(table.content_digest, secrets.token_hex(16))
        self._sessions.begin(name, version, secrets.token_bytes(PART_BYTES))
        if self._sessions.suspects() and self._name == self._querier:
            raise await self._refusal(self._work(name, table, folder, peers))
        await self._enter(name, peers)
        work = self._work(name, table, folder, peers)
        try:
            return await work.run()
        except ChangedQueryError:
            self._sessions.fail(name, peers.curators, is_checked=len(peers.curators) == 1)
            raise await self._refusal(work) from None

    async def is_wanted(self, name: str, peers: Peers) -> bool:
        """Whether anybody has not finished the session; once all have, its files are deleted."""
        own = self._sessions.session(name)
        if own is None or not own.finished:
            return True
        answers = await self._answers(name, peers)
        session = _session_name(name, {self._name: own.part} | _parts(answers))
        if session != own.finished:
            self._has_whole = name
            return True
        if all(answer.finished == session for answer in answers.values()):
            await asyncio.to_thread(_delete_sessions, self._folder / name)
            self._erase_keys(name)
        return False

    def _erase_keys(self, name: str) -> None:
        """Erase what would make the alignment again: with files that are lost it begins under another name."""
        if not self._store.coins.is_forgotten(coin := alignment_coin(name)):
            self._store.coins.forget_coin(coin)

    def finish(self, name: str, folder: Path) -> None:
        """Erase the secrets, and delete what was received; what others may still fetch stays."""
        session = self._sessions.session(name)
        self._sessions.finish(name)
        self._room.give_back(ROOM)
        kept = {flow.file_name for flow in self._own_flows}
        for path in (folder / session.name).iterdir() if session else ():
            if path.name not in kept:
                path.unlink()

    def close(self) -> None:
        """End the threads."""
        self._masking.close()

    @property
    def _own_flows(self) -> tuple[Flow, ...]:
        return tuple(flow for flow in self._flows if flow.producer == self._name)

    def _own(self, name: str) -> PrivateSession:
        """Return one's own part in an alignment.

        Raises:
            NotReadyError: it is not begun here.
        """
        session = self._sessions.session(name)
        if session is None:
            raise NotReadyError("has not begun this alignment yet", where=f"curator {self._name}")
        return session

    def _work(self, name: str, table: Table, folder: Path, peers: Peers) -> Work:
        session, usual = self._own(name), _TIMES_OWN * table.rows
        most_ids = {peer: min(self._maximum, self._most_ids.get(peer, usual)) for peer in peers.curators}
        return Work(
            curator=self._name,
            alignment=name,
            session=session,
            folder=folder / session.name,
            flows=self._flows,
            table=table,
            masking=self._masking,
            peers=peers,
            room=self._room,
            most_ids=most_ids | {self._name: table.rows},
        )

    async def _enter(self, name: str, peers: Peers) -> None:
        """Enter the session that all curators enter now, unless it is entered; its secrets serve no other.

        Raises:
            IntegrityError: the session has failed, or nobody has a reason to begin one.
            DeniedError: a peer began too many.
        """
        own, has_whole, self._has_whole = self._own(name), self._has_whole == name, ""
        answers = await self._answers(name, peers)
        session = _session_name(name, {self._name: own.part} | _parts(answers))
        if session == own.finished:
            if has_whole:  # else it would begin sessions that are not counted for it
                raise NotReadyError("says one part and then another", where="curator peer")
            # What was made in it is lost, and so is the scalar.
            self._sessions.renew(name, secrets.token_bytes(PART_BYTES))
        elif session == own.name:
            await self._check_has_not_failed(name, own, answers)
            return
        parts = {self._name: self._own(name).part} | _parts(answers)
        counted = self._check_may_begin(parts)
        if own.finished:
            _log.warning("a private alignment begins again, as a curator says that it lost its own")
        self._sessions.enter(name, _session_name(name, parts), fresh_scalar(), fresh_seed(), counted)
        if own.name:
            await asyncio.to_thread(shutil.rmtree, self._folder / name / own.name, ignore_errors=True)

    def _check_may_begin(self, parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Refuse a session that no part calls for, or of a peer that had too many; return for whom it counts."""
        before = self._sessions.parts()
        changed = [curator for curator, part in parts.items() if part != before.get(curator, (b"", 0))[0]]
        if not changed:
            raise IntegrityError(
                "a table changed, and the part of its curator in the session did not", where="private alignment"
            )
        for curator in changed:
            if curator != self._name and before.get(curator, (b"", 0))[1] >= MOST_SESSIONS:
                raise DeniedError(
                    f"had {MOST_SESSIONS} private alignments since a person here allowed more",
                    where=f"curator {curator}",
                    remedy="Find out why, since each lets it test as many guesses as its table shows ids; then"
                    f" `veiltab curator repair alignment {curator}` aligns with it again.",
                )
        return {curator: parts[curator] for curator in changed}

    async def _refusal(self, work: Work) -> IntegrityError:
        """Return why one aligns no more, and find out at whom one's own query was changed, as far as others say it."""
        silent = ""
        if work.session.seed and self._own(work.alignment).failed:
            try:
                found = [curator for curator in await work.deviating() if curator != self._name]
                self._sessions.fail(work.alignment, found)
            except SilentCuratorError as error:
                silent = f"; {error}"
        suspects = self._sessions.suspects()
        allowed = ", ".join(f"`veiltab curator repair alignment {curator}`" for curator in suspects)
        return IntegrityError(
            f"one's own ids did not come back under one scalar, so nobody was named to anybody{silent}",
            where=named(suspects),
            remedy=f"Find out what runs there; then {allowed} aligns again.",
        )

    async def _check_has_not_failed(self, name: str, own: PrivateSession, answers: Mapping[str, Standing]) -> None:
        """Take part no more in a session in which the querier's ids came back changed, as it says."""
        said = answers.get(self._querier)
        if said is not None and said.failed == own.name:
            suspects = [curator for curator in said.suspects if curator in {*answers, self._name}] or [self._querier]
            self._sessions.fail(name, suspects)
            own = self._own(name)
        if own.failed and own.failed not in self._passed:
            self._passed[own.failed] = await asyncio.to_thread(self._digests, self._folder / name / own.failed)
        if own.failed:
            raise IntegrityError(
                "its ids did not come back under one scalar, so it ended the private alignment; it suspects"
                f" {named(own.suspects)}",
                where=f"curator {self._querier}",
                remedy="Its persons decide when it aligns again.",
            )

    def _digests(self, folder: Path) -> tuple[bytes, bytes]:
        """Return digests of the query as it came to this curator and as it passed it on."""
        flow = next(flow for flow in self._own_flows if flow.kind is FlowKind.QUERY)
        before = next(f for f in self._flows if f.kind is FlowKind.QUERY and f.producer == flow.source)
        paths = folder / before.received_name, folder / flow.file_name
        received, made = (file_digest(path) if path.exists() else b"" for path in paths)
        return received, made

    async def _answers(self, name: str, peers: Peers) -> dict[str, Standing]:
        """Return how every other curator takes part."""
        return {peer: await peers.session(peer, name) for peer in peers.curators}


def _parts(answers: Mapping[str, Standing]) -> dict[str, bytes]:
    return {curator: answer.part for curator, answer in answers.items()}


def _session_name(name: str, parts: Mapping[str, bytes]) -> str:
    """Return the name of a session: a digest of the alignment and every curator's part."""
    text = "\n".join([name, *(f"{curator} {parts[curator].hex()}" for curator in sorted(parts))])
    return hashlib.sha256(b"veiltab private session\n" + text.encode()).hexdigest()[:32]


def _delete_sessions(folder: Path) -> None:
    """Delete the folders of all sessions of an alignment."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def is_name(text: str) -> bool:
    """Whether a text may name an alignment or a session."""
    return ALIGNMENT_ID.fullmatch(text) is not None
