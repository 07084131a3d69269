"""What a pair of neighbouring tables attains: at that delta, nobody can guarantee a smaller epsilon.

Beside a guarantee, which is an upper bound, stands the epsilon of one pair of tables, a lower bound: the loss of the
pair is worked out and composed with every loss rounded down. Where both are near, the bound is as good as it can be.

For a release in secret order, one row has the first or the second value, and all other rows a third one, or the second.
With h the counts of a histogram, p the law of another row's message and t_x that of the row's, a histogram has

    P(h | x) = Mult(h; m, p) (w sum_c t_x(c) h_c/(m p_c) + 1 - w),    w = m/n

Relation: that of the scheme; of releases, substitution of one row. Against: the researcher.

Source: Bayes' rule; MUST, Algorithm 1, asks for both numbers. The composition is that of Sommer et al. 2018.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from math import expm1, log, sqrt

import numpy as np
from dp_accounting.pld.pld_pmf import DensePLDPmf

from veiltab.common.core.binomial import binomial_pmf
from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.privacy.amplification import MultiplicityLaw
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.profiles import Gaussian, GroupProfile
from veiltab.papers.privacy.pairs import Pair
from veiltab.papers.privacy.profiles import Laplace, Pure

_POINTS = 2**16
"""Losses on the grid up to the largest of one release."""

_POINTS_OF_STEPS = 2**14
"""The same of a noisy step, of which there may be thousands."""

_REACH = 12
"""Standard deviations of a count that are looked at."""

_MOST_COUNTS = 1500
"""Values of a count that are looked at; of more, equally spaced ones stand for their neighbours."""

_DOWN = 1 - 1e-6
"""Lowers probabilities by more than the errors of the binomial laws and of the spacing."""

TRANSFORM_ERROR = 1e-13
"""What Fourier transforms and their truncation may add to a delta."""


def attained_by_releases(releases: Sequence[tuple[ReleaseDescription, int]], delta: float) -> float | None:
    """Return the epsilon that a pair of tables attains in all releases together, nats, a lower bound.

    Args:
        releases: (description, count), each of them on a fresh sample.
        delta: in (0, 1).

    Returns:
        None where a release is no simple random sample: the loss of its pair is not worked out here.
    """
    if any(not release.scheme.is_simple_random or release.presence < 1 for release, _ in releases):
        return None
    best = 0.0
    for third in (True, False):
        for mirrored in (False, True):
            pairs = [
                list(_losses(release.scheme.population, release.scheme.sample, *_messages(release, third), mirrored))
                for release, _ in releases
            ]
            best = max(best, _attained(pairs, [count for _, count in releases], delta))
    return best


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


def rounded_down(pair: Pair) -> DensePLDPmf:
    """Return the law of the losses of a pair on a grid, each rounded down."""
    interval = pair.largest_loss() / _POINTS_OF_STEPS
    cells = np.arange(-_POINTS_OF_STEPS, _POINTS_OF_STEPS + 1)
    beyond = pair.beyond(np.asarray(cells * interval * (1 + 1e-12)))
    return _dense(cells[0], -np.diff(beyond, append=0.0), interval)


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


def _attained(pairs: Sequence[list[tuple[Floats, Floats]]], counts: Sequence[int], delta: float) -> float:
    top = max(float(np.abs(loss).max()) for pair in pairs for loss, _ in pair)
    return 0.0 if top == 0 else _epsilon([_law(pair, top / _POINTS) for pair in pairs], counts, delta)


def _losses(n: int, m: int, own: Floats, message: Floats, mirrored: bool) -> Iterator[tuple[Floats, Floats]]:  # noqa: FBT001 - the direction
    """Yield losses (nats) with their probabilities in the first table, for each value of the first count.

    Args:
        n: rows.
        m: sampled rows.
        own: law of the row's message in the first table; in the second, the first two values change places.
        mirrored: the two tables change places.
    """
    w, other = m / n, own[[1, 0, 2]]
    for first, chance in _counts(m, message[0]):
        rest = m - first
        share = message[1] / (message[1] + message[2])
        second, given = (np.array([rest]), np.ones(1)) if message[2] == 0 else _spaced(rest, share)
        counts = np.stack([np.full(len(second), first), second, rest - second])
        ratios = np.divide(counts, (m * message)[:, None], out=np.zeros(counts.shape), where=message[:, None] > 0)
        here, there = w * (own @ ratios) + 1 - w, w * (other @ ratios) + 1 - w
        if mirrored:
            here, there = there, here
        yield np.log(here / there), chance * given * here * _DOWN


def _counts(size: int, share: float) -> Iterator[tuple[int, float]]:
    counts, chances = _spaced(size, share)
    yield from zip(counts.tolist(), chances.tolist(), strict=True)


def _spaced(size: int, share: float) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Return likely values of a binomial count with their probabilities; of very many, equally spaced ones."""
    spread = _REACH * sqrt(size * share * (1 - share)) + 4 * _REACH
    low, high = max(0, int(size * share - spread)), min(size, int(size * share + spread) + 1)
    step = max(1, (high - low) // _MOST_COUNTS)
    counts = np.arange(low, high + 1, step, dtype=np.int64)
    return counts, step * binomial_pmf(counts, size, share)


def _law(pair: Sequence[tuple[Floats, Floats]], interval: float) -> DensePLDPmf:
    """Return the law of losses on a grid, each rounded down."""
    total = np.zeros(2 * _POINTS + 3)
    for loss, chance in pair:
        cells = np.floor(loss / interval * (1 - 1e-12 * np.sign(loss)) - 1e-9).astype(np.int64)
        np.add.at(total, cells + _POINTS + 1, chance)
    return _dense(-_POINTS - 1, total, interval)


def _dense(lowest: int, law: Floats, interval: float) -> DensePLDPmf:
    return DensePLDPmf(interval, int(lowest), np.maximum(law, 0.0), 0.0, pessimistic_estimate=False)


def _epsilon(laws: Sequence[DensePLDPmf], counts: Sequence[int], delta: float) -> float:
    """Return the least epsilon with at most delta of all losses together, rounded down."""
    several = (law if count == 1 else law.self_compose(count) for law, count in zip(laws, counts, strict=True))
    together = reduce(lambda whole, one: whole.compose(one), several)
    return max(0.0, float(together.get_epsilon_for_delta(delta + TRANSFORM_ERROR)))
