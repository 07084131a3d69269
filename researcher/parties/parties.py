"""The curators and the server, as a researcher's service reaches them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from veiltab.common.core.randomness import KEY_BYTES
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import FailedReleaseError, InvalidInputError, NotFoundError, NotReadyError
from veiltab.common.observe.steps import step
from veiltab.common.release.messages.release_messages import request_to_proto
from veiltab.common.release.messages.witness import Witnessed, ledger_to_proto
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.parties.signing import SignedText, signed_from_proto
from veiltab.common.rpc.peer import ASK_SECONDS, Peer
from veiltab.common.rpc.waiting.together import MOST_BESIDE
from veiltab.common.storage.files import written_whole
from veiltab.common.study.file import Study
from veiltab.researcher.parties.server_findings import CuratorsTest, curators_test_from_proto
from veiltab.researcher.records.desk_files import LONGEST_UNSYNCED
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.v1 import curator_pb2, curator_pb2_grpc, server_release_pb2, server_release_pb2_grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDigests:
    """What a desk shows a curator of a column that it holds, to get the key.

    Args:
        published: SHA-256 of the published column.
        canaries: SHA-256 of the published symbols of its canaries, in order of their places.
    """

    published: bytes
    canaries: bytes


class PartyLinks:
    """The curators and the server, as the researcher reaches them.

    Args:
        witnessed: returns the longest ledger that a curator has stated.
    """

    def __init__(self, identity: Identity, study: Study, witnessed: Callable[[str], Witnessed]) -> None:
        self._study = study
        self.server = study.server.name
        self.room = asyncio.Semaphore(MOST_BESIDE)
        """For calls beside the first of a release."""
        self._witnessed = witnessed
        server = Party(study=study.id, role=Role.SERVER, name=study.server.name)
        self._server = Peer.at(study.server.endpoint, server, identity, server_release_pb2_grpc.ReleaseServiceStub)
        self.curators = {}
        for curator in study.curators:
            party = Party(study=study.id, role=Role.CURATOR, name=curator.name)
            self.curators[curator.name] = Peer.at(
                curator.endpoint, party, identity, curator_pb2_grpc.CuratorServiceStub
            )

    async def close(self) -> None:
        """Close the channels."""
        await self._server.close()
        for curator in self.curators.values():
            await curator.close()

    async def ask_curator(
        self, name: str, release: ResearcherRelease, seconds: float, *, is_first: bool
    ) -> curator_pb2.GetProposalResponse:
        """Return how a curator stands with a release, submitting the request if it does not know it.

        Args:
            seconds: how long the answer may wait for the release to be over there.
            is_first: whether it has not answered this process about the release yet, and so perhaps not heard of it.

        Raises:
            NotReadyError: it does not know the table yet, which it makes itself of what it charged.
        """
        if is_first and not release.part_of:
            return await self._propose(name, release, seconds)
        try:
            return await self._proposal(name, release, seconds)
        except NotFoundError:
            if release.part_of:
                raise NotReadyError("has not begun with this table yet", where=f"curator {name}") from None
        return await self._propose(name, release, seconds)

    async def _proposal(self, name: str, release: ResearcherRelease, seconds: float) -> curator_pb2.GetProposalResponse:
        curator = self.curators[name]
        question = curator_pb2.GetProposalRequest(
            release_id=release.request.release_id,
            wait_milliseconds=int(1000 * seconds),
            with_statement=release.is_certified,
        )
        return await curator.ask(curator.stub.GetProposal, question, within=ASK_SECONDS + seconds, once=True)

    async def _propose(self, name: str, release: ResearcherRelease, seconds: float) -> curator_pb2.GetProposalResponse:
        """Submit a request to a curator, and return how it stands there; the same one again changes nothing."""
        curator = self.curators[name]
        proposal = curator_pb2.ProposeReleaseRequest(
            study_digest=self._study.digest,
            request=request_to_proto(release.request),
            wait_milliseconds=int(1000 * seconds),
            with_statement=release.is_certified,
            witnessed=ledger_to_proto(self._witnessed(name)),
        )
        answer = await curator.ask(curator.stub.ProposeRelease, proposal, within=ASK_SECONDS + seconds, once=True)
        return answer.proposal

    async def choose_tables(self, name: str, release_id: str, numbers: Sequence[int]) -> None:
        """Name to a curator the tables of a release that run a second time; the same again changes nothing."""
        curator = self.curators[name]
        request = curator_pb2.ChooseTablesRequest(release_id=release_id, numbers=numbers)
        await curator.ask(curator.stub.ChooseTables, request)

    async def ask_server(self, release: ResearcherRelease) -> server_release_pb2.GetReleaseResponse:
        """Return how the server stands with a release, and its columns if they are short and published."""
        question = server_release_pb2.GetReleaseRequest(
            release_id=release.request.release_id, with_columns=True, with_statement=release.is_certified
        )
        return await self._server.ask(self._server.stub.GetRelease, question, once=True)

    async def ask_statement(self, party: Party, release_id: str) -> SignedText:
        """Return what a curator or the server states about a release.

        Raises:
            InvalidInputError: what it sent is not a statement; names the party.
        """
        match party.role:
            case Role.CURATOR:
                curator = self.curators[party.name]
                query = curator_pb2.GetCuratorStatementRequest(release_id=release_id)
                message = (await curator.ask(curator.stub.GetCuratorStatement, query)).statement
            case Role.SERVER:
                question = server_release_pb2.GetServerStatementRequest(release_id=release_id)
                message = (await self._server.ask(self._server.stub.GetServerStatement, question)).statement
            case _:
                raise InvalidInputError("a statement was asked of a party that makes none", where=str(party))
        try:
            return signed_from_proto(message)
        except InvalidInputError as error:
            raise InvalidInputError(error.problem, where=str(party)) from None

    async def fetch_column(
        self, spec: TableSpec, column: Column, path: Path, advance: Callable[[int], None] = lambda _: None
    ) -> None:
        """Fetch a perturbed column into a file, which is there whole or not at all.

        Args:
            advance: called with the number of bytes whenever some more are there.
        """
        request = server_release_pb2.FetchColumnRequest(release_id=spec.release_id, attribute=column.attribute)
        total = column.byte_length(spec.published_rows)
        with step("fetch column", release_id=spec.release_id, attribute=column.attribute, size=total):
            if not path.exists():
                pieces = self._server.stream(self._server.stub.FetchColumn, request, total)
                await _write(pieces, path, is_durable=total > LONGEST_UNSYNCED, advance=advance)

    async def fetch_places(self, spec: TableSpec, path: Path) -> None:
        """Fetch the places that the server sampled into a file, which is there whole or not at all."""
        request = server_release_pb2.FetchPlacesRequest(release_id=spec.release_id)
        await _write(self._server.stream(self._server.stub.FetchPlaces, request, 8 * spec.published_rows), path)

    async def fetch_test(self, spec: TableSpec, curator: str) -> CuratorsTest:
        """Fetch what a curator's test of the server showed.

        Raises:
            DeniedError: no attribute of the curator's is granted, or the grants have expired.
            NotReadyError: not every curator has tested the server yet.
            InvalidInputError: it answered what no test shows.
        """
        peer = self.curators[curator]
        request = curator_pb2.GetReceiptRequest(release_id=spec.release_id)
        return curators_test_from_proto(await peer.ask(peer.stub.GetReceipt, request, once=True), spec, curator)

    async def fetch_keys(self, spec: TableSpec, curator: str, digests: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Fetch the keys of a curator's columns: attribute -> key, of those that are granted and whose grant lasts.

        Raises:
            DeniedError: there are none.
            FailedReleaseError: a column is not the one that the curator tested, or what it gave are no such keys.
        """
        columns = {
            attribute: curator_pb2.ColumnDigests(published=one.published, canaries=one.canaries)
            for attribute, one in digests.items()
        }
        request, peer = curator_pb2.GetKeysRequest(release_id=spec.release_id, columns=columns), self.curators[curator]
        with ExitStack() as steps:
            measured = {
                attribute: steps.enter_context(step("fetch key", release_id=spec.release_id, attribute=attribute))
                for attribute in digests
            }
            keys = dict((await peer.ask(peer.stub.GetKeys, request, once=True)).keys)
            if not keys or not keys.keys() <= columns.keys() or any(len(key) != KEY_BYTES for key in keys.values()):
                raise FailedReleaseError("it gave other keys than it was asked for", where=f"curator {curator}")
            for attribute, one in measured.items():
                one.bytes = len(keys.get(attribute, b""))
        return keys

    async def fetch_pad(self, spec: TableSpec, column: Column, name: str, digests: ColumnDigests, path: Path) -> None:
        """Fetch a curator's one-time pad of a column into a file.

        Raises:
            DeniedError: the attribute is not granted, or the grant has expired.
            FailedReleaseError: the column is not the one that the curator tested.
        """
        request = curator_pb2.FetchPadRequest(
            release_id=spec.release_id,
            attribute=column.attribute,
            published_digest=digests.published,
            canary_digest=digests.canaries,
        )
        curator = self.curators[name]
        total = column.byte_length(spec.uploaded_rows)
        with step("fetch key", release_id=spec.release_id, attribute=column.part_of(name), size=total):
            await _write(curator.stream(curator.stub.FetchPad, request, total), path)


async def _write(
    pieces: AsyncIterator[bytes],
    path: Path,
    *,
    is_durable: bool = True,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Write what comes into a file, which is there whole or not at all."""
    with written_whole(path, is_durable=is_durable) as file:
        async for data in pieces:
            file.write(data)
            advance(len(data))
