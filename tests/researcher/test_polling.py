"""When a desk asks its curators, and when it pauses: questions are counted, not seconds."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import refuses, request_with, spec_with
from tests.worlds.loops import turns
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.messages.release_messages import release_to_proto, spec_to_proto, state_to_proto
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.waiting.changes import LONGEST_WAIT
from veiltab.common.study.file import Study
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.parties.polling import Polling, statement_of
from veiltab.researcher.records.releases import ResearcherRelease
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import curator_pb2, release_pb2, server_release_pb2

State = ReleaseState | VeiltabError | curator_pb2.GetProposalResponse
ID = "0" * 31 + "1"
AWAY = UnavailableError("no connection", where="curator bob")


class Curators:
    """Alice and bob, who answer a first question at once, and every other one when they are further.

    Args:
        others: more of them.
        wait: answer later questions when the state has changed.
        spec: what they say of the release.
    """

    def __init__(self, *others: str, wait: bool = True, spec: TableSpec | None = None) -> None:
        self.curators = dict.fromkeys(("alice", "bob", *others))
        self.wait = wait
        self.spec = None if spec is None else release_to_proto(release_of(spec))
        self.states: dict[str, State] = dict.fromkeys(self.curators, ReleaseState.REQUESTED)
        self.asked: list[tuple[str, float]] = []
        self._changed = asyncio.Condition()

    async def ask_curator(
        self, name: str, _: ResearcherRelease, seconds: float, *, is_first: bool
    ) -> curator_pb2.GetProposalResponse:
        assert is_first is (seconds < LONGEST_WAIT)
        self.asked.append((name, seconds))
        before = self.states[name]
        async with self._changed:
            if self.wait and seconds == LONGEST_WAIT:
                await self._changed.wait_for(lambda: self.states[name] is not before)
        said = self.states[name]
        if isinstance(said, VeiltabError):
            raise said
        if isinstance(said, curator_pb2.GetProposalResponse):
            return said
        return curator_pb2.GetProposalResponse(state=state_to_proto(said), failure="no", spec=self.spec)

    async def move(self, name: str, state: State) -> None:
        async with self._changed:
            self.states[name] = state
            self._changed.notify_all()


@pytest.fixture
def store(tmp_path: Path, study: Study) -> Iterator[ResearcherStore]:
    with closing(ResearcherStore(tmp_path, study)) as store:
        yield store


@pytest.fixture
def polling(study: Study, store: ResearcherStore) -> Polling:
    return Polling(study, store)


@pytest.fixture
def stored(store: ResearcherStore) -> ResearcherRelease:
    return store.start(request_with(), "", 1)[0]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how patient each pause was."""
    paused: list[int] = []

    async def pause_after(attempt: int) -> None:
        paused.append(attempt)
        await asyncio.sleep(0)

    monkeypatch.setattr("veiltab.researcher.parties.polling.pause_after", pause_after)
    return paused


async def all_answers(
    polling: Polling, stored: ResearcherRelease, curators: Curators
) -> dict[str, curator_pb2.GetProposalResponse]:
    """Ask until every curator has answered."""
    while True:
        with suppress(NotReadyError):
            return await polling.ask_curators(stored, cast("PartyLinks", curators))


@pytest.mark.parametrize(
    ("states", "is_asked"),
    [
        ((ReleaseState.READY, ReleaseState.PERTURBING), False),
        ((ReleaseState.READY, ReleaseState.UPLOADING), False),
        ((ReleaseState.PERTURBING, ReleaseState.UPLOADING), True),
        ((ReleaseState.READY, ReleaseState.READY), True),
        ((ReleaseState.READY, ReleaseState.EXPIRED), True),
    ],
)
async def test_the_server_is_not_asked_while_a_curator_still_tests_it(
    polling: Polling, stored: ResearcherRelease, states: tuple[ReleaseState, ReleaseState], *, is_asked: bool
) -> None:
    asked = list[str]()

    async def ask_server(stored: ResearcherRelease) -> None:
        asked.append(stored.request.release_id)
        raise AWAY

    curators = Curators()
    await all_answers(polling, stored, curators)
    answers = {
        name: curator_pb2.GetProposalResponse(state=state_to_proto(state))
        for name, state in zip(curators.curators, states, strict=True)
    }
    with pytest.raises(UnavailableError if is_asked else NotReadyError):
        await polling.ask_server(stored, answers, cast("PartyLinks", SimpleNamespace(ask_server=ask_server)))
    assert asked == [ID] * is_asked


