"""A curator's durable state, a file a subject, over one database. Every record precedes the action on it.

What is told or shown of a release, and what another process would compute again, waits for no disk: the next record
makes it durable too (`Database.execute_unsynced`).
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.common.storage.database import open_database
from veiltab.curator.audit.log import AuditLog
from veiltab.curator.records.alignments import Alignments
from veiltab.curator.records.answers import KeptAnswers
from veiltab.curator.records.coin_shares import CoinShares
from veiltab.curator.records.decided import Decisions
from veiltab.curator.records.keys import Keys
from veiltab.curator.records.release_tables import ReleaseTables
from veiltab.curator.records.releases import Releases
from veiltab.curator.records.schema import SCHEMA
from veiltab.curator.records.served_files import Served
from veiltab.curator.records.server_tests import ServerTests

if TYPE_CHECKING:
    from veiltab.curator.records.join_sessions import JoinSessions


class CuratorStore:
    """The curator's database; its subjects and the ledger share the connection and its transactions."""

    def __init__(self, path: Path) -> None:
        self.connection = open_database(path, (SCHEMA,))
        self.audit = AuditLog(self.connection)
        self.releases = Releases(self.connection, self.audit)
        self.tables = ReleaseTables(self.connection, self.releases)
        self.decisions = Decisions(self.connection, self.audit, self.releases)
        self.answers = KeptAnswers(self.connection)
        self.coins = CoinShares(self.connection, self.audit)
        self.keys = Keys(self.connection, self.audit)
        self.tests = ServerTests(self.connection)
        self.alignments = Alignments(self.connection)
        self.served = Served(self.connection, self.audit)
        self._version = 0

    @cached_property
    def joins(self) -> "JoinSessions":
        """The sessions of oblivious joins."""
        from veiltab.curator.records.join_sessions import JoinSessions  # noqa: PLC0415 - not for joins by tokens

        return JoinSessions(self.connection, self.audit)

    def close(self) -> None:
        """Close the database; the last process that does so empties its log."""
        self.connection.close()

    def has_changed_elsewhere(self) -> bool:
        """Whether another process has changed the database since this was last asked."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        before, self._version = self._version, version
        return bool(before != version)
