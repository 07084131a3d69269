"""The median of a sample without replacement: the exact law of its rank, and its smooth sensitivity, computed fast.

Which value is the median of a sample depends on one rank alone, so nothing about the sample median needs drawing. Its
smooth sensitivity depends on the whole sample and does.
"""

from collections.abc import Sequence
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from veiltab.common.errors import InvalidInputError
from veiltab.papers.hu.populations import Population

Floats = NDArray[np.float64]


def median_law(population: int, sample: int) -> Floats:
    """Return the probability of each rank of the population to be the sample's median.

    P(rank i) = C(i, h) C(N - 1 - i, h) / C(N, n),    n = 2h + 1,    i = 0 .. N - 1

    Args:
        population: N, values.
        sample: n of them, odd, drawn without replacement.

    Returns:
        (N,) float64; sums to 1.

    Raises:
        InvalidInputError: the sample is even or larger than the population.

    Source: counting; h of the sampled values are below the median and h above.
    """
    if not 1 <= sample <= population or sample % 2 == 0:
        raise InvalidInputError(f"a sample has an odd number of the {population} values, not {sample}")
    rank = np.arange(population, dtype=np.float64)
    half = sample // 2
    logs = _ln_falling(rank, half) + _ln_falling(rank[::-1], half)
    law = np.exp(logs - logs.max())
    return np.asarray(law / law.sum(), np.float64)


def _ln_falling(of: Floats, count: int) -> Floats:
    """Return ln(of! / (of - count)!), which is a constant from ln C(of, count)."""
    logs = np.full(len(of), -np.inf)
    enough = of >= count
    logs[enough] = gammaln(of[enough] + 1) - gammaln(of[enough] - count + 1)
    return logs


def sampling_error(population: Population, sample: int) -> float:
    """Return E (m_n - m_N)^2, exact: squared unit of the values."""
    law = median_law(len(population.values), sample)
    return float(law @ (population.values - population.median) ** 2)


def smooth_sensitivities(ordered: Floats, *, low: float, high: float, decays: Sequence[float]) -> list[float]:
    """Return the smooth sensitivity of a median for several decays at once.

    S(beta) = max over k of e^{-beta k} A_k,    A_k = max over i <= middle <= i + k + 1 of y_{i+k+1} - y_i

    A_k does not fall as k rises, so a range of k is skipped when its largest A at its least k is too small. Every decay
    reuses the computed A_k.

    Args:
        ordered: (n,) float64, ascending, n odd, within [low, high].
        low: least value of the domain.
        high: largest value of the domain.
        decays: each beta, above 0.

    Returns:
        One distance a decay; exact, as `median_smooth_sensitivity` has it for one.

    Source: Nissim, Raskhodnikova, Smith 2007, Section 3.1; Hu, Drechsler, Kim, equation 4.
    """
    y = np.concatenate([[low], ordered, [high]])
    last = len(ordered)
    widest = {0: _widest(y, 0), last: _widest(y, last)}
    sensitivities = []
    for decay in decays:
        best = max(widest[0], exp(-decay * last) * widest[last])
        ranges = [(0, last)]
        while ranges:
            left, right = ranges.pop()
            if right - left < 2 or exp(-decay * (left + 1)) * widest[right] <= best:
                continue
            k = (left + right) // 2
            if k not in widest:
                widest[k] = _widest(y, k)
            best = max(best, exp(-decay * k) * widest[k])
            ranges += [(k, right), (left, k)]
        sensitivities.append(best)
    return sensitivities


def _widest(y: Floats, k: int) -> float:
    """Return A_k of values that already end at their bounds."""
    middle = len(y) // 2
    first, last = max(0, middle - k - 1), min(middle, len(y) - k - 2)
    return float((y[first + k + 1 : last + k + 2] - y[first : last + 1]).max())
