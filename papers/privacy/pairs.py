"""The privacy loss of one pair of neighbouring data sets over many noisy steps on subsamples.

One row differs. Drawn j times, it moves the noisy sum by j `up` in one data set and by j `down` in the other, so the
two outputs are mixtures, over the law of j, of normal or Laplace densities. Such a pair bounds delta from below; only a
worst case is delta.
"""

from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import MultiplicityLaw
from veiltab.common.privacy.pricing.losses import Losses

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-14
_REACH = 40.0
_LARGEST = 200.0
_KNOTS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two mixtures: sum_j P(j) N(j up, sigma^2) and sum_j P(j) N(j down, sigma^2), up > down; or of Laplace densities.

    Args:
        scheme: whose multiplicities weigh the components.
        up: what a copy adds in the first data set, in units of the clipping norm.
        down: what it adds in the second.
        noise_multiplier: sigma, or the scale of the Laplace noise, in the same units.
        mechanism: "gaussian" or "laplace".
    """

    scheme: MultiplicityLaw
    up: float
    down: float
    noise_multiplier: float
    mechanism: str = "gaussian"

    def __post_init__(self) -> None:
        if not (self.up > self.down and self.noise_multiplier > 0):
            raise InvalidInputError("up is not above down, or the noise is not above 0", where="pair")
        if self.mechanism not in {"gaussian", "laplace"}:
            raise InvalidInputError(f"noise {self.mechanism!r} is not known", where="mechanism")

    def delta(self, epsilons: Floats) -> Floats:
        """Return sup_S P(S) - e^epsilon Q(S), of either sign of epsilon; the loss rises along the line.

        Args:
            epsilons: float64, shape (k,), nats.
        """
        law = self._law()
        at = self._where_loss_is(epsilons, law)
        first = np.exp(self._tail(at, law, self.up))
        second = np.exp(epsilons + self._tail(at, law, self.down))
        difference: Floats = np.clip(first - second, np.maximum(0.0, -np.expm1(epsilons)), 1.0)
        return difference

    def beyond(self, losses: Floats) -> Floats:
        """Return the probabilities, in the first data set, of a loss of at least some losses (nats), shape (k,)."""
        law = self._law()
        tail: Floats = np.exp(self._tail(self._where_loss_is(losses, law), law, self.up))
        return tail

    def largest_loss(self) -> float:
        """Return a loss (nats) beyond which lies at most a negligible probability, in the first data set."""
        return _top(self)

    def _law(self) -> Floats:
        law = self.scheme.multiplicities()
        return law[: int(np.flatnonzero(law > 1e-18)[-1]) + 1]

    def _loss(self, x: Floats, law: Floats) -> Floats:
        return self._log_density(x, law, self.up) - self._log_density(x, law, self.down)

    def _log_density(self, x: Floats, law: Floats, shift: float) -> Floats:
        """Return the logarithm of a mixture's density, up to the noise's constant."""
        at = (x[:, None] - shift * np.arange(len(law))) / self.noise_multiplier
        return _log_mean(-np.abs(at) if self.mechanism == "laplace" else -at * at / 2, law)

    def _tail(self, x: Floats, law: Floats, shift: float) -> Floats:
        """Return the logarithm of a mixture's probability beyond x."""
        at = (x[:, None] - shift * np.arange(len(law))) / self.noise_multiplier
        if self.mechanism == "laplace":
            return _log_mean(np.where(at > 0, -at - log(2), np.log1p(-np.exp(np.minimum(at, 0.0)) / 2)), law)
        return _log_mean(log_ndtr(-at), law)

    def _where_loss_is(self, epsilons: Floats, law: Floats) -> Floats:
        """Return x with loss(x) = epsilon by bisection between knots; an end of the line where there is none."""
        span = (len(law) - 1) * max(abs(self.up), abs(self.down)) + _REACH * self.noise_multiplier
        knots = np.linspace(-span, span, _KNOTS)
        right = np.clip(np.searchsorted(self._loss(knots, law), epsilons), 1, _KNOTS - 1)
        low, high = knots[right - 1], knots[right]
        # delta is stationary in x, so an error of 1e-8 in x is one of 1e-16 in delta.
        for _ in range(20):
            middle = (low + high) / 2
            below = self._loss(middle, law) < epsilons
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high


def _top(pair: Pair) -> float:
    """Return an epsilon from which on delta is negligible in both directions, at most a little beyond it."""
    low, high = 0.0, _LARGEST
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        at = pair.delta(np.array([middle, -middle]))
        small = at[0] <= _NEGLIGIBLE and at[1] - -np.expm1(-middle) <= _NEGLIGIBLE
        low, high = (low, middle) if small else (middle, high)
    return high


def _log_mean(logs: Floats, law: Floats) -> Floats:
    """Return ln sum_j P(j) e^logs_j."""
    largest = logs.max(axis=1)
    result: Floats = largest + np.log(np.exp(logs - largest[:, None]) @ law)
    return result


def delta_of(law: Losses, epsilon: float) -> float:
    """Return the delta of a law of losses at an epsilon, nats."""
    losses = (law.lowest + np.arange(len(law.chances))) * law.interval
    above = losses > epsilon
    return law.beyond + float(-np.expm1(epsilon - losses[above]) @ law.chances[above])
