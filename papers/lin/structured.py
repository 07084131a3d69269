"""Beyond Lin, Wang, Rane: would a structured matrix be more accurate than the gamma-diagonal one, at the same card?

A product of gamma-diagonals over attributes, and a circulant matrix f(y - x) over ordered bins, commute with the pad
too. With many rows the certificate of a release of n rows in secret order is that of N(0,1) against N(mu,1),

    mu^2 = (1/n) max over x, x' of sum_y (t_x(y) - t_x'(y))^2 / min_z t_z(y)

with t_x the law of the output of x: what other rows add to a count, whatever they are, is at least the blanket min_z
t_z(y). For a gamma-diagonal of K cells with A = gamma - 1, q = A + K it is 2 A^2/(n q), as docs/accounting.md has it.
Errors are standard deviations of the noise at a uniform table, exact for n rows. Relation: substitution.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from math import exp, prod, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from veiltab.common.privacy.pricing.price import central_limit_gamma
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.papers.experiment import Curve, Figure, Panel
from veiltab.papers.lin.curves import PAPER

Floats = NDArray[np.float64]

STUDIES = {
    "8 binary attributes": (2,) * 8,
    "Adult, the paper's four": (3, 2, 2, 2),
    "Adult, fourteen": (14, 9, 16, 16, 7, 15, 6, 5, 2, 5, 4, 11, 9, 2),
}
"""Name -> categories of each attribute."""

POPULATIONS = (300, 1000, 3000, 10_000, 45_222, 200_000)
MU = 0.2355
"""Epsilon 1 at delta 1e-6."""

BINS = (5, 9, 16, 32, 64)
_ROOT = 1 / 3
"""Tables share mu^2 in proportion to K to this power, as in a request of several tables."""


def least_a(budget: float, cells: int, rows: int) -> float:
    """Return A of the gamma-diagonal over some cells whose mu^2 is a budget."""
    return central_limit_gamma(WithoutReplacement(population=rows, sample=rows), cells, sqrt(budget)) - 1


def shared(budget: float, tables: Sequence[int], rows: int) -> list[float]:
    """Return A of several tables that share a budget of mu^2."""
    weights = [cells**_ROOT for cells in tables]
    return [least_a(budget * weight / sum(weights), cells, rows) for weight, cells in zip(weights, tables, strict=True)]


def error_of_part(a: float, cells: int, part: int, rows: int) -> float:
    """Return the error of a cell of a marginal with `part` cells, from a gamma-diagonal table."""
    return error_of_product([a * part / cells], [part], rows)


def error_of_product(a: Sequence[float], sizes: Sequence[int], rows: int) -> float:
    """Return the error of a cell of a table of some attributes, whose rows went through one gamma-diagonal each.

    The estimate is the mean of prod_i (1{y_i} - 1/q_i)/rho_i, whose factors are independent given the row.
    """
    second = 1.0
    for one, size in zip(a, sizes, strict=True):
        q = one + size
        rho, own, other = one / q, (one + 1) / q, 1 / q
        moments = (1 + own * (1 - own) / rho**2) / size + (1 - 1 / size) * other * (1 - other) / rho**2
        second *= moments
    return sqrt((second - 1 / prod(sizes)) / rows)


def budget_of_product(a: Sequence[float], sizes: Sequence[int], rows: int) -> float:
    """Return mu^2 of a product of gamma-diagonals; the worst two rows differ in every attribute."""
    same = prod(((one + 1) ** 2 + size - 1) / (one + size) for one, size in zip(a, sizes, strict=True))
    apart = prod((2 * (one + 1) + size - 2) / (one + size) for one, size in zip(a, sizes, strict=True))
    return 2 * (same - apart) / rows


def product_at(budget: float, sizes: Sequence[int], rows: int) -> list[float]:
    """Return A of every attribute, all equal, of the product whose mu^2 is a budget."""
    log = brentq(lambda at: budget_of_product([exp(at)] * len(sizes), sizes, rows) - budget, -12.0, 12.0, xtol=1e-14)
    return [exp(log)] * len(sizes)


def errors(sizes: Sequence[int], order: int, rows: int, budget: float) -> dict[str, float]:
    """Return the mean error, over all tables of some order, of a cell times the cells, by each mechanism.

    Args:
        order: attributes of a table: 1 for shares of an attribute, 2 for pairs.
        rows: n.
        budget: mu^2 of everything together.
    """
    tables = list(combinations(range(len(sizes)), order))
    cells = [prod(sizes[i] for i in table) for table in tables]
    product, joint = product_at(budget, sizes, rows), least_a(budget, prod(sizes), rows)

    def mean(of: Callable[[int], float]) -> float:
        return float(np.mean([of(place) * size for place, size in enumerate(cells)]))

    own = shared(budget, cells, rows)
    return {
        "product": mean(lambda at: error_of_product(*_of(product, sizes, tables[at]), rows)),
        "joint table": mean(lambda at: error_of_part(joint, prod(sizes), cells[at], rows)),
        "own tables": mean(lambda at: error_of_product([own[at]], [cells[at]], rows)),
    }


def _of(a: Sequence[float], sizes: Sequence[int], table: Sequence[int]) -> tuple[list[float], list[int]]:
    return [a[i] for i in table], [sizes[i] for i in table]


def ratio(sizes: Sequence[int], order: int, rows: int, budget: float) -> float:
    """Return the product's error over the least of a gamma-diagonal's."""
    results = errors(sizes, order, rows, budget)
    return results.pop("product") / min(results.values())


def circulant(decay: float, budget: float, bins: int, rows: int) -> Floats:
    """Return f of shape (bins,), f(j) in proportion to decay^|j| and uniform noise so that mu^2 is a budget."""
    distance = np.minimum(np.arange(bins), bins - np.arange(bins))
    kernel = np.where(distance == 0, 1.0, decay**distance if decay else 0.0)
    kernel -= kernel.min()
    kernel /= kernel.sum()

    def mixed(share: float) -> Floats:
        law: Floats = (1 - share) * kernel + share / bins
        return law

    return mixed(brentq(lambda share: budget - budget_of_circulant(mixed(share), rows), 1e-12, 1.0, xtol=1e-15))


def budget_of_circulant(law: Floats, rows: int) -> float:
    """Return mu^2 of a circulant matrix."""
    # sum_y (f(y) - f(y-d))^2 is twice what f's autocorrelation at d lacks of that at 0.
    correlation = np.fft.irfft(np.abs(np.fft.rfft(law)) ** 2, len(law))
    return 2 * float(correlation[0] - correlation[1:].min()) / (rows * float(law.min()))


def error_of_sum(law: Floats, weights: Floats, rows: int) -> float:
    """Return the error of sum_x weights_x T_x from a circulant matrix."""
    matrix = np.array([np.roll(law, x) for x in range(len(law))])
    inverse = np.linalg.solve(matrix, weights)
    return sqrt(float(np.mean(matrix @ inverse**2 - weights**2)) / rows)


def best_circulant(bins: int, rows: int, budget: float, *, below: bool) -> tuple[float, float]:
    """Return the least error of a mean (from 0 to 1), or of the share in the lower half, and the gamma-diagonal's."""
    weights = (np.arange(bins) < bins // 2).astype(np.float64) if below else np.arange(bins) / (bins - 1)
    results = [error_of_sum(circulant(decay, budget, bins, rows), weights, rows) for decay in np.arange(0, 0.5, 0.05)]
    return min(results), results[0]


@lru_cache(maxsize=1)
def figure() -> Figure:
    """Return the errors of both matrices over those of gamma-diagonals, by the number of rows and of bins."""
    budget = MU * MU
    rows = tuple(float(n) for n in POPULATIONS)
    products = tuple(
        Curve(
            label=f"{name}: {what}",
            x=rows,
            y=tuple(ratio(sizes, order, n, budget) for n in POPULATIONS),
            group=name,
            style="line" if order == 1 else "dashed",
        )
        for name, sizes in STUDIES.items()
        for order, what in ((1, "shares of an attribute"), (2, "pairs"))
    )
    circulants = []
    for n in (300, 2000, 45_222):
        pairs = [best_circulant(bins, n, budget, below=True) for bins in BINS]
        circulants.append(
            Curve(label=f"n = {n:,}", x=tuple(map(float, BINS)), y=tuple(best / own for best, own in pairs))
        )
    return Figure(
        name="lin-structured",
        title=f"Beyond {PAPER}: errors of structured matrices over gamma-diagonals' at the same card (epsilon 1)",
        panels=(
            Panel(
                title="product of gamma-diagonals over the attributes",
                x_label="respondents n",
                y_label="error, over the best gamma-diagonal tables'",
                curves=products,
                x_log=True,
                y_log=True,
            ),
            Panel(
                title="circulant f(y - x): share in the lower half of the bins",
                x_label="ordered bins of one attribute",
                y_label="error, over the gamma-diagonal's",
                curves=tuple(circulants),
                x_log=True,
            ),
        ),
        caption="Left: a product is worse everywhere, as each row carries all attributes at once, and two rows that"
        " differ in all of them are told apart. Right: a circulant matrix gains where rows a bin are few and bins are"
        " many; a gamma-diagonal over a quarter as many bins gains more.",
    )
