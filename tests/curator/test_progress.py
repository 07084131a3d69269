from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.conftest import request_with, spec_with
from tests.curator.made_records import recorded, shown
from veiltab.common.errors import (
    BudgetExceededError,
    ClosedRoundError,
    ConflictError,
    DeniedError,
    ExpiredReleaseError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    SpentTokenError,
    TransferError,
    UnavailableError,
    VeiltabError,
    kinds,
)
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column
from veiltab.curator.progress.progress import (
    APPROVED,
    DENIED,
    HELD,
    awaited,
    check_asker,
    check_key_may_leave,
    check_receipt_may_leave,
    check_same_column,
    decides_alone,
    next_step,
    outcome_of,
)
from veiltab.curator.progress.release_record import (
    ColumnDigests,
    CuratorRelease,
    End,
    GrantDecision,
    Progress,
    PublicationDigests,
    Review,
    Step,
    Wait,
)

Outcome = Step | Wait | End
Others = tuple[Progress, ...] | VeiltabError
NextStep = Callable[[CuratorRelease, Review, Others, float], Outcome]
NAMES = ("alice", "bob", "carol")
DEADLINE = 100
REQUEST = request_with(deadline=DEADLINE)
COLUMNS = tuple(Column(attribute=name, owner=owner, size=2) for name, owner in zip("xyz", NAMES, strict=True))
SPECS = tuple(spec_with(sample=sample, columns=COLUMNS) for sample in (400, 399))
WITHOUT_CAROL = tuple(spec_with(sample=sample, columns=COLUMNS[:2]) for sample in (400, 399))
CHECKS = (b"one sample", b"another")
REVIEWED = Review(curator="alice")


def release(**changes: Any) -> CuratorRelease:  # noqa: ANN401 - any field
    return recorded(**({"request": REQUEST} | changes))


def progress(**changes: Any) -> Progress:  # noqa: ANN401 - any field
    return shown(**({"granted": frozenset({"salary"}), "request_digest": release().request_digest} | changes))


DIFFERENT = "curators alice and carol heard of different publications from the server; no key leaves."


def behind(curator: str, what: str) -> Wait:
    return Wait(f"curator {curator}: {what}", curator)


# One look


def test_the_steps_and_where_they_lead() -> None:
    peer = progress(spec_digest=SPECS[0].digest(), reserved=True, charged=True, sample_check=CHECKS[0])
    stored, own = release(), Review(curator="alice", is_considered=False)
    taken = []
    while isinstance(outcome := next_step(stored, own, (peer,), 1), Step):
        taken.append((outcome, outcome.leads_to))
        stored = replace(stored, state=outcome.leads_to)
        match outcome:
            case Step.DECIDE:
                own = REVIEWED
            case Step.PLAN:
                stored = replace(stored, spec=SPECS[0])
            case Step.RESERVE:
                own = replace(own, is_reserved=True)
            case Step.DRAW:
                stored = replace(stored, sample_check=CHECKS[0])
            case Step.UPLOAD:
                peer = replace(peer, state=ReleaseState.PERTURBING, tested=True)
            case Step.TEST:
                own = replace(own, is_tested=True)
    assert taken == [
        (Step.DECIDE, ReleaseState.REQUESTED),
        (Step.APPROVE, ReleaseState.APPROVED),
        (Step.PLAN, ReleaseState.PLANNED),
        (Step.RESERVE, ReleaseState.PLANNED),
        (Step.CHARGE, ReleaseState.CHARGED),
        (Step.DRAW, ReleaseState.CHARGED),
        (Step.ENCRYPT, ReleaseState.UPLOADING),
        (Step.UPLOAD, ReleaseState.PERTURBING),
        (Step.TEST, ReleaseState.PERTURBING),
        (Step.FINISH, ReleaseState.READY),
    ]
    assert outcome == End(ReleaseState.READY, "")


def test_a_release_ends_where_it_ended_elsewhere() -> None:
    stored = release(state=ReleaseState.UPLOADING)
    for state in ReleaseState:
        peers = (progress(), progress(curator="carol", state=state, failure="why"))
        outcome = next_step(stored, REVIEWED, peers, 1)
        if state.unsuccessful:
            assert outcome == End(state, "curator carol: why")
        else:
            assert outcome is Step.UPLOAD
    silent = progress(state=ReleaseState.EXPIRED)
    assert next_step(stored, REVIEWED, (silent,), 1) == End(ReleaseState.EXPIRED, "curator bob: the release is expired")


