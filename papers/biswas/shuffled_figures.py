"""Two figures that answer Section 6 (ii): shuffled guarantees, and local reports beside a trusted centre's noise."""

from collections.abc import Mapping

from veiltab.papers.biswas.populations import EPSILONS, PAPER
from veiltab.papers.biswas.shuffled import CENTRAL, DELTA
from veiltab.papers.experiment import Curve, Figure, Panel, Plain, Style

Results = Mapping[str, Plain]

_RATE = "probability pi that a node reports"
_ERROR = "standard error of a count (nodes)"


def figures(results: Results) -> tuple[Figure, ...]:
    """Return what the paper's rounds guarantee centrally, and what rounds cost that are made for a guarantee."""
    return (_guarantees(results), _planned(results))


def _guarantees(results: Results) -> Figure:
    ratios = _over_the_centre(results, "guarantee")
    least = min(one["local"] / one["shuffled"] for key, one in results.items() if key.startswith("guarantee/"))
    return Figure(
        name="biswas-shuffled",
        title=f"Beyond {PAPER}: what shuffling its rounds guarantees, delta = {DELTA} (50,000 nodes, 100 values)",
        panels=(
            *(_guarantee_panel(results, epsilon) for epsilon in EPSILONS),
            *(_error_panel(results, epsilon, epsilon) for epsilon in EPSILONS),
        ),
        caption=(
            "Above: who sees whose report is whose faces the local epsilon; who sees the counts alone faces at most one"
            f" part in {least:.0f} of it, by the order certificate (substitution; upper bounds). Below: a trusted"
            " centre that adds Gaussian noise for the same central guarantee has nearly the same standard error: a"
            f" round costs {min(ratios):.3f} to {max(ratios):.2f} times as much. What the nodes add is little more"
            " than the counts as a whole need."
        ),
    )


def _over_the_centre(results: Results, kind: str) -> list[float]:
    """Return the errors of rounds over those of a trusted centre."""
    return [one["collected"] / one["gaussian"] for key, one in results.items() if key.startswith(f"{kind}/")]


def _guarantee_panel(results: Results, epsilon: str) -> Panel:
    return Panel(
        title=f"epsilon of a report = {epsilon}",
        x_label=_RATE,
        y_label="epsilon (nats)",
        curves=(
            _curve(results, "guarantee", epsilon, "local", "local: whose report is whose", "dashed"),
            _curve(results, "guarantee", epsilon, "coins", "secret coins, pure", "dotted"),
            _curve(results, "guarantee", epsilon, "known", "counts, and who reported"),
            _curve(results, "guarantee", epsilon, "shuffled", "counts alone"),
        ),
        y_log=True,
    )


def _error_panel(results: Results, epsilon: str, of: str) -> Panel:
    return Panel(
        title=f"error, epsilon of a report = {of}",
        x_label=_RATE,
        y_label=_ERROR,
        curves=(
            _curve(results, "guarantee", epsilon, "collected", "c_hat"),
            _curve(results, "guarantee", epsilon, "gaussian", "trusted centre, Gaussian, same guarantee", "dashed"),
        ),
        y_log=True,
    )


def _planned(results: Results) -> Figure:
    ratios = _over_the_centre({key: one for key, one in results.items() if key.endswith("rate=1")}, "planned")
    return Figure(
        name="biswas-shuffled-planned",
        title=f"Beyond {PAPER}: how many should report for a central guarantee",
        panels=(_planned_errors(results), _planned_locals(results)),
        caption=(
            f"50,000 nodes, 100 values, delta = {DELTA}. Left: with the least noise that keeps a central epsilon, the"
            " error falls with the number of reports; it is least if everybody reports, and then"
            f" {min(ratios):.2f} to {max(ratios):.2f} times that of a trusted centre. Right: the epsilon of a report"
            " that this takes, against who knows whose it is. The fewer report, the less noise is asked of each, and"
            " the error is larger nevertheless."
        ),
    )


def _planned_errors(results: Results) -> Panel:
    curves = []
    for epsilon in CENTRAL:
        label = f"central epsilon = {epsilon}"
        curves.append(_curve(results, "planned", epsilon, "collected", label, group=epsilon))
        floor = f"trusted centre, epsilon = {epsilon}"
        curves.append(_curve(results, "planned", epsilon, "gaussian", floor, "dashed", group=epsilon))
    return Panel(title="error", x_label=_RATE, y_label=_ERROR, curves=tuple(curves), y_log=True)


def _planned_locals(results: Results) -> Panel:
    return Panel(
        title="local epsilon",
        x_label=_RATE,
        y_label="epsilon of a report (nats)",
        curves=tuple(
            _curve(results, "planned", epsilon, "local", f"central epsilon = {epsilon}", group=epsilon)
            for epsilon in CENTRAL
        ),
    )


def _curve(  # noqa: PLR0913, PLR0917 - one argument a choice
    results: Results, kind: str, epsilon: str, what: str, label: str, style: Style = "line", group: str = ""
) -> Curve:
    prefix = f"{kind}/epsilon={epsilon}/rate="
    points = sorted(
        (float(key.removeprefix(prefix)), one[what]) for key, one in results.items() if key.startswith(prefix)
    )
    return Curve(label=label, x=tuple(x for x, _ in points), y=tuple(y for _, y in points), style=style, group=group)
