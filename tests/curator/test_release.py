from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.common.privacy.precise import pairs_of
from tests.conftest import request_with, spec_with
from tests.curator.made_records import shown
from veiltab.common.core.block_order import MAX_ROWS
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.privacy.planning.planning import optimal_sample, plan_release
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.messages.release_messages import spec_from_proto, spec_to_proto
from veiltab.common.release.modes import Sampling
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study
from veiltab.common.study.limits import MAX_RESPONDENTS
from veiltab.curator.planning.checks import agreed_columns, check_request, joint_decision
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.plans import foreseen_plan, planned_release
from veiltab.curator.progress.release_record import Progress
from veiltab.v1 import release_pb2

NOW = 1_900_000_000
SEX = Column(attribute="sex", owner="alice", size=2)
SALARY = Column(attribute="salary", owner="bob", size=2)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"attributes": ("sex", "height")}, "no attribute 'height'"),
        ({"deadline": NOW}, "must lie ahead"),
        ({"deadline": NOW - 1}, "must lie ahead"),
        ({"deadline": NOW + 366 * 86_400 + 1}, "at most a year"),
        ({"deadline": 2**63 - 1}, "at most a year"),
        ({"sample": 2**32 + 1}, "at most 4294967296 rows can be drawn, not 4294967297"),
        ({"scheme": "wr", "sample": 2**63}, "sample: at most"),
        ({"scheme": "must.ww", "sample": 100, "stage": 2**64 - 1}, "stage: at most"),
    ],
)
def test_what_nobody_could_fulfil_is_refused(study: Study, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        check_request(request_with(**({"deadline": NOW + 10} | changes)), study, NOW)


def test_what_fits_is_taken(study: Study) -> None:
    for deadline in (NOW + 1, NOW + 366 * 86_400):
        check_request(request_with(deadline=deadline), study, NOW)
    check_request(request_with(deadline=NOW + 1), replace(study, maximum_cells=4), NOW)
    with pytest.raises(InvalidInputError, match="the table has 4 cells; the study allows 3"):
        check_request(request_with(deadline=NOW + 1), replace(study, maximum_cells=3), NOW)


def test_a_clock_that_is_off_is_named(study: Study) -> None:
    with pytest.raises(InvalidInputError) as late:
        check_request(request_with(deadline=NOW - 2 * 86_400), study, NOW)
    assert str(late.value) == (
        "deadline: the deadline must lie ahead, at most a year: this curator's clock says 2030-03-17T17:46:40+00:00,"
        " the deadline is 2030-03-15T17:46:40+00:00. Compare the clocks of this curator and of the researcher."
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scheme": "wr", "sample": 64_001}, "at most 64000 rows can be drawn"),
        ({"scheme": "must.ww", "sample": 10, "stage": 64_001}, "at most 64000 rows can be drawn"),
        ({"scheme": "wr", "sample": 1000, "epsilon": Decimal("1e-10")}, "too small for so many draws"),
        ({"scheme": "must.ww", "sample": 1000, "stage": 1000, "epsilon": Decimal("1e-10")}, "too small for so many"),
        ({"scheme": "poisson", "sample": 2**32}, "at most 64000 rows"),
    ],
)
def test_what_cannot_be_planned_is_refused_at_once(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        foreseen_plan(request_with(**changes), population=1000, cells=4)


def says(curator: str, granted: set[str], denied: set[str]) -> Progress:
    """Return how far a curator says that it is."""
    return shown(curator=curator, granted=frozenset(granted), denied=frozenset(denied))


def agreed(study: Study, request: Any, granted: set[str], denied: set[str]) -> tuple[Column, ...]:  # noqa: ANN401 - of any kind
    return agreed_columns(request, study, frozenset(granted), frozenset(denied))


def test_a_denial_ends_a_request_unless_it_goes_on_without(study: Study) -> None:
    whole, partial = request_with(attributes=("salary", "sex")), request_with(partial=True)
    assert agreed(study, whole, {"sex", "salary", "age"}, {"age"}) == (SEX, SALARY)
    with pytest.raises(DeniedError, match=r"denied: salary \(by bob\).*--partial"):
        agreed(study, whole, {"sex"}, {"salary"})
    assert agreed(study, partial, {"sex"}, {"salary"}) == (SEX,)
    for request in (whole, partial):
        with pytest.raises(DeniedError, match=r"denied: (sex, salary|salary, sex) \(by alice, bob\)") as caught:
            agreed(study, request, set(), {"sex", "salary"})
        assert not caught.value.remedy


def planned(
    request: ReleaseRequest, columns: tuple[Column, ...], study: Study, *, population: int, alignment: str
) -> TableSpec:
    return planned_release(plan_question(request, columns, study, population=population, alignment=alignment)).table(0)


def test_every_curator_plans_the_same(study: Study) -> None:
    request = request_with(sample=400, noise_split=Decimal(0), canaries=0)
    spec = planned(request, (SEX, SALARY), study, population=1000, alignment="ab" * 16)
    assert spec == spec_with(columns=(SEX, SALARY), study_digest=study.digest)
    chosen = planned(request_with(), (SEX, SALARY), study, population=1000, alignment="ab" * 16)
    assert 1 <= chosen.sample <= 1000
    assert guaranteed_epsilon(chosen) <= Decimal("0.1")


@pytest.mark.parametrize("changes", [{}, {"delta": Decimal("1e-10"), "epsilon": Decimal("0.3")}])
def test_a_release_of_a_billion_is_planned_and_survives_the_wire(study: Study, changes: dict[str, object]) -> None:
    request = request_with(**changes)
    spec = planned(request, (SEX, SALARY), study, population=MAX_RESPONDENTS, alignment="ab" * 16)
    assert spec.population == 10**9
    assert spec.sample == (10**9 if changes else optimal_sample(population=10**9, cells=4, epsilon=request.epsilon))
    epsilon = float(request.epsilon)
    assert spec.description.delta(epsilon) <= (request.delta or 0) or guaranteed_epsilon(spec) <= request.epsilon
    assert spec.uploaded_rows <= MAX_ROWS
    sent = spec_to_proto(spec).SerializeToString()
    assert spec_from_proto(release_pb2.TableSpec.FromString(sent)) == spec
    assert TableSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_a_request_s_split_and_cap_on_pairs_are_planned(sampling: Sampling) -> None:
    fields: dict[str, Any] = {"delta": Decimal("1e-6"), "sample": 500, "noise_split": Decimal("0.25")}
    asked = request_with(sampling=sampling, max_pair_epsilon=Decimal("0.4"), **fields)
    plan = foreseen_plan(asked, population=1000, cells=4)
    assert plan.release.is_sampled_by_server == (sampling is Sampling.SERVER)
    for each in pairs_of(plan.release, Decimal("1e-6")).values():
        assert each is not None
        assert each <= Decimal("0.4")
    free = foreseen_plan(replace(asked, max_pair_epsilon=None), population=1000, cells=4).mechanism
    assert free == plan_release(population=1000, cells=4, epsilon=asked.epsilon, **fields).mechanism
    whole = replace(asked, max_pair_epsilon=None, noise_split=Decimal(0))
    assert free != foreseen_plan(whole, population=1000, cells=4).mechanism


def test_known_answers_of_the_size_of_a_poisson_sample() -> None:
    """Every curator draws it from the release id alone."""
    for release_id, size in (("0" * 31 + "1", 395), ("ab" * 16, 402)):
        request = request_with(release_id=release_id, scheme="poisson", sample=400)
        assert foreseen_plan(request, population=1000, cells=4).sample == size


def test_too_few_respondents_or_too_large_a_sample(study: Study) -> None:
    few = replace(study, minimum_population=100)
    planned(request_with(), (SEX, SALARY), few, population=100, alignment="ab" * 16)
    with pytest.raises(InvalidInputError, match="fewer respondents than the 100 that"):
        planned(request_with(), (SEX, SALARY), few, population=99, alignment="ab" * 16)
    with pytest.raises(InvalidInputError, match="1 to n = 100 rows, not 101"):
        planned(request_with(sample=101), (SEX, SALARY), few, population=100, alignment="ab" * 16)


@pytest.mark.parametrize(
    ("alice", "bob", "granted", "denied"),
    [
        (({"sex"}, set()), ({"salary"}, set()), {"sex", "salary"}, set()),
        (({"sex"}, {"age"}), (set(), {"salary"}), {"sex"}, {"age", "salary"}),
        # Bob speaks for alice, against her, and in two ways at once.
        ((set(), {"sex"}), ({"sex", "salary"}, set()), {"salary"}, {"sex"}),
        ((set(), set()), ({"sex", "salary"}, set()), {"salary"}, set()),
        (({"sex"}, set()), ({"salary"}, {"sex"}), {"sex", "salary"}, set()),
        (({"sex"}, set()), ({"salary", "height"}, {"salary"}), {"sex"}, {"salary"}),
    ],
)
def test_a_curator_decides_about_its_own_attributes_only(
    study: Study, alice: tuple[set[str], set[str]], bob: tuple[set[str], set[str]], granted: set[str], denied: set[str]
) -> None:
    everyone = (says("alice", *alice), says("bob", *bob))
    for order in (everyone, everyone[::-1]):
        assert [set(names) for names in joint_decision(order, study)] == [granted, denied]


def test_a_denied_attribute_is_in_no_plan_whatever_another_curator_says(study: Study) -> None:
    everyone = (says("alice", set(), {"sex"}), says("bob", {"sex", "salary"}, set()))
    assert agreed_columns(request_with(partial=True), study, *joint_decision(everyone, study)) == (SALARY,)


@pytest.mark.parametrize(
    ("bob", "carol", "granted", "denied"),
    [
        (({"stay"}, set()), ({"stay"}, set()), {"stay"}, set()),
        (({"stay"}, set()), (set(), {"stay"}), set(), {"stay"}),
        (({"stay"}, set()), (set(), set()), set(), set()),
    ],
)
def test_an_attribute_of_several_holders_is_granted_by_all_of_them(
    study: Study, bob: tuple[set[str], set[str]], carol: tuple[set[str], set[str]], granted: set[str], denied: set[str]
) -> None:
    held = replace(study.attributes[0], attribute=replace(study.attributes[0].attribute, name="stay"), owner="bob")
    shared = SimpleNamespace(attributes=(*study.attributes, replace(held, others=("carol",))))
    everyone = (says("alice", {"sex", "stay"}, set()), says("bob", *bob), says("carol", *carol))
    assert [set(names) for names in joint_decision(everyone, cast("Study", shared))] == [granted | {"sex"}, denied]
