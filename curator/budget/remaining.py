"""What one more release may ask for: an epsilon that the budget admits, at a delta; pure.

The price of a release follows from its plan, and the plan from n, the cells and the epsilon. So the epsilon is searched
for: the largest whose plan the budget holds, rounded down.
"""

from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any

from veiltab.common.core.numbers.elementary import exp, log
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.guarantee_text import delta_text
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.privacy.pricing.price import Price
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.curator.budget.allowance import Allowance, Sums, priced

_DIGITS = Context(prec=3, rounding=ROUND_FLOOR)
_KEPT = Context(prec=15, rounding=ROUND_FLOOR)
"""Of the epsilon that is promised."""

_LEAST = Decimal("1e-6")
"""Least mu for which a release is searched for: below, it would say next to nothing."""

_SHOWN = Decimal("1e-6")
_CLOSE = 1e-3
_FIRST = 1e-6
_STEPS_DOWN = 4.0
_MARGIN = 1 + Decimal("1e-6")
"""What the price may differ by if curators and server divide the noise in another way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a price depends on beside epsilon and delta.

    Args:
        population: n, rows of every table.
        cells: of the table, K.
    """

    population: int
    cells: int

    @classmethod
    def of(cls, population: int, cells: Iterable[int]) -> "Kind":
        """Return the kind of a release: that of its largest table, of which the least is promised."""
        return cls(population=population, cells=max(cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What one more release may ask for.

    Args:
        epsilon: nats, rounded down.
        delta: to ask for with it; None where it is pure.
        cells: of the table for which this holds; None where it holds for every table.
    """

    epsilon: Decimal
    delta: Decimal | None = None
    cells: int | None = None

    def __str__(self) -> str:
        """Return it in words."""
        epsilon = self.epsilon.quantize(_SHOWN, rounding=ROUND_FLOOR).normalize()
        delta = "" if self.delta is None else f" at delta {delta_text(self.delta)}"
        table = "" if self.cells is None else f" for a table of {self.cells} cells"
        return f"epsilon {epsilon:f}{delta}{table}"

    def as_dict(self, name: str = "remaining") -> dict[str, object]:
        """Return plain data for JSON, by names that begin with a given one."""
        return {name: _KEPT.plus(self.epsilon), f"{name}_delta": self.delta, f"{name}_cells": self.cells}


def kind_of(fields: Mapping[str, Any]) -> Kind:
    """Return the kind of a charge from its facts."""
    kinds = fields["tables"]
    return Kind.of(kinds[0]["population"], (kind["cells"] for kind in kinds))


def rest_for(allowance: Allowance, others: Sums, kind: Kind | None) -> Rest:
    """Return what one more release may ask for: with the budget's delta or pure, whichever epsilon is larger.

    Args:
        others: all that is charged or reserved.
        kind: of the release; None if it is not known, which leaves what the sum of pure epsilons admits.
    """
    pure = Rest(epsilon=max(allowance.pure_left(others), Decimal(0)))
    if allowance.delta is None:
        return pure
    if others.count == 0:
        return Rest(epsilon=allowance.epsilon, delta=allowance.delta)
    epsilon = Decimal(0) if kind is None else _most_epsilon(allowance, others, kind)
    if kind is None or epsilon <= pure.epsilon:
        return pure
    return Rest(epsilon=epsilon, delta=allowance.delta, cells=kind.cells)


@lru_cache(maxsize=1024)
def _most_epsilon(allowance: Allowance, others: Sums, kind: Kind) -> Decimal:
    """Return the largest epsilon, to three digits, whose plan the budget holds at its delta; 0 if none is found."""
    most = allowance.most_price(others)
    budget = allowance.price
    if most is None or budget is None or allowance.delta is None or most.mu < _LEAST:
        return Decimal(0)
    mu = float(most.mu)
    start, top = log(max(most.epsilon(float(allowance.delta)), _FIRST)), log(float(allowance.epsilon))

    def excess(log_epsilon: float) -> float:
        """Return how far the price lies above the most, or above what is close enough below it; 0 between."""
        price = _planned_price(allowance, budget, kind, Decimal(exp(log_epsilon)))
        distance = log(float(price.mu) / mu)
        return distance if distance > 0 else min(distance + _CLOSE, 0.0)

    try:
        logarithm = largest_allowed(min(start, top) - _STEPS_DOWN, min(start, top), top, excess)
        epsilon = _DIGITS.create_decimal(Decimal(exp(logarithm)))
        price = _planned_price(allowance, budget, kind, epsilon)
    except InvalidInputError:  # so little that it cannot be planned
        return Decimal(0)
    fits = price.mu * _MARGIN <= most.mu and price.slack * _MARGIN <= most.slack
    return epsilon if fits else Decimal(0)


def _planned_price(allowance: Allowance, budget: Price, kind: Kind, epsilon: Decimal) -> Price:
    plan = plan_release(population=kind.population, cells=kind.cells, epsilon=epsilon, delta=allowance.delta)
    return priced(plan.description, budget)