def test_what_is_held_waits_for_a_person_as_long_as_the_budget_holds_it() -> None:
    held = Review(curator="alice", held=("age", "sex"))
    assert next_step(release(), held, (progress(),), 1) == Wait(
        "curator alice: a person decides about age, sex. Run `veiltab curator approve` or `deny` for"
        f" {REQUEST.release_id}."
    )
    dear = replace(held, refusal="too much")
    assert next_step(release(), dear, (progress(),), 1) == End(ReleaseState.DENIED, "too much")


def test_one_denial_ends_a_request_at_once_whoever_is_left_to_decide() -> None:
    held, denied = Review(curator="alice", held=("age",)), frozenset({"sex"})
    own = next_step(release(), replace(held, denied=denied), (progress(considered=False),), 1)
    other = next_step(release(), held, (progress(decided=False, denied=frozenset({"salary"})),), 1)
    late = next_step(release(state=ReleaseState.APPROVED), REVIEWED, (progress(denied=frozenset({"salary"})),), 1)
    remedy = ". Ask without them, or ask with --partial to have the rest."
    assert own == End(ReleaseState.DENIED, "attributes: denied: sex (by alice)" + remedy)
    assert other == late == End(ReleaseState.DENIED, "attributes: denied: salary (by bob)" + remedy)
    assert decides_alone(release(), replace(held, denied=denied))
    assert not decides_alone(release(), held)


def test_a_part_goes_on_with_what_is_not_denied() -> None:
    stored = release(request=replace(REQUEST, partial=True))
    some, every = frozenset({"salary"}), frozenset(REQUEST.attributes)
    held = Review(curator="alice", held=("sex",))
    assert isinstance(next_step(stored, held, (progress(denied=some, request_digest=b""),), 1), Wait)
    assert isinstance(next_step(stored, held, (progress(denied=every, request_digest=b""),), 1), End)


def test_no_person_is_asked_before_every_curator_has_considered_the_request() -> None:
    held = Review(curator="alice", held=("age",))
    assert next_step(release(), held, (progress(), progress(curator="carol", considered=False)), 1) == Wait(
        "curator carol: has not considered the request yet", curator="carol"
    )


def test_nobody_plans_before_all_have_decided() -> None:
    stored = release(state=ReleaseState.APPROVED)
    assert next_step(stored, REVIEWED, (progress(), progress(curator="carol", decided=False)), 1) == behind(
        "carol", "has not decided about the request yet"
    )


def test_nobody_charges_before_all_have_reserved_the_same() -> None:
    stored = release(state=ReleaseState.PLANNED, spec=SPECS[0])
    reserved = replace(REVIEWED, is_reserved=True)

    def after(*peers: Progress) -> Outcome:
        return next_step(stored, reserved, peers, 1)

    same = progress(spec_digest=SPECS[0].digest(), reserved=True)
    assert after(same, replace(same, reserved=False, charged=True)) is Step.CHARGE
    assert after(same, progress(curator="carol")) == behind("carol", "has not planned the release yet")
    assert after(replace(same, reserved=False)) == behind("bob", "has not reserved the budget yet")
    other = progress(spec_digest=SPECS[1].digest(), reserved=True)
    for peers in ((same, other), (progress(curator="carol"), other), (replace(other, reserved=False),)):
        assert after(*peers) == End(
            ReleaseState.FAILED,
            "curators alice and bob planned different releases from the same request. Compare study files, table"
            " versions and veiltab versions. Nothing was charged.",
        )


def test_nobody_approves_before_all_have_shown_the_same_request() -> None:
    stored, other = release(), release(request=replace(REQUEST, purpose="another purpose"))
    same, unlike = (progress(request_digest=one.request_digest) for one in (stored, other))
    carol = replace(same, curator="carol")
    assert next_step(stored, REVIEWED, (same, carol), 1) is Step.APPROVE
    assert next_step(stored, REVIEWED, (same, progress(curator="carol", request_digest=b"")), 1) == behind(
        "carol", "has not shown its request yet"
    )
    held = Review(curator="alice", held=("age",))
    for own in (REVIEWED, held, replace(held, refusal="too much")):
        assert next_step(stored, own, (unlike, carol), 1) == End(
            ReleaseState.FAILED,
            "researcher rosa: asked curators alice and bob for different things under one id, or gave different"
            " purposes. Nothing was charged. Ask again.",
        )


