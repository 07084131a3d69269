"""The price of a release: one number whose squares add up even under adaptive choices.

**Statement.** A release has price (mu, delta0) if for all epsilon >= 0

    delta_A(epsilon) <= (1 - delta0) delta_mu(epsilon) + delta0,                                                   (*)
    delta_mu(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

Its output on two neighbouring tables is then made, by the same kernel, from N(0,1) or N(mu,1) and from a leak that says
with probability delta0 which table it is, and else nothing. Prices add up:

    mu^2 = sum of mu_t^2,    delta0 = sum of delta0_t

and releases that run only while these sums stay within a budget (mu_B, delta0_B) are together, for every epsilon,
(epsilon, (1 - delta0_B) delta_{mu_B}(epsilon) + delta0_B)-private, though the request of each and its price may depend
on all earlier results (the filter theorem; docs/accounting.md has the proofs and what must hold).

Relation: substitution of one row, n public, both directions. Against: the researcher, or researchers together, who see
every result and choose every request.

Source: Dong, Roth, Su 2022, Theorem 2.10; Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2022.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.elementary import Floats, exp, log
from veiltab.common.core.numbers.rounding import exp_below
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.gaussian import LARGEST, GaussianProfile, delta_above, epsilon_above, mu_below
from veiltab.common.privacy.shuffle import MAX_CELLS, MAX_SAMPLE, check_delta
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.common.schemes import Relation, Scheme

if TYPE_CHECKING:
    from veiltab.common.privacy.domination import Profile, Slack

_UP = Context(prec=40, rounding=ROUND_CEILING)
_DOWN = Context(prec=40, rounding=ROUND_FLOOR)
_DIGITS = Decimal("1e-8")
"""Resolution of prices in a shared record: prices are rounded up to it, budgets down."""

_SHARE_DIGITS = Decimal("1e-12")
_GAMMA_DIGITS = Context(prec=7, rounding=ROUND_FLOOR)
_LARGEST_LOG = 60.0
"""ln(gamma - 1) beyond which a release has practically no noise."""

_LARGE_EPSILON = 600
_POINTS = 256
_TRIES = 3
_CLOSE = 1e-3
"""Relative tolerance of a mechanism's price below the limit."""