async def test_curators_are_waited_for_until_they_have_nothing_left_to_do(
    polling: Polling, stored: ResearcherRelease, pauses: list[int]
) -> None:

    curators = Curators()
    parties = cast("PartyLinks", curators)
    first = await all_answers(polling, stored, curators)
    assert set(first) == {"alice", "bob"}
    await polling.pause(ID)
    later = asyncio.create_task(polling.ask_curators(stored, parties))
    await turns()
    assert not later.done()
    assert curators.asked[2:] == [("alice", LONGEST_WAIT), ("bob", LONGEST_WAIT)]
    await curators.move("alice", ReleaseState.READY)
    assert (await later)["alice"].state == state_to_proto(ReleaseState.READY)
    await polling.pause(ID)
    # Alice has nothing left to do, and bob's question is still under way.
    last = asyncio.create_task(polling.ask_curators(stored, parties))
    await turns()
    assert len(curators.asked) == 4
    await curators.move("bob", ReleaseState.READY)
    assert {one.state for one in (await last).values()} == {state_to_proto(ReleaseState.READY)}
    assert pauses == []


async def test_answers_without_news_are_followed_by_pauses(
    polling: Polling, stored: ResearcherRelease, pauses: list[int]
) -> None:

    curators = Curators(wait=False)
    for _ in range(4):
        await polling.ask_curators(stored, cast("PartyLinks", curators))
        await polling.pause(ID)
    assert pauses == [0, 1, 2]
    # One that goes back and forth is no news.
    for state in (ReleaseState.APPROVED, ReleaseState.REQUESTED, ReleaseState.APPROVED):
        await curators.move("alice", state)
        await polling.ask_curators(stored, cast("PartyLinks", curators))
        await polling.pause(ID)
    assert pauses == [0, 1, 2, 0, 1]


NOT_NEEDED = [
    AWAY,
    NotReadyError("does not know the table"),
    DeniedError("not here"),
    *(state for state in ReleaseState if state is not ReleaseState.READY),
]


@pytest.mark.parametrize("third", NOT_NEEDED, ids=str)
async def test_a_release_that_is_ready_where_its_columns_are_needs_nobody_else(
    polling: Polling, stored: ResearcherRelease, pauses: list[int], third: ReleaseState | VeiltabError
) -> None:

    curators, ready = Curators("carol", wait=False, spec=spec_with()), state_to_proto(ReleaseState.READY)
    for name in ("alice", "bob"):
        await curators.move(name, ReleaseState.READY)
    await curators.move("carol", third)
    for _ in range(3):
        answers = await all_answers(polling, stored, curators)
        assert {name: one.state for name, one in answers.items()} == {"alice": ready, "bob": ready}
        await polling.pause(ID)
    state, why = polling.of(ID)["curator carol"]
    assert (why == str(third)) if isinstance(third, VeiltabError) else (state is third)
    # Of both of them it needs the keys, so it waits, and says for whom.
    await curators.move("bob", AWAY)
    while polling.of(ID)["curator bob"][0] is ReleaseState.READY:
        with suppress(VeiltabError):
            await polling.ask_curators(stored, cast("PartyLinks", curators))
        await polling.pause(ID)
    assert polling.of(ID)["curator bob"] == (ReleaseState.REQUESTED, str(AWAY))
    assert pauses


UNREADABLE: dict[str, Callable[[TableSpec], curator_pb2.GetProposalResponse]] = {
    "state": lambda spec: curator_pb2.GetProposalResponse(state=99, spec=release_to_proto(release_of(spec))),  # type: ignore[arg-type]
    "spec": lambda _: curator_pb2.GetProposalResponse(
        state=state_to_proto(ReleaseState.READY), spec=release_pb2.ReleaseSpec(release_id=ID)
    ),
}


@pytest.mark.parametrize("unreadable", UNREADABLE)
async def test_an_answer_that_cannot_be_read_is_a_refusal_of_whoever_sent_it(
    polling: Polling, stored: ResearcherRelease, pauses: list[int], unreadable: str
) -> None:
    said, curators = UNREADABLE[unreadable](spec_with()), Curators("carol", wait=False, spec=spec_with())
    await curators.move("carol", said)
    with refuses(InvalidInputError, where="curator carol"):
        await all_answers(polling, stored, curators)
    for name in ("alice", "bob"):
        await curators.move(name, ReleaseState.READY)
    polling.stop_asking(ID)
    assert set(await all_answers(polling, stored, curators)) == {"alice", "bob"}
    polling.stop_asking(ID)
    await curators.move("bob", said)
    with refuses(InvalidInputError, where="curator bob"):
        await all_answers(polling, stored, curators)
    assert not pauses


def only_of(spec: TableSpec, curator: str) -> TableSpec:
    """Return a spec of one curator's columns."""
    return replace(spec, columns=spec.columns_of(curator))


PERTURBING = server_release_pb2.GetReleaseResponse(state=state_to_proto(ReleaseState.PERTURBING))


