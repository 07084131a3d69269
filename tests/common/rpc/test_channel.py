import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import grpc
import pytest

from tests.common.rpc.called_services import GET, Identities, answering, called
from tests.conftest import refuses
from tests.worlds.parties import ALICE, BOB, RITA
from veiltab.common.errors import ConflictError, InvalidInputError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.rpc.channel import call, connect
from veiltab.common.rpc.chunks import MAX_MESSAGE
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.server import build_server
from veiltab.common.rpc.waiting import retries
from veiltab.v1.curator_pb2 import GetProposalRequest as Request
from veiltab.v1.curator_pb2 import GetProposalResponse as Response


def method(channel: grpc.aio.Channel) -> grpc.aio.UnaryUnaryMultiCallable[Request, Response]:
    return channel.unary_unary(GET, Request.SerializeToString, Response.FromString)


async def echo(request: Request, _context: object) -> Response:
    return Response(waiting_for=request.release_id)


async def outcome(
    identity_of: Identities,
    behaviour: Callable[[Request, Any], Any],
    *,
    request: Request | None = None,
    within: float = 3.0,
) -> Response | VeiltabError:
    async with called(identity_of, answering(behaviour)) as channel:
        try:
            return await call(method(channel), request or Request(), peer=BOB, within=within, attempt=1.0)
        except VeiltabError as error:
            return error


@pytest.mark.parametrize(
    "other", [ALICE, replace(BOB, role=Role.RESEARCHER), replace(BOB, name="bobby"), replace(BOB, study="other")]
)
async def test_another_partys_server_is_not_spoken_to(other: Party, identity_of: Identities) -> None:
    async with build_server(
        identity_of(other), [replace(RITA, study=other.study)], answering(echo), "localhost:0"
    ) as server:
        endpoint = f"localhost:{server.port}"
        async with connect(identity_of(RITA), BOB, endpoint) as channel:
            with refuses(UnavailableError, where="curator bob"):
                await call(method(channel), Request(), peer=BOB, within=0.5)
        async with connect(identity_of(replace(RITA, study=other.study)), other, endpoint) as channel:
            assert (await call(method(channel), Request(release_id="r"), peer=other)).waiting_for == "r"


async def test_a_server_of_another_authority_is_not_spoken_to(identity_of: Identities, rogue: Identities) -> None:
    async with (
        build_server(rogue(BOB), [RITA], answering(echo), "localhost:0") as server,
        connect(identity_of(RITA), BOB, f"localhost:{server.port}") as channel,
    ):
        with pytest.raises(UnavailableError, match="another study"):
            await call(method(channel), Request(), peer=BOB, within=0.5)


def test_an_expired_identity_does_not_connect(identity_of: Identities) -> None:
    identity = identity_of(RITA)
    late = identity.certificate_facts.not_after + timedelta(seconds=1)
    with pytest.raises(InvalidInputError, match="expired on"):
        connect(identity, BOB, "localhost:1", clock=lambda: late)
    with pytest.raises(InvalidInputError, match="expired on"):
        build_server(identity, [BOB], [], "localhost:0", clock=lambda: late)


@pytest.mark.parametrize(
    ("attempts", "last"),
    [
        ([NotReadyError("not yet"), NotReadyError("not yet"), None], Response),
        (["no answer at all", None], Response),
        ([ConflictError("taken")], ConflictError),
    ],
    ids=["not ready", "silent", "refused for good"],
)
async def test_a_call_is_repeated_until_its_answer_or_a_refusal_for_good(
    identity_of: Identities, attempts: list[VeiltabError | str | None], last: type[object]
) -> None:
    left = iter(attempts)

    async def behaviour(_request: Request, _context: object) -> Response:
        match next(left, None):
            case VeiltabError() as refusal:
                raise refusal
            case str():
                await asyncio.Event().wait()
        return Response()

    assert isinstance(await outcome(identity_of, behaviour), last)
    assert not list(left)


async def test_repeats_end_with_the_time(identity_of: Identities) -> None:
    async def never_ready(_request: Request, _context: object) -> Response:
        raise NotReadyError("not yet")

    # Which of the two depends on where the last attempt is cut off.
    assert isinstance(await outcome(identity_of, never_ready, within=0.7), NotReadyError | UnavailableError)


async def test_grpc_itself_repeats_nothing(identity_of: Identities) -> None:
    asked = 0

    async def unavailable(_request: Request, context: grpc.aio.ServicerContext[Request, Response]) -> None:
        nonlocal asked
        asked += 1
        await context.abort(grpc.StatusCode.UNAVAILABLE)

    async with called(identity_of, answering(unavailable)) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await method(channel)(Request(), timeout=2.0)
    assert asked == 1


async def test_a_peer_that_starts_late_is_reached(identity_of: Identities) -> None:
    first = build_server(identity_of(BOB), [RITA], answering(echo), "localhost:0")
    await first.start()
    endpoint = f"localhost:{first.port}"
    async with connect(identity_of(RITA), BOB, endpoint) as channel:
        await call(method(channel), Request(), peer=BOB)
        await first.stop()
        waiting = asyncio.ensure_future(call(method(channel), Request(release_id="r"), peer=BOB, within=8.0))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        async with build_server(identity_of(BOB), [RITA], answering(echo), endpoint):
            assert (await waiting).waiting_for == "r"


async def test_pauses_have_full_jitter_under_a_doubling_bound(
    identity_of: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[float] = []

    class Jitter:
        def uniform(self, low: float, high: float) -> float:
            assert low == 0.0
            bounds.append(high)
            return 0.0

    async def never_ready(_request: Request, _context: object) -> Response:
        if len(bounds) > 8:
            raise ConflictError("enough")
        raise NotReadyError("not yet")

    monkeypatch.setattr(retries, "_jitter", Jitter())
    assert isinstance(await outcome(identity_of, never_ready), ConflictError)
    assert bounds[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_a_message_just_too_long_is_refused_at_either_end(identity_of: Identities) -> None:
    async def long_answer(_request: Request, _context: object) -> Response:
        return Response(waiting_for="x" * MAX_MESSAGE)

    fits = await outcome(identity_of, echo, request=Request(release_id="x" * (1 << 20)))
    assert isinstance(fits, Response)
    sent = await outcome(identity_of, echo, request=Request(release_id="x" * MAX_MESSAGE))
    assert isinstance(sent, InvalidInputError)
    assert isinstance(await outcome(identity_of, long_answer), VeiltabError)
