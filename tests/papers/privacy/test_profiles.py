"""A mechanism of which only some (epsilon, delta) are known: above every mechanism that keeps them."""

from math import exp

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.profiles import Gaussian, GroupProfile
from veiltab.papers.privacy.profiles import Guaranteed, Laplace, Pure

EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.7, 3.0, 6.0, 20.0)


@pytest.mark.parametrize("exact", [Gaussian(ratio=0.3), Gaussian(ratio=2.0), Laplace(ratio=1.0), Pure(epsilon0=0.7)])
@pytest.mark.parametrize("points", [(0.5,), (0.0, 1.0), (0.2, 0.6, 1.1, 2.0)])
@pytest.mark.parametrize("copies", [1, 2, 3, 7])
def test_no_mechanism_that_keeps_the_points_exceeds_them(
    exact: GroupProfile, points: tuple[float, ...], copies: int
) -> None:
    bound = Guaranteed(points=tuple((epsilon, exact.delta(epsilon, 1)) for epsilon in points))
    for epsilon in EPSILONS:
        assert exact.delta(epsilon, copies) <= bound.delta(epsilon, copies) * (1 + 1e-9)
    if copies == 1:
        for epsilon in points:
            assert bound.delta(epsilon, 1) == pytest.approx(exact.delta(epsilon, 1), rel=1e-9, abs=1e-15)


def test_one_point_is_randomised_response_that_leaks() -> None:
    # With probability delta it names the table; otherwise it answers truly with probability e^1/(1 + e^1).
    delta, truth = 1e-3, exp(1) / (1 + exp(1))
    for epsilon in (0.0, 0.3, 0.9):
        attained = delta + (1 - delta) * (truth - exp(epsilon) * (1 - truth))
        assert Guaranteed(points=((1.0, delta),)).delta(epsilon, 1) == pytest.approx(attained, rel=1e-9)


def test_groups_of_copies_follow_the_textbook() -> None:
    # (1, 1e-6) for one is (3, 1e-6 (e^3 - 1)/(e - 1)) for three.
    bound = Guaranteed(points=((1.0, 1e-6),))
    assert bound.delta(3.0, 3) == pytest.approx(1e-6 * (1 + exp(1) + exp(2)), rel=1e-9)
    assert bound.delta(3000.0, 3) == pytest.approx(1.0)
    assert bound.delta(2000.0, 1) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    "points", [(), ((1.0, 1.0),), ((-0.1, 0.1),), ((float("nan"), 0.1),), ((1.0, -0.1),), ((701.0, 0.0),)]
)
def test_what_guarantees_nothing_is_refused(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InvalidInputError, match="between 0 and 700"):
        Guaranteed(points=points)
