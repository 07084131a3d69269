"""Intervals by inverting the score test: every count that the estimate does not contradict.

The variance of an estimate is a known function of the true share f, at most quadratic. Let x be the estimated share,
corrected for a known bias. The interval is the set of f with

    (x - f)^2 <= z^2 (constant + linear f + quadratic f^2)

Nothing is plugged in where all nodes report at one rate. Where rates differ, the variance depends on how the nodes that
hold a value are spread over the strata. The lower end removes nodes in proportion to the estimated spread; the upper
end adds nodes in proportion to the population, because unobserved nodes may be in any stratum.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.numbers.confidence import squared_quantile
from veiltab.common.dataclass import dataclass
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, as_floats, linear_form, point_estimates
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import node_variances

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Quadratic:
    """The variance of an estimated share as a function of the true one; coefficients of shape (d,) or none."""

    constant: Floats | float
    linear: Floats | float
    quadratic: Floats | float = 0.0

    def ends(self, x: Floats, z2: float) -> tuple[Floats, Floats]:
        """Return where (x - f)^2 = z2 (constant + linear f + quadratic f^2), written around x to keep its digits."""
        # A few reports contradict no share at all; the interval is then very wide.
        lead = np.maximum(1.0 - z2 * np.asarray(self.quadratic), 0.05)
        centre = z2 * (self.linear + 2.0 * self.quadratic * x) / (2.0 * lead)
        spread = z2 * (self.constant + x * (self.linear + self.quadratic * x)) / lead
        half = np.sqrt(centre**2 + np.maximum(spread, 0.0))
        return x + (centre - half), x + (centre + half)


def score_interval(tally: Tally, estimator: Estimator, confidence: float) -> tuple[Floats, Floats]:
    """Return the counts that the estimate does not contradict.

    At one rate hajek's interval is conditional on the number of reports, and c's is that of g: its bias is known and
    subtracted, so c itself may lie outside. Where rates differ, the intervals of c, g, c_hat and T assume that the
    rates are unrelated to the values.

    Args:
        confidence: probability that one interval holds its count, above 0 and below 1; not simultaneous over values.

    Returns:
        Lower and upper ends, each of shape (d,), float64, within 0 and n (nodes).

    Raises:
        InvalidInputError: a confidence outside (0, 1).

    Source: Wilson, Probable inference, the law of succession, and statistical inference (1927), with these variances.
    """
    z2, design = squared_quantile(confidence), tally.design
    raw = point_estimates(estimator, tally.counts, tally.reports, design)
    x, scale = _unbiased_share(estimator, raw, design)
    below, above = _variances(tally, estimator, scale)
    low, high = np.clip(below.ends(x, z2)[0], 0.0, 1.0), np.clip(above.ends(x, z2)[1], 0.0, 1.0)
    return design.population * low, design.population * high


def combined_interval(
    tallies: Sequence[Tally], weights: Sequence[float], counts: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Return the counts that a weighted sum of horvitz_thompson over several rounds does not contradict.

    Args:
        tallies: of rounds with coins of their own.
        weights: of the rounds, summing to 1.
        counts: the weighted sum, shape (d,) (nodes).
        confidence: as for `score_interval`.

    Returns:
        Lower and upper ends, each of shape (d,), float64, within 0 and n (nodes).
    """
    n, z2 = tallies[0].design.population, squared_quantile(confidence)
    ends = [_variances(tally, Estimator.HORVITZ_THOMPSON, float(n)) for tally in tallies]
    below, above = (_weighted_sum([pair[side] for pair in ends], weights) for side in (0, 1))
    low, high = below.ends(counts / n, z2)[0], above.ends(counts / n, z2)[1]
    return n * np.clip(low, 0.0, 1.0), n * np.clip(high, 0.0, 1.0)


def _weighted_sum(parts: Sequence[_Quadratic], weights: Sequence[float]) -> _Quadratic:
    """Return the variance of a weighted sum of independent estimates."""
    squares = [weight * weight for weight in weights]
    constant, linear = (
        sum((square * np.asarray(part) for square, part in zip(squares, column, strict=True)), np.zeros(1))
        for column in zip(*((part.constant, part.linear) for part in parts), strict=True)
    )
    return _Quadratic(constant=constant, linear=linear)


