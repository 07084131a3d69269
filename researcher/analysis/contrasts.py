"""Differences, ratios and odds ratios of two conditional shares, with intervals from the score bounds of both.

Two shares p and q have standardised errors Z(p) and Z(q), about normal at the true values, with a known correlation.
The interval of a function of both is the range of its values over the region where the pair is not rejected,

    { f(p, q) : (Z(p), Z(q)) R^-1 (Z(p), Z(q))' <= z^2 },

so it is the profile interval. All functions here grow with p and fall with q; their extremes lie on one arc of the
region's edge each, on which p and q are score bounds in closed form.
"""

from enum import Enum
from typing import assert_never

import numpy as np

from veiltab.researcher.analysis.shares import Floats, Shares

_ARC = 129
"""Points of an arc: the best of them misses the extreme by less than 2e-5 of the interval's half-width."""

_BLOCK = 4096
"""Pairs whose arcs are in memory together."""


class Contrast(Enum):
    """How two shares are compared."""

    DIFFERENCE = "difference"
    RATIO = "ratio"
    ODDS_RATIO = "odds-ratio"

    @property
    def neutral(self) -> float:
        """The value for two equal shares."""
        return 0.0 if self is Contrast.DIFFERENCE else 1.0


def contrast_values(kind: Contrast, first: Floats, second: Floats, *, upper: bool) -> Floats:
    """Return what a contrast makes of pairs of shares; a ratio takes shares within 0 and 1.

    Args:
        first: shares p, any shape.
        second: shares q, of the same shape.
        upper: whether 0/0, which can be anything, counts as infinite instead of 0.

    Returns:
        p - q, p/q, or p (1-q)/(q (1-p)), of the same shape; infinite where the denominator alone is 0.
    """
    if kind is Contrast.DIFFERENCE:
        return first - second
    p, q = np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)
    match kind:
        case Contrast.RATIO:
            over, under = p, q
        case Contrast.ODDS_RATIO:
            over, under = p * (1.0 - q), q * (1.0 - p)
        case _:
            assert_never(kind)
    degenerate = np.where(over == 0, np.inf if upper else 0.0, np.inf)
    return np.divide(over, under, out=degenerate, where=under != 0)


def contrast_interval(
    kind: Contrast, first: Shares, second: Shares, z: float, correlation: Floats
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of a contrast of shares, pair by pair.

    Args:
        first: shares p.
        z: quantile of the normal law, such as 1.96 for 95%.
        correlation: of the two errors of each pair, shape (s,); 0 between independent releases.

    Returns:
        Lower and upper ends, shape (s,) each; those of a difference lie within -1 and 1. Infinite where the
        denominator can be 0, NaN where nothing is rejected.
    """
    blocks = np.array_split(np.arange(correlation.size), 1 + correlation.size // _BLOCK)
    ends = [_ends(kind, first.take(rows), second.take(rows), z, correlation[rows]) for rows in blocks]
    return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _ends(kind: Contrast, first: Shares, second: Shares, z: float, correlation: Floats) -> tuple[Floats, Floats]:
    turn, crossed = np.linspace(0.0, np.pi / 2, _ARC)[None, :], correlation[:, None]
    along, across = np.cos(turn), np.sin(turn)
    # R v / sqrt(v' R v) for v = (cos, -sin): where the outward normal points to larger p and smaller q.
    norm = np.sqrt(1.0 - 2.0 * crossed * along * across)
    for_first, for_second = z * (along - crossed * across) / norm, z * (crossed * along - across) / norm
    high = contrast_values(kind, first.bounds(for_first), second.bounds(for_second), upper=True).max(axis=1)
    low = contrast_values(kind, first.bounds(-for_first), second.bounds(-for_second), upper=False).min(axis=1)
    if kind is Contrast.DIFFERENCE:
        return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
    return low, high
