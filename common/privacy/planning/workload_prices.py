"""Several tables under one price: their shares of a budget, their mechanisms, and the error to be foreseen.

An (epsilon, delta) is the budget (mu_B, delta0_B) of `price_budget`. Tables that all run, each once, divide mu_B^2:

    mu_t^2 = mu_B^2 K_t^(1/3) / sum K^(1/3),    delta0_t = delta0_B (mu_t / mu_B)^2

Where `repeats` of them may run again, chosen after the first results, the tables have half of mu_B^2 so divided, and
each of the repeats mu_B^2 / (2 repeats), whatever table it is. These prices are fixed before anything runs, so what is
chosen stays within the budget by the filter theorem (docs/accounting.md).

Relation: substitution of one row, n public. Every curator computes the mechanisms for itself; only the foreseen errors
are floats.
"""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from math import pi, sqrt
from statistics import median

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import mean_squared_error
from veiltab.common.privacy.pricing.price import Price, central_limit_gamma, mechanism_at, price_budget
from veiltab.common.schemes import Scheme

_DOWN = Context(prec=40, rounding=ROUND_FLOOR)
_MU_DIGITS = Decimal("1e-8")
_PLANNED = Decimal("0.9995")
"""Part of mu that is planned for: anyone who prices the tables again finds the mu of each to within 0.035%."""

_THIRD = Decimal(1) / Decimal(3)

MOST_ERROR = 0.5
"""Largest foreseen error of a typical table that is planned: half of the respondents would stand in a wrong cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPrices:
    """What each table of a workload may cost.

    Args:
        first: of each table, in their order.
        again: of every table that runs a second time; None without repeats.
    """

    first: tuple[Price, ...]
    again: Price | None


def workload_prices(cells: Sequence[int], repeats: int, epsilon: Decimal, delta: Decimal) -> WorkloadPrices:
    """Divide an (epsilon, delta) among tables, and among those that may run again.

    Args:
        cells: K of each table.
        repeats: so many of them may run a second time.
        epsilon: of all together, nats.
        delta: of all together, in (0, 1).

    Raises:
        InvalidInputError: an epsilon and delta so small that no price is left.
    """
    budget = price_budget(epsilon, delta)
    weights = [_DOWN.power(Decimal(k), _THIRD) for k in cells]
    whole = sum(weights, Decimal(0)) * (2 if repeats else 1)
    return WorkloadPrices(
        first=tuple(_part(budget, _DOWN.divide(weight, whole)) for weight in weights),
        again=_part(budget, _DOWN.divide(Decimal(1), Decimal(2 * repeats))) if repeats else None,
    )


def _part(budget: Price, share: Decimal) -> Price:
    """Return the price with a share of a budget's mu^2 and of its slack, rounded down."""
    mu = _DOWN.multiply(_DOWN.multiply(budget.mu, _PLANNED), _DOWN.sqrt(share)).quantize(_MU_DIGITS, context=_DOWN)
    part = _DOWN.divide(_DOWN.multiply(mu, mu), _DOWN.multiply(budget.mu, budget.mu))
    return Price(mu=mu, slack=_DOWN.multiply(budget.slack, part))


def workload_mechanisms(
    scheme: Scheme, cells: Sequence[int], prices: WorkloadPrices
) -> tuple[tuple[GammaDiagonal, ...], tuple[GammaDiagonal, ...]]:
    """Return the mechanism of every table, and that of every table for a second time (none without repeats).

    One is worked out for each size and price; it takes about 50 ms.

    Args:
        scheme: how rows are sampled for each table.
        cells: K of each table.
        prices: what they may cost.

    Raises:
        InvalidInputError: a price below that of every mechanism.
    """
    first = tuple(_mechanism(scheme, k, price) for k, price in zip(cells, prices.first, strict=True))
    again = prices.again
    return first, () if again is None else tuple(_mechanism(scheme, k, again) for k in cells)


@lru_cache(maxsize=4096)
def _mechanism(scheme: Scheme, cells: int, price: Price) -> GammaDiagonal:
    return mechanism_at(scheme, cells, price)


def expected_distance(*, population: int, sample: int, cells: int, gamma: float) -> float:
    """Return the expected total variation distance of a table's unbiased estimate from the truth.

    sqrt(K v / (2 pi)), v the expected squared error of all cells together: normal errors, alike in every cell, for
    which the distance of a given v is largest.

    Args:
        population: n, rows of the hub.
        sample: sampled rows m.
        cells: K.
    """
    squares = mean_squared_error(population=population, sample=sample, cells=cells, gamma=gamma)
    return sqrt(cells * squares / (2 * pi))


@lru_cache(maxsize=4096)
def foreseen_error(scheme: Scheme, cells: int, mu: float) -> float:
    """Return the expected total variation distance of a table at a price, at once: gamma is the central limit's.

    Args:
        scheme: how rows are sampled.
        cells: K.
        mu: of its price, above 0.
    """
    gamma = central_limit_gamma(scheme, cells, mu)
    return expected_distance(population=scheme.population, sample=scheme.sample, cells=cells, gamma=gamma)


def foreseen_errors(scheme: Scheme, cells: Sequence[int], prices: WorkloadPrices) -> tuple[float, ...]:
    """Return the foreseen error of each table when it runs first."""
    return tuple(foreseen_error(scheme, k, float(price.mu)) for k, price in zip(cells, prices.first, strict=True))


def check_carries(scheme: Scheme, cells: Sequence[int], prices: WorkloadPrices) -> None:
    """Refuse so many tables that a typical one would say nothing.

    Raises:
        InvalidInputError: with the foreseen error, and how many of such tables the epsilon would carry.
    """
    if any(price.mu == 0 for price in prices.first):
        raise InvalidInputError("the epsilon leaves nothing for so many tables", where="epsilon", remedy=_REMEDY)
    error = median(foreseen_errors(scheme, cells, prices))
    if error > MOST_ERROR:
        number = tables_carried(scheme, sorted(cells)[len(cells) // 2], prices)
        carried = f"at most {number} such tables" if number else "not even one such table"
        raise InvalidInputError(
            f"the epsilon is too small for {len(cells)} tables: the error of a typical one would be {error:.2g}"
            f" (total variation distance); it would carry {carried} with an error of at most {MOST_ERROR}",
            where="epsilon",
            remedy=_REMEDY,
        )


_REMEDY = "Ask for fewer tables, for coarser attributes, or for a larger epsilon."


def tables_carried(scheme: Scheme, cells: int, prices: WorkloadPrices) -> int:
    """Return how many tables of one size the tables' part of a budget would carry with at most MOST_ERROR.

    Args:
        scheme: how rows are sampled.
        cells: K of each.
        prices: of a workload; its tables' part is that of as many of the other tables.
    """
    whole = sqrt(sum(float(price.mu) ** 2 for price in prices.first))
    low, high = 0, len(prices.first)
    while high - low > 1:
        middle = (low + high) // 2
        fits = foreseen_error(scheme, cells, whole / sqrt(middle)) <= MOST_ERROR
        low, high = (middle, high) if fits else (low, middle)
    return low
