"""A curator's calls to the server: sends encrypted columns from where an earlier attempt stopped, asks for the rest."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import grpc

from veiltab.common.core.texts.message_fields import words_from_proto
from veiltab.common.errors import IntegrityError, InvalidInputError, NotFoundError, NotReadyError, TransferError
from veiltab.common.observe.progress import Progress, Stage
from veiltab.common.release.messages.release_messages import spec_to_proto, state_from_proto
from veiltab.common.release.messages.witness import ledger_from_proto, ledger_to_proto
from veiltab.common.release.state import ReleaseState, ended_without_result
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.chunks import CHUNK, file_chunks
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.rpc.peer import ASK_SECONDS, STREAM_SECONDS, Peer
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.common.rpc.waiting.together import MOST_BESIDE, together
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.release.server_check import canary_width
from veiltab.v1 import ingest_pb2, ingest_pb2_grpc

TOGETHER = CHUNK
"""Most bytes of columns that are sent in one message."""

_DIGEST_BYTES = 32


class ServerLink:
    """A curator's connection to the server.

    Args:
        study: names the server and its endpoint.
        ledger: of the curator, which the server remembers.
        noise_digest: returns what the server stated of the noise of a release when it was charged here; empty before.
    """

    def __init__(self, identity: Identity, study: Study, ledger: Ledger, noise_digest: Callable[[str], bytes]) -> None:
        self._name = identity.party.name
        self._ledger = ledger
        self._noise_digest = noise_digest
        self._room = asyncio.Semaphore(MOST_BESIDE)
        party = Party(study=study.id, role=Role.SERVER, name=study.server.name)
        self._server = Peer.at(study.server.endpoint, party, identity, ingest_pb2_grpc.IngestServiceStub)

    @property
    def name(self) -> str:
        """The server, as messages name it."""
        return f"server {self._server.party.name}"

    async def close(self) -> None:
        """Close the channel."""
        await self._server.close()

    async def announce(self, spec: TableSpec) -> ingest_pb2.OpenReleaseResponse:
        """Announce a release, or find the announced one; the announcement contains no data.

        Raises:
            FailedReleaseError: the release ended at the server.
            IntegrityError: the server states another noise than before, or has seen a longer ledger of this curator's.
            InvalidInputError: it states none.
            VeiltabError: the server's refusal; after UnavailableError try again.
        """
        head = ledger_to_proto(self._ledger.chain.head)
        request = ingest_pb2.OpenReleaseRequest(spec=spec_to_proto(spec), ledger=head)
        answer = await self._server.ask(self._server.stub.OpenRelease, request, once=True)
        self._state_of(answer)
        if len(answer.noise_digest) != _DIGEST_BYTES:
            raise InvalidInputError("does not state the digest of its noise", where=self.name)
        if self._noise_digest(spec.release_id):
            self._check_same_noise(spec, answer.noise_digest)
        self._ledger.chain.verify_against(ledger_from_proto(answer.witnessed, self.name), self.name)
        return answer

    def _check_same_noise(self, spec: TableSpec, stated: bytes) -> None:
        """Refuse a server that would perturb the same rows a second time: two noises show more than one."""
        if stated != self._noise_digest(spec.release_id):
            raise IntegrityError(
                "states another noise for this release than before; no data is sent, and no key leaves",
                where=self.name,
                remedy="Its state was perhaps restored from an old backup; ask for a new release.",
            )

    async def upload(
        self, spec: TableSpec, columns: dict[str, tuple[Path, bytes]], *, stage: Stage | None = None
    ) -> PublicationDigests | None:
        """Send this curator's columns, to their end.

        Args:
            spec: of the release, which is announced and whose noise is recorded.
            columns: file and SHA-256 of each column's ciphertext.
            stage: says how far it is, if anybody asks.

        Returns:
            The digests of what is published, if the server waited with its answer until it was; else None.

        Raises:
            FailedReleaseError: the release ended at the server.
            InvalidInputError: as `publication_from_proto`.
            VeiltabError: the server's refusal; after UnavailableError try again.
        """
        total = sum(column.byte_length(spec.uploaded_rows) for column in spec.columns_of(self._name))
        if total <= TOGETHER:
            return await self._upload_together(spec, columns)
        await self._upload_one_by_one(spec, columns, total, stage or Stage())
        return None

    async def _upload_together(
        self, spec: TableSpec, columns: Mapping[str, tuple[Path, bytes]]
    ) -> PublicationDigests | None:
        whole = [
            ingest_pb2.WholeColumn(attribute=name, data=path.read_bytes(), digest=digest)
            for name, (path, digest) in columns.items()
        ]
        request = ingest_pb2.UploadColumnsRequest(
            spec=spec_to_proto(spec),
            columns=whole,
            wait_milliseconds=int(1000 * LONGEST_WAIT),
            noise_digest=self._noise_digest(spec.release_id),
            ledger=ledger_to_proto(self._ledger.chain.head),
        )
        try:
            answer = await self._server.stub.UploadColumns(request, timeout=STREAM_SECONDS)
        except grpc.aio.AioRpcError as error:
            refusal = self._server.error_of(error)
            if isinstance(refusal, NotFoundError):
                await self.announce(spec)  # which refuses a server that has forgotten the release
            raise refusal from None
        return self._published(answer.publication, spec) if answer.HasField("publication") else None

    async def _upload_one_by_one(
        self, spec: TableSpec, columns: Mapping[str, tuple[Path, bytes]], total: int, stage: Stage
    ) -> None:
        received = await self._received(spec, columns)
        with stage.of("sending columns", total, done=sum(received.values())) as progress:
            uploads = [
                partial(self._upload_column, spec, name, *columns[name], offset, progress)
                for name, offset in received.items()
            ]
            if uploads:
                await together(self._room, uploads)

    async def _received(self, spec: TableSpec, columns: Collection[str]) -> Mapping[str, int]:
        """Return how many bytes the server holds of each column, of those that it still takes bytes of."""
        answer = await self.announce(spec)
        is_taking = state_from_proto(answer.state) is ReleaseState.UPLOADING
        return {name: answer.received[name] for name in columns} if is_taking else {}

    async def publication(self, spec: TableSpec) -> PublicationDigests:
        """Return the digests of what is published: of every column of a release, and of the places if it samples.

        The server may wait a little until there are any.

        Raises:
            NotReadyError: the release is not published yet.
            FailedReleaseError: it ended at the server.
            IntegrityError: it is of another noise than the server stated before.
            InvalidInputError: as `publication_from_proto`.
            VeiltabError: the server's refusal; after UnavailableError try again.
        """
        request = ingest_pb2.GetPublicationRequest(
            release_id=spec.release_id, wait_milliseconds=int(1000 * LONGEST_WAIT)
        )
        method, within = self._server.stub.GetPublication, ASK_SECONDS + LONGEST_WAIT
        answer = await self._server.ask(method, request, within=within, once=True)
        published = self._published(answer, spec)
        if published is None:
            missing = (part for part in spec.parts if part in answer.waiting_for)
            words = ("has not published the release yet", *(f"attribute {part} is missing" for part in missing))
            raise NotReadyError("; ".join(words), where=self.name)
        return published

    def _published(self, answer: ingest_pb2.GetPublicationResponse, spec: TableSpec) -> PublicationDigests | None:
        """Return the digests of what is published, unless it is not yet, or the release ended at the server."""
        if self._state_of(answer) is not ReleaseState.READY:
            return None
        self._check_same_noise(spec, answer.noise_digest)
        return publication_from_proto(answer, spec, self.name)

    def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Fetch the published symbols of the canaries in this curator's columns, piece by piece, to their very end.

        Raises:
            TransferError: there are more bytes than the canaries have.
            IntegrityError: a curator sent the server another key before, which does not follow from the coin.
            VeiltabError: the server's refusal; after UnavailableError try again.
        """
        request = ingest_pb2.FetchCanariesRequest(release_id=spec.release_id, places_key=places_key)
        most = spec.canaries * canary_width(spec, self._name)

        def check(answer: ingest_pb2.FetchCanariesResponse) -> None:
            if not answer.other_places_key:
                return
            others = spec.owners - {self._name}
            if answer.other_places_key == places_key or answer.other_sender not in others:
                raise IntegrityError("refuses the key of the canaries' places without a reason", where=self.name)
            raise IntegrityError(
                "sent the server another key of the canaries' places, which does not follow from the coin",
                where=f"curator {answer.other_sender}",
            )

        return self._server.stream(self._server.stub.FetchCanaries, request, most=most, check=check)

    def _state_of(self, answer: ingest_pb2.OpenReleaseResponse | ingest_pb2.GetPublicationResponse) -> ReleaseState:
        """Return how a release stands at the server, unless it ended there."""
        state = state_from_proto(answer.state)
        if state.unsuccessful:
            raise ended_without_result(state, words_from_proto(answer.failure), where=self.name)
        return state

    async def _upload_column(  # noqa: PLR0913, PLR0917 - what is sent, and from where on
        self, spec: TableSpec, attribute: str, path: Path, digest: bytes, offset: int, progress: Progress
    ) -> None:
        header = ingest_pb2.UploadHeader(
            release_id=spec.release_id,
            attribute=attribute,
            spec_digest=spec.digest(),
            column_digest=digest,
            noise_digest=self._noise_digest(spec.release_id),
        )
        try:
            answer = await self._server.stub.UploadColumn(
                _messages(header, path, offset, progress), timeout=STREAM_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error, str(self._server.party)) from None
        except asyncio.CancelledError:
            # gRPC cancels a call whose request cannot be read to its end, and says no more.
            if _is_cancelled():
                raise
            raise IntegrityError(
                "the pad is spent and its ciphertext cannot be read",
                where=f"attribute {attribute}",
                remedy="Ask for a new release; a pad is never used again.",
            ) from None
        if not answer.complete:
            raise TransferError("the server does not have the whole column", where=f"attribute {attribute}")


def publication_from_proto(
    message: ingest_pb2.GetPublicationResponse, spec: TableSpec, server: str
) -> PublicationDigests:
    """Decode what a server states of a published release.

    Raises:
        InvalidInputError: it does not state a digest of every column, and of its places if it samples, and of no more.
    """
    digests = dict(message.digests)
    if set(digests) != {column.attribute for column in spec.columns} or set(map(len, digests.values())) != {32}:
        raise InvalidInputError("does not state the digest of every published column", where=server)
    if len(message.places_digest) != (32 if spec.sampling.is_by_server else 0):
        raise InvalidInputError("does not state the digest of the places that it sampled", where=server)
    return PublicationDigests(columns=digests, places=message.places_digest)


async def _messages(
    header: ingest_pb2.UploadHeader, path: Path, offset: int, progress: Progress
) -> AsyncIterator[ingest_pb2.UploadColumnRequest]:
    yield ingest_pb2.UploadColumnRequest(header=header)
    for chunk in file_chunks(path, offset):
        yield ingest_pb2.UploadColumnRequest(chunk=chunk)
        progress.advance(chunk.ByteSize())


def _is_cancelled() -> bool:
    """Return whether this task itself is being cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
