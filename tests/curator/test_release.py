from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
)
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.spec import Column
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.curator.coordination import Progress
from veiltab.curator.release import (
    agreed_columns,
    check_peers_alive,
    check_request,
    check_same_sample,
    check_same_spec,
    planned_spec,
    union,
)

Make = Callable[..., Any]
NOW = 1_900_000_000
SEX = Column(attribute="sex", owner="alice", size=2)
SALARY = Column(attribute="salary", owner="bob", size=2)


def progress(**changes: Any) -> Progress:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "curator": "bob",
        "state": ReleaseState.PLANNED,
        "decided": True,
        "granted": frozenset({"salary"}),
        "denied": frozenset(),
        "spec_digest": b"",
        "reserved": False,
        "charged": False,
        "sample_check": b"",
        "failure": "",
    }
    return Progress(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"attributes": ("sex", "height")}, "no attribute 'height'"),
        ({"deadline": NOW}, "must lie ahead"),
        ({"deadline": NOW - 1}, "must lie ahead"),
        ({"deadline": NOW + 366 * 86_400 + 1}, "at most a year"),
        ({"deadline": 2**63 - 1}, "at most a year"),
    ],
)
def test_what_nobody_could_fulfil_is_refused(
    study: Study, make_request: Make, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        check_request(make_request(**({"deadline": NOW + 10} | changes)), study, NOW)


def test_what_fits_is_taken(study: Study, make_request: Make) -> None:
    for deadline in (NOW + 1, NOW + 366 * 86_400):
        check_request(make_request(deadline=deadline), study, NOW)
    check_request(make_request(deadline=NOW + 1), replace(study, maximum_cells=4), NOW)
    with pytest.raises(InvalidInputError, match="the table has 4 cells; the study allows 3"):
        check_request(make_request(deadline=NOW + 1), replace(study, maximum_cells=3), NOW)


def test_a_release_ends_where_it_ended_elsewhere() -> None:
    for state in ReleaseState:
        peers = (progress(), progress(curator="carol", state=state, failure="why"))
        if not state.unsuccessful:
            check_peers_alive(peers)
            continue
        kind = DeniedError if state is ReleaseState.DENIED else FailedReleaseError
        with pytest.raises(kind, match="curator carol: why"):
            check_peers_alive(peers)
    with pytest.raises(FailedReleaseError, match="the release is expired"):
        check_peers_alive((progress(state=ReleaseState.EXPIRED),))


def agreed(study: Study, request: Any, granted: set[str], denied: set[str]) -> tuple[Column, ...]:  # noqa: ANN401
    return agreed_columns(request, study, frozenset(granted), frozenset(denied))


def test_columns_are_those_granted_in_study_order(study: Study, make_request: Make) -> None:
    request = make_request(attributes=("salary", "sex"))
    assert agreed(study, request, {"sex", "salary"}, set()) == (SEX, SALARY)
    assert agreed(study, request, {"sex", "salary", "age"}, {"age"}) == (SEX, SALARY)


def test_a_denial_ends_a_request_unless_it_goes_on_without(study: Study, make_request: Make) -> None:
    whole, partial = make_request(), make_request(partial=True)
    with pytest.raises(DeniedError, match=r"denied: salary \(by bob\).*--partial"):
        agreed(study, whole, {"sex"}, {"salary"})
    assert agreed(study, partial, {"sex"}, {"salary"}) == (SEX,)
    for request in (whole, partial):
        with pytest.raises(DeniedError, match=r"denied: sex, salary \(by alice, bob\)") as caught:
            agreed(study, request, set(), {"sex", "salary"})
        assert not caught.value.remedy


def test_every_curator_plans_the_same(study: Study, make_request: Make, make_spec: Make) -> None:
    request = make_request(sample=400)
    spec = planned_spec(request, (SEX, SALARY), study, population=1000, alignment="ab" * 16)
    assert spec == make_spec(columns=(SEX, SALARY), study_digest=study.digest)
    chosen = planned_spec(make_request(), (SEX, SALARY), study, population=1000, alignment="ab" * 16)
    assert 1 <= chosen.sample <= 1000
    assert guaranteed_epsilon(chosen) <= Decimal("0.1")


def test_too_few_respondents_or_too_large_a_sample(study: Study, make_request: Make) -> None:
    few = replace(study, minimum_population=100)
    planned_spec(make_request(), (SEX, SALARY), few, population=100, alignment="ab" * 16)
    with pytest.raises(InvalidInputError, match="fewer respondents than the 100 that"):
        planned_spec(make_request(), (SEX, SALARY), few, population=99, alignment="ab" * 16)
    with pytest.raises(InvalidInputError, match="1 to n = 100 rows, not 101"):
        planned_spec(make_request(sample=101), (SEX, SALARY), few, population=100, alignment="ab" * 16)


def test_nobody_charges_before_all_have_reserved_the_same(make_spec: Make) -> None:
    spec = make_spec()
    same = progress(spec_digest=spec.digest(), reserved=True)
    check_same_spec(spec, (same, replace(same, reserved=False, charged=True)))
    with pytest.raises(NotReadyError, match="has not planned"):
        check_same_spec(spec, (same, progress(curator="carol")))
    with pytest.raises(NotReadyError, match="curator bob: has not reserved"):
        check_same_spec(spec, (replace(same, reserved=False),))
    other = progress(spec_digest=make_spec(sample=399).digest(), reserved=True)
    for peers in ((same, other), (progress(curator="carol"), other), (replace(other, reserved=False),)):
        with pytest.raises(IntegrityError, match=r"planned another release.*Nothing was charged"):
            check_same_spec(spec, peers)


def test_nobody_encrypts_before_all_have_drawn_the_same() -> None:
    check_same_sample(b"check", (progress(sample_check=b"check"),) * 2)
    with pytest.raises(NotReadyError, match="has not drawn the sample"):
        check_same_sample(b"check", (progress(sample_check=b"check"), progress()))
    with pytest.raises(IntegrityError, match=r"curator bob: drew another sample. No data was sent"):
        check_same_sample(b"check", (progress(sample_check=b"other"),))


def test_union() -> None:
    assert union([]) == frozenset()
    assert union([frozenset("ab"), frozenset("bc")]) == frozenset("abc")
