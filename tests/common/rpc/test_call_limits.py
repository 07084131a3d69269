"""How many calls a party may make, how large, and what a refusal tells."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from tests.common.rpc.called_services import GET, PEERS, Identities, answering, ask, called, raw, who
from tests.worlds.parties import BOB, FLEET, RITA
from veiltab.common.errors import ConflictError, DeniedError, InvalidInputError, UnavailableError, VeiltabError
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.server import Limits, build_server
from veiltab.common.rpc.statuses import error_from_rpc
from veiltab.v1 import collection_pb2

COLLECTION = collection_pb2.DESCRIPTOR.services_by_name["CollectionService"].full_name
REPORT, ROUND = f"/{COLLECTION}/Report", f"/{COLLECTION}/GetRound"


@pytest.mark.parametrize("seconds", [None, 3700.0, 10.0**8])
async def test_a_call_needs_a_deadline_that_is_near(seconds: float | None, identity_of: Identities) -> None:
    async with called(identity_of, answering(who)) as channel:
        with pytest.raises(InvalidInputError, match="one later than 3600 s"):
            await ask(channel, seconds=seconds)
        assert await ask(channel, seconds=3500.0) == RITA.uri


async def never(_request: object, _context: object) -> None:
    await asyncio.Event().wait()


async def test_one_party_cannot_take_all_calls(identity_of: Identities) -> None:
    steve = Party(study="survey", role=Role.RESEARCHER, name="steve")
    services = [*answering(never), *answering(who, ROUND)]
    limits = Limits(calls_each=3)
    async with (
        build_server(identity_of(BOB), [RITA, steve], services, "localhost:0", limits=limits) as server,
        connect(identity_of(RITA), BOB, f"localhost:{server.port}") as greedy,
        connect(identity_of(steve), BOB, f"localhost:{server.port}") as modest,
    ):
        waiting = [asyncio.ensure_future(ask(greedy)) for _ in range(3)]
        await asyncio.sleep(0.3)
        with pytest.raises(UnavailableError, match="3 calls under way"):
            await ask(greedy)
        assert await ask(modest, ROUND) == steve.uri
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.3)
        assert await ask(greedy, ROUND) == RITA.uri


@pytest.mark.parametrize("seconds", [None, 21.0, 60.0])
async def test_a_node_that_never_reads_its_answer_holds_a_place_for_seconds_only(
    seconds: float | None, identity_of: Identities
) -> None:
    async with called(identity_of, answering(who, REPORT), FLEET, [FLEET]) as nodes:
        with pytest.raises(InvalidInputError, match="one later than 20 s"):
            await ask(nodes, REPORT, seconds=seconds)
        assert await ask(nodes, REPORT, seconds=10.0) == FLEET.uri  # as long as a node waits for an answer


async def test_the_nodes_have_a_limit_of_their_own(identity_of: Identities) -> None:
    services = [*answering(never, REPORT), *answering(never), *answering(who, ROUND)]
    limits = Limits(calls_each=1, calls_nodes=3)
    async with (
        build_server(identity_of(BOB), [RITA, FLEET], services, "localhost:0", limits=limits) as server,
        connect(identity_of(FLEET), BOB, f"localhost:{server.port}") as nodes,
        connect(identity_of(RITA), BOB, f"localhost:{server.port}") as researcher,
    ):
        waiting = [asyncio.ensure_future(ask(nodes, REPORT)) for _ in range(3)]
        await asyncio.sleep(0.3)
        with pytest.raises(UnavailableError, match="3 calls under way here already"):
            await ask(nodes, ROUND)
        # However many nodes report, others are served; and these have the limit of one party.
        assert await ask(researcher, ROUND) == RITA.uri
        waiting.append(asyncio.ensure_future(ask(researcher)))
        await asyncio.sleep(0.3)
        with pytest.raises(UnavailableError, match="1 calls under way here already"):
            await ask(researcher, ROUND)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.3)
        assert await ask(nodes, ROUND) == FLEET.uri


def test_all_nodes_together_leave_room_for_the_others() -> None:
    limits = Limits()
    assert limits.calls_nodes + 4 * limits.calls_each <= limits.calls


async def test_a_caller_is_refused_before_its_request_is_read(identity_of: Identities) -> None:
    async def silence() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with called(identity_of, answering(who), PEERS[0], PEERS) as channel:
        call = raw(channel).stream_unary(GET)(silence(), timeout=5.0)
        assert await asyncio.wait_for(call.code(), 2.0) is grpc.StatusCode.PERMISSION_DENIED


VALUE = "respondent 4711"


async def crash(_request: object, _context: object) -> None:
    raise ValueError(VALUE)


async def wrong_type(_request: object, _context: object) -> str:
    return VALUE


async def conflict(_request: object, _context: object) -> None:
    raise ConflictError("another spec is recorded", where="release r", remedy="Use another id.")


async def garbled(channel: grpc.aio.Channel) -> None:
    await raw(channel).unary_unary(GET)(b"\xff\xff\xff", timeout=5.0)


async def requestless(channel: grpc.aio.Channel) -> None:
    await raw(channel).stream_unary(GET)(iter([]), timeout=5.0)


async def failure_of(
    identity_of: Identities, behaviour: Callable[[Any, Any], Any], attempt: Callable[[grpc.aio.Channel], Any] = ask
) -> VeiltabError:
    async with called(identity_of, answering(behaviour)) as channel:
        try:
            await attempt(channel)
        except VeiltabError as error:
            return error
        except grpc.aio.AioRpcError as error:
            return error_from_rpc(error, "curator bob")
        raise AssertionError


@pytest.mark.parametrize("behaviour", [crash, wrong_type])
async def test_an_unexpected_error_tells_and_logs_no_value(
    behaviour: Callable[[Any, Any], Any], identity_of: Identities, caplog: pytest.LogCaptureFixture
) -> None:
    error = await failure_of(identity_of, behaviour)
    assert type(error) is VeiltabError
    assert VALUE not in str(error)
    number = error.problem.rpartition(" ")[2]
    assert f"incident {number}: " in caplog.text
    assert ".py:" in caplog.text
    assert VALUE not in caplog.text


async def test_a_handlers_refusal_arrives_as_it_was_raised(identity_of: Identities) -> None:
    error = await failure_of(identity_of, conflict)
    assert isinstance(error, ConflictError)
    assert str(error) == "curator bob, release r: another spec is recorded. Use another id."


@pytest.mark.parametrize("attempt", [garbled, requestless])
async def test_a_request_that_is_none_is_refused(
    attempt: Callable[[grpc.aio.Channel], Any], identity_of: Identities
) -> None:
    assert isinstance(await failure_of(identity_of, who, attempt), InvalidInputError)


async def test_a_refusal_is_logged_with_rpc_reason_and_caller(
    identity_of: Identities, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with called(identity_of, answering(who), PEERS[0], PEERS) as channel:
            with pytest.raises(DeniedError):
                await ask(channel)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("veiltab.common")] == [
        f"{GET} refused to {PEERS[0].uri}: DENIED: a curator may not call this RPC"
    ]
