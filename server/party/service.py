"""The server's RPCs: each decodes, calls Releases once, and encodes.

What waits for a disk is called in a thread, and so is all if the database may be on another machine.
"""

from asyncio import to_thread
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import TypeVar

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import InvalidInputError
from veiltab.common.observe.steps import step
from veiltab.common.release.messages.release_messages import spec_from_proto, spec_to_proto, state_to_proto
from veiltab.common.release.messages.witness import ledger_from_proto, ledger_to_proto
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.certificates.statement import Statement, published_columns
from veiltab.common.rpc.chunks import CHUNK, ShortChunks, data_of, file_chunks, streamed
from veiltab.common.rpc.parties.identity import Identity, Party, utc_now
from veiltab.common.rpc.parties.signing import signed, signed_to_proto
from veiltab.common.rpc.waiting.changes import offered_seconds
from veiltab.server.records.session import OtherKeyError, Session
from veiltab.server.release.receiving import Announced
from veiltab.server.release.releases import Releases
from veiltab.v1 import ingest_pb2, ingest_pb2_grpc, server_release_pb2, server_release_pb2_grpc
from veiltab.v1.release_pb2 import SignedStatement

Result = TypeVar("Result")

_CHUNKS_AT_ONCE = 4
"""Chunks of canaries that are read together."""


