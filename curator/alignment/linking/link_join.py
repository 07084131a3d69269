"""Linking: curators without a common number find rows of the same people by names, dates and other identity fields.

The rows of all others, the spokes, link to the hub's rows, by the hub rule and the ladder of keys of the study
(veiltab.common.linkage). docs/linkage.md says who learns what.
"""

import asyncio
import hashlib
from pathlib import Path

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.oblivious.store import ids_for
from veiltab.common.storage.files import write_whole
from veiltab.curator.alignment.joining.join_exchange import SpokeRows
from veiltab.curator.alignment.joining.join_messages import PART_BYTES, SessionFiles, Standing
from veiltab.curator.alignment.joining.row_numbers import Numbers, commitment_to
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.alignment.linking.agreement import HubLine, read_hub_line
from veiltab.curator.alignment.linking.link_hub import hub_line, hub_numbers, show_keys
from veiltab.curator.alignment.linking.link_session import MOST_SHOWN, LinkSession, linkage_bytes
from veiltab.curator.alignment.linking.link_spoke import SpokeLinking
from veiltab.curator.alignment.linking.linkage_counts import hub_report, spoke_report
from veiltab.curator.alignment.linking.own_keys import OwnRows
from veiltab.curator.linkage.linkages import Linkages, LinkedSample
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table


class LinkJoin:
    """One curator's part in it; see `Join`.

    Args:
        folder: where the alignments lie, each in a folder of its name.
        store: keeps reports.
        identity: what rows are linked by.
        date_order: how one's own table writes dates; see `normaliser`.
        is_private: whether keys are compared obliviously, else by tokens.
    """

    def __init__(  # noqa: PLR0913 - what a linkage consists of
        self,
        sessions: Sessions,
        folder: Path,
        store: CuratorStore,
        *,
        identity: IdentityRule,
        date_order: str,
        is_private: bool,
    ) -> None:
        self._sessions, self._folder = sessions, folder
        self._linkages = Linkages(store.connection, store.audit)
        self._identity, self._date_order, self._is_private = identity, date_order, is_private
        self._own: tuple[Table, OwnRows] | None = None
        # The session, the table that is linked in it, and the work of a spoke.
        self._begun: tuple[str, Table, SpokeLinking] | None = None

    def most_bytes(self, table: Table, sessions: int) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        return linkage_bytes(table.rows_read, table.respondents.types.values(), self._identity, sessions)

    def rows(self, table: Table) -> int:
        """Return all rows: those that miss a value of an attribute are linked too."""
        return table.rows_read

    async def numbers(self, name: str, table: Table, order_key: bytes) -> tuple[Numbers, bytes]:
        """Return the numbers of the hub's rows, and what commits to them and to what the hub states."""
        complete = table.respondents.mask()
        numbers = await asyncio.to_thread(hub_numbers, order_key, complete)
        line = await self._stated(name, table)
        rows = np.argsort(numbers)[: min(line.complete, MOST_SHOWN)]
        sample = LinkedSample(rows=rows, numbers=np.arange(len(rows)), content_digest=table.content_digest)
        self._linkages.record(name, hub_report(line), sample)
        return numbers, _bound(commitment_to(order_key), line)

    async def show(  # noqa: PLR0913, PLR0917 - a Join
        self, table: Table, numbers: Numbers, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> None:
        """Show the hub's keys to a spoke, pass by pass."""
        link = await self._link(table, key, files.other, own, files, ids_for(standing.size))
        await show_keys(link, await self._stated(files.alignment, table), numbers)

    async def find(
        self, table: Table, key: bytes, own: JoinSession, files: SessionFiles, standing: Standing
    ) -> SpokeRows:
        """Find the rows of the hub that the spoke's rows are linked with."""
        if self._begun is None or self._begun[0] != own.name or self._begun[1] is not table:
            link = await self._link(table, key, self._sessions.name, own, files, table.rows_read)
            self._begun = own.name, table, SpokeLinking(link, standing.size)
        linking = self._begun[2]
        line, numbers = await linking.run()
        # In the order of the hub's numbers, which nobody chooses.
        rows = linking.accepted[numbers[linking.accepted] < MOST_SHOWN]
        sample = LinkedSample(rows=rows, numbers=numbers[rows], content_digest=table.content_digest)
        report = await asyncio.to_thread(spoke_report, linking, line, table.respondents)
        self._linkages.record(files.alignment, report, sample)
        return SpokeRows(
            numbers=numbers[table.respondents.mask()], rows=line.complete, bound=_bound(standing.order, line)
        )

    def forget(self) -> None:
        """Let go of the identity fields and of the work."""
        self._own = self._begun = None

    async def _link(  # noqa: PLR0913, PLR0917 - what a session consists of
        self, table: Table, key: bytes, spoke: str, own: JoinSession, files: SessionFiles, rows: int
    ) -> LinkSession:
        return LinkSession(
            identity=self._identity,
            table=table,
            own=await self._rows(table),
            sessions=self._sessions,
            session=own,
            files=files,
            key=derive(key, f"join {spoke}"),
            rows=rows,
            is_private=self._is_private,
        )

    async def _rows(self, table: Table) -> OwnRows:
        """Return one's own identity fields, normalised once a process."""
        if self._own is None or self._own[0] is not table:
            with self._sessions.stage.of("normalising identity fields", None):
                rows = table.respondents
                own = await asyncio.to_thread(OwnRows, self._identity, self._date_order, rows, self._folder)
            self._own = table, own
        return self._own[1]

    async def _stated(self, name: str, table: Table) -> HubLine:
        """Return what the hub states, counted once an alignment."""
        path = self._folder / name / "stated.json"
        if not path.exists():
            own = await self._rows(table)
            line = await asyncio.to_thread(hub_line, self._identity, own, table.rows, name, self._sessions.stage)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, line.text.encode())
        return read_hub_line(path.read_bytes(), self._identity, table.rows_read, self._sessions.name)


def _bound(order: bytes, line: HubLine) -> bytes:
    """Return what commits to the order of the hub's rows and to what it states: curators who read others stop."""
    return hashlib.sha256(order + line.text.encode()).digest()[:PART_BYTES]
