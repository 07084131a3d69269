"""The order certificate at many epsilons at once: a looser bound of Theorem A that takes one pass.

In the law of Theorem A, with t the probability that a row takes part, h1 ~ Bin(m, t/q), h0 given h1 is Bin(m-h1, z),
z = t/(q-t), and hr given s = h0 + h1 is Bin(m-s, r), r = t (K-2)/(q-2t). The integrand is the positive part of an
affine function, so each count may be replaced by anything larger in convex order: for s >= s0, hr by Y - r (s-s0) with
Y ~ Bin(m-s0, r), and for h1 >= l, h0 by X - z (h1-l) with X ~ Bin(m-l, z), a binomial plus a centred one. Then h1, X
and Y are independent, and with v = A/(1-r), which is q - 2 at t = 1,

    delta(epsilon) <= (A/n) b0 E Psi(x),    Psi(x) = E (X - x)_+,    b0 = 1 - (e-1)/v,    b1 = e + (e-1)/v
    x = (b1 h1 + ((e-1)/A)(Y + r s0 + n - m))/b0 + z (h1 - l)

s0 is the low end of a window of s, and h1 is cut into short blocks with an l each. h1 and Y are split onto lattices,
each mass shared linearly by its two neighbours, which keeps the mean and is larger in convex order. Nothing cancels in
x. The numbers subtracted are rounded down, and the sum is enlarged by more than its rounding errors.

Relation: substitution of one row, both directions; against the researcher.
"""

from math import ceil, sqrt

import numpy as np

from veiltab.common.core.binomial import binomial_pmf, window
from veiltab.common.core.numbers.elementary import Floats, exp, expm1_each, log
from veiltab.common.core.numbers.rounding import ln_above
from veiltab.common.privacy.shuffle import OrderCertificate

_ROUNDING = 1e-9
"""Relative enlargement that covers the floating-point errors of the sum of positive terms (below 3e-10)."""

_DOWN = 1 - 2e-15
"""Lowers what is subtracted by more than the few roundings up to the subtraction can raise it."""

_BLOCK = 8e-4
"""Rows of h1 that share one law of X, of the m."""

_REST_VARIANCE = 2e-4
"""What the lattice of Y may add to the variance of the integrand, relatively."""

_REST_POINTS = 100
_AT_ONCE = 32
"""Epsilons that share a lattice of Y."""