_SLACK_PART = 10
"""Fraction of a budget's delta that is its delta0; it costs half a percent of epsilon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one release, or of several together.

    Args:
        mu: against the researcher it is no worse than distinguishing N(0,1) from N(mu,1), at least 0,
        slack: delta0, the probability of an exception, in [0, 1).
    """

    mu: Decimal
    slack: Decimal

    def __post_init__(self) -> None:
        if not (self.mu.is_finite() and self.mu >= 0 and self.slack.is_finite() and 0 <= self.slack < 1):
            raise InvalidInputError("mu is below 0, or the slack not from 0 to below 1", where="price")

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon (nats, at least 0), rounded up: (1 - delta0) delta_mu(epsilon) + delta0."""
        if self.mu > LARGEST:
            return 1.0
        slack = float(self.slack)
        return min(1.0, ((1 - slack) * delta_above(float(self.mu), epsilon) + slack) * (1 + 1e-15))

    def epsilon(self, delta: float) -> float:
        """Return epsilon at a delta, nats, rounded up; infinity where delta is not above the slack."""
        check_delta(delta)
        slack = float(self.slack)
        rest = (delta * (1 - 1e-15) - slack) / (1 - slack) * (1 - 1e-15)
        if self.mu > LARGEST or rest <= 0:
            return inf
        return epsilon_above(float(self.mu), rest)

    @property
    def rho(self) -> Decimal:
        """mu^2/2, rounded up: the price is rho-zCDP but for a probability of delta0.

        Without the leak, outputs are made from N(0,1) or N(mu,1), whose Renyi divergence of every order alpha is alpha
        mu^2/2. Source: Bun, Steinke 2016, Definition 8.1 and Proposition 1.6.
        """
        return _UP.divide(_UP.multiply(self.mu, self.mu), Decimal(2)).quantize(_SHARE_DIGITS, context=_UP)

    def statements(self) -> dict[str, dict[str, Decimal]]:
        """Return it as mu-GDP and as rho-zCDP, both but for a probability of delta0, as plain data."""
        return {"gdp": {"mu": self.mu, "delta": self.slack}, "zcdp": {"rho": self.rho, "delta": self.slack}}


def price(release: ReleaseDescription, slack: Decimal) -> Price:
    """Return the least mu with (*) at a delta0, rounded up: by the certified profile or, if less, the pure epsilon.

    Without replacement and Poisson, the profile is that of Theorem A in one pass (see OrderProfile); with replacement
    and MUST, that of MUST, Theorem 5.

    Args:
        release: what runs; a Poisson sample by its actual size.
        slack: delta0, above 0 and below 1.

    Raises:
        InvalidInputError: a slack out of range.
    """
    if not 0 < slack < 1:
        raise InvalidInputError("the slack must lie between 0 and 1, both excluded", where="price")
    part = float(slack)
    return Price(mu=_least_mu(release, lambda _: part, negligible=part), slack=slack)


@lru_cache(maxsize=256)
def price_within(release: ReleaseDescription, budget: Price) -> Price:
    """Return the price in one currency with a budget: delta0 is that of the budget times (mu/mu_B)^2.

    (1 - c mu^2) delta_mu + c mu^2 rises with mu, so that there is a least mu with (*), and where the squares of mu keep
    to mu_B^2, the slacks keep to delta0_B. A price above the budget has the slack of the budget.

    Args:
        release: what runs; a Poisson sample by its actual size.
        budget: mu_B and delta0_B, both above 0 (see `price_budget`).
    """
    most, mu_b = float(budget.slack), float(budget.mu)
    mu = _least_mu(release, lambda mu: most * min(mu / mu_b * mu / mu_b, 1.0), negligible=most * 1e-4)
    part = _UP.divide(_UP.multiply(mu, mu), _DOWN.multiply(budget.mu, budget.mu))
    return Price(mu=mu, slack=_UP.multiply(budget.slack, min(part, Decimal(1))))


def price_of_pure_epsilon(epsilon: Decimal) -> Price:
    """Return the least price of every mechanism with a pure epsilon (nats, at least 0), rounded up.

    mu = 2 Phi^-1(e/(1+e)),    delta0 = 0

    Its trade-off curve lies on or above the polygon (0,1), (1/(1+e), 1/(1+e)), (1,0); that of mu is convex and passes
    through the three vertices. Randomised response needs this mu.
    """
    if epsilon > _LARGE_EPSILON:
        # Phi(-x) <= e^{-x^2/2} / 2 is at most 1/(1+e) at x = sqrt(2 epsilon).
        return Price(mu=_up(2 * _UP.sqrt(2 * epsilon)), slack=Decimal(0))
    tail = float(1 / (1 + exp_below(epsilon)))
    if epsilon == 0:
        return Price(mu=Decimal(0), slack=Decimal(0))
    # One step below what is found, as what is found may differ in its last digit between machines.
    mu = max(_up(Decimal(-2 * NormalDist().inv_cdf(tail))) - _DIGITS, _DIGITS)
    while not _is_below(mu, tail):
        mu += _DIGITS
    return Price(mu=mu, slack=Decimal(0))


def _is_below(mu: Decimal, tail: float) -> bool:
    """Show that the trade-off curve of mu does not pass above the vertex (tail, tail)."""
    curve = GaussianProfile.of(float(mu), np.zeros(1))
    return bool(curve.slope[0] + curve.slope_error[0] <= tail * (1 - 1e-15))


def price_budget(epsilon: Decimal, delta: Decimal) -> Price:
    """Return the largest mu_B, rounded down, with (1 - delta0_B) delta_{mu_B}(epsilon) + delta0_B <= delta.

    delta0_B is a tenth of delta.

    Args:
        epsilon: of all releases together, nats, above 0.
        delta: of all releases together, in (0, 1).

    Raises:
        InvalidInputError: a delta or an epsilon out of range, or an epsilon so small that no price is left.
    """
    check_delta(float(delta))
    if epsilon <= 0:
        raise InvalidInputError("the epsilon must be above 0", where="budget", remedy="Enter an epsilon above 0.")
    slack = delta / _SLACK_PART
    rest = float((delta - slack) / (1 - slack)) * (1 - 1e-15)
    mu = Decimal(mu_below(float(epsilon) * (1 - 1e-15), rest)).quantize(_DIGITS, context=_DOWN)
    if mu <= 0:
        raise InvalidInputError("this epsilon and delta leave no price at all", where="budget")
    return Price(mu=mu, slack=slack)


def composed_price(prices: Iterable[Price]) -> Price:
    """Return the price of releases together: the root of the sum of squares, rounded up, and the sum of the slacks."""
    listed = list(prices)
    squares = sum((_UP.multiply(each.mu, each.mu) for each in listed), Decimal(0))
    return Price(mu=_up(_UP.sqrt(squares)), slack=sum((each.slack for each in listed), Decimal(0)))


def share(of: Price, budget: Price) -> Decimal:
    """Return what a price takes of a budget: the larger of (mu/mu_B)^2 and delta0/delta0_B, rounded up.

    Releases whose shares add up to at most 1 keep the budget.
    """
    squares = _UP.divide(_UP.multiply(of.mu, of.mu), _DOWN.multiply(budget.mu, budget.mu))
    return max(squares, _UP.divide(of.slack, budget.slack)).quantize(_SHARE_DIGITS, context=_UP)


def is_certified(release: ReleaseDescription, epsilon: Decimal, delta: Decimal) -> bool:
    """Whether a release by itself is (epsilon, delta)-private, as its certificate says; False where it has none.

    Args:
        epsilon: nats, at least 0.
        delta: in (0, 1).
    """
    if release.pure_epsilon <= epsilon:
        return True
    if release.scheme.sample > MAX_SAMPLE or release.cells > MAX_CELLS:
        return False
    if release.order_certificate is None and release.scheme.relation is not Relation.SUBSTITUTION:
        return False
    return release.delta(float(epsilon) * (1 - 1e-15)) <= float(delta) * (1 - 1e-15)


def mechanism_at(scheme: Scheme, cells: int, limit: Price) -> GammaDiagonal:
    """Return a mechanism with hardly more noise than a price needs: mu within about 0.1%.

    The least mu rises with gamma: randomising each released row once more takes a release to a smaller gamma.

    Args:
        scheme: how rows are sampled.
        cells: K.
        limit: mu and delta0 that the mechanism keeps, as it runs.

    Raises:
        InvalidInputError: every gamma costs more.

    Source: docs/accounting.md.
    """

    def release(a: Fraction) -> ReleaseDescription:
        return ReleaseDescription(scheme=scheme, cells=cells, gamma=GammaDiagonal.from_gamma(cells, 1 + a).gamma)

    def excess(log_a: float) -> float:
        """Return how far the price lies above the limit, or above what is close enough below it; 0 between."""
        distance = log(float(price(release(_rounded(log_a)), limit.slack).mu) / mu)
        return distance if distance > 0 else min(distance + _CLOSE, 0.0)

    # The pure epsilon prices a mechanism at most sqrt(pi/2) times itself.
    pure = (limit.mu - 2 * _DIGITS) / Decimal("1.2534")
    if pure <= 0:
        raise InvalidInputError("every mechanism costs more than that", where="price")
    floor = scheme.gamma_for(pure) - 1
    mu = float(limit.mu)
    # With many rows a cell the price is that of the central limit and up to 0.12%.
    guess, aim = 0.0, mu * (1 - _CLOSE)
    for _ in range(_TRIES):
        guess = min(log(central_limit_gamma(scheme, cells, aim) - 1), _LARGEST_LOG)
        gap = excess(guess)
        if gap == 0:
            return GammaDiagonal.from_gamma(cells, 1 + max(floor, _rounded(guess)))
        # The price is nearly that of the central limit, by a factor that hardly changes.
        aim *= exp(-gap - _CLOSE / 2 if gap > 0 else _CLOSE / 2 - gap)
    best = largest_allowed(log(float(floor)), guess, _LARGEST_LOG, excess)
    return GammaDiagonal.from_gamma(cells, 1 + max(floor, _rounded(best)))


def central_limit_gamma(scheme: Scheme, cells: int, mu: float) -> float:
    """Return the gamma whose price is mu by the central limit: w A sqrt(2/(m q)) = mu, A = gamma - 1, q = A + K.

    An estimate, below or above the gamma that has this price.

    Args:
        scheme: how rows are sampled; w = m/n.
        cells: K.
        mu: above 0.

    Source: docs/accounting.md.
    """
    half = mu * mu * scheme.population * scheme.population / (4 * scheme.sample)
    return 1 + half + sqrt(half * half + 2 * half * cells)


def _rounded(log_a: float) -> Fraction:
    return Fraction(_GAMMA_DIGITS.create_decimal(Decimal(exp(log_a))))


def _least_mu(release: ReleaseDescription, slack: "Slack", *, negligible: float) -> Decimal:
    from veiltab.common.privacy.domination import least_mu  # noqa: PLC0415 - not for releases without a delta

    pure = price_of_pure_epsilon(release.pure_epsilon).mu
    profile = certified_profile(release, negligible, points=_POINTS)
    if profile is None:
        return pure
    mu = least_mu(profile, slack=slack, pure_epsilon=_beyond(release.pure_epsilon))
    return pure if mu == inf else min(pure, _up(Decimal(mu)))


def certified_profile(release: ReleaseDescription, negligible: float, *, points: int) -> "Profile | None":
    """Return the certified profile of a release; None where only its pure epsilon is known.

    Args:
        negligible: a probability; the omitted mass is far below it, and is added.
        points: of the lattice of the profile, about.
    """
    from veiltab.common.privacy.order_profile import OrderProfile  # noqa: PLC0415 - not for releases without a delta

    if release.gamma == 1 or release.scheme.sample > MAX_SAMPLE or release.cells > MAX_CELLS:
        return None
    if (certificate := release.order_certificate) is not None:
        return OrderProfile(certificate, negligible=negligible, points=points).deltas
    if release.scheme.relation is not Relation.SUBSTITUTION:
        return None

    def profile(epsilons: Floats) -> Floats:
        return np.array([release.delta(float(epsilon)) for epsilon in epsilons])

    return profile


def _beyond(epsilon: Decimal) -> float:
    return float(epsilon) * (1 + 1e-15)


def _up(mu: Decimal) -> Decimal:
    return mu.quantize(_DIGITS, context=_UP)
