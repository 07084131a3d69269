"""What a pair of neighbouring tables attains: at that delta, nobody can guarantee a smaller epsilon.

Beside a guarantee, which is an upper bound, stands the epsilon of one pair of tables, a lower bound: the loss of the
pair is worked out and composed with every loss rounded down. Where both are near, the bound is as good as it can be.

For a release in secret order, one row has the first or the second value, and all other rows a third one, or the second.
With h the counts of a histogram, p the law of another row's message and t_x that of the row's, a histogram has

    P(h | x) = Mult(h; m, p) (w sum_c t_x(c) h_c/(m p_c) + 1 - w),    w = m/n

Relation: that of the scheme; of releases, substitution of one row. Against: the researcher.

Source: Bayes' rule; MUST, Algorithm 1, asks for both numbers. The composition is that of Sommer et al. 2018.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, expm1, log, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.binomial import binomial_pmf
from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.privacy.amplification import MultiplicityLaw
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.domination import convex_minorant
from veiltab.common.privacy.pricing.losses import TRANSFORM_ERROR, Losses, composed
from veiltab.common.privacy.profiles import Gaussian, GroupProfile
from veiltab.papers.privacy.pairs import Pair
from veiltab.papers.privacy.profiles import Laplace, Pure

_POINTS, _LEAST_POINTS = 2**14, 2**8
"""Losses on the grid up to the largest of one release, shared by the kinds of releases."""

_FINER = 16
"""Points of a release's delta for each of the grid."""

_POINTS_OF_STEPS = 2**14
"""The same of a noisy step, of which there may be thousands."""

_MOST_COUNTS = 1500
"""Values of a count that are looked at, about; of more, equally spaced ones stand for their neighbours."""

_DOWN = 1 - 1e-6
"""Lowers probabilities by more than the errors of the binomial laws and of the spacing."""


