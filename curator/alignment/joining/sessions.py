"""The sessions of one curator: the hub has one with each spoke, and a spoke one with the hub.

A session is named after the alignment, a random part of each of the two, their sizes, and what commits to the order of
the hub's rows. A curator that has lost what it needs draws another part: the session is then another one, with other
secrets, at both. All that is drawn in a session follows from one secret, which is durable before anything of it leaves.
"""

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from veiltab.common.errors import (
    DeniedError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.oblivious.store import THIRD_STEP, slots_for
from veiltab.common.observe.progress import Stage
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.common.storage.disk import DiskReservations
from veiltab.curator.alignment.joining.join_messages import (
    PART_BYTES,
    ROOM,
    Message,
    SessionFiles,
    Standing,
    standing_of,
)
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table

MOST_SESSIONS = 3
"""Sessions that one spoke may begin, over all alignments, until a person at the hub allows more."""

_SECRET_BYTES = 32
_LOOK_AGAIN_SECONDS = 0.1
_TIMES_OWN = 2
"""As many times the hub's rows as a spoke may have, if the study does not say."""


class Sessions:
    """One curator's sessions with the others.

    Args:
        others: whom it has a session with: every spoke at the hub, and the hub at a spoke.
        is_hub: whether it is the hub.
        folder: where the alignments lie, each in a folder of its name.
        store: keeps parts and secrets.
        room: of the disk where they lie.
        most_rows: curator -> the rows that it may have; the others may have twice one's own.
        maximum: rows that any curator may have.
    """

    def __init__(  # noqa: PLR0913 - what sessions consist of
        self,
        name: str,
        others: Sequence[str],
        *,
        is_hub: bool,
        folder: Path,
        store: CuratorStore,
        room: DiskReservations,
        most_rows: Mapping[str, int],
        maximum: int,
    ) -> None:
        self.name = name
        self.others = tuple(others)
        self.is_hub = is_hub
        self._folder = folder
        self._store, self.records = store, store.joins
        self.room = room
        self._most_rows, self._maximum = most_rows, maximum
        # Of the alignment that is under way: its name, the size here, and what commits to the order of the hub's rows.
        self._begun, self._content_digest = ("", 0, b""), ""
        self.stage = Stage()

    # Called by the RPCs

    def standing(self, alignment: str, peer: str) -> Standing:
        """Say how this curator takes part in the session with a peer.

        Raises:
            DeniedError: it has no session with this peer.
            NotReadyError: it is not begun here.
        """
        self._check_is_other(peer)
        session, (begun, size, order) = self.records.session(alignment, peer), self._begun
        if session is None or begun != alignment:
            raise NotReadyError("has not begun this alignment yet", where=f"curator {self.name}")
        return Standing(part=session.part, size=size, order=order, finished=session.finished, failed=session.failed)

    def message_file(self, alignment: str, session: str, message: Message, peer: str) -> Path:
        """Return the file of a message that this curator made, for a peer.

        Raises:
            DeniedError: it has no session with this peer.
            NotReadyError: the message is not made yet, or the session is over.
        """
        self._check_is_other(peer)
        own = self.records.session(alignment, peer)
        if own is None or not session or own.name != session or own.has_failed:
            raise NotReadyError("is not in this session of a join", where=f"curator {self.name}")
        path = self.folder(alignment, session) / message.file_name
        if not path.exists():
            raise NotReadyError("has not made this part of the join yet", where=f"curator {self.name}")
        return path

    async def made_file(self, alignment: str, session: str, message: Message, peer: str, *, seconds: float) -> Path:
        """Return the file of a message, for which the peer offers to wait some seconds; see `message_file`.

        It looks every tenth of a second alone: the moment would say how many rows a spoke has linked.
        """
        for _ in range(int(seconds / _LOOK_AGAIN_SECONDS)):
            with suppress(NotReadyError):
                return self.message_file(alignment, session, message, peer)
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        return self.message_file(alignment, session, message, peer)

    # Called by the alignment

    def folder(self, alignment: str, session: str) -> Path:
        """Return the folder of a session's files."""
        return self._folder / alignment / session

    def begin(self, alignment: str, table: Table, size: int, order: bytes = b"") -> None:
        """Take part in an alignment.

        Args:
            size: as in `Standing`.
            order: at the hub what commits to the order of its rows.
        """
        version = self._store.alignments.table_version(table.content_digest, secrets.token_hex(16))
        for peer in self.others:
            self.records.begin(alignment, peer, version, secrets.token_bytes(PART_BYTES))
        self._begun, self._content_digest = (alignment, size, order), table.content_digest

    async def standing_of(self, peer: str, peers: Peers) -> Standing:
        """Ask a peer how it takes part in the alignment that is under way.

        Raises:
            NotReadyError, UnavailableError: the peer has not begun; repeat this.
        """
        return await standing_of(peers, peer, self._begun[0], is_hub=not self.is_hub)

    def count_versions(self, peers: Peers) -> None:
        """At the hub, count the spokes' table versions, each of which begins a session with every spoke.

        Raises:
            DeniedError: a spoke had too many, so all are refused: the others could test guesses again.
        """
        for peer in self.others:
            self._count(peer, _begun_by(peer, peers))

    async def standings(self, peers: Peers) -> tuple[Mapping[str, Standing], VeiltabError | None]:
        """Ask the spokes; return (spoke -> how it takes part, why others do not yet)."""
        standings, refusal = dict[str, Standing](), None
        for peer in self.others:
            try:
                standings[peer] = await self.standing_of(peer, peers)
            except (NotReadyError, UnavailableError) as error:
                refusal = error
        return standings, refusal

    async def entered(self, peer: str, standing: Standing, peers: Peers) -> tuple[JoinSession, SessionFiles]:
        """Enter the session that both enter now, unless it is entered; return it and its files.

        Raises:
            NotReadyError: this curator aligns its table anew.
            IntegrityError: the session has failed.
            DeniedError: the spoke began too many.
        """
        alignment, size, order = self._begun
        self._check_size(peer, standing.size, size)
        own = self._own(alignment, peer)
        if own.has_failed:
            raise self._failure(peer)
        if self.is_hub and not own.name and standing.finished:  # the order of its rows was another one
            self._store.alignments.forget_version(self._content_digest)
            self.records.count_next(peer)
            raise NotReadyError("aligns its table anew, as its state is lost", where=f"curator {self.name}")
        name = self._session_name(own, standing, size, order)
        if own.name and standing.failed == own.name:
            raise IntegrityError(
                "ended the join, because the check of what it was sent failed",
                where=f"curator {peer}",
                remedy="Find out what runs here; then a person there allows it to join again.",
            )
        if name != own.name:
            self._count(peer, _begun_by(peer, peers, standing))
            self.records.enter(alignment, peer, name, secrets.token_bytes(_SECRET_BYTES))
            if own.name:
                await asyncio.to_thread(shutil.rmtree, self.folder(alignment, own.name), ignore_errors=True)
            own = self._own(alignment, peer)
        return own, self._files(peer, own.name, peers)

    async def is_wanted(self, alignment: str, peer: str, peers: Peers) -> bool:
        """Whether a peer is in another session than the one that this curator has finished, as it lost what it needs.

        Once both have finished one, its files are deleted.
        """
        _, size, order = self._begun
        own = self._own(alignment, peer)
        standing = await self.standing_of(peer, peers)
        if self._session_name(own, standing, size, order) != own.finished:
            return True
        if standing.finished == own.finished:
            await asyncio.to_thread(shutil.rmtree, self.folder(alignment, own.name), ignore_errors=True)
        return False

    def renew(self, alignment: str) -> None:
        """Draw another part, as what was made in the sessions is lost or deleted here: other ones begin."""
        for peer in self.others:
            self.records.renew(alignment, peer, secrets.token_bytes(PART_BYTES))

    def finish(self, alignment: str, peer: str) -> None:
        """Erase the secret of a session that is finished here; at a spoke all that its people could be tested by."""
        self.records.finish(alignment, peer)
        if not self.is_hub:  # which has made all that it shows, so it asks for nothing more
            self._delete_files(alignment, peer)
        self.room.give_back(ROOM)

    def fail(self, alignment: str, peer: str) -> IntegrityError:
        """End a session for what a spoke sent, and return why this curator joins with it no more."""
        self.records.fail(alignment, peer)
        self._delete_files(alignment, peer)
        return self._failure(peer)

    def _delete_files(self, alignment: str, peer: str) -> None:
        shutil.rmtree(self.folder(alignment, self._own(alignment, peer).name), ignore_errors=True)

    def _own(self, alignment: str, peer: str) -> JoinSession:
        session = self.records.session(alignment, peer)
        if session is None:
            raise NotReadyError("has not begun this alignment yet", where=f"curator {self.name}")
        return session

    def _files(self, peer: str, session: str, peers: Peers) -> SessionFiles:
        alignment, _, _ = self._begun
        folder = self.folder(alignment, session)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SessionFiles(
            other=peer,
            alignment=alignment,
            session=session,
            folder=folder,
            peers=peers,
            room=self.room,
            stage=self.stage,
            # A hub of several spokes lets none of them wait for another.
            patience=LONGEST_WAIT if len(self.others) == 1 else 0,
        )

    def _session_name(self, own: JoinSession, standing: Standing, size: int, order: bytes) -> str:
        """Return the name of the session of the parts and sizes of both, 64 hexadecimal digits."""
        hub, spoke = (own.part, standing.part) if self.is_hub else (standing.part, own.part)
        n, m = (size, standing.size) if self.is_hub else (standing.size, size)
        counts = n.to_bytes(8, "big") + m.to_bytes(8, "big")
        text = b"veiltab join session" + self._begun[0].encode() + hub + spoke
        return hashlib.sha256(text + (order or standing.order) + counts).hexdigest()

    def _check_is_other(self, peer: str) -> None:
        if peer not in self.others:
            raise DeniedError("neither of the two curators is the hub", where=f"curator {peer}")

    def _check_size(self, peer: str, size: int, own: int) -> None:
        """Refuse a table that is larger than the study allows: each slot of a spoke may be a guess."""
        if not self.is_hub and size > self._maximum:
            raise InvalidInputError(
                f"shows {size:,} rows; it may have {self._maximum:,} here",
                where=f"curator {peer}",
                remedy="Raise maximum_respondents in the study file, at every party.",
            )
        if self.is_hub and (size <= 0 or size % (3 * THIRD_STEP)):
            raise IntegrityError("states a size that no store has", where=f"curator {peer}")
        most = min(self._maximum, self._most_rows.get(peer, _TIMES_OWN * own))
        if self.is_hub and size > slots_for(most):
            raise InvalidInputError(
                f"shows more rows than the {most:,} that it may have here",
                where=f"curator {peer}",
                remedy=f"If its table is as large as that, say so by `most_ids` of {peer} in the study file, at every"
                " party.",
            )

    def _count(self, spoke: str, begun: bytes) -> None:
        """Count a session unless it was counted; at the hub, refuse one of a spoke that had too many."""
        if not self.records.count(spoke, begun, MOST_SESSIONS if self.is_hub else 2**63):
            raise DeniedError(
                f"had {MOST_SESSIONS} joins since a person here allowed more",
                where=f"curator {spoke}",
                remedy="Find out why, since each lets it test as many guesses as its table has rows; then"
                f" `veiltab curator repair alignment {spoke}` joins with it again.",
            )

    @staticmethod
    def _failure(spoke: str) -> IntegrityError:
        return IntegrityError(
            "sent columns that no honest spoke sends, so the join with it has ended",
            where=f"curator {spoke}",
            remedy=f"Find out what runs there; then `veiltab curator repair alignment {spoke}` joins with it again.",
        )


def _begun_by(peer: str, peers: Peers, standing: Standing | None = None) -> bytes:
    """Return what a spoke may change by itself: with a part of before it would guess anew uncounted."""
    version = hashlib.sha256(peers.versions[peer].encode()).digest()
    return version if standing is None else version + standing.part + standing.size.to_bytes(8, "big")