class IngestServicer(ingest_pb2_grpc.IngestServiceServicer):
    """Takes encrypted columns from curators, and shows them how it perturbed their canaries."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases

    async def OpenRelease(
        self, request: ingest_pb2.OpenReleaseRequest, context: Context
    ) -> ingest_pb2.OpenReleaseResponse:
        curator, ledger = caller(context).name, ledger_from_proto(request.ledger, "ledger")
        session, received = await self._releases.look_up(
            self._releases.open_release, spec_from_proto(request.spec), curator
        )
        witnessed = await self._releases.look_up(self._releases.witness, curator, ledger)
        return ingest_pb2.OpenReleaseResponse(
            state=state_to_proto(session.state),
            received=received,
            failure=session.failure,
            noise_digest=session.noise_digest,
            witnessed=ledger_to_proto(witnessed),
        )

    async def UploadColumns(
        self, request: ingest_pb2.UploadColumnsRequest, context: Context
    ) -> ingest_pb2.UploadColumnsResponse:
        columns = {column.attribute: (column.data, column.digest) for column in request.columns}
        if len(columns) != len(request.columns):
            raise InvalidInputError("an attribute is named twice", where="UploadColumns")
        spec, shown = spec_from_proto(request.spec), (caller(context).name, ledger_from_proto(request.ledger, "ledger"))
        version = self._releases.changes.version(spec.release_id)
        session = await self._releases.upload_whole(spec, shown, columns, request.noise_digest)
        if not request.wait_milliseconds:
            return ingest_pb2.UploadColumnsResponse()
        publication = await self._publication(session, version, caller(context), request.wait_milliseconds)
        return ingest_pb2.UploadColumnsResponse(publication=publication)

    async def UploadColumn(
        self, request_iterator: AsyncIterator[ingest_pb2.UploadColumnRequest], context: Context
    ) -> ingest_pb2.UploadColumnResponse:
        first = await anext(aiter(request_iterator), None)
        if first is None or not first.HasField("header"):
            raise InvalidInputError("the upload did not begin with its header", where="UploadColumn")
        names = ("release_id", "attribute", "spec_digest", "column_digest", "noise_digest")
        announced = Announced(curator=caller(context).name, **same_fields(first.header, names))
        received, complete = await self._releases.upload(announced, _pieces(request_iterator))
        return ingest_pb2.UploadColumnResponse(received=received, complete=complete)

    async def GetPublication(
        self, request: ingest_pb2.GetPublicationRequest, context: Context
    ) -> ingest_pb2.GetPublicationResponse:
        releases, curator = self._releases, caller(context)
        version = releases.changes.version(request.release_id)
        session = await releases.look_up(releases.publication_of, request.release_id, curator.name)
        return await self._publication(session, version, curator, request.wait_milliseconds)

    async def _publication(
        self, session: Session, version: bytes, curator: Party, milliseconds: int
    ) -> ingest_pb2.GetPublicationResponse:
        releases = self._releases
        session = await releases.wait_for_publication(session, version, curator, offered_seconds(milliseconds))
        is_by_server = session.spec.sampling.is_by_server
        return ingest_pb2.GetPublicationResponse(
            state=state_to_proto(session.state),
            digests=session.digests,
            failure=session.failure,
            places_digest=await to_thread(releases.places_digest_of, session) if is_by_server else b"",
            noise_digest=session.noise_digest,
            waiting_for=session.waiting_for,
        )

    async def FetchCanaries(
        self, request: ingest_pb2.FetchCanariesRequest, context: Context
    ) -> AsyncIterator[ingest_pb2.FetchCanariesResponse]:
        try:
            canaries = await self._releases.canaries_of(request.release_id, caller(context).name, request.places_key)
        except OtherKeyError as error:
            yield ingest_pb2.FetchCanariesResponse(other_places_key=error.key, other_sender=error.sender)
            return
        total = canaries.total
        with step("send canaries", release_id=request.release_id, size=total - request.offset):
            pieces = canaries.chunks(request.offset)
            if request.offset == total:
                yield ingest_pb2.FetchCanariesResponse(total=total)
            # Many are read from their places all over a file: not in the loop.
            while chunks := await _beside(total > CHUNK, lambda: list(islice(pieces, _CHUNKS_AT_ONCE))):
                for chunk in chunks:
                    yield ingest_pb2.FetchCanariesResponse(total=total, chunk=chunk)
                if len(chunks) < _CHUNKS_AT_ONCE:
                    break


async def _beside(is_long: bool, work: Callable[[], Result]) -> Result:  # noqa: FBT001 - of the work
    """Return what some work returns; a thread does what takes long."""
    return await to_thread(work) if is_long else work()


async def _pieces(requests: AsyncIterator[ingest_pb2.UploadColumnRequest]) -> AsyncIterator[tuple[int, bytes]]:
    short = ShortChunks()
    async for request in requests:
        if not request.HasField("chunk"):
            raise InvalidInputError("something else than a chunk followed the header", where="UploadColumn")
        data = data_of(request.chunk)
        short.take(data)
        yield request.chunk.offset, data


class ReleaseServicer(server_release_pb2_grpc.ReleaseServiceServicer):
    """Serves perturbed columns to the researcher they are for."""

    def __init__(self, releases: Releases, identity: Identity) -> None:
        self._releases = releases
        self._identity = identity

    async def GetServerStatement(
        self, request: server_release_pb2.GetServerStatementRequest, context: Context
    ) -> server_release_pb2.GetServerStatementResponse:
        researcher = caller(context).name
        session = await self._releases.look_up(self._releases.release_of, request.release_id, researcher)
        session.check_readable(researcher)
        return server_release_pb2.GetServerStatementResponse(statement=self._statement(session))

    def _statement(self, session: Session) -> SignedStatement:
        now = utc_now()
        statement = Statement(
            party=self._identity.party.uri,
            spec_digest=session.spec.digest().hex(),
            published=published_columns(session.spec, session.digests),
            signed_at=int(now.timestamp()),
        )
        return signed_to_proto(signed(self._identity, statement.to_json(), now))

    async def GetRelease(
        self, request: server_release_pb2.GetReleaseRequest, context: Context
    ) -> server_release_pb2.GetReleaseResponse:
        releases = self._releases
        session = await releases.look_up(releases.release_of, request.release_id, caller(context).name)
        is_stated = request.with_statement and session.state is ReleaseState.READY
        return server_release_pb2.GetReleaseResponse(
            state=state_to_proto(session.state),
            spec=spec_to_proto(session.spec),
            waiting_for=session.waiting_for if session.state is ReleaseState.UPLOADING else (),
            failure=session.failure,
            perturbation_seconds=session.perturbation_seconds,
            salt=session.salt,
            columns=await releases.look_up(releases.short_columns_of, session) if request.with_columns else {},
            progress=releases.progress_of(request.release_id),
            statement=self._statement(session) if is_stated else None,
        )

    async def FetchColumn(
        self, request: server_release_pb2.FetchColumnRequest, context: Context
    ) -> AsyncIterator[server_release_pb2.FetchColumnResponse]:
        asked = request.release_id, request.attribute, caller(context).name
        path, part = await self._releases.look_up(self._releases.published_column, *asked)
        chunks, total = file_chunks(path, request.offset, part=part), part.stop - part.start
        with step("send column", release_id=asked[0], attribute=request.attribute, size=total - request.offset):
            async for whole, chunk in streamed(chunks, total, request.offset):
                yield server_release_pb2.FetchColumnResponse(total=whole, chunk=chunk)

    async def FetchPlaces(
        self, request: server_release_pb2.FetchPlacesRequest, context: Context
    ) -> AsyncIterator[server_release_pb2.FetchPlacesResponse]:
        asked = request.release_id, caller(context).name
        path, part = await self._releases.look_up(self._releases.sampled_places, *asked)
        chunks = file_chunks(path, request.offset, part=part)
        async for total, chunk in streamed(chunks, part.stop - part.start, request.offset):
            yield server_release_pb2.FetchPlacesResponse(total=total, chunk=chunk)
