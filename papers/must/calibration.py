"""The Gaussian noise of a query on a sample: the paper's, and what its guarantee needs.

The paper aims at epsilon' after sampling, takes the base epsilon that amplifies to it, and puts delta = 1/n for the
base. That has two errors. Its sensitivities divide by n although every statistic averages m rows, which leaves m/n of
the noise; and its equation 9 is the classical bound, which is proved for epsilon < 1 only. Besides, its schemes end at
quite different delta': copies of one row multiply what one respondent can move. The corrected noise gives every scheme
the same (epsilon', delta').
"""

from collections.abc import Callable
from math import exp, inf, log, sqrt

from veiltab.common.privacy.amplification import amplified_delta, base_epsilon
from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.common.schemes import Scheme
from veiltab.common.schemes.poisson import Poisson

_LEAST, _MOST = log(1e-12), log(100.0)


def paper_ratio(scheme: Scheme, epsilon: float) -> float:
    """Return Delta/sigma of the paper's noise: its sensitivity over the scale of its equation 9.

    sigma = sqrt(2 ln(1.25/delta)) Delta/epsilon,    delta = 1/n,    epsilon = ln(1 + (e^epsilon' - 1)/eta)

    Args:
        epsilon: epsilon' of a query, after sampling, nats.

    Returns:
        A ratio that is (epsilon, 1/n)-private for the base if epsilon < 1 (a bound, not tight); no guarantee beyond.

    Source: MUST, equation 9.
    """
    return base_epsilon(scheme, epsilon) / sqrt(2 * log(1.25 * scheme.population))


def analytic_ratio(scheme: Scheme, epsilon: float) -> float:
    """Return the largest Delta/sigma whose base is (epsilon, 1/n)-private: equation 9 without its gap; tight.

    Source: Balle, Wang 2018, Theorem 8.
    """
    base = base_epsilon(scheme, epsilon)
    return _largest_ratio(lambda ratio: Gaussian(ratio=ratio).delta(base, 1), 1 / scheme.population, base)


def corrected_ratio(scheme: Scheme, epsilon: float) -> float:
    """Return the largest Delta/sigma that makes a query on a sample (epsilon', delta')-private, delta' = m/n^2.

    That delta' is what a base delta of 1/n amplifies to without replacement. Relation: substitution, with Delta the
    change by one copy; for Poisson sampling, adding or removing. Tight without replacement, else a bound.

    Args:
        epsilon: epsilon', nats.

    Source: MUST, Theorem 5; Balle, Wang 2018, Theorem 8.
    """
    base = base_epsilon(scheme, epsilon)
    return _largest_ratio(
        lambda ratio: amplified_delta(scheme, Gaussian(ratio=ratio), base), target_delta(scheme), base
    )


def target_delta(scheme: Scheme) -> float:
    """Return delta' = m/n^2 of a query."""
    return scheme.sample / scheme.population**2


def paper_scale(scheme: Scheme, epsilon: float, width: float) -> float:
    """Return the paper's sigma for the mean of m rows, each of which may move by `width`: it takes Delta = width/n."""
    return width / scheme.population / paper_ratio(scheme, epsilon)


def corrected_scale(scheme: Scheme, epsilon: float, width: float) -> float:
    """Return the sigma that the mean of m rows needs: Delta = width/m.

    Args:
        scheme: how a query samples; under Poisson sampling the sum is divided by m, not by the rows drawn.
        epsilon: epsilon' of a query, nats.
        width: most that one row's value moves when the row is replaced; when it is added or removed (Poisson).
    """
    return width / scheme.sample / corrected_ratio(scheme, epsilon)


def clipped_width(scheme: Scheme, clip: float) -> float:
    """Return how far a vector of norm at most `clip` moves: by twice that when replaced, by that when removed."""
    return clip if isinstance(scheme, Poisson) else 2 * clip


def _largest_ratio(delta: Callable[[float], float], target: float, guess: float) -> float:
    def excess(log_ratio: float) -> float:
        value = delta(exp(log_ratio))
        return log(value / target) if value > 0 else -inf

    return exp(largest_allowed(_LEAST, log(guess / 4), _MOST, excess))