def _unbiased_share(estimator: Estimator, raw: Floats, design: RoundDesign) -> tuple[Floats, float]:
    """Return the unbiased estimate of the share, and the divisor, for values unrelated to rates."""
    if estimator is not Estimator.C:
        return raw / design.population, float(design.population)
    scale = float(design.population * design.mean_rate)
    missed = float(design.population * (1 - design.mean_rate) * design.q / (design.p - design.q))
    return (raw + missed) / scale, scale


def _variances(tally: Tally, estimator: Estimator, scale: float) -> tuple[_Quadratic, _Quadratic]:
    """Return the variance for shares below the estimate, and for shares above it."""
    design = tally.design
    if estimator is Estimator.HAJEK and design.one_rate:
        return _ratio(tally), _ratio(tally)
    nodes = np.array(design.populations, dtype=np.float64)[:, None]
    match estimator:
        case Estimator.HAJEK | Estimator.HORVITZ_THOMPSON:
            holders = _estimated_holders(tally)
            excess = holders - nodes * (holders.sum(axis=0) / design.population)
            nowhere = np.zeros(holders.shape)
            return (
                _weighted(tally, estimator, nowhere, design.population * _spread(tally)),
                _weighted(tally, estimator, excess, np.broadcast_to(nodes, holders.shape)),
            )
        case Estimator.C | Estimator.G | Estimator.C_HAT | Estimator.T:
            holding, other = map(as_floats, node_variances(linear_form(estimator, design), design))
            flat = _Quadratic(
                constant=float(other @ nodes[:, 0]) / scale**2, linear=float((holding - other) @ nodes[:, 0]) / scale**2
            )
            return flat, flat


def _ratio(tally: Tally) -> _Quadratic:
    """Return Var(hajek/n | S) = [f p(1-p) + (1-f) q(1-q)]/(S (p-q)^2) + f(1-f)(n-S)/((n-1) S)."""
    n, p, q, received = tally.design.population, tally.p, tally.q, int(tally.reports.sum())
    holding, other = float(p * (1 - p) / (p - q) ** 2), float(q * (1 - q) / (p - q) ** 2)
    sampling = (n - received) / (max(n - 1, 1) * received)
    return _Quadratic(constant=other / received, linear=(holding - other) / received + sampling, quadratic=-sampling)


def _weighted(tally: Tally, estimator: Estimator, start: Floats, slope: Floats) -> _Quadratic:
    """Return the variance of horvitz_thompson/n or hajek/n (linearised) where start + slope f nodes hold the value.

    Noise, and sum_s (1/pi_s - 1) times n_si for the one or n_si (1-f)^2 + (n_s - n_si) f^2 for the other.
    """
    design = tally.design
    n, p, q = design.population, design.p, design.q
    noise = as_floats([1 / rate for rate in design.rates]) / n**2
    unsure = as_floats([(1 - rate) / rate for rate in design.rates]) / n**2
    holding, other = float(p * (1 - p) / (p - q) ** 2), float(q * (1 - q) / (p - q) ** 2)
    nodes = np.array(design.populations, dtype=np.float64)
    constant = float(noise @ nodes) * other + (noise * (holding - other) + unsure) @ start
    linear = (noise * (holding - other) + unsure) @ slope
    if estimator is Estimator.HORVITZ_THOMPSON:
        return _Quadratic(constant=constant, linear=linear)
    return _Quadratic(
        constant=constant, linear=linear - 2 * unsure @ start, quadratic=float(unsure @ nodes) - 2 * unsure @ slope
    )


def _estimated_holders(tally: Tally) -> Floats:
    """Return the estimated n_si, kept within 0 and n_s."""
    scale = as_floats([1 / (rate * (tally.p - tally.q)) for rate in tally.rates])[:, None]
    raw = (tally.counts - float(tally.q) * tally.reports[:, None]) * scale
    holders: Floats = np.clip(raw, 0.0, np.array(tally.populations, dtype=np.float64)[:, None])
    return holders


def _spread(tally: Tally) -> Floats:
    """Return the fraction of a value's nodes in each stratum; where its estimate is zero, the fraction of all nodes."""
    holders = _estimated_holders(tally)
    total = holders.sum(axis=0)
    everywhere = (np.array(tally.populations) / tally.design.population)[:, None]
    spread: Floats = np.where(total > 0, holders / np.where(total > 0, total, 1.0), everywhere)
    return spread
