"""Several releases together: pure epsilons add up, and so do squares of prices, for (epsilon, delta).

All bounds are for releases that each draw a fresh sample; one sample never serves two (its gammas multiply). Many noisy
steps on subsamples, as in DP-SGD, are composed as privacy loss distributions.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from veiltab.common.core.numbers.elementary import Floats
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import MultiplicityLaw, sampled_delta
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.domination import Profile
from veiltab.common.privacy.pricing.composition import (
    LARGEST_GRID,
    NEGLIGIBLE,
    composed_epsilon,
    loss_distribution,
    top_loss,
)
from veiltab.common.privacy.pricing.losses import TRANSFORM_ERROR, composed
from veiltab.common.privacy.pricing.price import Price, certified_profile, composed_price, price
from veiltab.common.privacy.profiles import Gaussian, SlopedProfile
from veiltab.common.privacy.shuffle import check_delta
from veiltab.common.schemes import Relation
from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.privacy.pairs import delta_of
from veiltab.papers.privacy.profiles import Laplace, Pure

_POINTS, _LEAST_POINTS = 16_384, 512
"""Intervals up to the largest loss, fewer of many kinds; with 1,024 a thousand steps cost two thirds more."""

_LATTICE = 256
"""Points of the lattice of a certified profile, about."""

_UP = Context(prec=40, rounding=ROUND_CEILING)
_DIGITS = Decimal("1e-8")
"""Resolution of prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The guarantee of several releases together (substitution; against an adversary who sees all results).

    Args:
        epsilon: at delta, nats, an upper bound; never above `pure_epsilon`.
        pure_epsilon: sum of the pure epsilons, nats; holds with delta = 0.
        price: mu and delta0 of all together, for statements in GDP and zCDP.
    """

    epsilon: float
    delta: float
    pure_epsilon: Decimal
    price: Price


def compose(releases: Sequence[tuple[ReleaseDescription, int]], delta: float) -> Composed:
    """Compose releases, each with a count.

    Args:
        releases: (description, count), count at least 1; every one of them on a fresh sample.
        delta: in (0, 1).

    Raises:
        InvalidInputError: no release, a count below 1, or delta out of range.

    Returns:
        The least of what prices and privacy loss distributions show.

    Source: basic composition; docs/accounting.md for prices; Sommer et al. 2018, Theorem 4, for loss distributions.
    """
    check_delta(delta)
    if not releases or any(count < 1 for _, count in releases):
        raise InvalidInputError("there must be at least one release, each at least once", where="composition")
    pure = sum((count * release.pure_epsilon for release, count in releases), Decimal(0))
    # Half a percent of epsilon, as in a budget, in equal parts.
    slack = Decimal(delta) / (10 * sum(count for _, count in releases))
    together = composed_price(_repeated(price(release, slack), count) for release, count in releases)
    if len(releases) == 1 and releases[0][1] == 1:
        epsilon = _single(releases[0][0], delta)
    else:
        epsilon = min(together.epsilon(delta), _by_losses(releases, delta))
    return Composed(epsilon=min(epsilon, float(pure)), delta=delta, pure_epsilon=pure, price=together)


def _repeated(of: Price, count: int) -> Price:
    """Return the price of several releases of one price together, rounded up."""
    mu = _UP.multiply(of.mu, _UP.sqrt(Decimal(count))).quantize(_DIGITS, context=_UP)
    return Price(mu=mu, slack=of.slack * count)


def _single(release: ReleaseDescription, delta: float) -> float:
    """Return the least epsilon of one release, by bisection from the allowed side."""
    low, high = 0.0, float(release.pure_epsilon)
    if release.delta(0.0) <= delta:
        return 0.0
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (low, middle) if release.delta(middle) <= delta else (middle, high)
    return high


def _by_losses(releases: Sequence[tuple[ReleaseDescription, int]], delta: float) -> float:
    """Return an epsilon of all releases together by their privacy loss distributions, rounded up.

    With few rows a cell it is far below that of the prices, which are those of normal losses.
    """
    releases = [(release, count) for release, count in releases if release.pure_epsilon > 0]
    if not releases:
        return 0.0
    parts = [(_certified(release), float(release.pure_epsilon), count) for release, count in releases]
    return composed_epsilon(parts, delta, points=max(_POINTS // len(parts), _LEAST_POINTS))


def _certified(release: ReleaseDescription) -> Profile:
    profile = certified_profile(release, NEGLIGIBLE, points=_LATTICE)
    if profile is not None:
        return profile
    pure = Pure(epsilon0=float(release.pure_epsilon) * (1 + 1e-15))
    return lambda epsilons: np.array([pure.delta(float(epsilon), 1) for epsilon in epsilons])


def subsampled_delta(  # noqa: PLR0913 - one argument a quantity
    scheme: MultiplicityLaw, *, mechanism: str, noise_multiplier: float, steps: int, epsilon: float, clip: float = 1.0
) -> float:
    """Return an upper bound of delta after many steps of noise on a fresh subsample each (as in DP-SGD).

    The sum of clipped values moves by 2 clip under substitution, by clip when one is added or removed (Poisson).

    Args:
        scheme: how each step samples; its relation is that of the result.
        mechanism: "gaussian" or "laplace".
        noise_multiplier: scale of the noise over clip.
        steps: T, at least 1.
        epsilon: nats, above 0.
        clip: norm to which each value is clipped.

    Raises:
        InvalidInputError: out of range.

    Source: the profile of MUST, Theorem 5, composed as Koskela, Jaelkoe, Honkela 2020 and Doroshenko et al. 2022 do.
    The pair of mixtures that MUST composes instead (its equations 6 and 7) is not a worst case for sampling without
    replacement, with replacement, or MUST, and under-reports.
    """
    if not (noise_multiplier > 0 and np.isfinite(noise_multiplier) and steps >= 1 and 0 < epsilon < 100):
        raise InvalidInputError("noise multiplier and epsilon must be above 0, steps at least 1", where="composition")
    match scheme.relation:
        case Relation.SUBSTITUTION:
            profile = _noise_profile(mechanism, 2 * clip / noise_multiplier)
        case Relation.ADD_REMOVE if isinstance(scheme, Poisson):
            return _poisson_delta(scheme, mechanism, noise_multiplier / clip, steps, epsilon)
        case _:
            raise InvalidInputError(
                "steps of this scheme are not composed here", where=f"relation {scheme.relation.value}"
            )

    def deltas(epsilons: Floats) -> Floats:
        return np.array([sampled_delta(scheme, profile, float(epsilon)) for epsilon in epsilons])

    top = top_loss(deltas, LARGEST_GRID)
    one = loss_distribution(deltas, top / _POINTS, _POINTS)
    return min(1.0, delta_of(composed([(one, steps)]), epsilon) * (1 + 1e-9) + TRANSFORM_ERROR)


def _noise_profile(mechanism: str, ratio: float) -> SlopedProfile:
    match mechanism:
        case "gaussian":
            return Gaussian(ratio=ratio)
        case "laplace":
            return Laplace(ratio=ratio)
        case _:
            raise InvalidInputError(f"noise {mechanism!r} is not known", where="mechanism")


def _poisson_delta(scheme: Poisson, mechanism: str, scale: float, steps: int, epsilon: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - a second, for Poisson alone

    match mechanism:
        case "gaussian":
            make = pld.from_gaussian_mechanism
        case "laplace":
            make = pld.from_laplace_mechanism
        case _:
            raise InvalidInputError(f"noise {mechanism!r} is not known", where="mechanism")
    one = make(scale, sampling_prob=scheme.eta, value_discretization_interval=1e-4)
    # The library's sum may fall below 0 by a rounding.
    return max(0.0, float(one.self_compose(steps).get_delta_for_epsilon(epsilon)))
