"""The join of curators that show one another no ids; docs/join.md says who learns what, and why."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.errors import DeniedError, NotReadyError, UnavailableError
from veiltab.common.oblivious import ristretto
from veiltab.common.oblivious.store import slots_for
from veiltab.common.storage.files import written_whole
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.exchange import Exchange
from veiltab.curator.alignment.intersection import Lacking
from veiltab.curator.alignment.joining.hub_leg import show_rows
from veiltab.curator.alignment.joining.join_disk import join_bytes
from veiltab.curator.alignment.joining.join_messages import PART_BYTES
from veiltab.curator.alignment.joining.legs import Legs
from veiltab.curator.alignment.joining.own_ids import DigestedIds
from veiltab.curator.alignment.joining.row_numbers import (
    NOBODY,
    Numbers,
    commitment_to,
    own_numbers,
    rows_by_number,
)
from veiltab.curator.alignment.joining.spoke_leg import LostStoreError, find_rows
from veiltab.curator.peers.calls import Peers
from veiltab.curator.table.table import Table
from veiltab.curator.table.workplace import Workplace

_KEY_BYTES = 32


class ObliviousExchange(Exchange):
    """One curator's part in oblivious joins by ids; see `Exchange`.

    Args:
        legs: its sessions.
        folder: where the alignments lie, each in a folder of its name.
        state: the curator's folder, from which libsodium may be loaded.
        lacking: attribute -> what people of the hub have who are not in one's own table.
    """

    needs_order = False

    def __init__(self, legs: Legs, folder: Path, state: Path, lacking: Mapping[str, Lacking]) -> None:
        self.legs = legs
        self._lacking = lacking
        self._folder = folder
        self._state = state
        # Of the alignment that was prepared last: its name, the table that led to it, and the numbered one.
        self._prepared: tuple[str, Table, Table] | None = None

    @property
    def progress(self) -> str:
        """What is done, for people."""
        return str(self.legs.stage)

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        types = table.respondents.types.values()
        return alignment_bytes(table.rows, types, 2) + join_bytes(table.rows, len(self.legs.others))

    def check_tokens_are_shared(self) -> None:
        """Refuse: anyone who has tokens of all ids can test ids that it guesses."""
        raise DeniedError("the study joins obliviously: no tokens are shared", where=f"curator {self.legs.name}")

    async def prepared(self, name: str, table: Table, key: bytes, workplace: Workplace, peers: Peers) -> Table:
        """Return the rows of the hub, under their numbers, with one's own symbols.

        Raises:
            NotReadyError, UnavailableError: another curator has not made what is needed; repeat this.
            IntegrityError: a session has failed, or somebody sent what no honest curator sends.
        """
        await asyncio.to_thread(ristretto.load, self._state)
        numbers = await (self._shown if self.legs.is_hub else self._found)(name, table, key, peers)
        if self._prepared is None or self._prepared[0] != name or self._prepared[1] is not table:
            rows = table.rows if self.legs.is_hub else self._head(name)[1]
            made = await asyncio.to_thread(rows_by_number, table.respondents, numbers, rows, self._lacking, workplace)
            self.matched = int(np.count_nonzero(numbers != NOBODY))
            self._prepared = name, table, replace(table, respondents=made)
        return self._prepared[2]

    def bound(self, name: str) -> bytes:
        """Return what commits to the order of the hub's rows."""
        return commitment_to(self._order_key(name)) if self.legs.is_hub else self._head(name)[0]

    async def is_wanted(self, name: str, table: Table, peers: Peers) -> bool:
        """At the hub, whether a spoke has lost what it needs, and is in another session."""
        self._begin(name, table)
        wanted = [await self.legs.is_wanted(name, peer, peers) for peer in self.legs.others]
        return self.legs.is_hub and any(wanted)

    def _begin(self, name: str, table: Table) -> None:
        if self.legs.is_hub:
            self.legs.begin(name, table, table.rows, self.bound(name))
        else:  # by the slots of its store, as nobody else may count its people
            self.legs.begin(name, table, slots_for(table.rows))

    def finish(self, name: str, folder: Path) -> None:  # noqa: ARG002 - an Exchange
        """Let go of the rows."""
        self._prepared = None

    def close(self) -> None:
        """Do nothing: nothing goes on."""

    async def _shown(self, name: str, table: Table, key: bytes, peers: Peers) -> Numbers:
        """Show every spoke the rows of the hub; return their numbers."""
        numbers = await asyncio.to_thread(own_numbers, self._order_key(name), table.rows)
        self._begin(name, table)
        refusal: NotReadyError | UnavailableError | None = None
        for spoke in self.legs.others:  # none of them waits for another
            try:
                own, files, said = await self.legs.entered(spoke, peers)
                if not own.finished:
                    ids = DigestedIds(table.respondents, derive(key, f"join {spoke}"))
                    await show_rows(self.legs, own, files, said, ids, numbers)
            except (NotReadyError, UnavailableError) as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal
        return numbers

    async def _found(self, name: str, table: Table, key: bytes, peers: Peers) -> Numbers:
        """Return the number of the hub's row of each of a spoke's own rows."""
        (hub,) = self.legs.others
        self._begin(name, table)
        path = self._folder / name / _NUMBERS
        session = self.legs.sessions.session(name, hub)
        if session is not None and session.finished:
            if path.exists():
                return np.fromfile(path, np.int64, offset=_HEAD_BYTES)
            self.legs.renew(name, hub)
        own, files, said = await self.legs.entered(hub, peers)
        ids = DigestedIds(table.respondents, derive(key, f"join {self.legs.name}"))
        try:
            numbers = await find_rows(self.legs, own, files, said, ids)
        except LostStoreError:
            self.legs.renew(name, hub)
            raise
        with written_whole(path) as file:
            file.write(said.order + said.size.to_bytes(8, "little") + numbers.tobytes())
        self.legs.finish(name, hub)
        return numbers

    def _order_key(self, name: str) -> bytes:
        return self.legs.sessions.order_key(name, secrets.token_bytes(_KEY_BYTES))

    def _head(self, name: str) -> tuple[bytes, int]:
        """Return what a spoke keeps of the hub: what commits to the order of its rows, and how many they are."""
        with (self._folder / name / _NUMBERS).open("rb") as file:
            return file.read(PART_BYTES), int.from_bytes(file.read(8), "little")


_NUMBERS = "numbers.bin"
_HEAD_BYTES = PART_BYTES + 8
