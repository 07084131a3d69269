"""The curves and marks that several figures of Lin, Wang, Rane share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import sqrt

import numpy as np

from veiltab.common.privacy.planning.planning import mean_squared_error, optimal_sample, paper_bound, paper_sample
from veiltab.papers.census import CELLS, POPULATION
from veiltab.papers.experiment import Curve, Mark, Panel, Plain, Style
from veiltab.papers.lin.points import plan_of

Results = Mapping[str, Plain]

PAPER = "Lin, Wang, Rane"
EPSILONS = ("0.1", "0.5", "1")
"""Of the paper's simulations, nats."""

GRID = tuple(sorted({round(float(m)) for m in np.geomspace(30, POPULATION, 60)}))
"""Sample sizes at which formulas are drawn."""


def against_sample(epsilon: str, curves: Sequence[Curve], marks: Sequence[Mark]) -> Panel:
    """Return a panel of errors against the sample size."""
    return Panel(
        title=f"epsilon = {epsilon}",
        x_label="sampled rows m (of n = 45,222)",
        y_label="error of the joint distribution, l2 norm",
        curves=tuple(curves),
        x_log=True,
        y_log=True,
        marks=tuple(marks),
    )


def at(results: Results, prefix: str) -> list[tuple[float, Plain]]:
    """Return (number that ends the key, result) of every result whose key begins so, in order."""
    points = [(float(key.removeprefix(prefix)), result) for key, result in results.items() if key.startswith(prefix)]
    return sorted(points, key=lambda one: one[0])


def of_results(  # noqa: PLR0913 - what to draw, and how
    label: str, results: Results, prefix: str, field: str, *, style: Style = "line", group: str = ""
) -> Curve:
    """Return one number of the results against what their keys end with."""
    points = at(results, prefix)
    x, y = tuple(x for x, _ in points), tuple(one[field] for _, one in points)
    return Curve(label=label, x=x, y=y, style=style, group=group)


def simulated(label: str, results: Results, prefix: str, group: str = "") -> Curve:
    """Return simulated means, with bars that hold 90 percent of the runs."""
    points = at(results, prefix)
    means = of_results(f"{label}, simulated mean (bar: 5 to 95% of runs)", results, prefix, "mean", group=group)
    return replace(
        means, low=tuple(one["low"] for _, one in points), high=tuple(one["high"] for _, one in points), style="points"
    )


def concentration(counts: Sequence[int]) -> float:
    """Return the sum of the squared shares, sum T^2."""
    shares = np.array(counts) / sum(counts)
    return float(shares @ shares)


def bound(epsilon: str, sample: int) -> float:
    """Return the bound of Theorem 3.4 for the census at a sample size."""
    gamma = plan_of(POPULATION, len(CELLS), epsilon, None, sample).gamma
    return paper_bound(sample=sample, cells=len(CELLS), gamma=gamma)


def exact(epsilon: str, sample: int, counts: Sequence[int] = CELLS) -> float:
    """Return the exact root-mean-square error of a pure release of a table."""
    plan = plan_of(sum(counts), len(counts), epsilon, None, sample)
    return sqrt(
        mean_squared_error(
            population=plan.population,
            sample=plan.sample,
            cells=len(counts),
            gamma=plan.gamma,
            sum_of_squares=concentration(counts),
        )
    )


def paper_optimum(epsilon: str) -> int:
    """Return m* of Corollary 3.6 for the census."""
    return paper_sample(population=POPULATION, cells=len(CELLS), epsilon=Decimal(epsilon))


def exact_optimum(epsilon: str) -> int:
    """Return the sample size of least error for the census."""
    squares = Fraction(sum(count * count for count in CELLS), sum(CELLS) ** 2)
    return optimal_sample(population=POPULATION, cells=len(CELLS), epsilon=Decimal(epsilon), sum_of_squares=squares)


def paper_mark(epsilon: str) -> Mark:
    """Return the paper's vertical line."""
    return Mark(x=paper_optimum(epsilon), label="m* of Corollary 3.6")
