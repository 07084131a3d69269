"""Beyond Lin, Wang, Rane: their release under the certificate of its secret order."""

from collections.abc import Mapping

from veiltab.papers.census import CELLS, POPULATION
from veiltab.papers.experiment import Curve, Figure, Panel, Style
from veiltab.papers.lin.curves import (
    EPSILONS,
    GRID,
    PAPER,
    Results,
    against_sample,
    exact,
    of_results,
    paper_mark,
    simulated,
)
from veiltab.papers.lin.points import central_error, plan_of

DELTAS = ("1e-6", "1e-8")

_X = tuple(float(m) for m in GRID)
_STYLES: Mapping[str, Style] = {"1e-6": "dashed", "1e-8": "dotted"}


def errors(results: Results) -> Figure:
    """Return the error against the sample size, pure and with two deltas, and the floor of a trusted curator."""
    return Figure(
        name="lin-order",
        title=f"Beyond {PAPER}: the same release with its secret order certified, and a trusted curator's histogram",
        panels=tuple(
            against_sample(
                epsilon, [_pure(epsilon), *_certified(results, epsilon), *_floor(epsilon)], [paper_mark(epsilon)]
            )
            for epsilon in EPSILONS
        ),
        caption=(
            "With a delta the best sample is everybody, and there the error is 20 to 35 times below that at the"
            " paper's m*. The horizontal lines are the floor: a Gaussian histogram by a curator who holds the whole"
            " table in the clear, calibrated exactly (Balle, Wang 2018; substitution, sensitivity sqrt 2)."
        ),
        shared_y=True,
    )


def _pure(epsilon: str) -> Curve:
    y = tuple(exact(epsilon, m) for m in GRID)
    return Curve(label="pure (Theorem 3.2), exact root mean square", x=_X, y=y)


def _certified(results: Results, epsilon: str) -> list[Curve]:
    curves = []
    for delta in DELTAS:
        prefix, label = f"order/delta={delta}/epsilon={epsilon}/m=", f"order, delta = {delta}"
        curves.append(
            of_results(
                f"{label}, exact root mean square", results, prefix, "expected", style=_STYLES[delta], group=delta
            )
        )
        curves.append(simulated(label, results, prefix, group=delta))
    return curves


def _floor(epsilon: str) -> list[Curve]:
    floors = {delta: central_error(POPULATION, len(CELLS), float(epsilon), float(delta)) for delta in DELTAS}
    ends = (_X[0], _X[-1])
    return [
        Curve(label=f"trusted curator, Gaussian, delta = {delta}", x=ends, y=(y, y), style=style, group="curator")
        for (delta, y), style in zip(floors.items(), _STYLES.values(), strict=True)
    ]


def price(results: Results) -> Figure:
    """Return what the certificate costs a row, and what it grants to the paper's own release."""
    return Figure(
        name="lin-price",
        title=f"Beyond {PAPER}: what the secret order costs, and what it grants to the paper's own release",
        panels=(_cost(results), _grant(results)),
        caption=(
            "Left: the certificate allows rows that are perturbed less, which a researcher together with a curator"
            " sees; a cap on ln gamma limits it. Right: a release at the paper's m*, unchanged, faces the researcher"
            " with the pure epsilon of Theorem 3.2 and, its order being secret too, with one 11 to 54 times"
            " smaller at a delta."
        ),
    )


def _cost(results: Results) -> Panel:
    curves = []
    for epsilon in EPSILONS:
        prefix = f"order/delta=1e-6/epsilon={epsilon}/m="
        label = f"epsilon = {epsilon}, order, delta = 1e-6"
        curves.append(of_results(label, results, prefix, "local_epsilon", group=epsilon))
        y = tuple(float(plan_of(POPULATION, len(CELLS), epsilon, None, m).local_epsilon) for m in GRID)
        curves.append(Curve(label=f"epsilon = {epsilon}, pure", x=_X, y=y, style="dashed", group=epsilon))
    return Panel(
        title="who knows sample and order (a curator)",
        x_label="sampled rows m (of n = 45,222)",
        y_label="ln gamma: epsilon of one row (nats)",
        curves=tuple(curves),
        x_log=True,
    )


def _grant(results: Results) -> Panel:
    curves = [
        of_results(f"order, delta = {delta}", results, f"guarantee/delta={delta}/epsilon=", "order") for delta in DELTAS
    ]
    ends = (curves[0].x[0], curves[0].x[-1])
    return Panel(
        title="the researcher, at the paper's m*",
        x_label="pure epsilon of the release (nats)",
        y_label="epsilon that it guarantees (nats)",
        curves=(*curves, Curve(label="pure (Theorem 3.2)", x=ends, y=ends, style="dashed")),
        x_log=True,
        y_log=True,
    )
