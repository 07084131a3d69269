"""Errors of the estimators: exact biases and variances at fixed values, and estimates of them.

The values are fixed; coins and noise are random, and nodes are independent. A node of stratum s contributes
R (a B - b) to a linear estimator, R ~ Bernoulli(pi), B ~ Bernoulli(p) if it holds the value and Bernoulli(q) if not.
So with u = p or q,

    E = pi (a u - b)          Var = pi a^2 u(1-u) + pi(1-pi)(a u - b)^2

and everything is a sum over nodes. The coefficients are exact; only the sums over counts are floating.
"""

from fractions import Fraction
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import binomial_pmf, window
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, LinearForm, as_floats, linear_form, point_estimates
from veiltab.researcher.frequency.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Bias and variance of an estimator, one of each a value.

    Args:
        bias: shape (d,) (nodes).
        variance: shape (d,) (nodes squared).
        exact: False for hajek under rates that differ: its variance is linearised, its bias of second order.
    """

    bias: NDArray[np.float64]
    variance: NDArray[np.float64]
    exact: bool = True


def node_variances(form: LinearForm, design: RoundDesign) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return one node's contribution to the variance, by stratum: of a node that holds the value, and of another.

    pi a^2 u(1-u) + pi(1-pi)(a u - b)^2    with u = p, and with u = q
    """

    def added(u: Fraction) -> tuple[Fraction, ...]:
        def of(rate: Fraction, a: Fraction, b: Fraction) -> Fraction:
            return rate * a**2 * u * (1 - u) + rate * (1 - rate) * (a * u - b) ** 2

        return tuple(starmap(of, zip(design.rates, form.support, form.report, strict=True)))

    return added(design.p), added(design.q)


def moments(estimator: Estimator, truth: NDArray[np.int64], design: RoundDesign) -> Moments:
    """Return bias and variance of an estimator of how many nodes hold each value.

    Args:
        truth: n_si, nodes of stratum s that hold value i; shape (strata, d), integers.

    Returns:
        Exact for the linear estimators. For hajek, given at least one report: unbiased and exact at one rate, else
        linearised.

    Raises:
        InvalidInputError: counts that do not add up to the populations.

    Source: derived; Var(c) agrees with the proof of Biswas, Cormode, Maple, Theorem 3.2 at equal rates, Var(c_hat)
    with no printed formula (Theorem 3.5 leaves out the covariance of N and S).
    """
    _check_truth(truth, design)
    if estimator.is_linear:
        form = linear_form(estimator, design)
        return Moments(bias=_bias(form, truth, design), variance=_linear_variance(form, truth, design))
    total = truth.sum(axis=0)
    if design.one_rate:
        return Moments(bias=np.zeros(total.shape), variance=_ratio_variance(total, design))
    shares = total / design.population
    unsure = as_floats([(1 - rate) / rate for rate in design.rates])
    bias = (shares * (np.array(design.populations) @ unsure) - unsure @ truth) / design.population
    return Moments(bias=bias, variance=_linearised_variance(truth, shares, design), exact=False)


def variance_estimate(tally: Tally, estimator: Estimator) -> NDArray[np.float64]:
    """Return an estimate of the variance of an estimator, made from the tally alone.

    sum_s N_si [pi a^2 (1-p)(1-q) + (1-pi)(a-b)^2] + (S_s - N_si)[pi a^2 p q + (1-pi) b^2]

    It is unbiased for the linear estimators, and never negative. For horvitz_thompson it is sum z^2/pi^2 - estimate.
    For hajek at one rate it is unbiased given S (S at least 2), otherwise linearised.

    Returns:
        Shape (d,), float64 (nodes squared).

    Source: derived: replace n_si by its unbiased estimate (N_si - q S_s)/(pi_s (p-q)) and n_s by S_s/pi_s.
    """
    design = tally.design
    form = linear_form(estimator, design)
    a, b = as_floats(form.support)[:, None], as_floats(form.report)[:, None]
    if estimator.is_linear:
        return _counted_variance(tally, a, b)
    if design.one_rate:
        return _counted_ratio_variance(tally)
    shares = point_estimates(estimator, tally.counts, tally.reports, design) / design.population
    weights = as_floats([1 / rate for rate in design.rates])
    nodes = float(tally.reports @ weights)
    return _counted_variance(tally, a, b + weights[:, None] * shares) * (design.population / nodes) ** 2


