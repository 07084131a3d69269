"""Tables 6 and 7 and Figure 6, from experiment 2."""

from collections.abc import Mapping
from math import sqrt

from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings
from veiltab.papers.must.comparing import exact, simulated
from veiltab.papers.must.designs import LABELS, PRINTED, SHORT
from veiltab.papers.must.printed import PAPER, TABLE_6, TABLE_6_WITHOUT_PRIVACY, TABLE_7
from veiltab.papers.must.regression import CLIP, EPSILONS, MORE_EPSILONS, STEPS, key_of
from veiltab.papers.must.scales import key_of as scales_key
from veiltab.papers.must.scales import row_of

_PRINTED_RUNS = 200
_NOISES = {"paper": "the paper's noise", "corrected": "noise as needed"}
_WITHOUT = "Poisson, non-private"


def findings(settings: Settings, results: Mapping[str, Plain]) -> Findings:
    """Return the tables' numbers, the training loss and the errors."""
    runs = settings.runs(200, 50)
    epsilons = EPSILONS if settings.quick else MORE_EPSILONS
    comparisons = [*_scales(results[scales_key(2)]), *_errors(results, runs), *_coefficients(results, runs)]
    return Findings(figures=(_figure_6(results), _errors_figure(results, epsilons)), comparisons=tuple(comparisons))


def _scales(rows: Plain) -> list[Comparison]:
    numbers = []
    for scheme, columns in TABLE_6.items():
        for epsilon, (sigma, delta, _, _) in columns.items():
            row, where = rows[row_of(scheme, epsilon=epsilon)], _where(scheme, epsilon)
            numbers.append(exact(f"sigma, the paper's Delta, {where}", "Table 6", sigma, CLIP * row["paper"]))
            numbers.append(_step_delta(scheme, delta, row, where))
    return numbers


def _step_delta(scheme: str, printed: str, row: Plain, where: str) -> Comparison:
    if scheme in {"poisson", "wor"}:
        return exact(f"delta' of a step, eta/n, {where}", "Table 6", printed, row["target"])
    slip = f"the paper forgot n here: with Delta/sigma n times larger, Theorem 5 gives {row['slip']:.3f}"
    return exact(f"delta' of a step, the paper's Delta, {where}", "Table 6", printed, row["delta"], slip)


def _where(scheme: str, epsilon: float) -> str:
    return f"{LABELS[scheme]}, epsilon' = {epsilon:g}"


def _errors(results: Mapping[str, Plain], runs: int) -> list[Comparison]:
    cells = [
        (results[key_of(scheme, "paper", epsilon)], mean, spread, _where(scheme, epsilon))
        for scheme, columns in TABLE_6.items()
        for epsilon, (_, _, mean, spread) in columns.items()
    ]
    cells.append((results[key_of("poisson", "none", None)], *TABLE_6_WITHOUT_PRIVACY, _WITHOUT))
    numbers = []
    for result, mean, spread, where in cells:
        ours, deviation = result["rmse"]
        error = max(deviation, float(spread)) * _both(runs)
        numbers.append(simulated(f"mean error, {where}", "Table 6", mean, ours, error))
        # The errors lean to the right where the noise is large: a third more than a normal law's standard error.
        numbers.append(simulated(f"spread of the error, {where}", "Table 6", spread, deviation, error * 4 / 3))
    return numbers


def _both(runs: int) -> float:
    """Return the standard error of a difference of means, over the standard deviation."""
    return sqrt(1 / _PRINTED_RUNS + 1 / runs)


def _coefficients(results: Mapping[str, Plain], runs: int) -> list[Comparison]:
    numbers = []
    for scheme, columns in TABLE_7.items():
        for epsilon, (biases, errors) in columns.items():
            result = results[key_of(scheme, "paper", epsilon)]
            for place, (bias, error) in enumerate(zip(biases, errors, strict=True)):
                where = f"beta{place}, {_where(scheme, epsilon)}"
                spread = max(result["error"][place], float(error)) * _both(runs)
                numbers.append(simulated(f"bias of {where}", "Table 7", bias, result["bias"][place], spread))
                numbers.append(
                    simulated(f"error of {where}", "Table 7", error, result["error"][place], spread / 2**0.5)
                )
    return numbers


