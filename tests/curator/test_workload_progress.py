"""The steps of a release of several tables."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from tests.conftest import refuses, request_with
from tests.curator.made_records import deny
from tests.curator.planned_tables import (  # noqa: F401 - fixtures
    DEADLINE,
    OWN,
    QUESTION,
    REQUEST,
    at,
    progress,
    release,
    workload_fixture,
)
from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    ExpiredReleaseError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.spec import ReleaseSpec, table_id
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.planning.plans import charge_of, planned_release
from veiltab.curator.progress.progress import APPROVED, check_key_may_leave
from veiltab.curator.progress.release_record import End, GrantDecision, Step, Wait
from veiltab.curator.progress.table_steps import MOST_TABLES_AT_A_TIME, TableState, check_choice, next_step_of_tables
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"


READY = dict.fromkeys(range(6), TableState(state=ReleaseState.READY))


def test_before_the_charge_the_steps_are_those_of_any_release(workload: ReleaseSpec) -> None:
    stored = release(workload, state=ReleaseState.PLANNED)
    mine = replace(OWN, is_charged=False)
    assert next_step_of_tables(stored, mine, (progress(charged=False),), {}, 1) is Step.RESERVE
    other = progress(spec_digest=b"x" * 32)
    outcome = next_step_of_tables(stored, mine, (other,), {}, 1)
    assert isinstance(outcome, End)
    assert "planned different releases" in outcome.reason
    same = progress(spec_digest=workload.digest())
    assert next_step_of_tables(stored, replace(mine, is_reserved=True), (same,), {}, 1) is Step.CHARGE


def test_a_release_is_ready_with_all_its_tables(workload: ReleaseSpec) -> None:
    def after(tables: dict[int, TableState], choice: tuple[int, ...] | None = None) -> Step | Wait | End:
        return next_step_of_tables(release(workload, choice=choice), OWN, (progress(),), tables, 1)

    assert after(READY | {2: at(ReleaseState.PERTURBING)}) == Wait("5 of 6 tables are ready")
    assert after(READY) == Wait("researcher rosa: has not chosen the tables that run a second time yet")
    assert after(READY, ()) is Step.FINISH
    assert after(READY | {7: at(ReleaseState.PLANNED)}, (1,)) == Wait("6 of 7 tables are ready")
    assert after(READY | {7: at(ReleaseState.READY)}, (1,)) is Step.FINISH
    once = replace(workload, repeated=(), repeats=0)
    assert next_step_of_tables(release(once), OWN, (progress(),), READY, 1) is Step.FINISH
    for state in (ReleaseState.FAILED, ReleaseState.DENIED):
        assert after(READY | {7: at(state)}, (1,)) == End(ReleaseState.FAILED, f"table age, job: {state.value}")
        assert after(READY | {7: at(state, "no noise")}, (1,)) == End(ReleaseState.FAILED, "table age, job: no noise")


def test_the_first_results_stand_when_time_runs_out_by_another_clock(workload: ReleaseSpec) -> None:
    stored = release(workload, choice=(0, 1))
    late, runs = at(ReleaseState.EXPIRED, "curator bob: the deadline passed"), at(ReleaseState.PERTURBING)

    def after(tables: dict[int, TableState]) -> Step | Wait | End:
        return next_step_of_tables(stored, OWN, (progress(state=ReleaseState.READY),), tables, DEADLINE - 1)

    assert after(READY | {6: late, 7: runs}) == Wait("6 of 8 tables are ready")
    assert after(READY | {6: late, 7: late}) is Step.FINISH
    assert after(READY | {6: late, 7: at(ReleaseState.READY)}) is Step.FINISH
    failed = after(READY | {6: late, 7: at(ReleaseState.FAILED, "no noise")})
    assert failed == End(ReleaseState.FAILED, "table age, job: no noise")
    assert isinstance(after(READY | {0: late}), End)


def test_once_tables_are_open_who_is_away_is_no_reason_to_wait(workload: ReleaseSpec) -> None:
    away = UnavailableError("no connection", where="curator carol")
    stored = release(workload, choice=())

    def after(tables: Mapping[int, TableState]) -> Step | Wait | End:
        return next_step_of_tables(stored, OWN, away, tables, 1)

    assert after(READY) is Step.FINISH
    assert after(READY | {3: at(ReleaseState.PERTURBING)}) == Wait("5 of 6 tables are ready")
    # Before that, she is needed.
    for state in (ReleaseState.APPROVED, ReleaseState.PLANNED, ReleaseState.CHARGED):
        assert next_step_of_tables(replace(stored, state=state), OWN, away, {}, 1) == Wait(str(away))
    amiss = IntegrityError("bad", where="curator carol")
    assert isinstance(next_step_of_tables(stored, OWN, amiss, READY, 1), End)


def test_at_the_deadline_the_first_results_stand_if_they_are_whole(workload: ReleaseSpec) -> None:
    late = DEADLINE + 1
    stored = release(workload, choice=(1,), waiting_for="table age: x")
    away = UnavailableError("no connection", where="curator bob")
    for peers in ((progress(),), away):
        unfinished = READY | {7: at(ReleaseState.EXPIRED)}
        assert next_step_of_tables(stored, OWN, peers, unfinished, late) is Step.FINISH
        assert next_step_of_tables(replace(stored, choice=None), OWN, peers, READY, late) is Step.FINISH
        ended = next_step_of_tables(stored, OWN, peers, READY | {2: at(ReleaseState.EXPIRED)}, late)
        assert ended == End(ReleaseState.EXPIRED, "the deadline passed; table age: x")


def test_a_choice_fits_what_was_charged_and_is_made_once(workload: ReleaseSpec) -> None:
    stored = release(workload)
    assert check_choice(stored, (0, 5))
    assert check_choice(stored, ())
    for state in (ReleaseState.UPLOADING, ReleaseState.READY):
        assert not check_choice(replace(stored, choice=(0, 5), state=state), (0, 5))
    refused: tuple[tuple[dict[str, Any], tuple[int, ...], type[VeiltabError]], ...] = (
        *(({}, bad, InvalidInputError) for bad in ((0, 1, 2), (6,), (1, 0), (1, 1))),
        ({"choice": ()}, (0,), ConflictError),
        ({"planned": None, "state": ReleaseState.APPROVED}, (0,), NotReadyError),
        ({"state": ReleaseState.CHARGED}, (0,), NotReadyError),
        ({"state": ReleaseState.READY}, (0,), ExpiredReleaseError),
        ({"state": ReleaseState.FAILED}, (0,), DeniedError),
        ({"planned": replace(workload, repeated=(), repeats=0)}, (0,), InvalidInputError),
    )
    for changes, choice, kind in refused:
        with pytest.raises(kind):
            check_choice(replace(stored, **changes), choice)


@pytest.fixture
def opened(store: CuratorStore, workload: ReleaseSpec) -> CuratorStore:
    """A store with a charged release whose tables are open."""
    store.releases.add(REQUEST, 1, "d")
    store.decisions.decide(ID, (GrantDecision(attribute="age", verdict=APPROVED, expires=50, decided_by="policy"),))
    store.releases.set_planned(workload)
    ledger = Ledger(store.connection, Decimal(4), Decimal("1e-6"))
    ledger.reserve(workload, charge_of(workload, ledger.budget.allowance))
    ledger.charge(ID)
    store.releases.set_state(ID, ReleaseState.UPLOADING)
    store.tables.open_tables(ID, range(6), 2)
    return store


def test_a_table_is_decided_and_charged_with_its_release(opened: CuratorStore, workload: ReleaseSpec) -> None:
    opened.tables.open_tables(ID, range(6), 3)  # after a crash
    first = opened.releases.release(workload.table_id(0))
    assert (first.part_of, first.state, first.spec) == (ID, ReleaseState.PLANNED, workload.table(0))
    assert (first.request.attributes, first.request.tables, first.study_digest) == (("age", "sex"), (), "d")
    ledger = Ledger(opened.connection, Decimal(4), Decimal("1e-6"))
    assert ledger.chain.is_charged(workload.table_id(0))
    assert not ledger.chain.is_charged(workload.table_id(6))  # which is no release
    ledger.charge(workload.table_id(0))
    assert len(ledger.chain.entries) == 1
    (decision,) = opened.decisions.decisions(workload.table_id(0))
    ready = replace(first, state=ReleaseState.READY)
    check_key_may_leave(ready, decision, "age", 49)
    with pytest.raises(DeniedError, match="expired"):
        check_key_may_leave(ready, decision, "age", 50)
    with pytest.raises(InvalidInputError, match="charged"):
        deny(opened, workload.table_id(0), "late")


def test_another_release_under_the_id_of_a_table_ends_the_tables(store: CuratorStore, workload: ReleaseSpec) -> None:
    store.releases.add(REQUEST, 1)
    store.releases.set_planned(workload)
    store.connection.execute("DELETE FROM id_of_table")  # else both are refused as they come
    for number in (2, 8):
        store.releases.add(request_with(release_id=workload.table_id(number)), 1)
    with refuses(ConflictError, where="release 00000000000000000000000000000001"):
        store.tables.open_tables(ID, range(6), 2)
    assert store.tables.tables(ID) == {}
    with refuses(ConflictError, where="release 00000000000000000000000000000001"):
        store.tables.choose_tables(ID, (1, 2), 2)
    assert store.releases.release(ID).choice is None


@pytest.mark.parametrize("number", range(12))
def test_nobody_else_has_the_id_of_a_table_whoever_asks_first(
    store: CuratorStore, workload: ReleaseSpec, number: int
) -> None:
    taken = request_with(release_id=workload.table_id(number), researcher="rita")
    store.releases.add(REQUEST, 1)
    store.releases.add(REQUEST, 1)  # again changes nothing
    with pytest.raises(ConflictError, match="another release has this id, or that of one of its tables"):
        store.releases.add(taken, 1)
    store.releases.end(ID, ReleaseState.DENIED, "why")
    store.releases.add(taken, 1)
    again = replace(REQUEST, release_id="e" * 32)
    store.releases.add(request_with(release_id=table_id("e" * 32, number), researcher="rita"), 1)
    with pytest.raises(ConflictError, match="another release has this id, or that of one of its tables"):
        store.releases.add(again, 1)
    assert not store.releases.knows("e" * 32)


def test_tables_are_no_requests_and_run_some_at_a_time_in_order(store: CuratorStore) -> None:
    sizes = {f"a{number}": 2 for number in range(6)}
    columns = tuple(Column(attribute=name, owner="alice", size=size) for name, size in sizes.items())
    request = replace(REQUEST, attributes=tuple(sizes), tables=tuple(combinations(sizes, 2)), repeats=1)
    many = planned_release(replace(QUESTION, request=request, columns=columns, all_columns=columns))
    store.releases.add(request, 1)
    store.releases.set_planned(many)
    store.releases.set_state(ID, ReleaseState.UPLOADING)
    store.tables.open_tables(ID, range(15), 2)
    assert [stored.request.release_id for stored in store.releases.releases()] == [ID]
    assert [stored.request.release_id for stored in store.releases.latest(5)] == [ID]
    assert (store.releases.open_requests(), store.releases.counts()) == ({"rosa": 1}, {"uploading": 1})

    def running() -> set[int]:
        ids = {many.table_id(number): number for number in range(30)}
        return {ids[name] for name in store.releases.unfinished() if name != ID}

    assert running() == set(range(MOST_TABLES_AT_A_TIME))
    store.releases.set_state(many.table_id(3), ReleaseState.READY)
    assert running() == {0, 1, 2, 4, 5, 6, 7, 8}
    for number in range(15):
        store.releases.set_state(many.table_id(number), ReleaseState.READY)
    store.tables.choose_tables(ID, (4,), 3)
    assert running() == {19}
    assert store.releases.release(ID).choice == (4,)
    assert store.tables.tables(ID) == dict.fromkeys(range(15), at(ReleaseState.READY)) | {19: at(ReleaseState.PLANNED)}


def test_the_end_of_a_release_ends_tables_that_are_not_ready(opened: CuratorStore, workload: ReleaseSpec) -> None:
    opened.releases.set_state(workload.table_id(0), ReleaseState.READY)
    opened.releases.set_bytes_uploaded(workload.table_id(0), 7)
    opened.releases.set_bytes_uploaded(workload.table_id(1), 8)
    assert opened.tables.bytes_uploaded_of_tables(ID) == 15
    opened.releases.end(ID, ReleaseState.FAILED, "why")
    assert opened.tables.tables(ID) == {0: at(ReleaseState.READY)} | dict.fromkeys(
        range(1, 6), at(ReleaseState.FAILED, "why")
    )


def test_what_is_known_of_one_table_is_not_asked_of_several(workload: ReleaseSpec) -> None:
    with pytest.raises(InvalidInputError, match="each table by itself"):
        _ = release(workload).planned_spec
    with pytest.raises(IntegrityError):
        _ = replace(release(workload), planned=None).planned_release


def test_at_the_deadline_a_release_ends_after_its_tables_which_are_counted(workload: ReleaseSpec) -> None:
    stored, runs = release(workload, choice=()), at(ReleaseState.CHARGED)
    waits = next_step_of_tables(stored, OWN, (progress(),), READY | {3: runs}, DEADLINE + 1)
    assert waits == Wait("the tables end at the deadline")
    expired = READY | {3: at(ReleaseState.EXPIRED, "the deadline passed")}
    ended = next_step_of_tables(stored, OWN, (progress(),), expired, DEADLINE + 1)
    assert isinstance(ended, End)
