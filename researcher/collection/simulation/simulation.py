"""Simulated rounds of collection by any oracle: the errors of the estimators, beside their exact values.

The simulation draws a round's counts, not its nodes. With n_si nodes of stratum s that hold value i, S_s = sum_i S_si,

    S_si ~ Bin(n_si, pi_s)    N_si ~ Bin(S_si, p) + Bin(S_s - S_si, q)

This is the exact joint law of S and of the count of each value by itself, so biases, variances and mean distances,
which are sums over the values, are those of real rounds. Counts of different values are drawn independently of one
another given S; in a round by k-ary randomised response they sum to S.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, point_estimates
from veiltab.researcher.frequency.frequencies import total_variation
from veiltab.researcher.frequency.variances import Moments, moments

SIMULATED = tuple(Estimator)
"""The estimators that a simulation compares; T is g by its other name."""

_AT_ONCE = 2_000_000
"""About how many counts are drawn at once."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Performance:
    """Simulated and exact errors of an estimator of counts.

    Args:
        bias: mean over the trials minus the truth, shape (d,) (nodes).
        variance: over the trials (divided by one less than their number), shape (d,) (nodes squared).
        exact: exact bias and variance of one trial; linearised for hajek under rates that differ.
        total_variation: mean over the trials of half the sum of |estimate/n - f|, the estimates raw.
        trials: trials with an estimate; for hajek, those with a report.
    """

    bias: Floats
    variance: Floats
    exact: Moments
    total_variation: float
    trials: int


def draw_counts(truth: Ints, design: RoundDesign, trials: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the counts of many rounds, each value's by its own law.

    Args:
        truth: n_si, shape (strata, d).
        design: rates, p and q.
        trials: number of rounds.

    Returns:
        N_si, shape (trials, strata, d), and S_s, shape (trials, strata), int64.
    """
    reports = draw_reports(truth, design, trials, generator)
    heard = reports.sum(axis=-1)
    counts = generator.binomial(reports, float(design.p))
    counts += generator.binomial(heard[..., None] - reports, float(design.q))
    return counts, heard


def draw_reports(truth: Ints, design: RoundDesign, trials: int, generator: np.random.Generator) -> Ints:
    """Draw S_si, how many nodes with each value report in many rounds; shape (trials, strata, d), int64."""
    rates = np.array([float(rate) for rate in design.rates])[:, None]
    reports: Ints = generator.binomial(truth, rates, size=(trials, *truth.shape))
    return reports


def simulate(truth: Ints, design: RoundDesign, *, trials: int, seed: int) -> dict[Estimator, Performance]:
    """Return the performance of every estimator on a population.

    Args:
        truth: n_si, nodes of stratum s that hold value i, shape (strata, d).
        design: rates, p and q.
        trials: rounds, at least 2.

    Raises:
        InvalidInputError: fewer than two trials, or fewer than two of them with a report.

    Source: Biswas, Cormode, Maple, Section 4 (their figures show c_hat alone).
    """
    if trials < 2:
        raise InvalidInputError("fewer than 2 trials were asked for", where="--trials")
    sums = {which: _Sums(which, truth, design) for which in SIMULATED}
    for counts, reports in _batches(truth, design, trials, seed):
        for one in sums.values():
            one.add(counts, reports)
    return {which: one.performance() for which, one in sums.items()}


def _batches(truth: Ints, design: RoundDesign, trials: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    generator = np.random.default_rng(seed)
    size = max(1, _AT_ONCE // truth.size)
    for start in range(0, trials, size):
        yield draw_counts(truth, design, min(size, trials - start), generator)


class _Sums:
    """The sums over trials that bias, variance and total variation need, around the exact mean to keep their digits."""

    def __init__(self, estimator: Estimator, truth: Ints, design: RoundDesign) -> None:
        self._estimator, self._design = estimator, design
        self._exact = moments(estimator, truth, design)
        self._total = truth.sum(axis=0)
        self._first = np.zeros(self._total.shape)
        self._second = np.zeros(self._total.shape)
        self._distance = 0.0
        self._trials = 0

    def add(self, counts: Ints, reports: Ints) -> None:
        """Add a batch of rounds; hajek has no estimate where nobody reported."""
        if self._estimator is Estimator.HAJEK:
            heard = reports.sum(axis=-1) > 0
            counts, reports = counts[heard], reports[heard]
        estimates = point_estimates(self._estimator, counts, reports, self._design)
        away = estimates - (self._total + self._exact.bias)
        self._first += away.sum(axis=0)
        self._second += (away * away).sum(axis=0)
        n = self._design.population
        self._distance += float(total_variation(estimates / n, self._total / n).sum())
        self._trials += len(estimates)

    def performance(self) -> Performance:
        """Return the performance by these sums."""
        trials = self._trials
        if trials < 2:
            raise InvalidInputError(
                "fewer than two trials had a report", where="--rate", remedy="Raise the rate, the nodes or the trials."
            )
        mean = self._first / trials
        return Performance(
            bias=self._exact.bias + mean,
            variance=np.maximum(self._second - trials * mean * mean, 0.0) / (trials - 1),
            exact=self._exact,
            total_variation=self._distance / trials,
            trials=trials,
        )
