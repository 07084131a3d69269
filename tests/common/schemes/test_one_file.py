"""A scheme is one file and its registration: a complete one works in every layer, an incomplete one in none."""

import importlib
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tests.common.schemes import made_up
from tests.common.schemes.made_up import OneRespondent
from tests.conftest import request_with, spec_with
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.planning.planning import Plan, plan_release
from veiltab.common.release.guarantees import check_keeps_what_was_asked, epsilon_card, guaranteed_epsilon
from veiltab.common.release.messages import release_messages as wire
from veiltab.common.release.messages.release_messages import (
    request_from_proto,
    request_to_proto,
    spec_from_proto,
    spec_to_proto,
)
from veiltab.common.release.modes import Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.schemes import SCHEMES, Relation, Scheme, has_stage, scheme_class, scheme_of
from veiltab.curator.planning.plans import foreseen_plan
from veiltab.researcher.estimates.uncertainty import ReleaseDesign

POPULATION, SAMPLE, STAGE = 1000, 40, 60
FACTS = ("name", "title", "relation", "size_law", "is_simple_random")
METHODS = ("_check_sizes", "draw", "eta", "gamma_for", "multiplicities", "pure_epsilon", "variance_factor")


@pytest.fixture(params=[*SCHEMES, OneRespondent.name])
def scheme(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Scheme:
    """Every registered scheme, and one that a test registers."""
    monkeypatch.setitem(SCHEMES, OneRespondent.name, "tests.common.schemes.made_up:OneRespondent")
    return sized(request.param)


def sized(name: str) -> Scheme:
    return scheme_of(name, population=POPULATION, sample=SAMPLE, stage=stage_of(name))


def stage_of(name: str) -> int | None:
    return STAGE if has_stage(scheme_class(name)) else None


def planned(name: str, **changes: object) -> TableSpec:
    cells = spec_with().cells
    plan = plan_release(
        population=POPULATION,
        cells=cells,
        epsilon=Decimal(2),
        sample=SAMPLE,
        scheme=name,
        stage=stage_of(name),
        noise_split=Decimal(0),
    )
    sizes = {"population": POPULATION, "sample": SAMPLE, "stage": stage_of(name), "epsilon": Decimal(2)}
    spec: TableSpec = spec_with(scheme=name, server_replacement=plan.mechanism.server_replacement, **sizes, **changes)
    return spec


def plan_with_delta(name: str) -> Plan:
    return plan_release(
        population=POPULATION,
        cells=4,
        epsilon=Decimal(1),
        delta=Decimal("1e-6"),
        sample=SAMPLE,
        scheme=name,
        stage=stage_of(name),
    )


def tokens() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (POPULATION, 16), np.uint8)


def test_it_draws_its_rows(scheme: Scheme) -> None:
    rows = scheme.draw(tokens(), bytes(32))
    assert rows.dtype == np.int64
    assert rows.shape == (SAMPLE,)
    assert 0 <= rows.min() <= rows.max() < POPULATION
    assert len(set(rows.tolist())) == SAMPLE or not scheme.is_simple_random


def test_its_gamma_is_the_largest_that_keeps_a_pure_epsilon(scheme: Scheme) -> None:
    epsilon = Decimal("1.5")
    gamma = scheme.gamma_for(epsilon)
    assert scheme.is_within(epsilon, gamma)
    assert not scheme.is_within(epsilon, 1 + (gamma - 1) * Fraction(1001, 1000))


def test_it_ends_also_where_rounding_leaves_nothing_of_epsilon(scheme: Scheme) -> None:
    for epsilon in (Decimal("1e-12"), Decimal("1e-11")):
        with suppress(InvalidInputError):
            assert scheme.is_within(epsilon, scheme.gamma_for(epsilon))


def test_its_release_is_described_accounted_for_and_read_back(scheme: Scheme) -> None:
    release = ReleaseDescription(scheme=scheme, cells=4, gamma=Fraction(3))
    assert description_of(release.as_dict()) == release
    assert 0 < release.delta(0.0) < 1
    assert release.delta(float(release.pure_epsilon)) == 0
    assert (release.order_certificate is not None) == scheme.is_simple_random


