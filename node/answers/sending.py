"""From a node to the server: fetch a round's description, and submit a report until it is counted or refused."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from veiltab.common.collection.round import Round, RoundState
from veiltab.common.collection.round_messages import round_from_proto, state_from_proto
from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, NotReadyError, SpentTokenError, UnavailableError, VeiltabError
from veiltab.common.rpc.channel import call
from veiltab.common.rpc.parties.identity import Party, Role, utc_now
from veiltab.common.rpc.parties.signing import signed_from_proto, signer_of
from veiltab.common.study.file import Study
from veiltab.node.answers.journal import State
from veiltab.v1 import collection_pb2

if TYPE_CHECKING:
    # The generated module has this name for type checkers only.
    from veiltab.v1.collection_pb2_grpc import CollectionServiceAsyncStub as Stub

_SILENCE = (UnavailableError, NotReadyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of submitting a report.

    Args:
        state: COUNTED; REFUSED if it certainly was not counted; WAITING if it may have been or may still be.
        error: the server's refusal, or why there was no answer; None for a counted report.
    """

    state: State
    error: VeiltabError | None = None


def server_of(study: Study) -> Party:
    """Return the party that nodes report to."""
    return Party(study=study.id, role=Role.SERVER, name=study.server.name)


async def fetch_round(
    stub: "Stub", study: Study, authority: bytes, round_id: str, within: float = 30.0
) -> tuple[Round, RoundState, str]:
    """Return a round's description and state, and what its researcher signed of it.

    Args:
        authority: certificate of the study's authority, PEM.

    Raises:
        IntegrityError: the server described another round (answers are remembered by round, so it could otherwise ask
            the same twice), or one that its researcher did not sign.
        VeiltabError: the server's refusal, or UnavailableError when the time is over.
    """
    request = collection_pb2.GetRoundRequest(round_id=round_id)
    response = await call(stub.GetRound, request, peer=server_of(study), within=within)
    spec = round_from_proto(response.round)
    if spec.round_id != round_id:
        raise IntegrityError("the server described another round", where=f"round {round_id[:32]}")
    signed_text = signed_from_proto(response.signed)
    researcher = Party(study=study.id, role=Role.RESEARCHER, name=spec.researcher)
    if signed_text.text != spec.to_json() or signer_of(signed_text, authority, utc_now()) != researcher:
        raise IntegrityError(f"{researcher} did not sign this round", where=f"round {round_id}")
    return spec, state_from_proto(response.state), canonical_text(signed_text)


async def hand_in(
    stub: "Stub", study: Study, request: collection_pb2.ReportRequest, *, tried: bool, within: float
) -> Outcome:
    """Submit a report, again if no answer comes, until it is counted or refused.

    If an earlier attempt got no answer, a spent token means that this attempt was counted; at the first attempt it
    means that somebody else spent the token. After an attempt without an answer, no other refusal proves that the
    report was not counted.

    Args:
        request: the report; the same bytes at every attempt.
        tried: whether it may have been submitted before.
        within: seconds for all attempts.
    """
    peer, now = server_of(study), asyncio.get_running_loop().time
    end = now() + within
    error = await _error_of(call(stub.Report, request, peer=peer, within=within, once=True))
    if isinstance(error, _SILENCE):
        tried = True
        error = await _error_of(call(stub.Report, request, peer=peer, within=end - now()))
    if error is None or (tried and isinstance(error, SpentTokenError)):
        return Outcome(state=State.COUNTED)
    certain = is_answer(error) and not tried
    return Outcome(state=State.REFUSED if certain else State.WAITING, error=error)


def is_answer(error: VeiltabError) -> bool:
    """Return whether an error is the server's refusal, as opposed to silence or an internal failure."""
    return not isinstance(error, _SILENCE) and type(error) is not VeiltabError


async def _error_of(attempt: Awaitable[collection_pb2.ReportResponse]) -> VeiltabError | None:
    try:
        await attempt
    except VeiltabError as error:
        return error
    return None
