"""A desk drives the tables of a release in order and some at a time, and chooses once which of them run again."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import refuses
from tests.made_receipts import made_tests
from tests.researcher.made_workload import PAIRS, ROWS, request_for_pairs, workload_with
from veiltab.common.errors import FailedReleaseError, NotReadyError, UnavailableError
from veiltab.common.release.messages.release_messages import release_to_proto
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.files import written_whole
from veiltab.common.study.file import Study
from veiltab.researcher.desk.workload import Workloads
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.records.store import ResearcherStore
from veiltab.v1 import curator_pb2

WORKLOAD = workload_with()
ID = WORKLOAD.release_id
READY, FAILED, EXPIRED = ReleaseState.READY, ReleaseState.FAILED, ReleaseState.EXPIRED


class Desk:
    """A desk whose tables end as they are told to, with curators that take a choice or do not answer."""

    def __init__(self, store: ResearcherStore, study: Study) -> None:
        self.store = store
        self.workloads = Workloads(study, store, {}, self.drive)
        self.ends: dict[int, ReleaseState] = {}
        self.begun: list[int] = []
        self.under_way = self.most = 0
        self.curators = ("alice", "bob")
        self.choices: list[tuple[str, tuple[int, ...]]] = []
        self.silent = False
        self.share = 1.0
        self.workload = WORKLOAD
        self.study = study

    async def drive(self, table: TableSpec, _parties: PartyLinks) -> None:
        """End a table: by default with counts in which age and salary go together, and sex with neither."""
        stored = self.store.release(table.release_id)
        if stored.state.finished:
            return
        self.begun.append(stored.number)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        names = stored.request.attributes
        counts = np.full(self.study.domain(names).shape, ROWS // 6 if len(names) > 1 else ROWS)
        if names == ("age", "salary"):
            counts = np.array([[0, 333], [333, 0], [334, 0]])
        counts[0, 0] += ROWS - counts.sum()
        with written_whole(self.store.files.histogram(table.release_id)) as file:
            file.write(counts.astype("<i8").data)
        self.store.record_counts(table.release_id, names, {}, {})
        tests = made_tests(replace(table, canaries=1024), share=self.share)
        self.store.set_receipts(table.release_id, tests.all_receipts())
        end = self.ends.get(stored.number, READY)
        self.store.finish(table.release_id, end, "" if end is READY else "why it ended")
        self.under_way -= 1

    async def choose_tables(self, curator: str, release_id: str, numbers: list[int]) -> None:
        assert release_id == ID
        if self.silent and curator == "bob":
            raise UnavailableError("bob is away")
        assert self.store.has_chosen(ID), "a choice was sent before it was recorded"
        self.choices.append((curator, tuple(numbers)))

    def advance(self) -> None:
        """Take the steps of the release that can be taken."""
        answer = curator_pb2.GetProposalResponse(spec=release_to_proto(self.workload))
        parties = cast("PartyLinks", self)
        stored = self.store.release(ID)
        asyncio.run(self.workloads.advance(stored, {"alice": answer, "bob": answer}, parties))

    def states(self) -> dict[int, ReleaseState]:
        return {one.number: one.state for one in self.store.tables(ID)}


@pytest.fixture
def desk(tmp_path: Path, study: Study) -> Iterator[Desk]:
    with closing(ResearcherStore(tmp_path, study)) as store:
        store.start(request_for_pairs(), "pairs", 1)
        store.set_state(ID, ReleaseState.CHARGED)
        yield Desk(store, study)


def test_nothing_runs_before_every_curator_has_charged(desk: Desk) -> None:
    desk.store.set_state(ID, ReleaseState.PLANNED)
    with refuses(NotReadyError, where="release 00000000000000000000000000000001"):
        desk.advance()
    assert (desk.begun, desk.store.tables(ID), desk.store.release(ID).planned) == ([], (), None)


def test_what_was_not_asked_for_never_runs(desk: Desk) -> None:
    desk.workload = workload_with(repeats=1)
    with pytest.raises(FailedReleaseError, match="another release than was asked for: repeats"):
        desk.advance()
    assert desk.begun == []


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_tables_run_in_order_some_at_a_time(desk: Desk, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("veiltab.researcher.desk.workload._AT_ONCE", at_once)
    desk.advance()
    assert desk.begun[:3] == [0, 1, 2]
    assert desk.most == min(at_once, 3)
    assert desk.store.release(ID).state is READY
    assert [(one.number, one.attributes, one.is_repeat) for one in desk.store.tables(ID)][:3] == [
        (number, pair, False) for number, pair in enumerate(PAIRS)
    ]


def test_the_strongest_dependences_run_again(desk: Desk) -> None:
    desk.advance()
    again = [one for one in desk.store.tables(ID) if one.is_repeat]
    assert len(again) == 2
    assert ("age", "salary") in {one.attributes for one in again}
    numbers = tuple(one.number - 3 for one in again)
    assert desk.choices == [("alice", numbers), ("bob", numbers)]


def test_noise_left_out_over_all_tables_ends_the_release_and_shows_no_count(desk: Desk) -> None:
    desk.share = 0.0
    words = (
        r"server cloud: the server did not add the noise of the release: over 3 tables together amount \(all columns\)"
    )
    with pytest.raises(FailedReleaseError, match=words) as failed:
        desk.advance()
    assert re.findall(r"\d+", str(failed.value)) == ["3"]
    assert sorted(desk.begun) == [0, 1, 2]
    assert not desk.choices
    assert not desk.workloads.has_first_results(ID)
    assert desk.store.release(ID).state is not READY


def test_a_choice_is_made_once_whoever_does_not_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.silent = True
    with pytest.raises(UnavailableError):
        desk.advance()
    assert sorted(desk.begun) == [0, 1, 2]
    (_, chosen), *_ = desk.choices

    def other(*_: object, **__: object) -> tuple[tuple[str, ...], ...]:
        raise AssertionError("it is chosen again")

    monkeypatch.setattr("veiltab.researcher.model.choosing.chosen_tables", other)
    desk.silent = False
    desk.advance()
    assert {numbers for _, numbers in desk.choices} == {chosen}
    assert desk.store.release(ID).state is READY


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("end", [FAILED, EXPIRED, ReleaseState.DENIED])
def test_a_table_without_a_result_ends_the_release(desk: Desk, number: int, end: ReleaseState) -> None:
    desk.ends = {number: end}
    desk.advance()
    ended = desk.store.release(ID)
    assert (ended.state, ended.failure) == (end, f"table {', '.join(PAIRS[number])}: why it ended")
    assert all(state.finished for state in desk.states().values())
    assert desk.choices == []


@pytest.mark.parametrize(("end", "whole"), [(EXPIRED, READY), (FAILED, FAILED)])
def test_of_what_runs_again_only_time_may_run_out(desk: Desk, end: ReleaseState, whole: ReleaseState) -> None:
    desk.ends = dict.fromkeys(range(3, 6), end)
    desk.advance()
    assert desk.store.release(ID).state is whole
    assert [desk.states()[number] for number in range(3)] == [READY] * 3


def test_after_the_deadline_the_first_phase_stands(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.researcher.desk.workload.time.time", lambda: float(WORKLOAD.deadline + 1))
    desk.advance()
    assert desk.store.release(ID).state is READY
    assert (desk.choices, list(desk.states())) == ([], [0, 1, 2])


def test_what_ran_is_not_run_again(desk: Desk, study: Study) -> None:
    desk.silent = True
    with pytest.raises(UnavailableError):
        desk.advance()
    desk.workloads = Workloads(study, desk.store, {}, desk.drive)
    desk.silent = False
    desk.begun.clear()
    desk.advance()
    assert sorted(desk.begun) == [one.number for one in desk.store.tables(ID) if one.is_repeat]


Record = Callable[[ResearcherStore], None]


@pytest.mark.parametrize(
    "again",
    [
        lambda store: store.record_tables(WORKLOAD),
        lambda store: store.record_choice(WORKLOAD, [0]),
        lambda store: store.record_choice(WORKLOAD, [1, 2]),
    ],
)
def test_tables_and_choices_are_recorded_once(desk: Desk, again: Record) -> None:
    store = desk.store
    store.record_tables(WORKLOAD)
    store.record_choice(WORKLOAD, [1])
    recorded = store.tables(ID)
    assert [one.number for one in recorded] == [0, 1, 2, 4]
    again(store)
    assert store.tables(ID) == recorded
    assert store.release(ID).planned == WORKLOAD
    assert [one.request.release_id for one in store.releases()] == [ID] == list(store.unfinished())
    assert store.counts() == {"charged": 1}
    table: Any = store.release(WORKLOAD.table_id(4))
    assert (table.part_of, table.number, table.request.attributes) == (ID, 4, ("sex", "salary"))


def test_an_end_ends_the_tables_that_are_not_over(desk: Desk) -> None:
    desk.store.record_tables(WORKLOAD)
    desk.store.finish(WORKLOAD.table_id(1), READY)
    desk.store.finish(ID, FAILED, "why")
    assert list(desk.states().values()) == [FAILED, READY, FAILED]
    assert {one.failure for one in desk.store.tables(ID)} == {"", "why"}
