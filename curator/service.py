"""The curator's RPCs: each decodes, calls the driver once, and encodes."""

import time
from collections.abc import AsyncIterator, Iterator

from veiltab.common.core.coin import commitment, transcript
from veiltab.common.errors import ConflictError, DeniedError, InvalidInputError, NotFoundError, NotReadyError
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Pad
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.wire import pad_to_proto, request_from_proto, spec_to_proto, state_to_proto
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.chunks import chunk_messages, file_chunks, streamed
from veiltab.curator.coordination import check_study_digest
from veiltab.curator.driver import CuratorDriver
from veiltab.curator.store import APPROVED
from veiltab.v1 import curator_pb2, curator_pb2_grpc, curator_peer_pb2, curator_peer_pb2_grpc
from veiltab.v1.release_pb2 import Chunk


class CuratorPeerServicer(curator_peer_pb2_grpc.CuratorPeerServiceServicer):
    """Answers the other curators."""

    def __init__(self, driver: CuratorDriver) -> None:
        self._driver = driver

    async def Hello(self, request: curator_peer_pb2.HelloRequest, context: Context) -> curator_peer_pb2.HelloResponse:
        peer = caller(context).name
        check_study_digest(self._driver.study, request.study_digest, f"curator {peer}")
        length, head = self._driver.store.witness(peer)
        self._driver.store.set_witness(peer, request.ledger_length, request.ledger_head)
        return curator_peer_pb2.HelloResponse(
            study_digest=self._driver.study.digest,
            table_version=self._driver.alignment.table_version or None,
            witnessed_length=length,
            witnessed_head=head,
        )

    async def Commit(
        self, request: curator_peer_pb2.CommitRequest, context: Context
    ) -> curator_peer_pb2.CommitResponse:
        own = self._driver.own_share(request.coin_id)
        if len(request.commitment) != 32:
            raise InvalidInputError("a commitment has 32 bytes", where="Commit")
        self._driver.store.commit(request.coin_id, caller(context).name, request.commitment)
        mine = commitment(request.coin_id, self._driver.name, own)
        self._driver.store.commit(request.coin_id, self._driver.name, mine)
        return curator_peer_pb2.CommitResponse(commitment=mine)

    async def Reveal(
        self, request: curator_peer_pb2.RevealRequest, context: Context
    ) -> curator_peer_pb2.RevealResponse:
        caller(context)
        own = self._driver.own_share(request.coin_id)
        commitments = self._driver.store.commitments(request.coin_id)
        if set(commitments) != {curator.name for curator in self._driver.study.curators}:
            raise NotReadyError("does not hold every commitment yet", where=f"curator {self._driver.name}")
        if transcript(commitments) != request.transcript:
            raise ConflictError("the curators hold different commitments", where="coin toss")
        return curator_peer_pb2.RevealResponse(share=own)

    async def FetchTokens(
        self, request: curator_peer_pb2.FetchTokensRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchTokensResponse]:
        caller(context)
        path = self._driver.alignment.tokens_file(request.alignment_id)
        if not request.alignment_id.isalnum() or not path.exists():
            raise NotReadyError("has not computed its tokens yet", where=f"curator {self._driver.name}")
        async for total, chunk in streamed(file_chunks(path, request.offset), path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchTokensResponse(total=total, chunk=chunk)

    async def FetchIndices(
        self, request: curator_peer_pb2.FetchIndicesRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchIndicesResponse]:
        caller(context)
        self._driver.store.release(request.release_id)
        path = self._driver.indices_file(request.release_id)
        if not path.exists():
            raise NotReadyError("has not drawn the indices yet", where=f"curator {self._driver.name}")
        async for total, chunk in streamed(file_chunks(path, request.offset), path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchIndicesResponse(total=total, chunk=chunk)

    async def GetProgress(
        self, request: curator_peer_pb2.GetProgressRequest, context: Context
    ) -> curator_peer_pb2.GetProgressResponse:
        caller(context)
        progress = self._driver.progress(request.release_id)
        return curator_peer_pb2.GetProgressResponse(
            state=state_to_proto(progress.state),
            decided=progress.decided,
            granted=sorted(progress.granted),
            denied=sorted(progress.denied),
            spec_digest=progress.spec_digest or None,
            reserved=progress.reserved,
            charged=progress.charged,
            sample_check=progress.sample_check or None,
            failure=progress.failure,
        )


class CuratorServicer(curator_pb2_grpc.CuratorServiceServicer):
    """Answers researchers."""

    def __init__(self, driver: CuratorDriver) -> None:
        self._driver = driver

    async def ProposeRelease(
        self, request: curator_pb2.ProposeReleaseRequest, context: Context
    ) -> curator_pb2.ProposeReleaseResponse:
        researcher = caller(context).name
        check_study_digest(self._driver.study, request.study_digest, f"researcher {researcher}")
        stored = self._driver.submit(request_from_proto(request.request, researcher))
        return curator_pb2.ProposeReleaseResponse(state=state_to_proto(stored.state))

    async def GetProposal(
        self, request: curator_pb2.GetProposalRequest, context: Context
    ) -> curator_pb2.GetProposalResponse:
        stored = self._driver.store.release(request.release_id)
        _check_owner(stored.request.researcher, context)
        progress = self._driver.progress(request.release_id)
        return curator_pb2.GetProposalResponse(
            state=state_to_proto(stored.state),
            waiting_for=stored.waiting_for,
            failure=stored.failure,
            granted=sorted(progress.granted),
            denied=sorted(progress.denied),
            spec=None if stored.spec is None else spec_to_proto(stored.spec),
            bytes_uploaded=stored.bytes_uploaded,
            seconds=stored.seconds,
        )

    async def FetchKey(
        self, request: curator_pb2.FetchKeyRequest, context: Context
    ) -> AsyncIterator[curator_pb2.FetchKeyResponse]:
        stored = self._driver.store.release(request.release_id)
        _check_owner(stored.request.researcher, context)
        pad, pieces, total = self._granted_key(request.release_id, request.attribute, request.offset)
        with step("give key", release_id=request.release_id, attribute=request.attribute, size=total - request.offset):
            async for whole, chunk in streamed(pieces, total, request.offset):
                yield curator_pb2.FetchKeyResponse(pad=pad_to_proto(pad), total=whole, chunk=chunk)

    def _granted_key(self, release_id: str, attribute: str, offset: int) -> tuple[Pad, Iterator[Chunk], int]:
        stored = self._driver.store.release(release_id)
        decision = next((d for d in self._driver.store.decisions(release_id) if d.attribute == attribute), None)
        if decision is None or decision.verdict != APPROVED:
            raise DeniedError("this attribute was not granted", where=f"attribute {attribute}")
        if decision.expires is not None and time.time() >= decision.expires:
            raise DeniedError("the grant has expired", where=f"attribute {attribute}", remedy="Ask for a new release.")
        if stored.state.unsuccessful:
            raise DeniedError(f"the release is {stored.state.value}", where=f"release {release_id}")
        if stored.state is not ReleaseState.READY or stored.spec is None:
            raise NotReadyError("the column is not at the server yet", where=f"attribute {attribute}")
        found = self._driver.store.pad(release_id, attribute)
        if found is None:
            raise NotFoundError("this attribute is not part of the release", where=f"attribute {attribute}")
        if stored.spec.pad is Pad.CHACHA20:
            return Pad.CHACHA20, chunk_messages(found[0], offset), len(found[0])
        path = self._driver.encryption(release_id).pad_file(attribute)
        return Pad.OTP, file_chunks(path, offset), path.stat().st_size


def _check_owner(researcher: str, context: Context) -> None:
    if researcher != caller(context).name:
        raise DeniedError("this request is another researcher's", where="release")
