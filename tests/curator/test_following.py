"""Curators follow each other's releases."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import grpc
import pytest

from tests.conftest import refuses, request_with
from tests.curator.told_curators import ID, Village, names_of, said_of, village_fixture  # noqa: F401 - fixtures
from tests.worlds.parties import BOB
from veiltab.common.errors import InvalidInputError, NotReadyError, TransferError, UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.chunks import chunk_messages, streamed
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.peer import Peer
from veiltab.common.rpc.waiting.changes import Changes
from veiltab.common.study.file import Study
from veiltab.common.study.limits import MAX_RESPONDENTS
from veiltab.curator.party.service import _follow
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.subscriptions import PeerAnswer
from veiltab.curator.progress.release_record import Progress
from veiltab.curator.release.driver import CuratorDriver
from veiltab.curator.release.rpc_answers import RpcAnswers
from veiltab.v1 import curator_peer_pb2


def followed(village: Village, *names: tuple[str, ...]) -> AsyncGenerator[dict[str, PeerAnswer], None]:
    """Let alice follow bob."""
    return village.peers("alice").follow("bob", names_of(*names))


async def test_what_is_followed_is_said_at_once_and_after_each_change(village: Village) -> None:
    bob, other = village.parts["bob"], "f" * 32
    bob.store.releases.add(request_with(), 1)
    async with asyncio.timeout(20), aclosing(followed(village, (ID, other))) as answers:
        said = await anext(answers)
        assert isinstance(said[ID], Progress)
        assert isinstance(said[other], NotReadyError)
        RpcAnswers(bob).propose(request_with(release_id=other, deadline=int(time.time()) + 60), village.study.digest)
        CuratorDriver(bob)._say_what_was_left_unsaid(other)  # as whoever drives it does when it has to wait
        said = await anext(answers)
        assert list(said) == [other]
        assert isinstance(said[other], Progress)
        bob.store.releases.set_state(ID, ReleaseState.FAILED, "why")
        bob.changes.notify(ID)
        failed = (await anext(answers))[ID]
        assert isinstance(failed, Progress)
        assert failed.failure == "why"
        bob.changes.notify(ID)  # it is over, and said
        bob.changes.notify(other)
        assert list(await anext(answers)) == [other]
        bob.changes.close()
        assert await anext(answers, None) is None


async def test_a_call_that_follows_ends_so_that_the_next_one_hears_of_all_anew(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.party.service._FOLLOWED_SECONDS", 77.0)
    ends: list[Callable[[], None]] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def later(seconds: float, callback: Callable[..., None], *arguments: Any) -> asyncio.TimerHandle:  # noqa: ANN401 - of any kind
        if seconds == 77.0:
            ends.append(callback)
        return call_later(seconds, callback, *arguments)

    monkeypatch.setattr(loop, "call_later", later)
    async with asyncio.timeout(20), aclosing(followed(village, (ID,))) as answers:
        assert list(await anext(answers)) == [ID]
        (end,) = ends
        end()  # as if 77 seconds were over
        assert await anext(answers, None) is None


async def test_one_message_and_one_call_follow_so_many_releases(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.curator.party.service.MOST_FOLLOWED", 300)
    many = tuple(f"{number:032x}" for number in range(301))
    for names in [(many[:257],), (many[:256], many[256:])]:
        async with asyncio.timeout(20), aclosing(followed(village, *names)) as answers:
            with pytest.raises(InvalidInputError, match="at most 256 releases, and one call 300"):
                _ = [said async for said in answers]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (ID, "a release is named twice in one message"),
        *((name, "not 32 hexadecimal digits") for name in ("0" * 31, "0" * 31 + "G", "0" * 1_000_000)),
    ],
    ids=["twice", "short", "letter", "long"],
)
def test_a_release_that_is_named_twice_is_not_said_twice(village: Village, name: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        said_of(village, ID, name)


def test_a_call_that_names_releases_again_is_read_no_further_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses, read = list[float](), list[int]()

    async def slept(seconds: float) -> None:
        pauses.append(seconds)

    async def requests() -> AsyncIterator[curator_peer_pb2.FollowProgressRequest]:
        for number, name in enumerate((ID, "f" * 32, ID, ID)):
            read.append(len(pauses))
            yield curator_peer_pb2.FollowProgressRequest(release_ids=[name])
            assert len(pauses) == max(0, number - 1)

    monkeypatch.setattr("veiltab.curator.party.service.asyncio.sleep", slept)
    with Changes().followed(Party(study="survey", role=Role.CURATOR, name="bob")) as one:
        asyncio.run(_follow(requests(), one))
    assert (pauses, read) == ([1.0, 1.0], [0, 0, 0, 1])


async def test_a_curator_that_ends_lets_nobody_follow_it_any_more(village: Village) -> None:
    village.parts["bob"].changes.close()
    async with asyncio.timeout(20), aclosing(followed(village, (ID,))) as answers:
        assert [said async for said in answers] == []


def test_a_curator_that_cannot_be_followed_says_why(village: Village) -> None:
    def refuse(_: object) -> NoReturn:
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())

    village.twist["bob", "FollowProgress"] = refuse
    with pytest.raises(UnavailableError, match="no connection"):
        said_of(village, ID)


def test_an_answer_about_more_releases_than_one_has_is_refused(village: Village) -> None:
    for releases, unknown in ((257, 0), (0, 257), (200, 57)):
        village.twist["bob", "FollowProgress"] = lambda _, releases=releases, unknown=unknown: (  # type: ignore[misc]
            curator_peer_pb2.FollowProgressResponse(
                releases=[curator_peer_pb2.ReleaseProgress()] * releases, unknown=[ID] * unknown
            )
        )
        with pytest.raises(InvalidInputError, match="curator bob: the answer is about more than 256 releases"):
            said_of(village, ID)


@pytest.mark.parametrize(
    ("length", "answers_a_call", "read"), [(32, 1000, 377), (409_600, 1000, 4), (32, 1, 19)], ids=["", "long", "calls"]
)
def test_no_more_is_read_of_a_curator_in_a_second_than_a_few_hundred_answers(
    village: Village, monkeypatch: pytest.MonkeyPatch, length: int, answers_a_call: int, read: int
) -> None:
    """A long answer counts for a hundred, and a call for twenty."""
    peers, waits = village.peers("alice"), list[float]()
    answer = curator_peer_pb2.FollowProgressResponse(unknown=["f" * length])

    def called(_requests: object, timeout: float) -> object:
        left = iter([answer] * answers_a_call)

        async def next_one() -> object:
            return next(left, grpc.aio.EOF)

        return SimpleNamespace(read=next_one, cancel=lambda: timeout)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async def reading() -> int:
        number = 0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 7.0)
        while True:
            async for _ in peers.follow("bob", names_of((ID,))):
                if waits:
                    return number
                number += 1

    peers.curators["bob"].stub = cast("Any", SimpleNamespace(FollowProgress=called))
    monkeypatch.setattr("veiltab.curator.peers.calls.asyncio.sleep", wait)
    assert asyncio.run(reading()) == read
    assert waits[0] == 1


async def test_a_curator_that_is_followed_and_says_nothing_is_away(
    village: Village, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("ASK_SECONDS", "LONGEST_WAIT"):
        monkeypatch.setattr(f"veiltab.curator.peers.calls.{limit}", 0.005)
    async with aclosing(followed(village)) as answers:
        with refuses(UnavailableError, where="curator bob"):
            await anext(answers)


class Tokens:
    """A peer's stream of tokens from the byte that it is asked for on."""

    def __init__(self, data: bytes, total: int | None = None) -> None:
        self.data = data
        self.total = len(data) if total is None else total
        self.asked: list[int] = []

    def FetchTokens(self, request: curator_peer_pb2.FetchTokensRequest, timeout: float) -> "Tokens":  # noqa: N802 - the product's name
        assert timeout > 0
        self.asked.append(request.offset)
        return self

    async def __aiter__(self) -> AsyncIterator[curator_peer_pb2.FetchTokensResponse]:
        async for total, chunk in streamed(chunk_messages(self.data, self.asked[-1]), self.total, self.asked[-1]):
            yield curator_peer_pb2.FetchTokensResponse(total=total, chunk=chunk)

    def cancel(self) -> None:
        """Take notice."""


