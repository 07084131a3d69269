"""How much one respondent can move a median: its smooth sensitivity, on a domain with public bounds."""

from math import log

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError

Floats = NDArray[np.float64]


def smooth_decay(epsilon: float, delta: float) -> float:
    """Return beta = epsilon / (2 ln(2/delta)), per changed respondent.

    Source: Nissim, Raskhodnikova, Smith 2007, Lemma 2.7.
    """
    return epsilon / (2 * log(2 / delta))


def median_smooth_sensitivity(values: Floats, *, low: float, high: float, beta: float) -> float:
    """Return the beta-smooth sensitivity of the median of an odd number of values.

    S = max over i <= middle <= j, i < j of (y_j - y_i) e^{-beta (j - i - 1)}

    with y_i the sorted values, extended by `low` before the first and `high` after the last. The best j does not
    fall as i rises, so halving the range of i takes O(n log n) steps.

    Args:
        values: (n,) float64, n odd, within [low, high], any order.
        low: least value of the domain, known without the data.
        high: largest value of the domain.
        beta: above 0.

    Returns:
        A distance in the unit of the values; exact.

    Raises:
        InvalidInputError: an even number of values, values outside the bounds, or bounds out of order.

    Source: Nissim, Raskhodnikova, Smith 2007, Section 3.1; Hu, Drechsler, Kim, equation 4.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    if len(ordered) % 2 == 0:
        raise InvalidInputError("the median's sensitivity is for an odd number of values", where="values")
    if not (low < high and low <= ordered[0] and ordered[-1] <= high and beta > 0):
        raise InvalidInputError("values must lie within [low, high], and beta be above 0", where="values")
    y = np.concatenate([[low], ordered, [high]])
    middle = len(y) // 2
    after = np.arange(middle + 1, len(y))
    best = float(np.max((y[after] - y[middle]) * np.exp(-beta * (after - middle - 1))))
    # Farther from the middle, even the whole domain counts for less than this.
    reach = len(y) if best == 0 else int(log((high - low) / best) / beta) + 2
    stack = [(max(0, middle - reach), middle, middle, min(len(y) - 1, middle + reach))]
    while stack:
        first, last, left, right = stack.pop()
        if first > last:
            continue
        i = (first + last) // 2
        j = np.arange(max(left, i + 1), right + 1)
        if not len(j):
            continue
        spans = (y[j] - y[i]) * np.exp(-beta * (j - i - 1))
        at = int(np.argmax(spans))
        best = max(best, float(spans[at]))
        stack.append((first, i - 1, left, int(j[at])))
        stack.append((i + 1, last, int(j[at]), right))
    return best
