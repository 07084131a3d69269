from math import exp, sqrt

from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import description_of
from veiltab.common.schemes import scheme_of
from veiltab.papers.privacy.composition import compose, subsampled_delta

ADULT = description_of({"population": 45222, "sample": 45222, "cells": 24, "gamma": "356.78"})
SMALL = description_of({"population": 400, "sample": 300, "cells": 6, "gamma": "9", "scheme": "wor"})


def test_composing_is_never_below_one_release_and_never_above_the_pure_sum() -> None:
    last = 0.0
    for count in (1, 2, 4):
        found = compose([(SMALL, count)], 1e-5)
        assert last < found.epsilon <= float(found.pure_epsilon)
        assert found.pure_epsilon == count * SMALL.pure_epsilon
        last = found.epsilon


def test_prices_alone_are_above_the_loss_distributions() -> None:
    # Equal releases of many rows a cell at 1e-6.
    for count in (2, 10, 40):
        found = compose([(ADULT, count)], 1e-6)
        assert 1.01 * found.epsilon <= found.price.epsilon(1e-6) <= 1.035 * found.epsilon


def test_a_tiny_delta_costs_a_little_more_and_not_the_pure_sum() -> None:
    last = compose([(ADULT, 5)], 1e-14)
    for delta in (1e-15, 1e-16, 1e-18):
        found = compose([(ADULT, 5)], delta)
        assert last.epsilon < found.epsilon < min(1.15 * last.epsilon, float(found.pure_epsilon) / 5)
        last = found


def test_the_composed_gaussian_is_the_gaussian() -> None:
    # m = n without replacement leaves nothing to sampling: T steps of ratio r are one of ratio r sqrt(T).
    scheme = scheme_of("wor", population=50, sample=50)
    found = subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=20.0, steps=25, epsilon=1.0)
    ratio = 2 / 20 * sqrt(25)
    exact = norm.cdf(ratio / 2 - 1 / ratio) - exp(1) * norm.cdf(-ratio / 2 - 1 / ratio)
    assert exact <= found <= exact * 1.02


def test_must_s_own_pair_under_reports() -> None:
    # A concrete pair attains 3.8e-2 here; the paper's composition of its symmetric pair gives 1.5e-4.
    scheme = scheme_of("must.ow", population=10_000, sample=200, stage=118)
    assert subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=4, steps=1000, epsilon=1.0) >= 3.8e-2


def test_subsampled_gaussian_without_replacement_covers_a_concrete_pair() -> None:
    # All other values at -1, one moved from +1 to -1: the sum moves by 2 when it is drawn. Exact by dp_accounting's
    # mixture of Gaussians for removal of that shift.
    n, m, sigma, steps = 1000, 100, 8.0, 50
    exact = pld.from_gaussian_mechanism(sigma / 2, sampling_prob=m / n, value_discretization_interval=1e-3)
    lower = exact.self_compose(steps)
    scheme = scheme_of("wor", population=n, sample=m)
    for epsilon in (0.5, 1.0):
        found = subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=sigma, steps=steps, epsilon=epsilon)
        assert found >= float(lower.get_delta_for_epsilon(epsilon)) * 0.99


def test_compositions_that_cannot_be_are_refused() -> None:
    with refuses(InvalidInputError, where="composition"):
        compose([], 1e-6)
    with refuses(InvalidInputError, where="composition"):
        compose([(SMALL, 0)], 1e-6)
    with refuses(InvalidInputError, where="delta"):
        compose([(SMALL, 1)], 0.0)
    scheme = scheme_of("wor", population=10, sample=5)
    with refuses(InvalidInputError, where="composition"):
        subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=0.0, steps=1, epsilon=1.0)
