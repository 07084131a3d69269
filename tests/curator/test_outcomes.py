"""How releases end, and when a key may leave."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from tests.conftest import refuses
from tests.curator.curators_progress import CHECKS, REVIEWED, SPECS, Others, Outcome, progress, release
from tests.curator.made_records import decision
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
from veiltab.curator.progress.progress import (
    APPROVED,
    DENIED,
    HELD,
    check_key_may_leave,
    check_receipt_may_leave,
    check_same_column,
    next_step,
    outcome_of,
)
from veiltab.curator.progress.release_record import KEYS_LAST, ColumnDigests, End, Wait


@pytest.mark.parametrize("state", [state for state in ReleaseState if state.finished])
def test_the_end_is_final(state: ReleaseState) -> None:
    stored = release(state=state, failure="why", spec=SPECS[0], sample_check=CHECKS[0])
    peer = progress(spec_digest=SPECS[0].digest(), reserved=True, charged=True, sample_check=CHECKS[0])
    answers: tuple[Others, ...] = ((peer,), (replace(peer, state=ReleaseState.FAILED),), NotReadyError("no"))
    for peers, now in product(answers, (1, 1000)):
        assert next_step(stored, REVIEWED, peers, now) == End(state, "why")


def test_a_record_that_no_curator_has_is_refused() -> None:
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
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
    (VeiltabError("unexpected"), FAILED("unexpected"), Wait("unexpected")),
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


def test_a_key_leaves_when_the_release_is_ready_and_a_grant_stands() -> None:
    for state, verdict, expires in [*product(ReleaseState, (APPROVED, HELD, DENIED, None), (None, 49, 50, 51))]:
        stored = release(state=state, spec=SPECS[0])
        made = None if verdict is None else decision(verdict=verdict, expires=expires)
        if state is ReleaseState.READY and verdict == APPROVED and expires in {None, 51}:
            check_key_may_leave(stored, made, "sex", 50)
            continue
        kinds = dict.fromkeys((ReleaseState.FAILED, ReleaseState.EXPIRED), FailedReleaseError)
        kind = kinds.get(state, DeniedError) if verdict == APPROVED and expires in {None, 51} else DeniedError
        with pytest.raises((kind, NotReadyError)):
            check_key_may_leave(stored, made, "sex", 50)
    old = release(state=ReleaseState.READY, spec=SPECS[0])
    check_key_may_leave(old, decision(), "sex", old.since + KEYS_LAST - 1)
    with pytest.raises(DeniedError, match="the grant has expired"):
        check_key_may_leave(old, decision(), "sex", old.since + KEYS_LAST)
    check_key_may_leave(old, decision(expires=old.since + KEYS_LAST + 1), "sex", old.since + KEYS_LAST)


def test_a_receipt_leaves_when_any_key_may() -> None:
    ready = release(state=ReleaseState.READY, spec=SPECS[0])
    granted, denied, over = decision(), decision("age", DENIED), decision(expires=50)
    check_receipt_may_leave(ready, (denied, granted), 50)
    check_receipt_may_leave(ready, (over, decision("age", expires=51)), 50)
    why = "server cloud: of 4000 canaries 0 changed"
    for state, decisions, kind, problem in (
        (ReleaseState.READY, (), DeniedError, "no attribute of this curator's was granted"),
        (ReleaseState.READY, (over,), DeniedError, "the grant has expired"),
        # What another attribute's denial must not hide: the desk would end the release.
        (ReleaseState.PERTURBING, (granted, denied), NotReadyError, "not every curator has tested the server yet"),
        (ReleaseState.FAILED, (denied, granted), FailedReleaseError, f"^{why}$"),
        (ReleaseState.FAILED, (denied,), DeniedError, "was not granted"),
        (ReleaseState.EXPIRED, (granted,), FailedReleaseError, "^the release is expired$"),
        (ReleaseState.DENIED, (granted,), DeniedError, "the release is denied"),
    ):
        failure = "" if state is ReleaseState.EXPIRED else why
        with pytest.raises(kind, match=problem):
            check_receipt_may_leave(replace(ready, state=state, failure=failure), decisions, 50)


def test_a_key_leaves_for_the_column_that_was_tested_alone() -> None:
    tested = ColumnDigests(published=b"column", canaries=b"canaries")
    check_same_column(tested, ColumnDigests(published=b"column", canaries=b"canaries"), "sex")
    for other in (
        replace(tested, published=b"another"),
        replace(tested, canaries=b"others"),
        ColumnDigests(published=b"", canaries=b""),
    ):
        with refuses(FailedReleaseError, where="attribute sex"):
            check_same_column(tested, other, "sex")


def test_a_decision_about_another_attribute_gives_no_key() -> None:
    with pytest.raises(DeniedError, match="was not granted"):
        check_key_may_leave(release(state=ReleaseState.READY, spec=SPECS[0]), decision("age"), "sex", 1)
    with pytest.raises(NotReadyError):
        check_key_may_leave(release(state=ReleaseState.READY), decision(), "sex", 1)