def test_who_ends_a_charged_release_is_counted_and_who_follows_is_not() -> None:
    stored = release(state=ReleaseState.CHARGED, spec=SPECS[0], sample_check=CHECKS[0])
    own = replace(REVIEWED, is_charged=True)
    tested = replace(own, is_tested=True)
    drawn = progress(charged=True, sample_check=CHECKS[0])
    bob = replace(drawn, state=ReleaseState.FAILED, failure="my table changed")
    carol = replace(bob, curator="carol", failure="curator bob: my table changed")

    def by(*peers: Progress, now: float = -1000, review: Review = own) -> tuple[str, ...]:
        outcome = next_step(stored, review, peers, now)
        assert isinstance(outcome, End)
        return outcome.by

    assert by(bob, carol) == ("bob",)
    assert by(bob, carol, review=REVIEWED) == (), "nothing was charged"
    assert by(carol) == ("carol",), "who names another that has not ended it hides behind nobody"
    assert by(replace(bob, failure="curator carol: no, she"), carol) == ("bob", "carol")
    assert by(replace(bob, failure="curator alice: she"), drawn) == ("bob",)
    late = replace(bob, state=ReleaseState.EXPIRED)
    assert (by(late), by(late, now=DEADLINE - 1)) == (("bob",), ()), "clocks may differ a little"
    assert by(replace(drawn, sample_check=CHECKS[1])) == ("bob",)
    waits = replace(drawn, sample_check=b"")
    assert by(waits, now=DEADLINE + 1) == (), "perhaps it waits for a share that another withholds"
    stored = replace(stored, state=ReleaseState.PERTURBING)
    assert by(drawn, now=DEADLINE + 1) == ("bob",)
    assert by(replace(drawn, state=ReleaseState.PERTURBING), now=DEADLINE + 1, review=tested) == ("bob",)
    assert by(replace(drawn, state=ReleaseState.READY), now=DEADLINE + 1, review=tested) == ()


def test_the_curators_reserve_in_order_of_their_names() -> None:
    stored = release(state=ReleaseState.PLANNED, spec=SPECS[0])
    own = Review(curator="bob")
    alice = progress(curator="alice", spec_digest=SPECS[0].digest())
    carol = replace(alice, curator="carol")
    waits = behind("alice", "has not reserved the budget yet")
    assert next_step(stored, own, (alice, replace(carol, reserved=True)), 1) == waits
    assert next_step(stored, own, (replace(alice, reserved=True), progress(curator="carol")), 1) is Step.RESERVE
    assert next_step(stored, own, (replace(alice, charged=True), carol), 1) is Step.RESERVE
    assert next_step(stored, Review(curator="alice"), (progress(), progress(curator="carol")), 1) is Step.RESERVE
    charged = replace(own, is_charged=True)  # and a crash came before that was recorded
    assert next_step(stored, charged, (replace(alice, charged=True), replace(carol, charged=True)), 1) is Step.CHARGE


def test_nobody_draws_before_all_have_charged() -> None:
    stored, charged = release(state=ReleaseState.CHARGED, spec=SPECS[0]), progress(charged=True)
    assert next_step(stored, REVIEWED, (charged, charged), 1) is Step.DRAW
    assert next_step(stored, REVIEWED, (charged, progress(curator="carol")), 1) == behind(
        "carol", "has not charged the release yet"
    )


def test_nobody_encrypts_before_all_have_drawn_the_same() -> None:
    stored = release(state=ReleaseState.CHARGED, spec=SPECS[0], sample_check=CHECKS[0])
    drawn = progress(charged=True, sample_check=CHECKS[0])

    def after(*peers: Progress) -> Outcome:
        return next_step(stored, REVIEWED, peers, 1)

    assert after(drawn, drawn) is Step.ENCRYPT
    assert after(drawn, progress(curator="carol", charged=True)) == behind("carol", "has not drawn the sample yet")
    assert after(replace(drawn, sample_check=CHECKS[1])) == End(
        ReleaseState.FAILED, "curators alice and bob drew different samples. No data was sent."
    )


def test_nobody_tests_the_server_before_all_have_sent_their_columns() -> None:
    stored = release(state=ReleaseState.PERTURBING, spec=SPECS[0], sample_check=CHECKS[0])
    for state in ReleaseState:
        peers = (progress(state=ReleaseState.PERTURBING), progress(curator="carol", state=state))
        outcome = next_step(stored, REVIEWED, peers, 1)
        if state in {ReleaseState.PERTURBING, ReleaseState.READY}:
            assert outcome is Step.TEST
        elif state.unsuccessful:
            assert isinstance(outcome, End)
        else:
            assert outcome == behind("carol", "has not sent its columns yet")