def attained_by_releases(releases: Sequence[tuple[ReleaseDescription, int]], delta: float) -> float | None:
    """Return the epsilon that a pair of tables attains in all releases together, nats, a lower bound.

    Args:
        releases: (description, count), each of them on a fresh sample.
        delta: in (0, 1).

    Returns:
        None where a release is not a simple random sample: the loss of its pair is not worked out here.
    """
    if any(not release.scheme.is_simple_random or release.presence < 1 for release, _ in releases):
        return None
    mass = log(1e4 * len(releases) / delta)
    tables = [_tables(release, mass) for release, _ in releases]
    top = max(float(np.abs(np.log(here / there)).max()) for either in tables for _, here, there in either)
    if top == 0:
        return 0.0
    points = max(_POINTS // len(tables), _LEAST_POINTS)
    laws = [_laws(either, top / points, points + 1) for either in tables]
    counts = [count for _, count in releases]
    return max(_epsilon(each, counts, delta) for each in zip(*laws, strict=True))


def attained_by_steps(scheme: MultiplicityLaw, *, mechanism: str, ratio: float, steps: int, delta: float) -> float:
    """Return the epsilon that a pair of data sets attains after many noisy steps on fresh subsamples, nats.

    All other rows have one value, and one row another or, where one is added or removed, none.

    Args:
        scheme: how each step samples; its relation is that of the pair.
        mechanism: "gaussian" or "laplace".
        ratio: what one copy of the row moves a sum by, over the scale of the noise.
        steps: T, at least 1.
        delta: in [0, 1).

    Raises:
        InvalidInputError: out of range.
    """
    best = 0.0
    for up, down in ((ratio, 0.0), (0.0, -ratio)):
        pair = Pair(scheme=scheme, up=up, down=down, noise_multiplier=1.0, mechanism=mechanism)
        best = max(best, _epsilon([rounded_down(pair)], [steps], delta))
    return best


def rounded_down(pair: Pair) -> Losses:
    """Return the law of the losses of a pair on a grid, each rounded down."""
    interval = pair.largest_loss() / _POINTS_OF_STEPS
    cells = np.arange(-_POINTS_OF_STEPS, _POINTS_OF_STEPS + 1)
    beyond = pair.beyond(np.asarray(cells * interval * (1 + 1e-12)))
    chances: Floats = np.maximum(-np.diff(beyond, append=0.0), 0.0)
    return Losses(lowest=int(cells[0]), chances=chances, interval=interval)


def attained_by_sample(scheme: MultiplicityLaw, profile: GroupProfile, epsilon: float, delta: float) -> float | None:
    """Return the epsilon that a pair of data sets attains of a base mechanism on a sample, nats, a lower bound.

    Args:
        scheme: the sampling scheme; its relation is that of the pair.
        epsilon: the base epsilon at which its profile is read, nats.
        delta: of the guarantee on the sample, in [0, 1).

    Returns:
        None where the loss of no pair is worked out here.
    """
    match profile:
        case Pure(epsilon0=epsilon0) if len(scheme.multiplicities()) <= 2 and epsilon >= epsilon0:
            # Randomised response of whether the row is there.
            return log(1 + scheme.eta * expm1(epsilon0)) * (1 - 1e-14) if delta == 0 else None
        case Laplace(ratio=ratio):
            return attained_by_steps(scheme, mechanism="laplace", ratio=ratio, steps=1, delta=delta)
        case Gaussian(ratio=ratio):
            return attained_by_steps(scheme, mechanism="gaussian", ratio=ratio, steps=1, delta=delta)
        case _:
            return None


def _messages(release: ReleaseDescription, third: bool) -> tuple[Floats, Floats]:  # noqa: FBT001 - which others
    """Return the laws of a message, of first, second and other values: of the row, and of all others.

    Args:
        third: all other rows have a third value, if there is one, instead of the second.
    """
    k, gamma = release.cells, float(release.gamma)
    q = gamma + k - 1
    message = np.array([1.0, 1.0, k - 2]) / q
    message[2 if third and k > 2 else 1] += (gamma - 1) / q
    return np.array([gamma, 1.0, k - 2]) / q, message


def _tables(release: ReleaseDescription, mass: float) -> list[tuple[Floats, Floats, Floats]]:
    """Return what `_ratios` does, for a third value of the others, and for the second."""
    n, m = release.scheme.population, release.scheme.sample
    return [_ratios(n, m, *_messages(release, third), mass) for third in (True, False)]


def _ratios(n: int, m: int, own: Floats, message: Floats, mass: float) -> tuple[Floats, Floats, Floats]:
    """Return P(h) if the row were as the others, and P(h | x) over it for the first and the second value of the row.

    Args:
        n: rows.
        m: sampled rows.
        own: law of the row's message in the first table; in the second, the first two values change places.
        message: of the others.
        mass: counts whose probability is below e^-mass, about, are left out.
    """
    w, either, share = m / n, min(message[0] + message[1], 1.0), message[0] / (message[0] + message[1])
    apart, step = _spaced(m, either, mass)
    totals = int(m * either) + apart
    totals = totals[(totals >= 0) & (totals <= m), None]
    apart, finer = _spaced(int(totals.max()), share, mass)
    firsts = np.floor(totals * share).astype(np.int64) + apart
    seconds, thirds = totals - firsts, (m - totals) / (m * message[2]) if message[2] else np.zeros(totals.shape)
    chances = binomial_pmf(firsts, totals, share) * (binomial_pmf(totals, m, either) * (step * finer * _DOWN))
    one, other, rest = firsts * (w / (m * message[0])), seconds * (w / (m * message[1])), w * own[2] * thirds + 1 - w
    here, there = own[0] * one + own[1] * other + rest, own[1] * one + own[0] * other + rest
    used = chances > exp(-1.4 * mass)
    return chances[used], here[used], there[used]


def _spaced(size: int, share: float, mass: float) -> tuple[NDArray[np.int64], int]:
    """Return distances of a binomial count from its mean, at equal steps, and the step: odd, as parity matters."""
    reach = mass / 3 + sqrt(2 * mass * size * share * (1 - share)) + 1
    step = 2 * int(reach / _MOST_COUNTS) + 1
    last = int(reach / step) + 1
    return step * np.arange(-last, last + 1, dtype=np.int64), step


def _laws(either: Sequence[tuple[Floats, Floats, Floats]], interval: float, points: int) -> list[Losses]:
    """Return laws of losses on a grid that no loss of a release is below: of each value of the others, both ways.

    Its delta, read at finer points and lowered by all that lies between these, is D. From right to left a line through
    the last point of the grid goes as high as it may below D; where it reaches the next point, the next one begins.
    The largest convex function below these lines is the delta of a law that tells less.
    """
    cells = np.arange(-points * _FINER, points * _FINER + 1)
    step = interval / _FINER
    x, inside = np.exp(cells * step), np.arange(_FINER)
    reach = np.exp(-inside * step) * expm1(interval) / np.expm1((_FINER - inside) * step)
    fine = []
    for chances, *ratios in either:
        for here, there in (ratios, ratios[::-1]):
            at = np.floor(np.log(here / there) / step).astype(np.int64) - cells[0]
            upper, lower = (np.cumsum(np.bincount(at, chances * each, len(x))[::-1])[::-1] for each in (here, there))
            gaps = x[:-1] * expm1(step) * -np.diff(lower) / 4
            fine.append(upper - x * lower - np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps)))
    deltas = np.maximum(np.stack(fine), 0.0)
    lines = np.zeros((len(fine), 2 * points + 1))
    for point in range(2 * points, 0, -1):
        left = slice((point - 1) * _FINER, point * _FINER)
        lines[:, point - 1] = (lines[:, point, None] + (deltas[:, left] - lines[:, point, None]) * reach).min(axis=1)
    laws = [Losses.of(convex_minorant(np.expm1(cells[::_FINER] * step), line), -points, interval) for line in lines]
    return [replace(law, chances=np.append(0.0, law.chances[1:])) for law in laws]


def _epsilon(laws: Sequence[Losses], counts: Sequence[int], delta: float) -> float:
    """Return the least epsilon with at most delta of all losses together, rounded down."""
    return composed(list(zip(laws, counts, strict=True))).epsilon(delta + TRANSFORM_ERROR)