def mean_shortage(population: int, rate: Fraction) -> float:
    """Return E[(n - S)/S | S >= 1] for S ~ Bin(n, rate), so that E[1/S | S >= 1] is (1 + that)/n.

    Summed over the likely values of S, without the cancellation of n E[1/S] - 1.
    """
    if rate == 1:
        return 0.0
    low, high = window(population, float(rate))
    size = np.arange(max(1, low), max(1, high) + 1, dtype=np.int64)
    weights = binomial_pmf(size, population, float(rate))
    return float(weights @ ((population - size) / size) / weights.sum())


def _check_truth(truth: NDArray[np.int64], design: RoundDesign) -> None:
    if truth.ndim != 2 or truth.sum(axis=1).tolist() != list(design.populations) or int(truth.min()) < 0:
        raise InvalidInputError("the counts of a stratum must not be negative and must add up to its population")


def _bias(form: LinearForm, truth: NDArray[np.int64], design: RoundDesign) -> NDArray[np.float64]:
    """Return sum_s n_si [pi a (p-q) - 1] + sum_s n_s pi (a q - b) + constant."""
    strata = list(zip(design.populations, design.rates, form.support, form.report, strict=True))
    missed = [rate * a * (design.p - design.q) - 1 for _, rate, a, _ in strata]
    offset = sum((n * rate * (a * design.q - b) for n, rate, a, b in strata), form.constant)
    bias: NDArray[np.float64] = as_floats(missed) @ truth + float(offset)
    return bias


def _linear_variance(form: LinearForm, truth: NDArray[np.int64], design: RoundDesign) -> NDArray[np.float64]:
    holding, other = map(as_floats, node_variances(form, design))
    variance: NDArray[np.float64] = holding @ truth + other @ (np.array(design.populations)[:, None] - truth)
    return variance


def _ratio_variance(total: NDArray[np.int64], design: RoundDesign) -> NDArray[np.float64]:
    """Return n^2 {[f p(1-p) + (1-f) q(1-q)] E[1/S]/(p-q)^2 + f(1-f) E[(n-S)/S]/(n-1)}, given S >= 1."""
    n, p, q = design.population, design.p, design.q
    shortage = mean_shortage(n, design.rates[0])
    holding, other = float(p * (1 - p) / (p - q) ** 2), float(q * (1 - q) / (p - q) ** 2)
    noise = (total * holding + (n - total) * other) * (1 + shortage)
    return noise + total * ((n - total) / max(n - 1, 1)) * shortage


def _linearised_variance(
    truth: NDArray[np.int64], shares: NDArray[np.float64], design: RoundDesign
) -> NDArray[np.float64]:
    """Return the variance of horvitz_thompson - f sum_s(S_s/pi_s)."""
    p, q = design.p, design.q
    noise = [(p * (1 - p) / rate / (p - q) ** 2, q * (1 - q) / rate / (p - q) ** 2) for rate in design.rates]
    unsure = as_floats([(1 - rate) / rate for rate in design.rates])[:, None]
    holding = as_floats([one for one, _ in noise])[:, None] + unsure * (1 - shares) ** 2
    other = as_floats([one for _, one in noise])[:, None] + unsure * shares**2
    rest = np.array(design.populations)[:, None] - truth
    variance: NDArray[np.float64] = (holding * truth + other * rest).sum(axis=0)
    return variance


def _counted_variance(tally: Tally, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    p, q = tally.p, tally.q
    rate = as_floats(tally.rates)[:, None]
    holding = rate * a**2 * float((1 - p) * (1 - q)) + (1 - rate) * (a - b) ** 2
    other = rate * a**2 * float(p * q) + (1 - rate) * b**2
    total: NDArray[np.float64] = (holding * tally.counts + other * (tally.reports[:, None] - tally.counts)).sum(axis=0)
    return total


def _counted_ratio_variance(tally: Tally) -> NDArray[np.float64]:
    """Return n/(p-q)^2 {y(1-y)(n-S)/(S-1) + y(1-p)(1-q) + (1-y) p q}, y = N/S.

    One report does not show how reports differ; y(1-y) is then taken at its largest.
    """
    n, p, q, received = tally.design.population, tally.p, tally.q, int(tally.reports.sum())
    y = tally.counts.sum(axis=0) / received
    spread = y * (1 - y) / (received - 1) if received > 1 else np.full(y.shape, 0.25)
    noise = y * float((1 - p) * (1 - q)) + (1 - y) * float(p * q)
    total: NDArray[np.float64] = (spread * (n - received) + noise) * n / float(p - q) ** 2
    return total
