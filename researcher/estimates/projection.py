"""Euclidean projection on the probability simplex."""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError


def project_to_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability vector nearest to `values` in Euclidean distance.

    p = max(values - tau, 0) with the one tau that makes p sum to 1; found by sorting, in O(K log K).

    Projecting an unbiased estimate never moves it away from the truth (the simplex is convex and holds it), but it
    biases: small cells are pulled to zero or up, large ones down.

    Args:
        values: shape (K,), float64; any finite numbers, negative ones included (probabilities).

    Returns:
        Shape (K,), float64; non-negative, summing to 1 up to rounding.

    Raises:
        InvalidInputError: not a vector, empty, or not finite.

    Source: Held, Wolfe, Crowder, Validation of subgradient optimization (1974); Duchi et al., Efficient projections
    onto the l1-ball (ICML 2008), Figure 1.
    """
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInputError("there is nothing to project, or a number is not finite")
    # Subtracting the maximum changes nothing (tau moves with it) and keeps the cumulative sums short of cancellation.
    shifted = values - values.max()
    descending = np.sort(shifted)[::-1]
    excess = np.cumsum(descending) - 1.0
    support = int(np.count_nonzero(descending * np.arange(1, values.size + 1) > excess))
    projected: NDArray[np.float64] = np.maximum(shifted - excess[support - 1] / support, 0.0)
    return projected
