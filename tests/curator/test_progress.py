""""""

from dataclasses import replace

from tests.curator.curators_progress import (
    CHECKS,
    DEADLINE,
    REQUEST,
    REVIEWED,
    SPECS,
    WITHOUT_CAROL,
    Outcome,
    progress,
    release,
)
from veiltab.common.errors import UnavailableError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.progress import awaited, decides_alone, next_step
from veiltab.curator.progress.release_record import End, Progress, PublicationDigests, Review, Step, Wait


def behind(curator: str, what: str) -> Wait:
    return Wait(f"curator {curator}: {what}", (curator,))


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
    held = Review(curator="alice", waiting_attributes=("age", "sex"))
    assert next_step(release(), held, (progress(),), 1) == Wait(
        "curator alice: a person decides about age, sex. Run `veiltab curator approve` or `deny` for"
        f" {REQUEST.release_id}."
    )
    dear = replace(held, refusal="too much")
    assert next_step(release(), dear, (progress(),), 1) == End(ReleaseState.DENIED, "too much")


def test_one_denial_ends_a_request_at_once_whoever_is_left_to_decide() -> None:
    held, denied = Review(curator="alice", waiting_attributes=("age",)), frozenset({"sex"})
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
    held = Review(curator="alice", waiting_attributes=("sex",))
    assert isinstance(next_step(stored, held, (progress(denied=some, request_digest=b""),), 1), Wait)
    assert isinstance(next_step(stored, held, (progress(denied=every, request_digest=b""),), 1), End)


def test_no_person_is_asked_before_every_curator_has_considered_the_request() -> None:
    held = Review(curator="alice", waiting_attributes=("age",))
    assert next_step(release(), held, (progress(), progress(curator="carol", considered=False)), 1) == Wait(
        "curator carol: has not considered the request yet", ("carol",)
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
    held = Review(curator="alice", waiting_attributes=("age",))
    for own in (REVIEWED, held, replace(held, refusal="too much")):
        assert next_step(stored, own, (unlike, carol), 1) == End(
            ReleaseState.FAILED,
            "researcher rosa: asked curators alice and bob for different things under one id, or gave different"
            " purposes. Nothing was charged. Ask again.",
        )


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
