"""The law of how often independent draws hit one respondent."""

from math import expm1, log1p

import numpy as np

from veiltab.common.core.binomial import binomial_pmf
from veiltab.common.core.numbers.elementary import Floats

_NEGLIGIBLE = 1e-18


def at_least_once(draws: int, probability: float) -> float:
    """Return 1 - (1 - probability)^draws."""
    return 1.0 if probability >= 1 else -expm1(draws * log1p(-probability))


def binomial_law(draws: int, probability: float) -> Floats:
    """Return Bin(draws, probability) from 0 to where the rest is negligible."""
    length = 16
    while True:
        law = binomial_pmf(np.arange(min(length, draws) + 1, dtype=np.int64), draws, probability)
        # Past the mean the terms fall at least geometrically.
        if length >= draws or (length > 2 * draws * probability + 8 and law[-1] < _NEGLIGIBLE / 2):
            return law
        length *= 2
