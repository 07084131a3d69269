"""Linking: curators without a common number find rows of the same people by names, dates and other identity fields.

One curator is the hub: the rows of all others, the spokes, link to its rows, by the hub rule and the ladder of keys of
the study (veiltab.common.linkage). A session is entered as in a private alignment. docs/linkage.md says who learns
what.

When a linkage has ended every curator has the same handles, each on its own row of the person; alignment and releases
go on with these handles in the place of ids.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.errors import DeniedError, IntegrityError, InvalidInputError, NotReadyError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.storage.disk import Room
from veiltab.curator.alignment.linking.hub_work import HubWork, UnknownHandleError
from veiltab.curator.alignment.linking.leg import ROOM, Leg, linkage_bytes
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage, Session, message_from_proto
from veiltab.curator.alignment.linking.linkage_counts import report_of
from veiltab.curator.alignment.linking.linked_rows import linked_rows
from veiltab.curator.alignment.linking.oblivious import HANDLE_BYTES
from veiltab.curator.alignment.linking.spoke_work import SpokeWork
from veiltab.curator.alignment.private.masking import Masking
from veiltab.curator.alignment.private.private_exchange import PrivateExchange, is_name
from veiltab.curator.linkage.linkages import MOST_SAMPLED, Linkages, LinkedSample
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.ring import PART_BYTES, Standing
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.curator.table.workplace import Workplace
from veiltab.v1.curator_peer_pb2 import FetchLinkRequest

_TIMES_OWN = 2
"""As many times one's own rows as another curator may have in a private linkage, if the study does not say."""


