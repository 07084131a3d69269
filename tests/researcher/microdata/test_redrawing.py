"""Tables that are drawn anew have the law of those that were released."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from tests.worlds.domains import domain_of
from veiltab.common.core.mechanism import GammaDiagonal, invert
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.uncertainty import covariance
from veiltab.researcher.microdata.redrawing import redrawn, whole

DOMAIN = domain_of(3, 2)
FRACTIONS = np.array([0.4, 0.05, 0.2, 0.0, 0.3, 0.05])


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.mark.parametrize("sample", [100, 60])
def test_mean_and_covariance_are_those_of_the_release(sample: int) -> None:
    mechanism = GammaDiagonal.from_gamma(6, Fraction(4))
    design = ReleaseDesign(population=100, sample=sample, mechanism=mechanism)
    draws = 1000
    estimates = np.array(
        [invert(redrawn(FRACTIONS, DOMAIN, design, key(i)), mechanism) for i in range(draws)], np.float64
    )
    exact = covariance(FRACTIONS, design)
    # 6 means and 21 covariances at alpha = 1e-6 each: five standard errors.
    assert np.all(np.abs(estimates.mean(axis=0) - FRACTIONS) < 5 * np.sqrt(np.diag(exact) / draws))
    spread = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / draws)
    assert np.all(np.abs(np.cov(estimates.T) - exact) < 5 * spread)


def test_the_same_key_draws_the_same_counts() -> None:
    design = ReleaseDesign(population=50, sample=40, mechanism=GammaDiagonal.from_gamma(6, Fraction(4)))
    first = redrawn(FRACTIONS, DOMAIN, design, key(1))
    assert first.sum() == 40
    assert np.array_equal(first, redrawn(FRACTIONS, DOMAIN, design, key(1)))
    assert not np.array_equal(first, redrawn(FRACTIONS, DOMAIN, design, key(2)))


def test_whole_numbers_are_right_on_average_and_never_a_row_off() -> None:
    fractions = np.array([0.123, 0.0, 0.377, 0.0004, 0.4996])
    draws = np.array([whole(fractions, 37, key(i)) for i in range(4000)])
    assert np.all(draws.sum(axis=1) == 37)
    assert np.all(np.abs(draws - 37 * fractions) < 1)
    assert np.all(np.abs(draws.mean(axis=0) - 37 * fractions) < 5 * 0.5 / sqrt(4000))