class OrderProfile:
    """Upper bounds of delta(epsilon) of a release in secret order.

    Args:
        negligible: a probability; the omitted mass is far below it, and is added.
        points: points of the lattice of h1, about.
    """

    def __init__(self, certificate: OrderCertificate, *, negligible: float, points: int = 256) -> None:
        m, k = certificate.sample, certificate.cells
        self._n, self._m = certificate.population, m
        self._a = float(certificate.gamma - 1)
        self._q = self._a + k
        present, absent = float(certificate.presence), float(1 - certificate.presence)
        self._first, self._second = present / self._q, present / (self._q - present)
        others = self._q - 2 + 2 * absent
        self._scale = others / (1 + k * absent / self._a)
        self._mass = log(1 / negligible) + 20
        self.pure_epsilon = float(ln_above(certificate.pure_ratio)) * (1 + 1e-15)
        self._rest_probability = present * (k - 2) / others * _DOWN
        self._least = window(m, 2 * present / self._q, log_mass=self._mass)[0]
        self._rest_low, high = window(m - self._least, self._rest_probability, log_mass=self._mass)
        rest = np.arange(self._rest_low, high + 1, dtype=np.int64)
        self._rest_pmf = binomial_pmf(rest, m - self._least, self._rest_probability)
        self._spread_first(points)
        self._tabulate()

    def _spread_first(self, points: int) -> None:
        """Lay out h1: `_h1` with its weight, the l of its block and its place in the table of laws."""
        low, high = window(self._m, self._first, log_mass=self._mass)
        block = max(1, int(_BLOCK * self._m))
        step = min(block, ceil(max(1, high - low) / points))
        cells = block // step
        counts = np.arange(low, high + 1, dtype=np.int64)
        which, offset = np.divmod(counts - low, cells * step)
        cell, inside = np.divmod(offset, step)
        share = inside / step
        pmf = binomial_pmf(counts, self._m, self._first)
        weights = np.zeros((int(which[-1]) + 1, cells + 1))
        np.add.at(weights, (which, cell), pmf * (1 - share))
        np.add.at(weights, (which, cell + 1), pmf * share)
        self._law, column = np.nonzero(weights)
        self._weights = weights[self._law, column]
        self._starts = low + cells * step * np.arange(len(weights))
        self._past = np.asarray(column * step, np.float64)
        self._h1 = self._starts[self._law] + self._past

    def _tabulate(self) -> None:
        """Tabulate Psi of every block's X at whole numbers, from the right end of its window."""
        p = self._second
        self._low = window(self._m - int(self._starts[-1]), p, log_mass=self._mass)[0]
        high = window(self._m - int(self._starts[0]), p, log_mass=self._mass)[1]
        values = np.arange(self._low, high + 1, dtype=np.int64)
        pmf = binomial_pmf(values, self._m - self._starts[:, None], p)
        at_least = np.cumsum(pmf[:, ::-1], axis=1)
        # Psi(j) is the sum of P(X >= i) over i > j; left of the window it has the slope -1.
        psi = np.pad(np.cumsum(at_least[:, :-1], axis=1)[:, ::-1], [(0, 0), (1, 1)])
        psi[:, 0] = psi[:, 1] + 1
        self._psi, self._slope = psi, np.diff(psi, append=0.0)

    def _rest(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return the lattice of Y with its weights, fine enough at all epsilons to this one."""
        reach = len(self._rest_pmf)
        e1 = max(float(expm1_each(np.array([epsilon]))[0]), 1e-12)
        wide = self._a * max(1 / e1 - 1 / self._scale, 0.0) * sqrt(12 * _REST_VARIANCE * self._m / self._q)
        step = max(1, min(int(wide), reach), reach // _REST_POINTS)
        cell, inside = np.divmod(np.arange(reach, dtype=np.int64), step)
        weights: Floats = np.bincount(cell, self._rest_pmf * (1 - inside / step), reach // step + 2).astype(np.float64)
        weights += np.bincount(cell + 1, self._rest_pmf * (inside / step), reach // step + 2)
        used = np.flatnonzero(weights)
        return np.asarray(self._rest_low + step * used, np.float64), weights[used]

    def deltas(self, epsilons: Floats) -> Floats:
        """Return upper bounds of delta at epsilons (nats, from 0), shape (k,); 0 from the pure epsilon on."""
        inner, result = np.flatnonzero(epsilons < self.pure_epsilon), np.zeros(len(epsilons))
        for part in (inner[start : start + _AT_ONCE] for start in range(0, len(inner), _AT_ONCE)):
            result[part] = self._some(epsilons[part], *self._rest(float(epsilons[part].max())))
        return result

    def _some(self, epsilons: Floats, rest: Floats, weights: Floats) -> Floats:
        e1 = expm1_each(epsilons) * _DOWN
        b0 = np.maximum(1 - e1 / self._scale, 0.0) + 1e-15
        b1 = (1 + e1 + e1 / self._scale) * _DOWN
        others = (rest + self._rest_probability * self._least + self._n - self._m) * _DOWN
        of_first = np.outer(b1 / b0, self._h1) + self._past * self._second * _DOWN
        psi = self._shortfall(of_first[:, :, None] * _DOWN, np.outer(e1 / self._a / b0, others)[:, None, :] * _DOWN)
        psi *= weights
        mean = (psi.sum(axis=2) * self._weights).sum(axis=1)
        total: Floats = self._a / self._n * b0 * mean * (1 + _ROUNDING) + 16 * exp(-self._mass)
        return np.minimum(total, 1.0)

    def _shortfall(self, one: Floats, other: Floats) -> Floats:
        """Return Psi(one + other), linear between whole numbers; slope -1 left of the window, 0 right of it."""
        width = self._psi.shape[1]
        place = (one - (self._low - 1)) + other
        index = place.clip(0, width - 1).astype(np.intp)
        place -= index
        index += self._law[:, None] * width
        place *= self._slope.take(index)
        place += self._psi.take(index)
        return np.maximum(place, 0.0, out=place)
