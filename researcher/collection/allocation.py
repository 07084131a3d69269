"""Two-round collection: the second round's rates by stratum, chosen from the first round's estimates.

Under rates pi the variance of horvitz_thompson for value i is a sum over strata of costs that rates divide,

    Var_i = sum_s c_si/pi_s - n_i,    c_si = n_si [p(1-p)/(p-q)^2 + 1] + (n_s - n_si) q(1-q)/(p-q)^2

which is convex in the rates, so the largest of all Var_i has one least value at a given sum_s n_s pi_s. Rates are a
function of the public stratum alone: a rate that depended on a node's value would reveal it to anyone who sees who
reports.

The sum over all values is least at equal rates, whatever the values are: sum_i c_si is the same for every node. Unequal
rates can reduce the largest variance, or a weighted sum.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction
from math import ceil, floor
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.extras import importing
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.tally import Tally

LEAST_RATE = Fraction(1, 1000)
"""Floor of a rate: a stratum that never reports cannot be estimated."""

_STEP = Fraction(1, 10**6)
_TOLERANCE = 1e-9

Floats = NDArray[np.float64]


class Objective(Enum):
    """What an allocation minimises."""

    LARGEST = "largest"
    SUM = "sum"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """The second round's rates and their variances, if the first round's estimates are right.

    Args:
        rates: pi_s of each stratum, whole numbers of 10^-6, in (0, 1].
        expected_reports: sum_s n_s pi_s, at most the budget.
        variances: of horvitz_thompson at these rates, shape (d,) (nodes squared).
        equal_rate_variances: at one rate for all with the same number of reports, shape (d,) (nodes squared).
    """

    rates: tuple[Fraction, ...]
    expected_reports: Fraction
    variances: Floats
    equal_rate_variances: Floats


def allocate(first: Tally, *, budget: Fraction | int, objective: Objective = Objective.LARGEST) -> Allocation:
    """Choose the rates of a second round over the strata of a first.

    Args:
        first: the counts of the first round.
        budget: expected reports of the second round, sum_s n_s pi_s.
        objective: the largest variance over the values, or their sum.

    Returns:
        Rates rounded down to six digits, so that the budget holds.

    Raises:
        NotReadyError: the first round has no report.
        InvalidInputError: a budget that is more than the nodes or less than the floor takes.

    Source: Biswas, Cormode, Maple, Section 6 (iii), which asks for it; Neyman, On the two different aspects of the
    representative method (1934), for the weighted sum.
    """
    design, shares, budget = first.design, stratum_shares(first), Fraction(budget)
    _check(first, budget)
    costs, nodes = node_costs(shares, design), np.array(design.populations, np.float64)
    with_value = nodes @ shares
    match objective:
        case Objective.SUM:
            solution = neyman_rates(costs.sum(axis=1), nodes, float(budget), float(LEAST_RATE))
        case Objective.LARGEST:
            solution = minimax_rates(costs, with_value, nodes, float(budget), float(LEAST_RATE))
        case _:
            assert_never(objective)
    rates = _rounded(solution, design.populations, budget)
    return Allocation(
        rates=rates,
        expected_reports=_reports(rates, design.populations),
        variances=(1 / np.array([float(rate) for rate in rates])) @ costs - with_value,
        equal_rate_variances=costs.sum(axis=0) * (design.population / float(budget)) - with_value,
    )


def stratum_shares(tally: Tally) -> Floats:
    """Return each stratum's estimated shares of the values, projected on the simplex, shape (strata, d).

    A stratum without a report gets the shares of all strata together.
    """
    p, q = tally.p, tally.q
    together = tally.counts.sum(axis=0) / max(int(tally.reports.sum()), 1)
    rows = [
        row / received if received else together
        for row, received in zip(tally.counts, tally.reports.tolist(), strict=True)
    ]
    return np.array([project_to_simplex((row - float(q)) / float(p - q)) for row in rows])


def node_costs(shares: Floats, design: RoundDesign) -> Floats:
    """Return c_si, shape (strata, d): the contribution of stratum s to Var_i, times its rate (nodes squared).

    Args:
        shares: f_si, shape (strata, d).
        design: the public parameters; its rates are not used.
    """
    p, q = design.p, design.q
    holding, other = float(p * (1 - p) / (p - q) ** 2 + 1), float(q * (1 - q) / (p - q) ** 2)
    return np.array(design.populations, np.float64)[:, None] * (other + (holding - other) * shares)


def neyman_rates(costs: Floats, nodes: Floats, budget: float, least: float) -> Floats:
    """Return the rates in [least, 1] with the least sum_s costs_s/pi_s at sum_s n_s pi_s = budget.

    pi_s is proportional to sqrt(costs_s/n_s) wherever neither bound holds; found by filling up.

    Args:
        costs: shape (strata,), not negative.
        nodes: n_s, shape (strata,).
        budget: expected reports, from least sum(n_s) to sum(n_s).

    Source: Neyman (1934); the Karush-Kuhn-Tucker conditions give the bounds.
    """
    # Without noise (q = 0) a stratum may cost nothing; its wish is then very small, not zero.
    wish = np.sqrt(np.maximum(costs, max(1e-12 * float(costs.max()), 1e-100)) / nodes)
    # The rates clip(t wish, least, 1) use more of the budget as t rises; between two bends that is linear in t.
    bends = np.unique(np.concatenate([least / wish, 1 / wish]))
    used = np.array([nodes @ np.clip(t * wish, least, 1.0) for t in bends])
    t = float(np.interp(budget, used, bends))
    rates: Floats = np.clip(t * wish, least, 1.0)
    return rates


def minimax_rates(costs: Floats, with_value: Floats, nodes: Floats, budget: float, least: float) -> Floats:
    """Return the rates in [least, 1] with the least max_i (sum_s costs_si/pi_s - held_i) at sum_s n_s pi_s = budget.

    By duality it is the largest, over weights of the values that sum to 1, of the least weighted sum, which
    `neyman_rates` computes in closed form. Only a few values attain the largest variance; others are added when they
    exceed it.

    Args:
        costs: shape (strata, d).
        with_value: shape (d,).
        nodes: n_s, shape (strata,).
        budget: expected reports, from least sum(n_s) to sum(n_s).
    """
    rates = neyman_rates(costs.sum(axis=1), nodes, budget, least)
    active: list[int] = []
    while True:
        variances = (1 / rates) @ costs - with_value
        worst = int(np.argmax(variances))
        if active and (worst in active or variances[worst] <= variances[active].max() * (1 + _TOLERANCE)):
            return rates
        active.append(worst)
        some = costs[:, active]

        def least_sum(multipliers: Floats, some: Floats = some) -> Floats:
            return neyman_rates(some @ multipliers, nodes, budget, least)

        rates = least_sum(_multipliers(some, with_value[active], least_sum))


def _multipliers(costs: Floats, with_value: Floats, least_sum: Callable[[Floats], Floats]) -> Floats:
    """Return the weights, summing to 1, whose least weighted sum of variances is largest; a smooth concave problem."""
    with importing("adapt", "making the largest variance least"):
        from scipy.optimize import LinearConstraint, minimize  # noqa: PLC0415 - not where the extra is missing

    count = costs.shape[1]
    scale = float(np.abs((1 / least_sum(np.full(count, 1 / count))) @ costs - with_value).max()) or 1.0

    def loss(multipliers: Floats) -> tuple[float, Floats]:
        variances = ((1 / least_sum(multipliers)) @ costs - with_value) / scale
        return -float(variances @ multipliers), -variances

    solved = minimize(
        loss,
        np.full(count, 1 / count),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * count,
        constraints=LinearConstraint(np.ones((1, count)), 1.0, 1.0),
        options={"maxiter": 300, "ftol": 1e-15},
    )
    clipped = np.clip(solved.x, 0.0, 1.0)
    weights: Floats = clipped / clipped.sum()
    return weights


def _rounded(exact: Floats, populations: Sequence[int], budget: Fraction) -> tuple[Fraction, ...]:
    """Round down to whole steps, never below the floor; then reduce the largest rates to the budget."""
    # A rate that a rounding error put just below a whole step is that step.
    rates = [max(floor(Fraction(rate) / _STEP + Fraction(1, 1000)) * _STEP, LEAST_RATE) for rate in exact.tolist()]
    for place in sorted(range(len(rates)), key=lambda s: rates[s], reverse=True):
        excess = _reports(rates, populations) - budget
        if excess <= 0:
            break
        rates[place] = max(rates[place] - ceil(excess / populations[place] / _STEP) * _STEP, LEAST_RATE)
    return tuple(rates)


def _reports(rates: Sequence[Fraction], populations: Sequence[int]) -> Fraction:
    return Fraction(sum(n * rate for n, rate in zip(populations, rates, strict=True)))


def _check(first: Tally, budget: Fraction) -> None:
    if not first.reports.sum():
        raise NotReadyError(
            "no node reported in the first round, so nothing is known of the strata",
            where="allocation",
            remedy="Close a round that has reports, or choose the rates yourself.",
        )
    nodes = first.design.population
    if not LEAST_RATE * nodes <= budget <= nodes:
        raise InvalidInputError(
            f"a budget of {float(budget):g} reports is not between {float(LEAST_RATE * nodes):g}, which the least rate"
            f" takes, and the {nodes} nodes",
            where="budget",
        )
