"""What pairs of neighbouring data sets lose over many noisy steps: the paper's pair, and one that can occur."""

from collections.abc import Sequence

import numpy as np

from veiltab.common.privacy.amplification import MultiplicityLaw
from veiltab.common.privacy.pricing.losses import TRANSFORM_ERROR, Losses, composed
from veiltab.papers.privacy.attained import rounded_down
from veiltab.papers.privacy.pairs import Pair, delta_of

_POINTS = 8192


def eye_to_eye(scheme: MultiplicityLaw, noise_multiplier: float) -> tuple[Pair, ...]:
    """Return the paper's pair, +j against -j, which is its own mirror image.

    Not a worst case: `one_sided` loses more wherever a row is not drawn with certainty.

    Source: MUST, equations 6 and 7.
    """
    return (Pair(scheme=scheme, up=1.0, down=-1.0, noise_multiplier=noise_multiplier),)


def one_sided(scheme: MultiplicityLaw, noise_multiplier: float) -> tuple[Pair, ...]:
    """Return a pair that can occur, in both directions: all other rows at -1, and one row at +1 or at -1.

    Under substitution the sums differ by 2 for every copy, and in one data set they do not depend on the sample.
    """
    return (
        Pair(scheme=scheme, up=2.0, down=0.0, noise_multiplier=noise_multiplier),
        Pair(scheme=scheme, up=0.0, down=-2.0, noise_multiplier=noise_multiplier),
    )


def composed_delta(pairs: Sequence[Pair], steps: Sequence[int], epsilons: Sequence[float]) -> list[list[float]]:
    """Return delta after many steps on fresh samples, the larger of the pairs' at each epsilon.

    Args:
        pairs: the directions of one pair.
        steps: numbers of steps, each at least 1.
        epsilons: nats.

    Returns:
        For each number of steps, a list of one delta for each epsilon: upper bounds for the pairs, within a few per
        cent where above 1e-9.

    Source: Sommer et al. 2018, Theorem 4, in the discretisation of Doroshenko et al. 2022.
    """
    return _largest([_distribution(pair) for pair in pairs], steps, epsilons)


def attained_deltas(pairs: Sequence[Pair], steps: Sequence[int], epsilons: Sequence[float]) -> list[list[float]]:
    """Return delta that the pairs attain after many steps on fresh samples, the larger at each epsilon.

    Args:
        pairs: the directions of one pair.
        steps: numbers of steps, each at least 1.
        epsilons: nats.

    Returns:
        For each number of steps, a list of one delta for each epsilon: lower bounds, beside the upper ones of
        `composed_delta`.
    """
    deltas = _largest([rounded_down(pair) for pair in pairs], steps, epsilons)
    return [[max(0.0, delta - TRANSFORM_ERROR) for delta in row] for row in deltas]


def _largest(laws: Sequence[Losses], steps: Sequence[int], epsilons: Sequence[float]) -> list[list[float]]:
    """Return, for each number of steps, the largest delta of the laws of losses at each epsilon (nats)."""
    deltas = []
    for count in steps:
        totals = [composed([(law, count)]) for law in laws]
        deltas.append([max(delta_of(total, at) for total in totals) for at in epsilons])
    return deltas


def _distribution(pair: Pair) -> Losses:
    interval = pair.largest_loss() / _POINTS
    support = np.arange(-_POINTS, _POINTS + 1, dtype=np.int64)
    return Losses.of(pair.delta(np.asarray(support * interval, np.float64)), -_POINTS, interval)
