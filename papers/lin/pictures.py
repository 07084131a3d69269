"""Figures 5 to 9 of Lin, Wang, Rane, from simulated releases and from the product's formulas."""

from collections.abc import Sequence
from math import sqrt

from veiltab.papers.census import CELLS, POPULATION
from veiltab.papers.experiment import Curve, Figure, Mark, Panel
from veiltab.papers.lin.curves import (
    EPSILONS,
    GRID,
    PAPER,
    Results,
    against_sample,
    bound,
    exact,
    exact_optimum,
    of_results,
    paper_mark,
    simulated,
)
from veiltab.papers.lin.points import synthetic

SHAPES = ("Adult", "uniform", "linear", "peaky")
"""The census, and the paper's types of synthetic tables."""

_X = tuple(float(m) for m in GRID)

_SEEN = {
    "uniform": (
        "The noise does not depend on the table, and the sampling part only through the sum of squared shares (.096"
        " for Adult, .042 for a uniform table): the two can hardly be told apart."
    ),
    "linear": "A table proportional to 1, ..., 24 is nearly as spread out: again the two can hardly be told apart.",
    "peaky": (
        "With 90 percent of the rows in one cell a small sample varies less: far to the left the error is less than"
        " half that of Adult; to the right, where the noise decides, it is the same. The paper conjectures as much."
    ),
}


def figure_5(results: Results) -> Figure:
    """Return bound, bound over sqrt(K), exact and simulated error of the census."""
    return Figure(
        name="lin-figure-5",
        title=f"{PAPER}, Figure 5: error against the sample size, Adult (K = 24 cells)",
        panels=tuple(against_sample(epsilon, _of_adult(results, epsilon), _optima(epsilon)) for epsilon in EPSILONS),
        caption=(
            "Points are means of the norm over the runs, as in the paper; the exact formula is the root of the mean"
            " square, a little above. The paper has one pair of axes for the three epsilons and marks m* only; the"
            " exact optimum was not known to it, and between the two the curves are flat."
        ),
        shared_y=True,
    )


def _of_adult(results: Results, epsilon: str) -> list[Curve]:
    bounds = [bound(epsilon, m) for m in GRID]
    return [
        Curve(label="bound of Theorem 3.4", x=_X, y=tuple(bounds)),
        Curve(label="bound / sqrt(K)", x=_X, y=tuple(y / sqrt(len(CELLS)) for y in bounds), style="dashed"),
        Curve(label="exact root mean square", x=_X, y=tuple(exact(epsilon, m) for m in GRID), style="dotted"),
        simulated("Adult", results, f"size/Adult/epsilon={epsilon}/m="),
    ]


def _optima(epsilon: str) -> list[Mark]:
    return [Mark(x=exact_optimum(epsilon), label="exact optimum"), paper_mark(epsilon)]


def figure_of_shape(results: Results, shape: str) -> Figure:
    """Return one of Figures 6 to 8: the census beside a synthetic table."""
    place = 5 + SHAPES.index(shape)
    tables = {"Adult": CELLS, shape: synthetic(shape, len(CELLS), POPULATION)}
    return Figure(
        name=f"lin-figure-{place}",
        title=f"{PAPER}, Figure {place}: error against the sample size, Adult and a {shape} table (K = 24 cells)",
        panels=tuple(
            against_sample(epsilon, _side_by_side(results, epsilon, tables), [paper_mark(epsilon)])
            for epsilon in EPSILONS
        ),
        caption=_SEEN[shape],
        shared_y=True,
    )


def _side_by_side(results: Results, epsilon: str, tables: dict[str, Sequence[int]]) -> list[Curve]:
    points = [simulated(name, results, f"size/{name}/epsilon={epsilon}/m=", group=name) for name in tables]
    first, second = (
        Curve(
            label=f"{name}, exact root mean square",
            x=_X,
            y=tuple(exact(epsilon, m, counts) for m in GRID),
            style="line" if name == "Adult" else "dashed",
            group=name,
        )
        for name, counts in tables.items()
    )
    return [points[0], first, points[1], second]


def figure_9(results: Results, *, with_files: bool) -> Figure:
    """Return the error at m* against the number of cells.

    Args:
        with_files: whether the files of the census were at hand, so that it has more tables than two.
    """
    missing = "" if with_files else " Without the files of the census (--adult) Adult has 12 and 24 cells only."
    return Figure(
        name="lin-figure-9",
        title=f"{PAPER}, Figure 9: error at the paper's sample size m*, against the number of cells",
        panels=tuple(_against_cells(results, epsilon) for epsilon in EPSILONS),
        caption=(
            "Adult, linear and uniform overlap, and peaky lies below, as in the paper. The paper does not say which"
            " attributes make the other numbers of cells; here each table splits the one before by one more attribute"
            f" (salary, age, race, hours, class of work, country).{missing}"
        ),
        shared_y=True,
    )


def _against_cells(results: Results, epsilon: str) -> Panel:
    return Panel(
        title=f"epsilon = {epsilon}",
        x_label="cells K of the joint table",
        y_label="error of the joint distribution, l2 norm",
        curves=tuple(
            of_results(
                f"{shape}, simulated mean", results, f"cells/{shape}/epsilon={epsilon}/K=", "mean", style="points"
            )
            for shape in SHAPES
        ),
        x_log=True,
        y_log=True,
    )