def test_its_estimates_have_a_covariance(scheme: Scheme) -> None:
    mechanism = GammaDiagonal.from_gamma(4, Fraction(3))
    design = ReleaseDesign(population=POPULATION, sample=SAMPLE, mechanism=mechanism, scheme=scheme)
    assert design.terms.sampling == scheme.variance_factor > 0


def test_its_spec_is_kept_and_has_a_card(scheme: Scheme) -> None:
    spec = planned(scheme.name)
    assert TableSpec.from_json(spec.to_json()) == spec
    assert spec.description.scheme == scheme
    check_keeps_what_was_asked(spec)
    assert Decimal("1.9") < guaranteed_epsilon(spec) <= 2
    with pytest.raises(InvalidInputError, match="too small"):
        check_keeps_what_was_asked(replace(spec, epsilon=Decimal("1.9")))
    assert (epsilon_card(spec).bound(Coalition.DESK).other is not None) == scheme.is_simple_random


def test_what_only_simple_random_samples_allow(scheme: Scheme) -> None:
    for changes, problem in (
        ({"delta": Decimal("1e-6")}, "certified for wor and poisson, not"),
        ({"sampling": Sampling.INDICES}, "drawn from a seed"),
        ({"sampling": Sampling.SERVER}, "drawn from a seed"),
    ):
        if scheme.is_simple_random:
            planned(scheme.name, **changes)
        else:
            with pytest.raises(InvalidInputError, match=problem):
                planned(scheme.name, **changes)
    if not scheme.is_simple_random:
        with pytest.raises(InvalidInputError, match="certified for wor and poisson, not"):
            plan_with_delta(scheme.name)


def test_a_curator_plans_what_is_asked_under_it(scheme: Scheme) -> None:
    request = request_with(scheme=scheme.name, stage=stage_of(scheme.name), sample=SAMPLE, epsilon=Decimal(2))
    plan = foreseen_plan(request, population=POPULATION, cells=4)
    assert type(plan.scheme) is type(scheme)
    assert plan.sample == SAMPLE or scheme.relation is Relation.ADD_REMOVE
    assert Decimal("1.9") < plan.pure_epsilon <= 2


@pytest.mark.parametrize("name", SCHEMES)
def test_its_number_travels(name: str) -> None:
    spec, request = planned(name), request_with(scheme=name, stage=stage_of(name))
    assert spec_from_proto(spec_to_proto(spec)) == spec
    assert request_from_proto(request_to_proto(request), request.researcher) == request


def test_a_scheme_without_a_number_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, OneRespondent.name, "tests.common.schemes.made_up:OneRespondent")
    with pytest.raises(AttributeError, match="SCHEME_ONE"):
        importlib.reload(wire)
    monkeypatch.undo()
    importlib.reload(wire)


def partial(missing: str) -> type[Scheme]:
    kept = {part: vars(OneRespondent)[part] for part in (*FACTS, *METHODS) if part != missing}
    return type("Partial", (Scheme,), kept)


@pytest.mark.parametrize("fact", FACTS)
def test_a_scheme_that_leaves_a_fact_open_cannot_be_defined(fact: str) -> None:
    with pytest.raises(TypeError, match=f"scheme Partial lacks {fact}"):
        partial(fact)


def test_the_parts_of_a_made_up_scheme_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(METHODS) == Scheme.__abstractmethods__
    monkeypatch.setattr(made_up, "Partial", partial(""), raising=False)
    monkeypatch.setitem(SCHEMES, OneRespondent.name, "tests.common.schemes.made_up:Partial")
    assert sized(OneRespondent.name).eta == 1 / POPULATION


@pytest.mark.parametrize("method", METHODS)
def test_a_scheme_that_leaves_a_method_open_cannot_be_made(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(made_up, "Partial", partial(method), raising=False)
    monkeypatch.setitem(SCHEMES, OneRespondent.name, "tests.common.schemes.made_up:Partial")
    with pytest.raises(TypeError, match="abstract"):
        sized(OneRespondent.name)
