"""p-values of these tests, and the level at which they reject."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, chi2_contingency, chisquare

from veiltab.common.core.domain import Symbols
from veiltab.researcher.estimates.estimation import TableEstimate

ALPHA = 1e-3
"""Level of one rejection. It is confirmed on fresh data, so that an honest run is rejected once in a million."""


def confirmed(draw: Callable[[], float]) -> bool:
    """Whether a hypothesis is rejected at ALPHA on two independent draws.

    Args:
        draw: makes fresh data and returns their p-value.
    """
    return draw() < ALPHA and draw() < ALPHA


def combined(p_values: list[float]) -> float:
    """Return the p-value of several tests together (Bonferroni)."""
    return min(1.0, len(p_values) * min(p_values))


def uniformity(symbols: Symbols, size: int) -> float:
    """Return the p-value of symbols that are uniform on 0..size-1."""
    counts = np.bincount(symbols, minlength=size)
    assert len(counts) == size, "a symbol lies outside its alphabet"
    return float(chisquare(counts).pvalue)


def independence(first: Symbols, second: Symbols) -> float:
    """Return the p-value of two columns that are independent."""
    span = int(second.max()) + 1
    table = np.bincount(first.astype(np.int64) * span + second, minlength=(int(first.max()) + 1) * span)
    table = table.reshape(-1, span)
    rows, columns = table.any(axis=1), table.any(axis=0)
    return float(chi2_contingency(table[rows][:, columns], correction=False).pvalue)


def same_law(first: Symbols, second: Symbols, size: int) -> float:
    """Return the p-value of two columns that have one distribution."""
    table = np.array([np.bincount(one, minlength=size) for one in (first, second)])
    return float(chi2_contingency(table[:, table.any(axis=0)], correction=False).pvalue)


def looks_random(symbols: Symbols, size: int) -> float:
    """Return the p-value of independent uniform symbols: their counts, and pairs at the distances 1, 2 and 7."""
    pairs = [independence(symbols[:-lag:2], symbols[lag::2][: len(symbols[:-lag:2])]) for lag in (1, 2, 7)]
    return combined([uniformity(symbols, size), *pairs])


def agreement(estimate: TableEstimate, truth: NDArray[np.int64]) -> float:
    """Return the p-value of a true table, given its estimate and the estimate's own covariance.

    (T_hat - T)' Cov^+ (T_hat - T) is about chi-square with K - 1 degrees of freedom, since the estimates sum to 1.
    """
    error = estimate.raw - truth / truth.sum()
    statistic = float(error @ np.linalg.pinv(estimate.covariance(), hermitian=True) @ error)
    return float(chi2.sf(statistic, len(truth) - 1))
