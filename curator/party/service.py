"""The curator's RPCs: each decodes, calls the answers once, and encodes."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from functools import partial

from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.observe.steps import step
from veiltab.common.release.messages.release_messages import (
    receipt_to_proto,
    release_to_proto,
    request_from_proto,
    spec_to_proto,
    state_to_proto,
)
from veiltab.common.release.messages.witness import ledger_from_proto
from veiltab.common.release.request import RELEASE_ID
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.chunks import file_chunks, streamed
from veiltab.common.rpc.parties.identity import Party
from veiltab.common.rpc.parties.signing import signed_to_proto
from veiltab.common.rpc.waiting.changes import Followed, offered_seconds
from veiltab.curator.peers.calls import SAID
from veiltab.curator.peers.subscriptions import MOST_ASKED, MOST_FOLLOWED, pace
from veiltab.curator.progress.release_record import ColumnDigests, Progress
from veiltab.curator.release.curator import Curator
from veiltab.curator.release.rpc_answers import RpcAnswers, TestedRelease
from veiltab.v1 import curator_pb2, curator_pb2_grpc, curator_peer_pb2, curator_peer_pb2_grpc

_FOLLOWED_SECONDS = 20.0
"""Longest time of a call that follows releases: the next one hears of all of them, whatever woke nobody meanwhile."""


_NAMED_AGAIN_SECONDS = 1.0
"""How long a call is read no further once it names releases again: each is said anew at most so often."""


class CuratorPeerServicer(curator_peer_pb2_grpc.CuratorPeerServiceServicer):
    """Answers the other curators."""

    def __init__(self, answers: RpcAnswers) -> None:
        self._own, self._curator = answers, answers.curator

    async def Hello(self, request: curator_peer_pb2.HelloRequest, context: Context) -> curator_peer_pb2.HelloResponse:
        ledger = (request.ledger_length, request.ledger_head)
        length, head = self._own.greet(caller(context).name, request.study_digest, ledger)
        return curator_peer_pb2.HelloResponse(
            study_digest=self._curator.study.digest,
            table_version=self._curator.alignment.table_version or None,
            witnessed_length=length,
            witnessed_head=head,
        )

    async def Commit(
        self, request: curator_peer_pb2.CommitRequest, context: Context
    ) -> curator_peer_pb2.CommitResponse:
        peer = caller(context).name
        mine = self._curator.coins.exchange_commitments(request.coin_id, peer, request.commitment)
        return curator_peer_pb2.CommitResponse(commitment=mine)

    async def Reveal(
        self, request: curator_peer_pb2.RevealRequest, context: Context
    ) -> curator_peer_pb2.RevealResponse:
        peer = caller(context).name
        share = self._curator.coins.open_share(request.coin_id, peer, request.transcript, request.commitment)
        return curator_peer_pb2.RevealResponse(share=share)

    async def FetchTokens(
        self, request: curator_peer_pb2.FetchTokensRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchTokensResponse]:
        caller(context)
        path = self._curator.alignment.shared_tokens(request.alignment_id)
        chunks = file_chunks(path, request.offset, has_digests=False)
        async for total, chunk in streamed(chunks, path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchTokensResponse(total=total, chunk=chunk)

    async def GetSession(
        self, request: curator_peer_pb2.GetSessionRequest, context: Context
    ) -> curator_peer_pb2.GetSessionResponse:
        standing = self._own.sessions.standing(request.alignment_id, caller(context).name)
        return curator_peer_pb2.GetSessionResponse(
            **same_fields(standing, ("part", "size", "order", "finished", "failed"))
        )

    async def FetchJoin(
        self, request: curator_peer_pb2.FetchJoinRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchJoinResponse]:
        from veiltab.curator.alignment.joining.join_messages import message_from_proto  # noqa: PLC0415 - not for joins by tokens

        message, peer = message_from_proto(request), caller(context).name
        seconds = offered_seconds(request.wait_milliseconds)
        path = await self._own.sessions.made_file(request.alignment_id, request.session, message, peer, seconds=seconds)
        async for total, chunk in streamed(file_chunks(path, request.offset), path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchJoinResponse(total=total, chunk=chunk)

    async def FetchIndices(
        self, request: curator_peer_pb2.FetchIndicesRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchIndicesResponse]:
        caller(context)
        path = self._own.shared_indices(request.release_id)
        async for total, chunk in streamed(file_chunks(path, request.offset), path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchIndicesResponse(total=total, chunk=chunk)

    async def FetchCanaryPart(
        self, request: curator_peer_pb2.FetchCanaryPartRequest, context: Context
    ) -> AsyncIterator[curator_peer_pb2.FetchCanaryPartResponse]:
        path = self._own.canary_part(request.release_id, request.attribute, caller(context).name)
        async for total, chunk in streamed(file_chunks(path, request.offset), path.stat().st_size, request.offset):
            yield curator_peer_pb2.FetchCanaryPartResponse(total=total, chunk=chunk)

    async def GetCanaryChanges(
        self, request: curator_peer_pb2.GetCanaryChangesRequest, context: Context
    ) -> curator_peer_pb2.GetCanaryChangesResponse:
        changes = self._own.changes_of_canaries(request.release_id, caller(context).name)
        return curator_peer_pb2.GetCanaryChangesResponse(changes=changes)

    async def FollowProgress(
        self, requests: AsyncIterator[curator_peer_pb2.FollowProgressRequest], context: Context
    ) -> AsyncIterator[curator_peer_pb2.FollowProgressResponse]:
        with self._curator.changes.followed(caller(context)) as followed:
            taking = asyncio.create_task(_follow(requests, followed))
            ending = asyncio.get_running_loop().call_later(_FOLLOWED_SECONDS, followed.end)
            try:
                while (names := await followed.news(MOST_ASKED)) is not None:
                    yield self._news(names, followed, caller(context).name)
                    if len(followed) > 1:
                        await asyncio.sleep(pace(len(followed)))
                if taking.done():
                    taking.result()
            finally:
                ending.cancel()
                taking.cancel()

    def _news(self, names: Collection[str], followed: Followed, peer: str) -> curator_peer_pb2.FollowProgressResponse:
        """Return how far this curator is with some releases; those that are over are followed no more."""
        own_progress = dict(self._own.progress_of(names, peer))
        for name, progress in own_progress.items():
            if progress.state.finished:
                followed.remove(name)
        return curator_peer_pb2.FollowProgressResponse(
            releases=[_progress_to_proto(name, progress) for name, progress in own_progress.items()],
            unknown=[name for name in names if name not in own_progress],
        )


async def _follow(requests: AsyncIterator[curator_peer_pb2.FollowProgressRequest], followed: Followed) -> None:
    """Follow what a caller asks for, until it asks for nothing more."""
    try:
        async for request in requests:
            if len(request.release_ids) > MOST_ASKED or len(followed) + len(request.release_ids) > MOST_FOLLOWED:
                raise InvalidInputError(
                    f"one message names at most {MOST_ASKED} releases, and one call {MOST_FOLLOWED}",
                    where="FollowProgress",
                )
            if not all(map(RELEASE_ID.fullmatch, request.release_ids)):  # else they are kept, however long they are
                raise InvalidInputError("the release id is not 32 hexadecimal digits", where="FollowProgress")
            if len(set(request.release_ids)) < len(request.release_ids):
                raise InvalidInputError("a release is named twice in one message", where="FollowProgress")
            is_again = any(name in followed for name in request.release_ids)
            followed.add(request.release_ids)
            if is_again:
                await asyncio.sleep(_NAMED_AGAIN_SECONDS)
    finally:
        followed.end()


class CuratorServicer(curator_pb2_grpc.CuratorServiceServicer):
    """Answers researchers."""

    def __init__(self, answers: RpcAnswers) -> None:
        self._own, self._curator = answers, answers.curator

    async def ProposeRelease(
        self, request: curator_pb2.ProposeReleaseRequest, context: Context
    ) -> curator_pb2.ProposeReleaseResponse:
        release = self._own.propose(
            request_from_proto(request.request, caller(context).name),
            request.study_digest,
            ledger_from_proto(request.witnessed, "witnessed"),
        )
        state, milliseconds = state_to_proto(release.state), request.wait_milliseconds
        if not milliseconds:
            return curator_pb2.ProposeReleaseResponse(state=state)
        proposal = await self._proposal(
            release.request.release_id, caller(context), milliseconds, with_statement=request.with_statement
        )
        return curator_pb2.ProposeReleaseResponse(state=state, proposal=proposal)

    async def GetProposal(
        self, request: curator_pb2.GetProposalRequest, context: Context
    ) -> curator_pb2.GetProposalResponse:
        return await self._proposal(
            request.release_id, caller(context), request.wait_milliseconds, with_statement=request.with_statement
        )

    async def _proposal(
        self, release_id: str, asker: Party, milliseconds: int, *, with_statement: bool
    ) -> curator_pb2.GetProposalResponse:
        release, progress = await self._own.proposal(release_id, asker, offered_seconds(milliseconds))
        receipt, statement = None, None
        if release.state is ReleaseState.READY and release.spec is not None:
            # Who is refused them here is told why where it asks for them alone.
            with suppress(DeniedError):
                if release.spec.columns_of(self._own.name):
                    receipt = _tested_to_proto(self._own.receipt(release_id, asker.name))
            with suppress(InvalidInputError):
                statement = signed_to_proto(self._own.statement(release_id, asker.name)) if with_statement else None
        return curator_pb2.GetProposalResponse(
            state=state_to_proto(release.state),
            waiting_for=release.waiting_for,
            failure=release.failure,
            granted=sorted(progress.granted),
            denied=sorted(progress.denied),
            spec=None if release.planned is None else release_to_proto(release.planned),
            bytes_uploaded=release.bytes_uploaded,
            seconds=release.seconds,
            table=spec_to_proto(release.spec) if release.spec is not None and release.part_of else None,
            left_out=self._own.stated_rows,
            receipt=receipt,
            statement=statement,
        )

    async def ChooseTables(
        self, request: curator_pb2.ChooseTablesRequest, context: Context
    ) -> curator_pb2.ChooseTablesResponse:
        self._own.choose(request.release_id, caller(context).name, tuple(request.numbers))
        return curator_pb2.ChooseTablesResponse()

    async def GetReceipt(
        self, request: curator_pb2.GetReceiptRequest, context: Context
    ) -> curator_pb2.GetReceiptResponse:
        return _tested_to_proto(self._own.receipt(request.release_id, caller(context).name))

    async def GetCuratorStatement(
        self, request: curator_pb2.GetCuratorStatementRequest, context: Context
    ) -> curator_pb2.GetCuratorStatementResponse:
        statement = await asyncio.to_thread(self._own.statement, request.release_id, caller(context).name)
        return curator_pb2.GetCuratorStatementResponse(statement=signed_to_proto(statement))

    async def GetKeys(self, request: curator_pb2.GetKeysRequest, context: Context) -> curator_pb2.GetKeysResponse:
        claimed = {
            attribute: ColumnDigests(published=column.published, canaries=column.canaries)
            for attribute, column in sorted(request.columns.items())
        }
        keys = self._own.keys(request.release_id, caller(context).name, claimed)
        response = curator_pb2.GetKeysResponse()
        for attribute, key in keys.items():
            with step("give key", release_id=request.release_id, attribute=attribute, size=len(key)):
                response.keys[attribute] = key
        return response

    async def FetchPad(
        self, request: curator_pb2.FetchPadRequest, context: Context
    ) -> AsyncIterator[curator_pb2.FetchPadResponse]:
        claimed = ColumnDigests(published=request.published_digest, canaries=request.canary_digest)
        path = self._own.pad_file(request.release_id, request.attribute, caller(context).name, claimed)
        length = path.stat().st_size
        size = length - request.offset
        with step("give key", release_id=request.release_id, attribute=request.attribute, size=size):
            async for total, chunk in streamed(file_chunks(path, request.offset), length, request.offset):
                yield curator_pb2.FetchPadResponse(total=total, chunk=chunk)


def _tested_to_proto(tested: TestedRelease) -> curator_pb2.GetReceiptResponse:
    return curator_pb2.GetReceiptResponse(
        receipts=[receipt_to_proto(receipt, with_counts=True) for receipt in tested.receipts],
        changes=tested.changes,
        canary_key=tested.canary_key,
        digests=tested.digests.columns,
        places_digest=tested.digests.places,
    )


def _progress_to_proto(release_id: str, progress: Progress) -> curator_peer_pb2.ReleaseProgress:
    return curator_peer_pb2.ReleaseProgress(
        **same_fields(progress, SAID),
        release_id=release_id,
        state=state_to_proto(progress.state),
        granted=sorted(progress.granted),
        denied=sorted(progress.denied),
        failure=progress.failure,
    )


def services_of(curator: Curator) -> tuple[partial[None], ...]:
    """Return what puts a curator's RPCs on a server: those of its peers, and those of researchers."""
    answers = RpcAnswers(curator)
    return (
        partial(curator_peer_pb2_grpc.add_CuratorPeerServiceServicer_to_server, CuratorPeerServicer(answers)),
        partial(curator_pb2_grpc.add_CuratorServiceServicer_to_server, CuratorServicer(answers)),
    )