def _figure_6(results: Mapping[str, Plain]) -> Figure:
    panels = [_loss_panel(results, noise, epsilon) for noise in _NOISES for epsilon in EPSILONS]
    return Figure(
        name="must-figure-6",
        title=f"{PAPER}, Figure 6: training loss of one run of linear regression by DP-SGD",
        panels=tuple(panels),
        caption="Upper row, the paper's: all schemes reach the loss without privacy, less smoothly at the smaller"
        " epsilon'. Lower row: with the noise that the same guarantee needs, epsilon' = 0.001 never settles.",
    )


def _loss_panel(results: Mapping[str, Plain], noise: str, epsilon: float) -> Panel:
    steps = tuple(float(step + 1) for step in range(STEPS))
    baseline = results[key_of("poisson", "none", None)]["loss"]
    curves = [Curve(label=_WITHOUT, x=steps, y=tuple(baseline), style="dotted", group="none")]
    for scheme in PRINTED:
        loss = results[key_of(scheme, noise, epsilon)]["loss"]
        curves.append(Curve(label=LABELS[scheme], x=steps, y=tuple(loss), group=scheme))
    return Panel(
        title=f"{_NOISES[noise]}, epsilon' = {epsilon:g}",
        x_label="step",
        y_label="mean squared error",
        curves=tuple(curves),
    )


def _errors_figure(results: Mapping[str, Plain], epsilons: tuple[float, ...]) -> Figure:
    return Figure(
        name="must-experiment-2",
        title=f"{PAPER}, experiment 2: error of linear regression by DP-SGD, mean and standard deviation over runs",
        panels=tuple(_errors_panel(results, noise, epsilons) for noise in _NOISES),
        caption="Left, the printed errors lie on the replay of the paper's settings. Right, with the sensitivity of a"
        " mean of m = 100 rows and one (epsilon', delta') for all, the errors are larger and MUST is no longer the best"
        " (Poisson faces half the sensitivity: a row is removed, not replaced).",
    )


def _errors_panel(results: Mapping[str, Plain], noise: str, epsilons: tuple[float, ...]) -> Panel:
    curves = []
    for shift, epsilon in zip((-0.2, 0.0, 0.2), sorted(epsilons), strict=False):
        if noise == "paper" and epsilon in EPSILONS:
            curves.append(_printed_errors(epsilon, shift))
        curves.append(_errors_curve(results, noise, epsilon, shift))
    return Panel(
        title=_NOISES[noise],
        x_label="scheme",
        x_names=SHORT,
        y_label="root of the mean squared error",
        curves=tuple(curves),
    )


def _printed_errors(epsilon: float, shift: float) -> Curve:
    places = {scheme: place for place, scheme in enumerate(LABELS)}
    return Curve(
        label=f"printed, epsilon' = {epsilon:g}",
        x=tuple(places[scheme] + shift for scheme in PRINTED),
        y=tuple(float(TABLE_6[scheme][epsilon][2]) for scheme in PRINTED),
        style="points",
        group=f"printed {epsilon}",
    )


def _errors_curve(results: Mapping[str, Plain], noise: str, epsilon: float, shift: float) -> Curve:
    rows = [results[key_of(scheme, noise, epsilon)]["rmse"] for scheme in LABELS]
    return Curve(
        label=f"epsilon' = {epsilon:g}",
        x=tuple(place + shift for place in range(len(LABELS))),
        y=tuple(mean for mean, _ in rows),
        low=tuple(mean - spread for mean, spread in rows),
        high=tuple(mean + spread for mean, spread in rows),
        style="points",
        group=f"{epsilon}",
    )
