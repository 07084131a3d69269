"""Aligns tables, once per table version: toss a key, learn the rows of the hub, write one's own columns by them."""

import asyncio
import logging
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from veiltab.common.core.derivation import derive
from veiltab.common.errors import (
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.table_spec import ALIGNMENT_ID
from veiltab.common.rpc.statuses import refusal_of
from veiltab.common.storage.disk import DiskReservations
from veiltab.curator.alignment.exchange import Exchange, own_tokens
from veiltab.curator.alignment.intersection import AlignedTable, Joined, Lacking, PopulationDigest, alignment_id
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins, alignment_coin
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_rows import LostTableError
from veiltab.curator.table.tokens import TOKEN_LENGTH

_log = logging.getLogger(__name__)
_LOOK_AGAIN_SECONDS = 2.0
_RETRY_SECONDS = 0.1
_MOST_UNMADE, _MOST_KEPT = 100, 8
"""Alignments that were begun and not made whose parts, and whose files, are kept; each table of a peer begins one."""

_ROOM = "alignment"


class Alignment:
    """The alignment of one curator's table with the others', now and whenever a table changes.

    Args:
        name: the curator's own name.
        ledger: shown to the peers at each greeting.
        coins: tossed with the peers for the keys of an alignment.
        exchange: how a curator learns which rows of the hub are of its own people.
        room: on the disk of the folder.
        execution: performs the passes over the table.
        most_respondents: that a table of the study may have.
        lacking: attribute -> what a person of the hub has who is not in one's own table.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what an alignment consists of
        self,
        name: str,
        folder: Path,
        store: CuratorStore,
        ledger: Ledger,
        coins: Coins,
        exchange: Exchange,
        room: DiskReservations,
        execution: Execution,
        *,
        most_respondents: int,
        lacking: Mapping[str, Lacking],
    ) -> None:
        self._lacking = lacking
        self._most_respondents = most_respondents
        self._name = name
        self._folder = folder / "alignments"
        self._store = store
        self._ledger = ledger
        self._coins = coins
        self._exchange = exchange
        self._room = room
        self._execution = execution
        self._current = ""
        # The table in the order of its tokens, while the alignment of this name is made.
        self._ordered: tuple[str, TokenOrder] | None = None
        self._stage = Stage()
        self._waiting: VeiltabError = NotReadyError("has not aligned its table yet", where=f"curator {name}")
        self.table_version = ""
        self.left_out = ""
        self.rows_left_out: int | None = None
        self.rows = 0

    def result(self) -> tuple[int, str]:
        """Return (rows n, digest of the alignment).

        Raises:
            VeiltabError: why there is none yet, or how far it is.
        """
        aligned = self._store.alignments.alignment(self._current)
        if aligned is None:
            raise NotReadyError(self.progress, where=f"curator {self._name}") if self.progress else self._waiting
        return aligned

    def table(self, digest: str) -> AlignedTable:
        """Return the aligned table that a release was planned on.

        Raises:
            FailedReleaseError: a table changed since.
        """
        if self.result()[1] != digest:
            raise FailedReleaseError("a curator's table changed since the release was planned", where="alignment")
        return AlignedTable(self._folder / self._current)

    @property
    def progress(self) -> str:
        """What the alignment is doing, for people; empty if that takes no time."""
        return str(self._stage) or self._exchange.progress

    def tokens_file(self, name: str) -> Path:
        """Return where this curator's sorted tokens of an alignment lie."""
        return own_tokens(self._folder / name)

    def shared_tokens(self, name: str) -> Path:
        """Return the file of this curator's sorted tokens of an alignment, for a peer.

        Raises:
            DeniedError: the study aligns otherwise.
            NotReadyError: they are not computed yet.
        """
        self._exchange.check_tokens_are_shared()
        if not ALIGNMENT_ID.fullmatch(name) or not self.tokens_file(name).exists():
            raise NotReadyError("has not computed its tokens yet", where=f"curator {self._name}")
        return self.tokens_file(name)

    async def run(self, table: Table, peers: Peers) -> None:
        """Align, and look again for changed tables, until cancelled.

        Raises:
            LostTableError: the table has to be read again.
        """
        self.left_out, self.rows_left_out, self.rows = table.left_out, table.rows_dropped, table.rows
        while True:
            pause = _LOOK_AGAIN_SECONDS
            try:
                self.table_version = self._store.alignments.table_version(table.content_digest, secrets.token_hex(16))
                versions = await peers.table_versions(self._ledger) | {self._name: self.table_version}
                await self._align(alignment_id(versions), table, peers)
            except (NotReadyError, UnavailableError) as error:
                self._waiting = NotReadyError(error.problem, where=error.where, remedy=error.remedy)
                pause = _RETRY_SECONDS
            except LostTableError:
                raise
            except VeiltabError as error:
                if error.problem != self._waiting.problem:
                    _log.error("alignment refused", extra={"reason": error.reason})
                self._waiting = error
            except Exception as error:  # noqa: BLE001 - a full disk, or what a peer sent, is no end of this party
                self._waiting, logged = refusal_of(error)
                _log.error("alignment failed: %s", logged)
            await asyncio.sleep(pause)

    async def _align(self, name: str, table: Table, peers: Peers) -> None:
        if table.rows > self._most_respondents:
            raise InvalidInputError(
                f"the table has {table.rows:,} respondents, more than the {self._most_respondents:,} of this study",
                where="alignment",
                remedy="Raise maximum_respondents in the study file, at every party, or divide them between studies.",
            )
        aligned = AlignedTable(self._folder / name)
        is_made = self._store.alignments.alignment(name) is not None
        is_whole = is_made and self.tokens_file(name).exists() and aligned.has(table.respondents.types)
        if is_whole:
            await self._adopt(name)
            if not await self._exchange.is_wanted(name, table, peers):
                return
        if self._ordered is None:  # else part of it is written
            self._room.keep(_ROOM, self._exchange.most_bytes(table))
        if self._store.coins.is_forgotten(coin := alignment_coin(name)):
            self._store.alignments.forget_version(table.content_digest)
            raise NotReadyError("aligns its table anew, since files are lost", where=f"curator {self._name}")
        key = await self._coins.toss(coin, peers)
        unmade = self._store.coins.forget_unmade(_MOST_UNMADE)
        await self._delete({*unmade[_MOST_KEPT:]} - {name, self._current})
        table = await self._exchange.prepared(name, table, key, self._execution, peers)
        ordered = await self._in_token_order(name, table, derive(key, "tokens"))
        hub = await self._exchange.run(name, table, aligned.folder, peers)
        with step("join"):
            digest = PopulationDigest(derive(key, "population"), self._exchange.bound())
            joined = Joined()
            rows = digest.of(ordered.rows(hub, self._lacking, joined))
            try:
                tokens = self.tokens_file(name) if hub is None else hub
                population = await asyncio.to_thread(aligned.write, rows, table.respondents.types, tokens)
            except (TransferError, FileNotFoundError):
                self._ordered = None  # somebody altered or deleted what a pass left: it is made again
                raise
        self._store.alignments.set_alignment(
            name, population, str(digest), self._exchange.matched if hub is None else joined.matched
        )
        if self._store.alignments.alignment(name) != (population, str(digest)):
            raise IntegrityError("the same tables are aligned otherwise than before", where="alignment")
        await asyncio.to_thread(self._exchange.finish, name, aligned.folder)
        self._ordered = None
        self._room.give_back(_ROOM)
        await self._adopt(name)

    async def _in_token_order(self, name: str, table: Table, key: bytes) -> TokenOrder:
        """Return a table in the order of its tokens, which it writes; an attempt before may have made it."""
        folder = self._folder / name
        own = own_tokens(folder)
        if self._ordered is None or self._ordered[0] != name or not own.exists():
            with step("compute tokens", size=TOKEN_LENGTH * table.rows):
                ordered = TokenOrder(table.respondents, self._execution, self._stage)
                try:
                    await asyncio.to_thread(ordered.write, key, own)
                except (TransferError, FileNotFoundError):
                    await asyncio.to_thread(table.respondents.check)
                    raise
                self._ordered = name, ordered
        return self._ordered[1]

    async def _adopt(self, name: str) -> None:
        """Let releases use an alignment that is made."""
        if self._current != name:
            self._current = name
            await self._delete({folder.name for folder in self._folder.iterdir()} - {name})

    async def _delete(self, names: Iterable[str]) -> None:
        """Delete the files of alignments, and before them their secrets. The coin and the digest stay."""
        for folder in filter(Path.exists, map(self._folder.joinpath, names)):
            if self._exchange.sessions is not None:
                self._exchange.sessions.renew(folder.name)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