class LinkExchange(PrivateExchange):
    """One curator's part in linkages; see `Exchange`. Sessions are those of private alignments, the hub their querier.

    Args:
        curators: all curators of the study, in its order.
        folder: where the alignments lie, each in a folder of its name.
        store: keeps parts, secrets and reports.
        room: of the disk where they lie.
        identity: what rows are linked by.
        date_order: how one's own table writes dates; see `normaliser`.
        is_private: whether keys are compared under the hub's scalar, else by tokens.
        most_ids: curator -> the rows that it may have, if the study says so.
        maximum: rows that any curator may have.
    """

    needs_order = False

    def __init__(  # noqa: PLR0913, PLR0917 - what a part consists of
        self,
        name: str,
        curators: Sequence[str],
        folder: Path,
        store: CuratorStore,
        masking: Masking,
        room: Room,
        *,
        identity: IdentityRule,
        date_order: str,
        is_private: bool,
        most_ids: Mapping[str, int] = MappingProxyType({}),
        maximum: int,
    ) -> None:
        super().__init__(name, curators, folder, store, masking, room, most_ids=most_ids, maximum=maximum)
        self._querier = identity.hub
        self._flows = ()
        self._identity = identity
        self._date_order = date_order
        self._is_private = is_private
        self._spokes = tuple(curator for curator in curators if curator != identity.hub)
        self._linkages = Linkages(store.connection, store.audit)
        # The session, the table that is linked in it, and the work, or the table that it led to.
        self._begun: tuple[str, Table, HubWork | SpokeWork] | None = None
        self._linked: tuple[str, Table, Table] | None = None

    def most_bytes(self, table: Table) -> int:
        """Return what an alignment writes at most, if no other table is larger."""
        types = table.respondents.types.values()
        return linkage_bytes(table.rows_read, types, self._identity, max(1, len(self._spokes)))

    # Called by the RPCs

    def link_file(self, name: str, session: str, message: LinkMessage, peer: str) -> Path:
        """Return the file of a message that one has made, for a peer.

        Raises:
            InvalidInputError: there is no such message.
            DeniedError: it is not for this peer.
            NotReadyError: it is not made yet.
        """
        if (
            message.spoke not in self._spokes
            or not message.made_by(self._name)
            or not (is_name(name) and is_name(session))
        ):
            raise InvalidInputError("there is no such message of a linkage", where=f"curator {self._name}")
        is_hub = self._name == self._querier
        if peer != (message.spoke if is_hub else self._querier) or (not is_hub and message.spoke != self._name):
            raise DeniedError("this message is not for the caller", where=f"curator {peer}")
        path = self._folder / name / session / message.file_name
        own = self._sessions.session(name)
        if not path.exists() or (own is not None and own.failed == session):
            raise NotReadyError("has not made this part of the linkage yet", where=f"curator {self._name}")
        return path

    # Called by the alignment

    async def prepared(self, name: str, table: Table, key: bytes, workplace: Workplace, peers: Peers) -> Table:
        """Link, and return the rows that all curators link, under common handles.

        Raises:
            NotReadyError, UnavailableError: another curator has not made what is needed; repeat it.
            IntegrityError: the session has failed, or somebody sent what no honest curator sends.
        """
        await self._masking.load()
        version = self._store.alignments.table_version(table.content_digest, secrets.token_hex(16))
        self._sessions.begin(name, version, secrets.token_bytes(PART_BYTES))
        if suspects := self._sessions.suspects():
            raise _failure(suspects[0])
        await self._enter(name, peers)
        own = self._own(name)
        if self._linked is not None and self._linked[0] == own.name and self._linked[1] is table:
            return self._linked[2]
        if self._begun is None or self._begun[0] != own.name or self._begun[1] is not table:
            self._begun = own.name, table, self._work_in(name, own, table, key, peers)
        work = self._begun[2]
        try:
            line, rows, handles = await work.run()
        except UnknownHandleError as error:
            spoke = (error.where or "").removeprefix("curator ")
            self._sessions.fail(name, [spoke])
            raise _failure(spoke) from None
        least = np.argsort(np.frombuffer(handles, f"S{HANDLE_BYTES}"))[:MOST_SAMPLED]
        sample = LinkedSample(rows=rows[least], content_digest=table.content_digest)
        rows = np.cumsum(table.respondents.kept())[rows] - 1  # among the respondents: linked rows are complete
        report = await asyncio.to_thread(report_of, work, line, rows, table.respondents)
        asked = {leg.curator: (leg.links, leg.elements) for leg in report.legs}
        self._linkages.record(name, report.text, asked, sample)
        if not len(rows):
            raise InvalidInputError(
                "no row is linked",
                where="linkage",
                remedy="Compare the identity columns and date_order in the study file with the tables:"
                " `veiltab curator check` shows what each field looks like.",
            )
        made = await asyncio.to_thread(linked_rows, table.respondents, rows, handles, line.digest, workplace)
        self._linked, self._begun = (own.name, table, replace(table, respondents=made)), None
        return self._linked[2]

    async def run(self, name: str, table: Table, folder: Path, peers: Peers) -> Mapping[str, Path]:  # noqa: ARG002 - an Exchange
        """Return nothing to compare with: all curators have the handles of the same people."""
        return {}

    def finish(self, name: str, folder: Path) -> None:
        """Erase the secrets, and delete what was received; what others may still fetch stays."""
        session = self._sessions.session(name)
        self._sessions.finish(name)
        self._room.give_back(ROOM)
        self._linked = self._begun = None
        for path in (folder / session.name).iterdir() if session else ():
            if not path.name.startswith(_KEPT) or path.name.startswith("from-"):
                path.unlink()

    def _erase_keys(self, name: str) -> None:
        """Erase the key of the handles too."""
        super()._erase_keys(name)
        self._linkages.forget_key(name)

    def _work_in(self, name: str, own: PrivateSession, table: Table, key: bytes, peers: Peers) -> HubWork | SpokeWork:
        folder = self._folder / name / own.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        usual = _TIMES_OWN * table.rows_read if self._is_private else self._maximum
        leg = Leg(
            curator=self._name,
            identity=self._identity,
            date_order=self._date_order,
            table=table,
            session=Session(alignment=name, name=own.name, peers=peers),
            folder=folder,
            secret=own.seed,
            key=None if self._is_private else derive(key, "linkage"),
            masking=self._masking,
            room=self._room,
            most_rows={peer: min(self._maximum, self._most_ids.get(peer, usual)) for peer in peers.curators},
        )
        handle_key = self._linkages.handle_key(name, secrets.token_bytes(32))
        if self._name != self._querier:
            return SpokeWork(leg, self._querier)
        return HubWork(leg, self._spokes, handle_key)

    def _check_may_begin(self, parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """At the hub a session that a spoke begins counts for all of them: each of them asks in it."""
        begun = super()._check_may_begin(parts)
        return parts if self._name == self._querier and begun.keys() & {*self._spokes} else begun

    async def _check_has_not_failed(self, name: str, own: PrivateSession, answers: Mapping[str, Standing]) -> None:  # noqa: ARG002 - the protocol's names
        """Take part no more in a session that the hub has ended."""
        said = answers.get(self._querier)
        if said is not None and said.failed == own.name:
            raise IntegrityError(
                "ended the linkage, because a curator named links that it cannot have",
                where=f"curator {self._querier}",
                remedy="Its persons decide when it links again.",
            )


_KEPT = tuple(f"{kind.value}-" for kind in LinkKind)


def requested_file(exchange: PrivateExchange, request: FetchLinkRequest, peer: str) -> Path:
    """Return the file of a message that a peer asks for; see `LinkExchange.link_file`."""
    if not isinstance(exchange, LinkExchange):
        raise DeniedError("the study has ids, and links nobody", where="linkage")
    return exchange.link_file(request.alignment_id, request.session, message_from_proto(request), peer)


def _failure(spoke: str) -> IntegrityError:
    return IntegrityError(
        "named a row that it was not given, or one twice, so nobody is linked",
        where=f"curator {spoke}",
        remedy=f"Find out what runs there; then `veiltab curator repair alignment {spoke}` links again.",
    )
