"""The central guarantee of a round holds against every enumerated adversary, and is the certificate of its strata."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from tests.conftest import refuses
from veiltab.common.collection.oracles import KaryRandomisedResponse, oracle_for
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.rounding import ln_above
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.researcher.collection.shuffling import (
    CentralGuarantee,
    central_guarantee,
    compare_with_gaussian,
    gaussian_standard_error,
    undominated,
)

DELTA = Decimal("1e-6")
Law = dict[tuple[int, ...], Fraction]


def law_of_counts(values: Sequence[int], reports: int, size: int, gamma: Fraction, *, sure: int | None = None) -> Law:
    """Law of the counts given that `reports` nodes reported: any of them, or those whose places are below `sure`."""
    total = gamma + size - 1
    groups = list(combinations(range(len(values)), reports)) if sure is None else [tuple(range(sure))]
    law: Law = defaultdict(Fraction)
    for group in groups:
        for outputs in product(range(size), repeat=len(group)):
            chance = Fraction(1, len(groups))
            for node, output in zip(group, outputs, strict=True):
                chance *= (gamma if values[node] == output else Fraction(1)) / total
            law[tuple(outputs.count(i) for i in range(size))] += chance
    return law


def krr(size: int, gamma: Fraction | str | int) -> KaryRandomisedResponse:
    """k-ary randomised response whose gamma is the given one, or 2^-64 below."""
    replacement = GammaDiagonal.from_gamma(size, Fraction(gamma)).replacement
    return KaryRandomisedResponse(size=size, replacement=replacement)


def divergence(one: Law, other: Law, ratio: float) -> float:
    return sum(max(0.0, float(chance) - ratio * float(other.get(counts, 0))) for counts, chance in one.items())


@pytest.mark.parametrize(("nodes", "size", "gamma"), [(4, 2, Fraction(5)), (3, 3, Fraction(9)), (4, 3, Fraction(3))])
def test_enumerated_adversaries_learn_no_more(nodes: int, size: int, gamma: Fraction) -> None:
    delta = Decimal("0.05")
    for reports in range(1, nodes + 1):
        found = central_guarantee([nodes], [reports], oracle=krr(size, gamma), delta=delta)
        assert found.epsilon is not None
        assert found.known_epsilon is not None
        # By symmetry of the values the target changes from 0 to 1, and of the others only the counts matter.
        for others in combinations_with_replacement(range(size), nodes - 1):
            secret, other_secret = (law_of_counts((x, *others), reports, size, gamma) for x in (0, 1))
            known, other_known = (law_of_counts((x, *others), reports, size, gamma, sure=reports) for x in (0, 1))
            assert divergence(secret, other_secret, exp(float(found.epsilon))) <= float(delta) + 1e-12
            assert divergence(known, other_known, exp(float(found.known_epsilon))) <= float(delta) + 1e-12
            assert divergence(secret, other_secret, exp(float(found.pure_epsilon))) <= 1e-12


def test_a_stratum_is_a_release_in_secret_order() -> None:
    found = central_guarantee([50_000], [5_000], oracle=krr(100, Fraction(7)), delta=DELTA)
    hidden = OrderCertificate(population=50_000, sample=5_000, cells=100, gamma=Fraction(7))
    known = OrderCertificate(population=5_000, sample=5_000, cells=100, gamma=Fraction(7))
    assert float(found.epsilon or 0) == pytest.approx(hidden.epsilon(1e-6), rel=1e-9)
    assert float(found.known_epsilon or 0) == pytest.approx(known.epsilon(1e-6), rel=1e-9)
    assert hidden.delta(float(found.epsilon or 0)) <= 1e-6
    assert found.pure_epsilon == pytest.approx(ln_above(1 + Fraction(1, 10) * 6))
    assert found.local_epsilon == pytest.approx(ln_above(Fraction(7)))
    assert (found.epsilon or 0) < found.pure_epsilon < found.local_epsilon
    assert (found.known_epsilon or 0) < found.local_epsilon


def test_the_worst_stratum_counts() -> None:
    populations, reports = [1_000, 400, 500, 80], [100, 40, 250, 0]
    together = central_guarantee(populations, reports, oracle=krr(4, Fraction(7)), delta=DELTA)
    alone = [
        central_guarantee([n], [s], oracle=krr(4, Fraction(7)), delta=DELTA)
        for n, s in zip(populations, reports, strict=True)
    ]
    assert together.epsilon == max(one.epsilon or Decimal(0) for one in alone)
    assert together.known_epsilon == max(one.known_epsilon or Decimal(0) for one in alone)
    assert together.pure_epsilon == max(one.pure_epsilon for one in alone)


def test_a_stratum_that_another_dominates_is_never_worse() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        sizes = rng.integers(1, 40, 2)
        pairs = [(int(s + extra), int(s)) for s, extra in zip(sizes, rng.integers(0, 40, 2), strict=True)]
        cells, gamma = int(rng.integers(2, 12)), Fraction(int(rng.integers(11, 200)), 10)
        epsilon = float(rng.uniform(0.01, log(gamma)))
        certificates = [OrderCertificate(population=n, sample=s, cells=cells, gamma=gamma) for n, s in pairs]
        deltas = [certificate.delta(epsilon) for certificate in certificates]
        kept = undominated(pairs)
        worst = max(delta for pair, delta in zip(pairs, deltas, strict=True) if pair in kept)
        assert max(deltas) <= worst * (1 + 1e-8)


def test_dominance() -> None:
    assert undominated([(10, 5), (20, 5), (8, 6), (100, 60), (12, 8)]) == [(10, 5), (8, 6)]
    assert undominated([]) == []


def test_a_smaller_population_than_the_true_one_is_safe() -> None:
    few, many = (central_guarantee([n], [50], oracle=krr(10, Fraction(7)), delta=DELTA) for n in (100, 1000))
    assert (few.epsilon or 0) > (many.epsilon or 0)
    assert few.pure_epsilon > many.pure_epsilon


@pytest.mark.parametrize("name", ["olh", *(pytest.param(name, marks=pytest.mark.long) for name in ("oue", "ss"))])
def test_other_oracles_have_certificates(name: str) -> None:
    oracle = oracle_for(name, 100, Decimal(2))
    found = central_guarantee([50_000], [50_000], oracle=oracle, delta=DELTA)
    assert found.local_epsilon == ln_above(oracle.gamma) == Decimal(2)
    assert 0.031 < float(found.epsilon or 0) < 0.032
    assert compare_with_gaussian(np.ones(3), found) is not None


def test_sizes_that_no_certificate_is_computed_for() -> None:
    found = central_guarantee([10**10], [2 * 10**9], oracle=krr(4, Fraction(7)), delta=DELTA)
    assert found.epsilon is None
    assert "computed for" in found.why


def test_nobody_reported_so_nothing_was_said() -> None:
    found = central_guarantee([10, 20], [0, 0], oracle=krr(4, Fraction(7)), delta=DELTA)
    assert (found.pure_epsilon, found.epsilon, found.known_epsilon) == (Decimal(0), Decimal(0), Decimal(0))
    assert compare_with_gaussian(np.ones(4), found) is None


def test_rows_round_upwards() -> None:
    found = CentralGuarantee(
        local_epsilon=Decimal("2.0000001"),
        pure_epsilon=Decimal("0.5000001"),
        delta=DELTA,
        epsilon=Decimal("0.1000001"),
        known_epsilon=Decimal("0.2000001"),
    )
    text = " ".join(faces for _, faces in found.rows())
    assert "0.5" not in text, "the looser of two bounds is not shown"
    for shown in ("epsilon 2.1 a node", "epsilon 0.11 at delta", "epsilon 0.21 at delta"):
        assert shown in text


@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "1e-6"), ("1", "1e-9"), ("20", "0.1"), ("1e-5", "1e-3")])
def test_the_gaussian_is_the_least_that_is_private(epsilon: str, delta: str) -> None:
    sigma, nats = gaussian_standard_error(Decimal(epsilon), Decimal(delta)), float(epsilon)

    def profile(scale: float) -> float:
        ratio = sqrt(2) / scale
        return float(norm.cdf(ratio / 2 - nats / ratio) - exp(nats) * norm.cdf(-ratio / 2 - nats / ratio))

    assert profile(sigma) <= float(delta) * (1 + 1e-9)
    assert profile(sigma * 0.999) > float(delta)


def test_side_by_side() -> None:
    found = central_guarantee([500], [50], oracle=krr(10, Fraction(7)), delta=DELTA)
    compared = compare_with_gaussian(np.full(10, 500.0), found)
    assert compared is not None
    assert (compared.epsilon, compared.delta) == (found.epsilon, DELTA)
    assert compared.gaussian == gaussian_standard_error(found.epsilon or Decimal(1), DELTA)
    np.testing.assert_array_equal(compared.collected, 500)


@pytest.mark.parametrize(
    ("populations", "reports", "gamma", "delta", "where"),
    [
        ([10], [11], 7, "1e-6", "reports"),
        ([10], [-1], 7, "1e-6", "reports"),
        ([10], [1, 2], 7, "1e-6", "reports"),
        ([10], [1], 7, "0", "delta"),
        ([10], [1], 7, "1", "delta"),
    ],
)
def test_what_means_nothing_is_refused(
    populations: list[int], reports: list[int], gamma: int, delta: str, where: str
) -> None:
    with refuses(InvalidInputError, where=where):
        central_guarantee(populations, reports, oracle=krr(4, gamma), delta=Decimal(delta))