def test_nobody_lets_a_key_leave_before_all_have_tested_the_server() -> None:
    stored = release(state=ReleaseState.PERTURBING, spec=SPECS[0], sample_check=CHECKS[0])
    own = replace(REVIEWED, is_tested=True)
    sent = progress(state=ReleaseState.PERTURBING)
    tested, ready = replace(sent, tested=True), progress(state=ReleaseState.READY)

    def after(*peers: Progress) -> Outcome:
        return next_step(stored, own, peers, 1)

    assert after(tested, ready) is Step.FINISH
    assert after(tested, replace(sent, curator="carol")) == behind("carol", "has not tested the server yet")
    failed = progress(curator="carol", state=ReleaseState.FAILED, tested=False, failure="no noise")
    both = "curator carol: no noise; the test of curator alice passed"
    assert after(tested, failed) == End(ReleaseState.FAILED, both)


def test_no_key_leaves_where_the_server_stated_another_publication_to_another_curator() -> None:
    stored = release(state=ReleaseState.PERTURBING, spec=SPECS[0], sample_check=CHECKS[0])
    stated = {name: PublicationDigests(columns={"age": name * 32, "wage": b"w" * 32}) for name in (b"a", b"b")}
    first, second = (one.digest() for one in stated.values())
    assert first != second != replace(stated[b"b"], places=bytes(32)).digest()
    own = replace(REVIEWED, is_tested=True, publication=first)
    for state in (ReleaseState.PERTURBING, ReleaseState.READY):
        bob = progress(state=state, tested=True, publication=first)
        carol = replace(bob, curator="carol")
        assert next_step(stored, own, (bob, carol), 1) is Step.FINISH
        assert next_step(stored, own, (bob, replace(carol, publication=b"")), 1) is Step.FINISH
        assert next_step(stored, own, (bob, replace(carol, publication=second)), 1) == End(
            ReleaseState.FAILED,
            "curators alice and carol heard of different publications from the server; no key leaves.",
        )


def test_who_has_no_columns_is_awaited_until_the_sample_is_drawn_here() -> None:
    spec, own = WITHOUT_CAROL[0], replace(REVIEWED, is_tested=True)
    for state in ReleaseState:
        assert awaited(release(state=state, spec=spec)) is None
        assert awaited(release(state=state, spec=spec, sample_check=CHECKS[0])) == frozenset({"alice", "bob"})
    drawn = release(state=ReleaseState.CHARGED, spec=spec, sample_check=CHECKS[0])
    bob, carol = progress(charged=True, sample_check=CHECKS[0]), progress(curator="carol", charged=True)
    assert next_step(replace(drawn, sample_check=b""), REVIEWED, (bob, replace(carol, charged=False)), 1) == behind(
        "carol", "has not charged the release yet"
    )
    sent, tested = replace(drawn, state=ReleaseState.PERTURBING), replace(bob, state=ReleaseState.PERTURBING)
    for others in ((), (carol,), (replace(carol, state=ReleaseState.UPLOADING, sample_check=CHECKS[0]),)):
        assert next_step(drawn, REVIEWED, (bob, *others), 1) is Step.ENCRYPT
        assert next_step(drawn, REVIEWED, (replace(bob, sample_check=b""), *others), 1) == behind(
            "bob", "has not drawn the sample yet"
        )
        assert next_step(sent, REVIEWED, (tested, *others), 1) is Step.TEST
        assert next_step(sent, own, (replace(tested, tested=True), *others), 1) is Step.FINISH
    # What she says counts as ever.
    other = replace(carol, sample_check=CHECKS[1])
    assert next_step(drawn, REVIEWED, (bob, other), 1) == End(
        ReleaseState.FAILED, "curators alice and carol drew different samples. No data was sent."
    )
    ended = replace(carol, state=ReleaseState.FAILED, failure="why")
    both = "curator carol: why; the test of curator alice passed"
    assert next_step(sent, own, (tested, ended), 1) == End(ReleaseState.FAILED, both)


