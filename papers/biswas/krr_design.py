"""The design of a round by k-ary randomised response."""

from collections.abc import Sequence
from fractions import Fraction

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.researcher.frequency.design import RoundDesign


def krr_design(populations: Sequence[int], rates: Sequence[Fraction], mechanism: GammaDiagonal) -> RoundDesign:
    """Return the design with p = (1 - r) + r/K and q = r/K, by the r that runs."""
    q = (1 - mechanism.retention) / mechanism.cells
    return RoundDesign(populations=tuple(populations), rates=tuple(rates), p=mechanism.retention + q, q=q)
