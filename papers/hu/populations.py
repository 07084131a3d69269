"""The three populations of Hu, Drechsler, Kim, each of N = 10,001 values."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.papers.hu.r_streams import betas, normals, uniforms

SIZE = 10_001
DELTA = 1 / (2 * SIZE)
EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 5.0)
SHOWN = (0.1, 0.5, 1.0)
"""The epsilons of the violin plots."""
RATES = (0.01, *(step / 10 for step in range(1, 10)))
SIZES = tuple(round(10_000 * rate) + 1 for rate in RATES)
"""One above the rate's share, so that every sample has a median of its own."""
SMALL = (1001, 101)
"""The sample sizes of the violin plots, in the paper's order."""
R_SEED = 123
"""Appendix B's; the paper names none for the other two populations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Values with public bounds.

    Args:
        values: (N,) float64, ascending, N odd.
        low: least value of the domain.
        high: largest value of the domain.
    """

    values: NDArray[np.float64]
    low: float
    high: float

    def __post_init__(self) -> None:
        if len(self.values) % 2 == 0 or (np.diff(self.values) < 0).any():
            raise InvalidInputError("a population is an odd number of ascending values")
        if not self.low <= self.values[0] <= self.values[-1] <= self.high:
            raise InvalidInputError("a population lies within its bounds")

    @property
    def median(self) -> float:
        """The middle value."""
        return float(self.values[len(self.values) // 2])


@cache
def population(name: str) -> Population:
    """Return one of the paper's populations: "beta", "lognormal" or "bimodal".

    Raises:
        InvalidInputError: another name.

    Source: Hu, Drechsler, Kim, Sections 2.4 and 4.3, Appendix B.
    """
    source = uniforms(R_SEED)
    match name:
        case "beta":
            return Population(values=np.sort(betas(source, SIZE, a=2, b=10)), low=0.0, high=1.0)
        case "lognormal":
            return lognormal(normals(source, SIZE))
        case "bimodal":
            halves = (betas(source, SIZE // 2 + 1, a=2, b=10) / 2, betas(source, SIZE // 2, a=2, b=10) + 1)
            values = np.sort(np.concatenate(halves))
            return Population(values=(values - values[0]) / (values[-1] - values[0]), low=0.0, high=1.0)
    raise InvalidInputError(f"there is no population {name}")


def lognormal(normal: NDArray[np.float64]) -> Population:
    """Return Lognormal(5, .5) values; the paper gives no bounds, so they end at 0 and at the largest value.

    The bounds reach the smooth sensitivity at epsilon = .01 alone.
    """
    values = np.sort(np.exp(5 + normal / 2))
    return Population(values=values, low=0.0, high=float(values[-1]))