def test_a_deadline_ends_a_release_even_when_the_others_are_silent() -> None:
    stored = release(state=ReleaseState.PLANNED, spec=SPECS[0], waiting_for="curator bob: no connection")
    away = UnavailableError("no connection", where="curator bob")
    assert next_step(stored, REVIEWED, away, DEADLINE) == Wait("curator bob: no connection")
    expired = End(ReleaseState.EXPIRED, "the deadline passed; curator bob: no connection")
    assert next_step(stored, REVIEWED, away, DEADLINE + 0.1) == expired
    assert next_step(stored, REVIEWED, (), DEADLINE + 0.1) == expired


@pytest.mark.parametrize("state", [state for state in ReleaseState if state.finished])
def test_the_end_is_final(state: ReleaseState) -> None:
    stored = release(state=state, failure="why", spec=SPECS[0], sample_check=CHECKS[0])
    peer = progress(spec_digest=SPECS[0].digest(), reserved=True, charged=True, sample_check=CHECKS[0])
    answers: tuple[Others, ...] = ((peer,), (replace(peer, state=ReleaseState.FAILED),), NotReadyError("no"))
    for peers, now in product(answers, (1, 1000)):
        assert next_step(stored, REVIEWED, peers, now) == End(state, "why")


def test_a_record_that_no_curator_has_is_refused() -> None:
    with pytest.raises(IntegrityError, match="has no spec"):
        next_step(release(state=ReleaseState.PLANNED), REVIEWED, (progress(),), 1)


FAILED, DENIED_END, EXPIRED = (
    partial(End, state) for state in (ReleaseState.FAILED, ReleaseState.DENIED, ReleaseState.EXPIRED)
)


OUTCOMES: list[tuple[VeiltabError, Outcome, Outcome]] = [
    (NotReadyError("no", where="curator bob"), Wait("curator bob: no"), Wait("curator bob: no")),
    (UnavailableError("no", remedy="Wait."), Wait("no. Wait."), Wait("no. Wait.")),
    (TransferError("no"), Wait("no"), Wait("no")),
    (DeniedError("no"), DENIED_END("no"), Wait("no")),
    (BudgetExceededError("no"), DENIED_END("no"), Wait("no")),
    (InvalidInputError("no"), FAILED("no"), Wait("no")),
    (NotFoundError("no"), FAILED("no"), Wait("no")),
    (
        VeiltabError("an unexpected error, incident 0"),
        FAILED("an unexpected error, incident 0"),
        Wait("an unexpected error, incident 0"),
    ),
    (SpentTokenError("no"), FAILED("no"), Wait("no")),
    (ClosedRoundError("no"), FAILED("no"), Wait("no")),
    (IntegrityError("no"), FAILED("no"), FAILED("no")),
    (ConflictError("no"), FAILED("no"), FAILED("no")),
    (FailedReleaseError("no"), FAILED("no"), FAILED("no")),
    (ExpiredReleaseError("no"), EXPIRED("no"), EXPIRED("no")),
]


@pytest.mark.parametrize(("error", "before", "after"), OUTCOMES, ids=lambda value: type(value).__name__)
def test_before_the_charge_what_may_heal_is_waited_for_and_after_it_what_is_not_proved_wrong(
    error: VeiltabError, before: Outcome, after: Outcome
) -> None:
    assert outcome_of(error, is_charged=False) == before
    assert outcome_of(error, is_charged=True) == after
    assert next_step(release(), REVIEWED, error, 1) == before
    for state in (ReleaseState.PLANNED, ReleaseState.CHARGED, ReleaseState.UPLOADING):
        stored = release(state=state, spec=SPECS[0], sample_check=CHECKS[0])
        assert next_step(stored, replace(REVIEWED, is_charged=True), error, 1) == after


def test_every_kind_of_refusal_has_an_outcome_that_is_stated() -> None:
    # Other tests of the process may have loaded a role's own kinds, which never reach a curator.
    shared = {kind for kind in kinds() if kind.__module__ == VeiltabError.__module__}
    assert {type(error) for error, _, _ in OUTCOMES} == shared


def test_a_disk_may_heal() -> None:
    for is_charged in (False, True):
        assert outcome_of(OSError(28, "No space left on device"), is_charged=is_charged) == Wait(
            "this curator's disk: OSError (No space left on device)"
        )


# Who gets a key


def decision(attribute: str = "sex", verdict: str = APPROVED, expires: int | None = None) -> GrantDecision:
    return GrantDecision(attribute=attribute, verdict=verdict, expires=expires, decided_by="person")


