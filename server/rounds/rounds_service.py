"""The server's RPCs for rounds: each decodes, calls RoundKeeper once, and encodes.

It is called in a thread: its database may be on another machine, and slow to answer.
"""

from asyncio import to_thread
from collections.abc import AsyncIterator

from veiltab.common.collection.round_messages import report_from_proto, round_from_proto, round_to_proto, state_to_proto
from veiltab.common.core.texts.canonical import canonical_text, read_canonical
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.authorisation import Context, caller
from veiltab.common.rpc.chunks import chunk_messages, streamed
from veiltab.common.rpc.parties.signing import SignedText, signed_from_proto, signed_to_proto
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.v1 import collection_pb2, collection_pb2_grpc


class CollectionServicer(collection_pb2_grpc.CollectionServiceServicer):
    """Takes rounds from researchers and reports from nodes."""

    def __init__(self, rounds: RoundKeeper) -> None:
        self._rounds = rounds

    async def OpenRound(
        self, request: collection_pb2.OpenRoundRequest, context: Context
    ) -> collection_pb2.OpenRoundResponse:
        spec, one = round_from_proto(request.round), signed_from_proto(request.signed)
        if one.text != spec.to_json():
            raise InvalidInputError("the round is not signed by its researcher", where=f"round {spec.round_id}")
        state = await to_thread(self._rounds.open_round, spec, caller(context).name, canonical_text(one))
        return collection_pb2.OpenRoundResponse(state=state_to_proto(state))

    async def EnrolTokens(
        self, request: collection_pb2.EnrolTokensRequest, context: Context
    ) -> collection_pb2.EnrolTokensResponse:
        enrolled = await to_thread(
            self._rounds.enrol, request.round_id, request.stratum, request.digests, caller(context).name
        )
        return collection_pb2.EnrolTokensResponse(enrolled=enrolled)

    async def GetRound(
        self, request: collection_pb2.GetRoundRequest, context: Context
    ) -> collection_pb2.GetRoundResponse:
        del context
        spec, state = await to_thread(self._rounds.round, request.round_id)
        text = await to_thread(self._rounds.signed, request.round_id)
        one = signed_to_proto(read_canonical(SignedText, text)) if text else None
        return collection_pb2.GetRoundResponse(round=round_to_proto(spec), state=state_to_proto(state), signed=one)

    async def GetRoundStatus(
        self, request: collection_pb2.GetRoundStatusRequest, context: Context
    ) -> collection_pb2.GetRoundStatusResponse:
        status = await to_thread(self._rounds.status, request.round_id, caller(context).name)
        return collection_pb2.GetRoundStatusResponse(
            round=round_to_proto(status.round),
            state=state_to_proto(status.state),
            closed=status.closed or None,
            enrolled=status.enrolled,
            reports=status.reports,
        )

    async def ListRounds(
        self, request: collection_pb2.ListRoundsRequest, context: Context
    ) -> collection_pb2.ListRoundsResponse:
        del request
        return collection_pb2.ListRoundsResponse(round_ids=await to_thread(self._rounds.rounds, caller(context).name))

    async def CloseRound(
        self, request: collection_pb2.CloseRoundRequest, context: Context
    ) -> collection_pb2.CloseRoundResponse:
        closed, already = await to_thread(self._rounds.close_round, request.round_id, caller(context).name)
        return collection_pb2.CloseRoundResponse(closed=closed, already=already)

    async def FetchCounts(
        self, request: collection_pb2.FetchCountsRequest, context: Context
    ) -> AsyncIterator[collection_pb2.FetchCountsResponse]:
        counts = await to_thread(self._rounds.counts, request.round_id, caller(context).name)
        async for total, chunk in streamed(chunk_messages(counts, request.offset), len(counts), request.offset):
            yield collection_pb2.FetchCountsResponse(total=total, chunk=chunk)

    async def Report(self, request: collection_pb2.ReportRequest, context: Context) -> collection_pb2.ReportResponse:
        del context
        await self._rounds.report(request.round_id, request.token, request.stratum, report_from_proto(request))
        return collection_pb2.ReportResponse()
