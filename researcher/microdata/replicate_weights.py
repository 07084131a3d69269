"""Replicate weights: one file, with the played errors of a release as further columns of weights.

With f the pair tables of the file's rows, D_i the errors of replay i (replays.py) and s_i = +1 or -1, half each,

    w_i = rake(rows, targets),    targets = max(f + s_i D_i, f / 50), made to sum to 1

A statistic q has the value q_0 with weights 1 and q_i with weights w_i, and its interval is

    q_0 +- t_M sqrt(T + v),    T = 1/M sum_i (q_i - q_0)^2

with t_M the quantile of Student's t with M degrees (no mean is estimated), and v the variance of q_0 by the drawing of
the rows, which all weights share. T is a mean squared error: the bias of the model is in it. The signs do not matter to
it; with them the mean of the q_i is near q_0, for software that looks at distances from that mean.

Source: Fay, Theory and application of replicate weighting for variance calculations (1989); Fuller, Replication
variance estimation for two-phase samples (1998).
"""

from collections.abc import Mapping, Sequence
from math import gamma, pi, sqrt, tan
from statistics import NormalDist

import numpy as np

from veiltab.researcher.model.measurement import Axes, Floats
from veiltab.researcher.model.raking import cells_of, positive, rake
from veiltab.researcher.model.row_drawing import Rows, Uniforms

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Kinds:
    """The different rows of a file, in lexicographic order, and how often each occurs.

    Args:
        rows: symbols, shape (rows, attributes).
    """

    def __init__(self, rows: Rows) -> None:
        kinds, self.places, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        self.rows: Rows = np.asfortranarray(kinds)
        self.counts: Floats = counts.astype(np.float64)


def replicate_counts(
    rows: Rows, counts: Floats, errors: Mapping[Axes, Floats], sign: int, shape: Sequence[int]
) -> Floats:
    """Return how often each kind of row counts in a replicate: w_i times its rows, shape (kinds,).

    Args:
        rows: different ones: symbols, shape (kinds, attributes).
        counts: how often each occurs in the file, shape (kinds,).
        errors: D_i: attributes -> errors of their fractions, shape (K,).
    """
    total, targets = counts.sum(), dict[Axes, Floats]()
    for axes, error in errors.items():
        fractions = np.bincount(cells_of(rows, shape, axes), counts, error.size) / total
        targets[axes] = positive(fractions + sign * error, fractions)
    return rake(rows, counts, targets, shape)


def signs(count: int, seed: bytes) -> list[int]:
    """Return +1 and -1, half each, in random order; one more of +1 if the number is odd."""
    order = np.argsort(Uniforms(seed).words(count))
    return [1 - 2 * int(place % 2) for place in order]


def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution.

    With t = sqrt(d) tan(a), the density of a is proportional to cos(a)^(d-1): its integral is a short sum.

    Args:
        probability: from 1/2 to below 1.
        degrees: d, at least 1, not necessarily whole.
    """
    if degrees > 300:
        # Beyond, gamma functions overflow, and the first term of the expansion around the normal law is exact to 1e-4.
        z = NormalDist().inv_cdf(probability)
        return z + (z**3 + z) / (4 * degrees)
    total = sqrt(pi) * gamma(degrees / 2) / gamma((degrees + 1) / 2)
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        area = angle / 2 * float(_WEIGHTS @ np.cos(angle / 2 * (_NODES + 1)) ** (degrees - 1))
        low, high = (angle, high) if area / total < probability - 0.5 else (low, angle)
    return sqrt(degrees) * tan((low + high) / 2)