@pytest.mark.parametrize(
    ("state", "verdict", "expires"), [*product(ReleaseState, (APPROVED, HELD, DENIED, None), (None, 49, 50, 51))]
)
def test_a_key_leaves_when_the_release_is_ready_and_a_grant_stands(
    state: ReleaseState, verdict: str | None, expires: int | None
) -> None:
    stored = release(state=state, spec=SPECS[0])
    made = None if verdict is None else decision(verdict=verdict, expires=expires)
    if state is ReleaseState.READY and verdict == APPROVED and expires in {None, 51}:
        check_key_may_leave(stored, made, "sex", 50)
        return
    kinds = dict.fromkeys((ReleaseState.FAILED, ReleaseState.EXPIRED), FailedReleaseError)
    kind = kinds.get(state, DeniedError) if verdict == APPROVED and expires in {None, 51} else DeniedError
    with pytest.raises((kind, NotReadyError)):
        check_key_may_leave(stored, made, "sex", 50)


def test_a_receipt_leaves_when_any_key_may() -> None:
    ready = release(state=ReleaseState.READY, spec=SPECS[0])
    check_receipt_may_leave(ready, (decision("age", DENIED), decision()), 50)
    check_receipt_may_leave(ready, (decision(expires=50), decision("age", expires=51)), 50)
    with pytest.raises(DeniedError, match="no attribute of this curator's was granted"):
        check_receipt_may_leave(ready, (), 50)
    with pytest.raises(DeniedError, match="the grant has expired"):
        check_receipt_may_leave(ready, (decision(expires=50),), 50)
    with pytest.raises(NotReadyError, match="not every curator has tested the server yet"):
        # What another attribute's denial must not hide: the desk would end the release.
        check_receipt_may_leave(
            replace(ready, state=ReleaseState.PERTURBING), (decision(), decision("age", DENIED)), 50
        )
    why = "server cloud: of 4000 canaries 0 changed"
    failed = replace(ready, state=ReleaseState.FAILED, failure=why)
    with pytest.raises(FailedReleaseError, match=f"^{why}$"):
        check_receipt_may_leave(failed, (decision("age", DENIED), decision()), 50)
    with pytest.raises(DeniedError, match="was not granted"):
        check_receipt_may_leave(failed, (decision("age", DENIED),), 50)
    with pytest.raises(FailedReleaseError, match=r"^the release is expired$"):
        check_receipt_may_leave(replace(ready, state=ReleaseState.EXPIRED), (decision(),), 50)
    with pytest.raises(DeniedError, match="the release is denied"):
        check_receipt_may_leave(replace(ready, state=ReleaseState.DENIED, failure=why), (decision(),), 50)


def test_a_key_leaves_for_the_column_that_was_tested_alone() -> None:
    tested = ColumnDigests(published=b"column", canaries=b"canaries")
    check_same_column(tested, ColumnDigests(published=b"column", canaries=b"canaries"), "sex")
    for other in (
        replace(tested, published=b"another"),
        replace(tested, canaries=b"others"),
        ColumnDigests(published=b"", canaries=b""),
    ):
        with pytest.raises(
            FailedReleaseError, match="attribute sex: the desk holds another column than this curator tested"
        ):
            check_same_column(tested, other, "sex")


def test_a_decision_about_another_attribute_gives_no_key() -> None:
    with pytest.raises(DeniedError, match="was not granted"):
        check_key_may_leave(release(state=ReleaseState.READY, spec=SPECS[0]), decision("age"), "sex", 1)
    with pytest.raises(NotReadyError):
        check_key_may_leave(release(state=ReleaseState.READY), decision(), "sex", 1)


def test_a_request_is_told_of_to_who_asked() -> None:
    check_asker(release(), "rosa")
    for other in ("rita", "", "alice"):
        with pytest.raises(DeniedError, match="another researcher's"):
            check_asker(release(), other)


# Any order of looks, crashes and decisions


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
            held=(name,) if verdict == HELD else (),
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
        max_examples=2000, stateful_step_count=40, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], report_multiple_bugs=False,
    )  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Mutant, settings=searching)


def test_curators_that_reserve_in_any_order_are_found_to_wait_for_each_other() -> None:
    class Mutant(TwoRequests):
        next_step = staticmethod(in_another_order(ReleaseState.PLANNED, Step.RESERVE, instead_of=Wait))

    searching = settings(
        max_examples=2000, stateful_step_count=40, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], report_multiple_bugs=False,
    )  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Mutant, settings=searching)
