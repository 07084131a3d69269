"""From a node to the server: ask what a round is, and hand in a report until it is known to be counted."""

from typing import TYPE_CHECKING

from common.collection.round import Round, RoundState
from common.errors import NotReadyError, SpentTokenError, UnavailableError
from common.identity import Party, Role
from common.rpc.channel import call
from common.study import Study
from common.wire.collection import round_from_proto, state_from_proto
from veiltab.v1 import collection_pb2

if TYPE_CHECKING:
    # The generated module has this name for type checkers only.
    from veiltab.v1.collection_pb2_grpc import CollectionServiceAsyncStub as Stub


def server_of(study: Study) -> Party:
    """Return the party that nodes report to."""
    return Party(study=study.id, role=Role.SERVER, name=study.server.name)


async def fetch_round(stub: "Stub", study: Study, round_id: str) -> tuple[Round, RoundState]:
    """Return a round's description and state."""
    request = collection_pb2.GetRoundRequest(round_id=round_id)
    response = await call(stub.GetRound, request, peer=server_of(study))
    return round_from_proto(response.round), state_from_proto(response.state)


async def hand_in(
    stub: "Stub", study: Study, request: collection_pb2.ReportRequest, *, tried: bool, within: float
) -> None:
    """Hand in a report, again if no answer comes, until it is counted.

    A spent token after an attempt without an answer means that this attempt was counted; at the first attempt it means
    that somebody else spent it.

    Args:
        stub: of the server.
        study: the study file.
        request: the report; the same bytes at every attempt.
        tried: whether it may have been handed in before.
        within: seconds for all attempts.

    Raises:
        SpentTokenError: another report spent the token.
        VeiltabError: as the server refused, or UnavailableError when the time is over: try again later.
    """
    peer = server_of(study)
    try:
        await call(stub.Report, request, peer=peer, within=within, once=True)
    except (UnavailableError, NotReadyError):
        tried = True
    except SpentTokenError:
        if not tried:
            raise
        return
    else:
        return
    try:
        await call(stub.Report, request, peer=peer, within=within)
    except SpentTokenError:
        return