def fetched(study: Study, stub: Tokens, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Fetch tokens of bob from a byte on."""
    peers = object.__new__(Peers)
    peers._study, peers.curators = study, {"bob": Peer(BOB, cast("Any", "bob"), lambda _: cast("Any", stub))}
    return peers.tokens("bob", "a" * 32, offset, admit)


@pytest.mark.parametrize("offset", [0, 16, 2_000_000, 3_000_000])
async def test_tokens_are_streamed_from_any_byte(study: Study, offset: int) -> None:
    data, totals = bytes(range(250)) * 12_000, set[int]()
    stub = Tokens(data)
    assert b"".join([piece async for piece in fetched(study, stub, offset, totals.add)]) == data[offset:]
    assert stub.asked == [offset]
    assert totals == {len(data)}


@pytest.mark.parametrize("most", [MAX_RESPONDENTS, 5000])
async def test_tokens_of_more_respondents_than_a_table_may_have_are_not_taken(study: Study, most: int) -> None:
    small, data, totals = replace(study, maximum_respondents=most), bytes(16), list[int]()
    assert await anext(fetched(small, Tokens(data, 16 * most), 0, totals.append)) == data
    with pytest.raises(TransferError, match=f"longer than the {16 * most} bytes"):
        await anext(fetched(small, Tokens(data, 16 * most + 16), 0, totals.append))
    assert totals == [16 * most]
