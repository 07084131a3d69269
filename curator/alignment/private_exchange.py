"""Private alignment: Diffie-Hellman private set intersection, so that a curator learns of no other id than its own.

H(id) is an element of ristretto255. Every curator multiplies by a secret scalar of its own, fresh for each session; the
columns travel as curator/alignment/ring.py says. docs/private-alignment.md says who learns what, and why.

A session is named after the alignment and a random part of each curator. Whoever has lost what it needs draws another
part: the session is then another one, with other scalars, at everybody. Each file of a session is durable once it is
there, and the scalar lies in the database until this curator has made all that it must make; then it is erased.
"""

import asyncio
import hashlib
import logging
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from veiltab.common.errors import DeniedError, InvalidInputError, NotReadyError
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.masking import MAX_IDS, Masking
from veiltab.curator.alignment.private_work import ROOM, Work
from veiltab.curator.alignment.ring import PART_BYTES, Flow, FlowKind, flows
from veiltab.curator.alignment.ristretto import fresh_scalar
from veiltab.curator.coordination import Peers
from veiltab.curator.room import private_alignment_bytes
from veiltab.curator.store import CuratorStore, PrivateSession
from veiltab.curator.table import Table

_log = logging.getLogger(__name__)


class PrivateExchange:
    """One curator's part in private alignments; see `Exchange`.

    Args:
        name: the curator.
        curators: all curators of the study, in its order.
        folder: where the alignments lie, each in a folder of its name.
        store: keeps part and scalar.
        masking: computes.
        room: of the disk where they lie.
        most_ids: that a curator may have.
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
        most_ids: int = MAX_IDS,
    ) -> None:
        self._name = name
        self._flows = flows(curators)
        self._folder = folder
        self._store = store
        self._masking = masking
        self._room = room
        self._most_ids = most_ids

    needs_order = True

    @property
    def progress(self) -> str:
        """What is done with masked ids, for people."""
        return str(self._masking.stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at the most, if no other table is larger."""
        return private_alignment_bytes(table.rows, table.respondents.types.values(), self._flows, self._name)

    # Called by the RPCs

    def check_tokens_are_shared(self) -> None:
        """Refuse: whoever has tokens of all ids can test ids that it guesses."""
        raise DeniedError("the study aligns privately: no tokens are shared", where=f"curator {self._name}")

    def session_part(self, name: str) -> PrivateSession:
        """Return one's own part in an alignment, for a peer.

        Raises:
            NotReadyError: it is not begun here.
        """
        session = self._store.private_session(name)
        if session is None:
            raise NotReadyError("has not begun this alignment yet", where=f"curator {self._name}")
        return session

    def flow_file(self, name: str, session: str, kind: FlowKind, owner: str, peer: str) -> Path:
        """Return the file of a flow that one has made, for a peer.

        Raises:
            InvalidInputError: there is no such flow.
            DeniedError: it is not for this peer.
            NotReadyError: it is not made yet.
        """
        flow = next((f for f in self._own_flows if (f.kind, f.owner) == (kind, owner)), None)
        if flow is None or not (_is_name(name) and _is_name(session)):
            raise InvalidInputError("there is no such flow", where=f"curator {self._name}")
        if peer not in flow.receivers:
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
        session = await self._entered(name, peers)
        work = Work(
            curator=self._name,
            alignment=name,
            session=session,
            folder=folder / session.name,
            flows=self._flows,
            table=table,
            masking=self._masking,
            peers=peers,
            room=self._room,
            most_ids=self._most_ids,
        )
        return await work.run()

    async def is_wanted(self, name: str, peers: Peers) -> bool:
        """Whether anybody has not finished the session; once all have, its files are deleted."""
        own = self._store.private_session(name)
        if own is None or not own.finished:
            return True
        answers = await self._answers(name, peers)
        session = _session_name(name, self._name, own.part, answers)
        if session != own.finished:
            return True
        if all(finished == session for _, finished in answers.values()):
            await asyncio.to_thread(_delete_sessions, self._folder / name)
        return False

    def finish(self, name: str, folder: Path) -> None:
        """Erase the scalar, and delete what was received; what others may still fetch stays."""
        session = self._store.private_session(name)
        self._store.finish_private_session(name)
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

    async def _entered(self, name: str, peers: Peers) -> PrivateSession:
        """Return the session that all curators enter now; a scalar serves one session."""
        if self._store.private_session(name) is None:
            self._store.set_private_part(name, secrets.token_bytes(PART_BYTES))
        own = self.session_part(name)
        answers = await self._answers(name, peers)
        session = _session_name(name, self._name, own.part, answers)
        if session == own.finished:
            # What was made in it is lost, and so is the scalar.
            self._store.set_private_part(name, secrets.token_bytes(PART_BYTES))
            session = _session_name(name, self._name, self.session_part(name).part, answers)
        if session != own.name:
            if own.finished:
                _log.warning("a private alignment begins again, as a curator says that it lost its own")
            self._store.enter_private_session(name, session, fresh_scalar())
            if own.name:
                await asyncio.to_thread(shutil.rmtree, self._folder / name / own.name, ignore_errors=True)
        return self.session_part(name)

    async def _answers(self, name: str, peers: Peers) -> dict[str, tuple[bytes, str]]:
        """Return every other curator's (part, finished session)."""
        return {peer: await peers.session(peer, name) for peer in peers.curators}


def _session_name(name: str, own: str, part: bytes, answers: Mapping[str, tuple[bytes, str]]) -> str:
    """Return the name of a session: a digest of the alignment and every curator's part."""
    parts = {own: part} | {peer: theirs for peer, (theirs, _) in answers.items()}
    text = "\n".join([name, *(f"{curator} {parts[curator].hex()}" for curator in sorted(parts))])
    return hashlib.sha256(b"veiltab private session\n" + text.encode()).hexdigest()[:32]


def _delete_sessions(folder: Path) -> None:
    """Delete the folders of all sessions of an alignment."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def _is_name(text: str) -> bool:
    return text.isalnum() and len(text) == 32