@pytest.mark.parametrize("end", [ReleaseState.DENIED, ReleaseState.FAILED, DeniedError("not you")], ids=str)
@pytest.mark.parametrize(
    "server", [NotFoundError("unknown"), UnavailableError("away"), PERTURBING, None], ids=lambda one: str(one)[:7]
)
async def test_who_says_that_a_release_is_ready_hides_no_end_of_it(
    polling: Polling,
    stored: ResearcherRelease,
    pauses: list[int],
    end: ReleaseState | VeiltabError,
    server: VeiltabError | server_release_pb2.GetReleaseResponse | None,
) -> None:
    spec = spec_with()
    published = server_release_pb2.GetReleaseResponse(
        state=state_to_proto(ReleaseState.READY), spec=spec_to_proto(spec)
    )

    async def ask_server(_: ResearcherRelease) -> server_release_pb2.GetReleaseResponse:
        if isinstance(server, VeiltabError):
            raise server
        return server or published

    curators = Curators(wait=False, spec=only_of(spec, "alice"))
    await curators.move("alice", ReleaseState.READY)
    links = cast("PartyLinks", SimpleNamespace(curators=curators.curators, ask_server=ask_server))
    answers = await all_answers(polling, stored, curators)
    assert set(answers) == {"alice"}
    # Bob's answer may come later than alice's.
    await curators.move("bob", end)
    await all_answers(polling, stored, curators)
    answers = await all_answers(polling, stored, curators)
    assert set(answers) == {"alice"}
    if server is None:
        assert (await polling.ask_server(stored, answers, links)).spec == spec
    else:
        waits = isinstance(server, UnavailableError)
        expected = UnavailableError if waits else type(end) if isinstance(end, VeiltabError) else OF_END[end]
        with pytest.raises(expected):
            await polling.ask_server(stored, answers, links)
    # Whoever no longer says that it has ended, has not.
    await curators.move("bob", ReleaseState.PERTURBING)
    for _ in range(2):
        await all_answers(polling, stored, curators)
    with suppress(NotReadyError, UnavailableError):
        await polling.ask_server(stored, answers, links)
    assert not pauses


OF_END = {ReleaseState.DENIED: DeniedError, ReleaseState.FAILED: FailedReleaseError}


async def test_of_several_tables_no_spec_of_one_hides_how_they_stand_elsewhere(
    polling: Polling, store: ResearcherStore
) -> None:
    spec = spec_with()
    request = request_with(tables=(("sex",), ("salary",)), delta=Decimal("1e-6"))
    several = store.start(request, "", 1)[0]

    curators = Curators(wait=False, spec=only_of(spec, "alice"))
    await curators.move("alice", ReleaseState.READY)
    await curators.move("bob", ReleaseState.DENIED)
    with pytest.raises(DeniedError):
        await all_answers(polling, several, curators)


async def test_what_is_no_statement_is_none(polling: Polling, stored: ResearcherRelease) -> None:
    spec, amiss = spec_to_proto(spec_with()), release_pb2.SignedStatement(text="{}", certificate=b"\xff")
    ready = state_to_proto(ReleaseState.READY)

    async def ask_server(_: ResearcherRelease) -> server_release_pb2.GetReleaseResponse:
        return server_release_pb2.GetReleaseResponse(state=ready, spec=spec, statement=amiss)

    await all_answers(polling, stored, Curators())
    answers = {"alice": curator_pb2.GetProposalResponse(state=ready, table=spec, statement=amiss)}
    links = cast("PartyLinks", SimpleNamespace(ask_server=ask_server))
    assert (await polling.ask_server(stored, answers, links)).statement is None
    assert statement_of(answers["alice"]) is None


async def test_who_hangs_keeps_nobody_waiting_who_needs_nothing_of_it(
    polling: Polling, stored: ResearcherRelease
) -> None:

    curators = Curators("carol", spec=spec_with())
    await all_answers(polling, stored, curators)  # the next questions wait for a change
    for name in ("alice", "bob"):
        asking = asyncio.create_task(all_answers(polling, stored, curators))
        await turns()
        await curators.move(name, ReleaseState.READY)
        answers = await asking
    assert set(answers) == {"alice", "bob"}


async def test_before_any_question_there_is_a_pause_too(polling: Polling, pauses: list[int]) -> None:

    await polling.pause(ID)
    await polling.pause(ID)
    assert pauses == [0, 1]


async def test_who_is_away_is_asked_after_a_pause_and_who_refuses_ends_the_release(
    polling: Polling, stored: ResearcherRelease, pauses: list[int]
) -> None:

    curators = Curators()
    parties = cast("PartyLinks", curators)
    await curators.move("bob", AWAY)
    with pytest.raises(UnavailableError):
        await polling.ask_curators(stored, parties)
    assert polling.of(ID)["curator bob"] == (ReleaseState.REQUESTED, str(AWAY))
    await curators.move("bob", ReleaseState.DENIED)
    with pytest.raises(DeniedError):
        await polling.ask_curators(stored, parties)
    polling.stop_asking(ID)
    await turns()
    assert len(asyncio.all_tasks()) == 1
    assert pauses == []


async def test_an_answer_that_nobody_foresaw_is_raised(polling: Polling, stored: ResearcherRelease) -> None:

    curators = Curators()
    await curators.move("alice", VeiltabError("an unexpected error"))
    with pytest.raises(VeiltabError, match="an unexpected error"):
        await polling.ask_curators(stored, cast("PartyLinks", curators))
