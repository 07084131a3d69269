"""What pairs attain, beside exact sums, beside closed forms, and below every guarantee."""

from fractions import Fraction
from itertools import product
from math import exp, log

import pytest

from tests.common.privacy.enumeration import release_law
from veiltab.common.privacy.description import description_of
from veiltab.common.privacy.profiles import Gaussian, GroupProfile
from veiltab.common.schemes import scheme_of
from veiltab.papers.privacy.amplification import amplify
from veiltab.papers.privacy.attained import attained_by_releases, attained_by_sample, attained_by_steps
from veiltab.papers.privacy.composition import compose, subsampled_delta
from veiltab.papers.privacy.profiles import Laplace, Pure


@pytest.mark.parametrize(
    ("sizes", "delta"),
    [
        ([(2, 2, 2, 3)], 0.1),
        ([(3, 2, 2, 5)], 1e-3),
        ([(3, 3, 3, 4)], 1e-2),
        ([(3, 2, 4, 7)], 1e-2),
        ([(3, 2, 2, 5), (3, 3, 3, 4)], 1e-2),
    ],
)
def test_releases_attain_what_the_worst_pair_of_these_tables_does(
    sizes: list[tuple[int, int, int, int]], delta: float
) -> None:
    facts = [{"population": n, "sample": m, "cells": cells, "gamma": gamma} for n, m, cells, gamma in sizes]
    releases = [(description_of(one), 1) for one in facts]
    found = attained_by_releases(releases, delta)
    exact = 0.0
    for third, way in product((1, 2), (1, -1)):
        both = [(1.0, 1.0)]
        for n, m, cells, gamma in sizes:
            others = [min(third, cells - 1)] * (n - 1)
            one, other = [release_law((own, *others), m, cells, Fraction(gamma)) for own in (0, 1)][::way]
            both = [(p * float(one[h]), q * float(other[h])) for p, q in both for h in one]
        low, high = 0.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            left = sum(max(p - exp(middle) * q, 0.0) for p, q in both)
            low, high = (middle, high) if left > delta else (low, middle)
        exact = max(exact, low)
    assert found is not None
    assert found == pytest.approx(exact, rel=5e-4, abs=2e-4)
    assert found <= exact <= compose(releases, delta).epsilon


@pytest.mark.long
@pytest.mark.parametrize(
    ("releases", "ratio"),
    [
        ([(45222, 45222, 24, "356.78", 10)], 1.001),
        ([(1000, 1000, 5000, 3000, 1), (1000, 1000, 24, 40, 3)], 1.002),
        ([(2000, 500, 2000, 100, 2), (2000, 2000, 10, 20, 5)], 1.002),
        ([(20000, 200, 200, 100, 10)], 1.005),
        ([(60, 50, 3, 4, 5)], 1.02),
    ],
)
@pytest.mark.parametrize("delta", [1e-6, 1e-4])
def test_guarantees_of_several_releases_are_hardly_above_what_a_pair_attains(
    releases: list[tuple[int, int, int, float, int]], ratio: float, delta: float
) -> None:
    """With prices alone the second ledger is guaranteed 1.7 times what is attained."""
    read = [
        (description_of({"population": n, "sample": m, "cells": cells, "gamma": gamma}), count)
        for n, m, cells, gamma, count in releases
    ]
    attained = attained_by_releases(read, delta)
    assert attained is not None
    assert attained <= compose(read, delta).epsilon <= ratio * attained


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize(("name", "sizes"), [("wor", {}), ("wr", {}), ("must.ow", {"stage": 500})])
def test_steps_attain_less_than_is_guaranteed(mechanism: str, name: str, sizes: dict[str, int]) -> None:
    scheme = scheme_of(name, population=6000, sample=60, **sizes)
    upper = subsampled_delta(scheme, mechanism=mechanism, noise_multiplier=4, steps=200, epsilon=0.5)
    found = attained_by_steps(scheme, mechanism=mechanism, ratio=0.5, steps=200, delta=upper)
    # The bound takes the worse of both directions at every step, a pair one of them.
    assert 0.44 < found <= 0.5


@pytest.mark.parametrize("name", ["wor", "poisson"])
@pytest.mark.parametrize(("profile", "epsilon"), [(Laplace(ratio=1.0), 0.5), (Gaussian(ratio=0.7), 1.0)])
def test_the_amplification_of_these_schemes_is_attained(name: str, profile: GroupProfile, epsilon: float) -> None:
    scheme = scheme_of(name, population=1000, sample=400)
    bound = amplify(scheme, profile, epsilon)
    found = attained_by_sample(scheme, profile, epsilon, bound.delta)
    assert found is not None
    assert found <= bound.epsilon == pytest.approx(found, rel=1e-3)


def test_a_pure_guarantee_on_a_sample_is_attained_where_nobody_is_drawn_twice() -> None:
    wor, wr = (scheme_of(name, population=1000, sample=400) for name in ("wor", "wr"))
    assert attained_by_sample(wor, Pure(epsilon0=1.0), 1.0, 0.0) == pytest.approx(log(1 + 0.4 * (exp(1) - 1)))
    assert attained_by_sample(wr, Pure(epsilon0=1.0), 1.0, 0.1) is None
