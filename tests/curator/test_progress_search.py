"""Searches for orders of steps in which curators would differ or wait for each other."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.curator.curators_progress import (
    CHECKS,
    NAMES,
    SPECS,
    WITHOUT_CAROL,
    Others,
    Outcome,
    decision,
    progress,
    release,
)
from veiltab.common.errors import (
    BudgetExceededError,
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    NotReadyError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.progress import (
    APPROVED,
    DENIED,
    HELD,
    awaited,
    check_key_may_leave,
    next_step,
    outcome_of,
)
from veiltab.curator.progress.release_record import CuratorRelease, End, Progress, Review, Step, Wait

NextStep = Callable[[CuratorRelease, Review, Others, float], Outcome]


class Curators(RuleBasedStateMachine):
    """Three curators that look at one another whenever they like, and crash; beside them, what each has really done."""

    next_step: NextStep = staticmethod(next_step)

    def __init__(self) -> None:
        super().__init__()
        self.now = 1.0
        self.rows = {name: release() for name in NAMES}
        self.verdicts = dict.fromkeys(NAMES, "")
        self.policies = dict.fromkeys(NAMES, APPROVED)
        self.specs, self.owners = SPECS, set(NAMES)
        self.plans = dict.fromkeys(NAMES, SPECS[0])
        self.samples = dict.fromkeys(NAMES, CHECKS[0])
        self.seen: dict[str, Others] = dict.fromkeys(NAMES, NotReadyError("has not looked"))
        self.kept: dict[str, bytes] = {}
        # What was ever done, whether or not a crash let it be recorded.
        self.reserved: dict[str, set[bytes]] = {name: set() for name in NAMES}
        self.charged: set[str] = set()
        self.taken: set[tuple[str, Step]] = set()
        self.is_honest = True
        self.away: set[str] = set()
        self.passed: dict[str, bool] = {}
        self.ends: dict[str, tuple[ReleaseState, str]] = {}

    def progress(self, name: str) -> Progress:
        row = self.rows[name]
        return Progress(
            curator=name,
            request_digest=self.rows[name].request_digest,
            state=row.state,
            considered=bool(self.verdicts[name]),
            decided=self.verdicts[name] in {APPROVED, DENIED},
            granted=frozenset({name} if self.verdicts[name] == APPROVED else ()),
            denied=frozenset({name} if self.verdicts[name] == DENIED else ()),
            spec_digest=b"" if row.spec is None else row.spec.digest(),
            reserved=name in self.kept and name not in self.charged,
            charged=name in self.charged,
            sample_check=row.sample_check,
            tested=self.passed.get(name, False),
            failure=row.failure,
        )

    def look(self, name: str) -> None:
        self.seen[name] = tuple(self.progress(other) for other in NAMES if other not in {name, *self.silent(name)})

    @initialize(has_columns=st.booleans())
    def carol_has_columns(self, has_columns: bool) -> None:  # noqa: FBT001 - drawn
        if not has_columns:
            self.specs, self.owners = WITHOUT_CAROL, set(NAMES[:2])
            self.plans = dict.fromkeys(NAMES, WITHOUT_CAROL[0])

    def silent(self, name: str) -> set[str]:
        """Return the curators that say nothing of a release when this one looks; none that it awaits."""
        needed = awaited(self.rows[name])
        return set() if needed is None else set(self.away) - needed

    @rule(away=st.sets(st.sampled_from(NAMES)))
    def are_away(self, away: set[str]) -> None:
        self.away = away

    def review(self, name: str) -> Review:
        verdict = self.verdicts[name]
        return Review(
            curator=name,
            is_considered=bool(verdict),
            waiting_attributes=(name,) if verdict == HELD else (),
            denied=frozenset({name} if verdict == DENIED else ()),
            is_reserved=name in self.kept and name not in self.charged,
            is_charged=name in self.charged,
            is_tested=self.passed.get(name, False),
        )

    def act(self, name: str, *, crash: bool = False) -> None:
        row = self.rows[name]
        outcome = self.next_step(row, self.review(name), self.seen[name], self.now)
        try:
            if isinstance(outcome, Step):
                self.take(outcome, name)
        except VeiltabError as error:
            outcome = outcome_of(error, is_charged=name in self.charged)
        if crash:
            return
        if isinstance(outcome, Step):
            self.rows[name] = replace(self.rows[name], state=outcome.leads_to)
        elif isinstance(outcome, End):
            self.rows[name] = replace(row, state=outcome.state, failure=outcome.reason)
            self.kept.pop(name, None)

    def take(self, step: Step, name: str) -> None:
        """Do what a step does, and see that it may be done."""
        row = self.rows[name]
        match step:
            case Step.DECIDE:
                self.verdicts[name] = self.policies[name]
            case Step.APPROVE:
                assert self.verdicts[name] in {APPROVED, DENIED}
            case Step.PLAN:
                assert all(self.verdicts[other] in {APPROVED, DENIED} for other in NAMES)
                if DENIED in self.verdicts.values():
                    raise DeniedError("denied")
                self.rows[name] = replace(row, spec=self.plans[name])
            case Step.RESERVE:
                assert all(self.reserved[other] for other in NAMES if other < name)
                self.kept[name] = row.planned_spec.digest()
                self.reserved[name].add(self.kept[name])
            case Step.CHARGE:
                digest = row.planned_spec.digest()
                assert all(digest in self.reserved[other] for other in NAMES)
                self.charged.add(name)
            case Step.DRAW:
                assert self.charged == set(NAMES)
                self.rows[name] = replace(row, sample_check=self.samples[name])
            case Step.ENCRYPT | Step.UPLOAD:
                assert {self.rows[other].sample_check for other in (name, *self.owners)} == {row.sample_check}
                assert row.sample_check
            case Step.TEST | Step.FINISH:
                self.test_or_finish(step, name)
        self.taken.add((name, step))

    def test_or_finish(self, step: Step, name: str) -> None:
        """Test the server, as it is now, or let keys leave; what a test showed stays."""
        assert {(other, Step.UPLOAD) for other in self.owners} <= self.taken
        if step is Step.FINISH:
            assert all(self.passed.get(other) for other in self.owners)
        elif not self.passed.setdefault(name, self.is_honest):
            raise IntegrityError("it did not add the noise of the release")

    @rule(name=st.sampled_from(NAMES))
    def looks(self, name: str) -> None:
        self.look(name)

    @rule(name=st.sampled_from(NAMES), crash=st.booleans())
    def acts_on_what_it_saw(self, name: str, crash: bool) -> None:  # noqa: FBT001 - drawn
        self.act(name, crash=crash)

    @rule(names=st.permutations(NAMES))
    def everybody_goes_on(self, names: list[str]) -> None:
        for name in names:
            self.look(name)
            self.act(name)

    @rule(name=st.sampled_from(NAMES), policy=st.sampled_from([APPROVED, APPROVED, HELD, DENIED]))
    def has_a_policy(self, name: str, policy: str) -> None:
        self.policies[name] = policy

    @rule(name=st.sampled_from(NAMES), verdict=st.sampled_from([APPROVED, APPROVED, DENIED]))
    def a_person_decides(self, name: str, verdict: str) -> None:
        if self.verdicts[name] == HELD:
            self.verdicts[name] = verdict

    @rule(name=st.sampled_from(NAMES), place=st.integers(0, 1))
    def would_plan(self, name: str, place: int) -> None:
        self.plans[name] = self.specs[place]

    @rule(name=st.sampled_from(NAMES), check=st.sampled_from(CHECKS))
    def would_draw(self, name: str, check: bytes) -> None:
        if not self.rows[name].sample_check:
            self.samples[name] = check

    @rule(name=st.sampled_from(NAMES), error=st.sampled_from([UnavailableError("away"), IntegrityError("bad")]))
    def is_refused(self, name: str, error: VeiltabError) -> None:
        self.seen[name] = error

    @rule(is_honest=st.sampled_from([True, True, False]))
    def the_server_is(self, is_honest: bool) -> None:  # noqa: FBT001 - drawn
        self.is_honest = is_honest

    @rule(seconds=st.sampled_from([1, 5, 30]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(name=st.sampled_from(NAMES), expires=st.sampled_from([None, 5, 80]))
    def a_key_is_asked_for(self, name: str, expires: int | None) -> None:
        row, made = self.rows[name], decision(name, self.verdicts[name], expires)
        open_now = self.verdicts[name] == APPROVED and (expires is None or self.now < expires)
        if row.state is ReleaseState.READY and open_now:
            check_key_may_leave(row, made, name, self.now)
            return
        with pytest.raises((DeniedError, FailedReleaseError, NotReadyError)):
            check_key_may_leave(row, made, name, self.now)

    @invariant()
    def the_end_is_final(self) -> None:
        for name, row in self.rows.items():
            if row.state.finished:
                assert self.ends.setdefault(name, (row.state, row.failure)) == (row.state, row.failure)
            else:
                assert name not in self.ends

    @invariant()
    def who_is_ready_has_sent_what_all_drew(self) -> None:
        if any(row.state is ReleaseState.READY for row in self.rows.values()):
            assert self.charged == set(NAMES)
            assert len({self.rows[name].sample_check for name in self.owners}) == 1
            assert all(self.passed.get(name) for name in self.owners)

    def teardown(self) -> None:
        """Let those with columns go on: of a release that they have drawn, they need nobody else."""
        rows = [self.rows[name] for name in self.owners]
        may_end = any(row.state.unsuccessful for row in self.rows.values()) or not self.is_honest
        if may_end or not all(row.sample_check for row in rows) or len(set(self.samples.values())) > 1:
            return
        self.now, self.away = 1.0, set(NAMES)
        for _ in range(10):
            for name in self.owners:
                self.look(name)
                self.act(name)
        assert all(self.rows[name].state is ReleaseState.READY for name in self.owners)


TestCurators = Curators.TestCase


TestCurators.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


class TwoRequests(RuleBasedStateMachine):
    """Two requests for the last unit of the budget, at three curators that look, act and crash in any order."""

    next_step: NextStep = staticmethod(next_step)
    specs: ClassVar = {"A": SPECS[0], "B": SPECS[1]}

    def __init__(self) -> None:
        super().__init__()
        self.rows = {(name, which): release() for name in NAMES for which in self.specs}
        self.seen: dict[tuple[str, str], Others] = dict.fromkeys(self.rows, NotReadyError("has not looked"))
        self.reserved: dict[str, set[str]] = {name: set() for name in NAMES}
        self.charged: dict[str, set[str]] = {name: set() for name in NAMES}
        self.tested: set[tuple[str, str]] = set()
        self.withdrawn: set[str] = set()

    def progress(self, name: str, which: str) -> Progress:
        row = self.rows[name, which]
        return progress(
            curator=name,
            request_digest=self.rows[name, which].request_digest,
            state=row.state,
            decided=row.state is not ReleaseState.REQUESTED,
            spec_digest=b"" if row.spec is None else row.spec.digest(),
            reserved=which in self.reserved[name],
            charged=which in self.charged[name],
            sample_check=row.sample_check,
            tested=(name, which) in self.tested,
            failure=row.failure,
        )

    def look(self, name: str, which: str) -> None:
        self.seen[name, which] = tuple(self.progress(other, which) for other in NAMES if other != name)

    def act(self, name: str, which: str, *, crash: bool = False) -> None:
        is_charged = which in self.charged[name]
        own = Review(
            curator=name,
            is_reserved=which in self.reserved[name],
            is_charged=is_charged,
            is_tested=(name, which) in self.tested,
        )
        outcome = self.next_step(self.rows[name, which], own, self.seen[name, which], 1)
        try:
            if isinstance(outcome, Step):
                self.take(outcome, name, which)
        except VeiltabError as error:
            outcome = outcome_of(error, is_charged=is_charged)
        if crash:
            return
        if isinstance(outcome, Step):
            self.rows[name, which] = replace(self.rows[name, which], state=outcome.leads_to)
        elif isinstance(outcome, End):
            self.end(name, which, outcome)

    def end(self, name: str, which: str, outcome: End) -> None:
        self.rows[name, which] = replace(self.rows[name, which], state=outcome.state, failure=outcome.reason)
        self.reserved[name].discard(which)

    def take(self, step: Step, name: str, which: str) -> None:
        row = self.rows[name, which]
        match step:
            case Step.PLAN:
                self.rows[name, which] = replace(row, spec=self.specs[which])
            case Step.RESERVE:
                if self.charged[name] - {which}:
                    raise BudgetExceededError("it is spent")
                if self.reserved[name] - {which}:
                    raise NotReadyError("it is reserved for another")
                self.reserved[name].add(which)
            case Step.CHARGE if which not in self.charged[name]:
                if which not in self.reserved[name]:
                    raise IntegrityError("nothing is reserved")
                self.reserved[name].discard(which)
                self.charged[name].add(which)
            case Step.DRAW:
                self.rows[name, which] = replace(row, sample_check=CHECKS[0])
            case Step.TEST:
                self.tested.add((name, which))
            case _:
                pass

    @rule(name=st.sampled_from(NAMES), which=st.sampled_from("AB"))
    def looks(self, name: str, which: str) -> None:
        self.look(name, which)

    @rule(name=st.sampled_from(NAMES), which=st.sampled_from("AB"), crash=st.booleans())
    def acts_on_what_it_saw(self, name: str, which: str, crash: bool) -> None:  # noqa: FBT001 - drawn
        self.act(name, which, crash=crash)

    @rule(name=st.sampled_from(NAMES), which=st.sampled_from("AB"))
    def looks_and_acts(self, name: str, which: str) -> None:
        self.look(name, which)
        self.act(name, which)

    @rule(name=st.sampled_from(NAMES), which=st.sampled_from("AB"), really=st.integers(0, 9))
    def a_person_denies(self, name: str, which: str, really: int) -> None:
        if not really and not self.rows[name, which].state.finished and which not in self.charged[name]:
            self.end(name, which, End(ReleaseState.DENIED, "a person"))
            self.withdrawn.add(which)

    @invariant()
    def no_budget_is_passed(self) -> None:
        assert all(len(self.reserved[name] | self.charged[name]) <= 1 for name in NAMES)

    def teardown(self) -> None:
        """Let everybody go on without faults: no two wait for each other, and one request has the budget."""
        for _ in range(20):
            for name, which in self.rows:
                self.look(name, which)
                self.act(name, which)
        assert all(row.state.finished for row in self.rows.values())
        ready = {which for (_, which), row in self.rows.items() if row.state is ReleaseState.READY}
        paid = set().union(*self.charged.values())
        assert len(paid) <= 1
        assert ready <= paid
        if not paid & self.withdrawn and self.withdrawn != set(self.specs):
            assert len(ready) == 1
            (winner,) = ready
            assert all(self.rows[name, winner].state is ReleaseState.READY for name in NAMES)


TestTwoRequests = TwoRequests.TestCase


TestTwoRequests.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def in_another_order(state: ReleaseState, step: Step, *, instead_of: type[Wait] | type[End]) -> NextStep:
    """Return a next_step that takes a step in a state where the true one waits, or ends."""

    def mutant(stored: CuratorRelease, own: Review, peers: Others, now: float) -> Outcome:
        outcome = next_step(stored, own, peers, now)
        return step if stored.state is state and isinstance(outcome, instead_of) else outcome

    return mutant


MUTANTS = {
    "reserves before those whose names come first": (ReleaseState.PLANNED, Step.RESERVE, Wait),
    "plans before all have decided": (ReleaseState.APPROVED, Step.PLAN, Wait),
    "charges before all have reserved": (ReleaseState.PLANNED, Step.CHARGE, Wait),
    "charges another plan": (ReleaseState.PLANNED, Step.CHARGE, End),
    "tosses before all have charged": (ReleaseState.CHARGED, Step.DRAW, Wait),
    "encrypts before all have drawn": (ReleaseState.CHARGED, Step.ENCRYPT, Wait),
    "encrypts another sample": (ReleaseState.CHARGED, Step.ENCRYPT, End),
    "tests before all have sent": (ReleaseState.PERTURBING, Step.TEST, Wait),
    "lets keys leave before all have tested": (ReleaseState.PERTURBING, Step.FINISH, Wait),
    "goes on after it was denied": (ReleaseState.DENIED, Step.PLAN, End),
    "goes on after it failed": (ReleaseState.FAILED, Step.UPLOAD, End),
    "goes on after it expired": (ReleaseState.EXPIRED, Step.CHARGE, End),
    "sends twice": (ReleaseState.READY, Step.ENCRYPT, End),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (place % 3 > 0)) for place, name in enumerate(MUTANTS)]
)
def test_another_order_is_found(name: str) -> None:
    state, step, instead_of = MUTANTS[name]

    class Mutant(Curators):
        next_step = staticmethod(in_another_order(state, step, instead_of=instead_of))

    searching = settings(
        max_examples=2000,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Mutant, settings=searching)


def test_curators_that_reserve_in_any_order_are_found_to_wait_for_each_other() -> None:
    class Mutant(TwoRequests):
        next_step = staticmethod(in_another_order(ReleaseState.PLANNED, Step.RESERVE, instead_of=Wait))

    searching = settings(
        max_examples=2000,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Mutant, settings=searching)
