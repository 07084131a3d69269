"""Simulated rounds of collection by k-ary randomised response: the errors of the estimators, beside their exact values.

The simulation draws a round's counts, not its nodes. With n_si nodes of stratum s that hold value i,

    S_si ~ Bin(n_si, pi_s)    kept_si ~ Bin(S_si, 1 - r)    replaced_s ~ Multinomial(sum_i (S_si - kept_si); uniform)

and N_si = kept_si + replaced_si is the exact law of what a server counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, point_estimates
from veiltab.researcher.frequency.frequencies import total_variation
from veiltab.researcher.frequency.variances import Moments, moments

SIMULATED = (Estimator.C, Estimator.G, Estimator.C_HAT, Estimator.HAJEK, Estimator.HORVITZ_THOMPSON)
"""The estimators that a simulation compares; T is g."""

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


def draw_rounds(
    truth: Ints, design: RoundDesign, mechanism: GammaDiagonal, trials: int, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw the server's counts of many rounds.

    Args:
        truth: n_si, shape (strata, d).
        design: source of the rates.
        mechanism: that perturbs, with d cells.
        trials: number of rounds.
        generator: of the experiment.

    Returns:
        N_si, shape (trials, strata, d), and S_s, shape (trials, strata), int64.
    """
    rates = np.array([float(rate) for rate in design.rates])[:, None]
    reports = generator.binomial(truth, rates, size=(trials, *truth.shape))
    counts = generator.binomial(reports, float(mechanism.retention))
    replaced = (reports - counts).sum(axis=-1)
    counts += generator.multinomial(replaced, np.full(truth.shape[1], 1 / truth.shape[1]))
    return counts, reports.sum(axis=-1)


def simulate(
    truth: Ints, rates: tuple[Fraction, ...], mechanism: GammaDiagonal, *, trials: int, seed: int
) -> dict[Estimator, Performance]:
    """Return the performance of every estimator on a population.

    Args:
        truth: n_si, nodes of stratum s that hold value i, shape (strata, d).
        rates: pi_s.
        mechanism: k-ary randomised response over d cells.
        trials: rounds, at least 2.
        seed: of the experiment.

    Raises:
        InvalidInputError: fewer than two trials, or fewer than two of them with a report.

    Source: Biswas, Cormode, Maple, Section 4 (their figures show c_hat alone).
    """
    if trials < 2:
        raise InvalidInputError("fewer than 2 trials were asked for", where="--trials")
    design = RoundDesign.of_mechanism(truth.sum(axis=1).tolist(), rates, mechanism)
    sums = {which: _Sums(which, truth, design) for which in SIMULATED}
    for counts, reports in _batches(truth, design, mechanism, trials, seed):
        for one in sums.values():
            one.add(counts, reports)
    return {which: one.performance() for which, one in sums.items()}


def _batches(
    truth: Ints, design: RoundDesign, mechanism: GammaDiagonal, trials: int, seed: int
) -> Iterator[tuple[Ints, Ints]]:
    generator = np.random.default_rng(seed)
    size = max(1, _AT_ONCE // truth.size)
    for start in range(0, trials, size):
        yield draw_rounds(truth, design, mechanism, min(size, trials - start), generator)


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
