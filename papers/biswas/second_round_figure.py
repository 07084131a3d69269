"""The figure of adaptive second rounds: the largest standard error, and the rates that make it small."""

from collections.abc import Mapping

from veiltab.papers.biswas.populations import EPSILONS, PAPER
from veiltab.papers.biswas.second_round import STRATA
from veiltab.papers.experiment import Curve, Figure, Panel, Plain

Results = Mapping[str, Plain]

_REPORTS = "expected reports of the second round"
_ERRORS = 3
"""Standard errors of a bar, to either side."""


def figure(results: Results) -> Figure:
    """Return errors and rates against the size of the second round."""
    return Figure(
        name="biswas-second-round",
        title=f"Beyond {PAPER}: second rounds with rates by stratum, from a first round of a tenth of the nodes",
        panels=(
            *(_error_panel(epsilon, _points(results, epsilon)) for epsilon in EPSILONS),
            *(_rate_panel(epsilon, _points(results, epsilon)) for epsilon in EPSILONS),
        ),
        caption=(
            "Above: adapting gains at the value that small strata share, a quarter of the largest standard error at"
            " epsilon 4, little at 2, and nothing at 1, where a node's noise hardly depends on its value and the"
            " estimated rates even lose a percent (the sum over all values is least at equal rates always). Bands hold"
            " 90 percent of the first rounds, bars are 3 standard errors. Below: mean rates. They depend on the public"
            " stratum alone: rates by value, as the paper imagines, would tell the value to whoever sees who reports."
            " Its constraint that the rates sum to 1 would be one report; here they sum to the budget."
        ),
    )


def _points(results: Results, epsilon: str) -> list[tuple[float, Plain]]:
    prefix = f"second/epsilon={epsilon}/reports="
    points = ((float(key.removeprefix(prefix)), one) for key, one in results.items() if key.startswith(prefix))
    return sorted(points, key=lambda pair: pair[0])


def _error_panel(epsilon: str, points: list[tuple[float, Plain]]) -> Panel:
    x = tuple(budget for budget, _ in points)
    mean, low, high = (tuple(one["found"][place] for _, one in points) for place in range(3))
    simulated = [one["simulated"] for _, one in points]
    return Panel(
        title=f"largest error, epsilon = {epsilon}",
        x_label=_REPORTS,
        y_label="largest standard error (nodes)",
        curves=(
            Curve(label="equal rates", x=x, y=tuple(one["equal"] for _, one in points), style="dashed"),
            Curve(label="rates from the first round", x=x, y=mean, low=low, high=high, group="adapted"),
            Curve(label="best rates, values known", x=x, y=tuple(one["known"] for _, one in points), style="dotted"),
            Curve(
                label="second rounds, simulated",
                x=x,
                y=tuple(mean for mean, _ in simulated),
                low=tuple(mean - _ERRORS * error for mean, error in simulated),
                high=tuple(mean + _ERRORS * error for mean, error in simulated),
                style="points",
                group="adapted",
            ),
        ),
    )


def _rate_panel(epsilon: str, points: list[tuple[float, Plain]]) -> Panel:
    x = tuple(budget for budget, _ in points)
    total = sum(nodes for _, nodes, _ in STRATA)
    return Panel(
        title=f"rates, epsilon = {epsilon}",
        x_label=_REPORTS,
        y_label="probability of reporting",
        curves=(
            *(
                Curve(
                    label=f"{name}, {nodes:,} nodes", x=x, y=tuple(one["rates"][place] for _, one in points), group=name
                )
                for place, (name, nodes, _) in enumerate(STRATA)
            ),
            Curve(label="equal rate", x=x, y=tuple(budget / total for budget in x), style="dashed"),
        ),
    )
