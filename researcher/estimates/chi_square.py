"""Wald statistics of differences with a known covariance, and the tail of the chi-square distribution."""

from math import erfc, exp, fsum, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError

SINGULAR = 1e-12
"""Least variance of a contrast, as a share of the largest one; and the least that the others leave unexplained."""


def quadratic_form(differences: NDArray[np.float64], covariances: NDArray[np.float64]) -> float:
    """Return d' C^{-1} d, through the correlation matrix so that small cells do not look singular."""
    spread = np.diagonal(covariances)
    singular = InvalidInputError(
        "the differences have no spread in some direction, so they cannot be tested",
        remedy="Merge categories that no row has; a table without noise and sampling error needs no test.",
    )
    if not float(spread.min()) > SINGULAR * float(spread.max()):
        raise singular
    deviations = np.sqrt(spread)
    try:
        root = np.linalg.cholesky(covariances / np.outer(deviations, deviations))
    except np.linalg.LinAlgError as error:
        raise singular from error
    if float(np.diagonal(root).min()) ** 2 < SINGULAR:
        raise singular
    whitened = np.linalg.solve(root, differences / deviations)
    return float(whitened @ whitened)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Return P(X > statistic) for a chi-square X: erfc for odd degrees, and a finite sum of positive terms."""
    half = statistic / 2
    if half == 0:
        return 1.0
    odd = degrees % 2
    orders = (k + odd / 2 for k in range(degrees // 2))
    terms = [exp(j * log(half) - half - lgamma(j + 1)) for j in orders]
    return min(1.0, fsum([odd * erfc(sqrt(half)), *terms]))
