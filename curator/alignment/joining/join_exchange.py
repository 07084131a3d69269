"""The joins by numbers of the hub's rows; docs/join.md says who learns what, and why."""

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import DeniedError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.oblivious import ristretto
from veiltab.common.oblivious.store import slots_for
from veiltab.common.storage.files import write_whole
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.exchange import Exchange
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.join_messages import PART_BYTES, SessionFiles, Standing
from veiltab.curator.alignment.joining.join_spoke import LostStoreError
from veiltab.curator.alignment.joining.row_numbers import NOBODY, Numbers, commitment_to, rows_by_number
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table import Table

_KEY_BYTES = 32
_ROOM = "rows of a hub that has more of them"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokeRows:
    """What a spoke knows after a session, of its respondents.

    Args:
        numbers: of the hub's row of each of them, or NOBODY.
        rows: of every table.
        bound: what commits to the order of the hub's rows, 16 bytes.
    """

    numbers: Numbers
    rows: int
    bound: bytes


class Join(Protocol):
    """How hub and spoke find, in one session, which rows of the hub are of people of the spoke."""

    def most_bytes(self, table: Table, sessions: int) -> int:
        """Return what an alignment writes at most, if no other table is larger.

        Args:
            sessions: sessions of this curator.
        """

    def rows(self, table: Table) -> int:
        """Return how many rows of a table take part."""

    async def numbers(self, name: str, table: Table, order_key: bytes) -> tuple[Numbers, bytes]:
        """Return at the hub the numbers of the rows that take part, and what commits to their order.

        Args:
            order_key: a secret of the alignment `name`.
        """

    async def show(  # noqa: PLR0913, PLR0917 - what a session consists of
        self, table: Table, numbers: Numbers, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> None:
        """Take part as the hub, until all that the spoke may fetch is there.

        Args:
            numbers: of the hub's rows.
            key: of the alignment, which all curators tossed.
            standing: the spoke's part.

        Raises:
            NotReadyError, UnavailableError: the spoke has not made what is needed; repeat this.
            IntegrityError: the spoke sent what no honest spoke sends.
        """

    async def find(
        self, table: Table, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> SpokeRows:
        """Take part as the spoke, until the rows of the hub are known; see `show`."""

    def forget(self) -> None:
        """Let go of what an alignment that is made no longer needs."""


class JoinExchange(Exchange):
    """One curator's part in joins by numbers of the hub's rows; see `Exchange`.

    Args:
        join: how the two find rows in one of them.
        folder: where the alignments lie, each in a folder of its name.
        state: the curator's folder, from which libsodium may be loaded.
        lacking: attribute -> what people of the hub have who are not in one's own table.
    """

    def __init__(
        self, sessions: Sessions, join: Join, folder: Path, state: Path, lacking: Mapping[str, Lacking]
    ) -> None:
        self.sessions: Sessions = sessions
        self.join, self._lacking = join, lacking
        self._folder = folder
        self._state = state
        # Of the alignment that was prepared last: its name, the table that led to it, and the numbered one.
        self._prepared: tuple[str, Table, Table] | None = None
        # At the hub, of the alignment that is under way: its name, its table, and the numbers of its rows.
        self._numbered: tuple[str, Table, Numbers] | None = None
        self._bound = b""

    @property
    def progress(self) -> str:
        """What is done, for people."""
        return str(self.sessions.stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return self.join.most_bytes(table, len(self.sessions.others))

    def check_tokens_are_shared(self) -> None:
        """Refuse: anyone who has tokens of all ids can test ids that it guesses."""
        raise DeniedError(
            "the study joins by numbers of rows: no tokens are shared", where=f"curator {self.sessions.name}"
        )

    async def prepared(self, name: str, table: Table, key: bytes, execution: Execution, peers: Peers) -> Table:
        """Return the rows of the hub, under their numbers, with one's own symbols.

        Raises:
            NotReadyError, UnavailableError: another curator has not made what is needed; repeat this.
            IntegrityError: a session has failed, or somebody sent what no honest curator sends.
        """
        await asyncio.to_thread(ristretto.load, self._state)
        ready = _made_of(name, table, self._prepared)
        if self.sessions.is_hub:  # a spoke may have lost what it was shown, so the hub looks each time
            numbers, rows = await self._show(name, table, key, peers), table.rows
        elif ready is not None and self._path(name).exists():
            return ready
        else:
            spoke = await self._find(name, table, key, peers)
            numbers, rows, self._bound = spoke.numbers, spoke.rows, spoke.bound
        if ready is None:
            here = await asyncio.to_thread(rows_by_number, table.respondents, numbers, rows, self._lacking, execution)
            self.matched = int(np.count_nonzero(numbers != NOBODY))
            ready = replace(table, respondents=here)
            self._prepared = name, table, ready
        return ready

    def bound(self) -> bytes:
        """Return what commits to the order of the hub's rows."""
        return self._bound

    async def is_wanted(self, name: str, table: Table, peers: Peers) -> bool:
        """At the hub, whether a spoke has lost what it needs, and is in another session."""
        self._begin(name, table)
        answers = [await self.sessions.is_wanted(name, peer, peers) for peer in self.sessions.others]
        return self.sessions.is_hub and any(answers)

    def finish(self, name: str, folder: Path) -> None:  # noqa: ARG002 - an Exchange
        """Let go of the rows."""
        self._prepared = self._numbered = None
        self.sessions.room.give_back(_ROOM)
        self.join.forget()

    def _begin(self, name: str, table: Table) -> None:
        rows = self.join.rows(table)
        if self.sessions.is_hub:
            self.sessions.begin(name, table, rows, commitment_to(self._order_key(name)))
        else:  # by the slots of its store, as nobody else may count its people
            self.sessions.begin(name, table, slots_for(rows))

    async def _show(self, name: str, table: Table, key: bytes, peers: Peers) -> Numbers:
        """Show every spoke the rows of the hub; return the numbers of its respondents."""
        self.sessions.count_versions(peers)  # before anything is made or kept of what they name
        numbers = _made_of(name, table, self._numbered)
        if numbers is None:
            numbers, self._bound = await self.join.numbers(name, table, self._order_key(name))
            self._numbered = name, table, numbers
        self._begin(name, table)
        standings, refusal = await self.sessions.standings(peers)
        for spoke, standing in standings.items():  # none of them waits for another
            try:
                own, files = await self.sessions.entered(spoke, standing, peers)
                if not own.finished:
                    await self.join.show(table, numbers, key, own, files, standing)
                    self.sessions.finish(name, spoke)
            except VeiltabError as error:
                if refusal is None or isinstance(refusal, NotReadyError | UnavailableError):
                    refusal = error
        if refusal is not None:
            raise refusal
        return numbers if len(numbers) == table.rows else numbers[table.respondents.mask()]

    async def _find(self, name: str, table: Table, key: bytes, peers: Peers) -> SpokeRows:
        """Find the hub's row of each of a spoke's own respondents."""
        (hub,) = self.sessions.others
        self._begin(name, table)
        path = self._path(name)
        session = self.sessions.records.session(name, hub)
        if session is not None and session.finished:
            if path.exists():
                return self._load(name)
            self.sessions.renew(name)
        standing = await self.sessions.standing_of(hub, peers)
        own, files = await self.sessions.entered(hub, standing, peers)
        if (more := standing.size - table.rows) > 0:
            self.sessions.room.keep(_ROOM, alignment_bytes(more, table.respondents.types.values(), 2))
        try:
            rows = await self.join.find(table, key, own, files, standing)
        except LostStoreError:
            self.sessions.renew(name)
            raise
        write_whole(path, rows.bound + rows.rows.to_bytes(8, "little") + rows.numbers.tobytes())
        self.sessions.finish(name, hub)
        return rows

    def _order_key(self, name: str) -> bytes:
        return self.sessions.records.order_key(name, secrets.token_bytes(_KEY_BYTES))

    def _path(self, name: str) -> Path:
        return self._folder / name / "numbers.bin"

    def _load(self, name: str) -> SpokeRows:
        """Return what a spoke keeps of a session."""
        with self._path(name).open("rb") as file:
            bound, rows = file.read(PART_BYTES), int.from_bytes(file.read(8), "little")
            return SpokeRows(numbers=np.fromfile(file, np.int64), rows=rows, bound=bound)


def _made_of(name: str, table: Table, last: tuple[str, Table, T] | None) -> T | None:
    """Return what was made last if it is of this alignment and table, else None."""
    return last[2] if last is not None and last[0] == name and last[1] is table else None
