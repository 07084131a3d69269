"""Figure 3: total variation and communication against the sampling probability."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from veiltab.papers.biswas.communication import report_length
from veiltab.papers.biswas.expected_distance import expected_distance
from veiltab.papers.biswas.populations import (
    EPSILONS,
    EVERYBODY,
    LAWS,
    NAMES,
    NODES,
    PAPER,
    RATES,
    design,
    randomiser,
    truth,
)
from veiltab.papers.biswas.rounds import COMPARED, SWEPT, distance_key, rates
from veiltab.papers.experiment import Curve, Figure, Panel, Plain, Settings, Style
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

Results = Mapping[str, Plain]

_RATE = "probability pi that a node reports"
_DISTANCE = "total variation to the truth"
_BIT_BYTES = 7 / 8
"""Bytes of a bare value: 7 bits hold 100 values."""

_LINES: Mapping[str, Style] = {"one": "line", "sum": "dashed", "mixture": "dotted"}
_FINE = tuple(f"{step / 40:g}" for step in range(4, 41))


def figures(settings: Settings, results: Results) -> tuple[Figure, ...]:
    """Return Figure 3, for all estimators, for all readings of the populations, and its communication cost."""
    chances = rates(settings)
    return (_estimators(results, chances), _readings(results, chances), _communication(results, chances))


def exact_distance(population: str, epsilon: str, rate: str, estimator: Estimator) -> float:
    """Return the expected total variation of raw estimates, by their exact bias and variance."""
    exact = moments(estimator, truth(population), design(epsilon, rate))
    return expected_distance(exact.bias, exact.variance, NODES)


def _estimators(results: Results, chances: Sequence[str]) -> Figure:
    return Figure(
        name="biswas-figure-3",
        title=f"{PAPER}, Figure 3: total variation against the sampling probability, {NAMES['one']}",
        panels=(
            *(_raw_panel(results, chances, epsilon) for epsilon in EPSILONS),
            *(_projected_panel(results, chances, epsilon) for epsilon in EPSILONS),
        ),
        caption=(
            "Above, raw estimates: c is off by its bias; g, c_hat and Hajek's ratio lie together on the expected"
            " curve, which falls as 1/sqrt(pi), so that a tenth of the nodes has 3.2 times the distance of all. Below,"
            " the same estimates projected on the probability tables: closer, and flatter at a small epsilon."
            " Projection takes off what c misses of every value alike, but its hump stays pi times as high. Points"
            " are means, bars 90 percent of the rounds; the paper shows c_hat alone and does not say its epsilon."
        ),
    )


def _raw_panel(results: Results, chances: Sequence[str], epsilon: str) -> Panel:
    expected = tuple(
        Curve(
            label=f"{label}, expected by its exact bias and variance",
            x=tuple(map(float, _FINE)),
            y=tuple(exact_distance("one", epsilon, rate, which) for rate in _FINE),
            style=style,
            group=which,
        )
        for which, label, style in _EXPECTED
    )
    return Panel(
        title=f"raw estimates, epsilon = {epsilon}",
        x_label=_RATE,
        y_label=_DISTANCE,
        curves=(*_simulated(results, chances, epsilon, "raw"), *expected),
        y_log=True,
    )


_EXPECTED: tuple[tuple[Estimator, str, Style], ...] = ((Estimator.C, "c", "dashed"), (Estimator.C_HAT, "c_hat", "line"))


def _projected_panel(results: Results, chances: Sequence[str], epsilon: str) -> Panel:
    return Panel(
        title=f"projected on the simplex, epsilon = {epsilon}",
        x_label=_RATE,
        y_label=_DISTANCE,
        curves=_simulated(results, chances, epsilon, "projected"),
    )


def _simulated(results: Results, chances: Sequence[str], epsilon: str, kind: str) -> tuple[Curve, ...]:
    return tuple(
        _points(results, "one", epsilon, chances, kind, which, label=f"{which}, simulated", group=which)
        for which in COMPARED
    )


def _points(  # noqa: PLR0913, PLR0917 - one argument a choice
    results: Results,
    population: str,
    epsilon: str,
    chances: Sequence[str],
    kind: str,
    which: Estimator,
    *,
    label: str,
    group: str,
) -> Curve:
    """Return means and bars of the simulated distances."""
    summaries = [results[distance_key(population, epsilon, rate)][which.value][kind] for rate in chances]
    mean, low, high = (tuple(column) for column in zip(*summaries, strict=True))
    x = tuple(map(float, chances))
    return Curve(label=label, x=x, y=mean, low=low, high=high, style="points", group=group)


def _readings(results: Results, chances: Sequence[str]) -> Figure:
    return Figure(
        name="biswas-figure-3-readings",
        title=f"{PAPER}, Figure 3: total variation of c_hat, all populations",
        panels=tuple(_reading_panel(results, chances, epsilon) for epsilon in EPSILONS),
        caption=(
            "The distance of raw estimates (lines, expected) is noise and hardly depends on the population: the lines"
            " coincide. Projected estimates (points, simulated; bars 90 percent of the rounds) of the sum do not differ"
            " from those of Bin(100, .5) either; the mixture, which is flatter, is a little harder at a small epsilon."
        ),
    )


def _reading_panel(results: Results, chances: Sequence[str], epsilon: str) -> Panel:
    lines = (
        Curve(
            label=f"{NAMES[population]}: raw",
            x=tuple(map(float, _FINE)),
            y=tuple(exact_distance(population, epsilon, rate, Estimator.C_HAT) for rate in _FINE),
            style=_LINES[population],
            group=population,
        )
        for population in LAWS
    )
    points = (
        _points(
            results,
            population,
            epsilon,
            chances,
            "projected",
            Estimator.C_HAT,
            label=f"{NAMES[population]}: projected",
            group=population,
        )
        for population in LAWS
    )
    return Panel(title=f"epsilon = {epsilon}", x_label=_RATE, y_label=_DISTANCE, curves=(*lines, *points), y_log=True)


def _communication(results: Results, chances: Sequence[str]) -> Figure:
    return Figure(
        name="biswas-figure-3-communication",
        title=f"{PAPER}, Figure 3: communication cost, and what it buys, {NAMES['one']}",
        panels=(
            _reports_panel(results, chances),
            _bytes_panel(),
            _trade_off(results, chances),
            _tenth_panel(results),
        ),
        caption=(
            f"A report travels as {report_length(randomiser('1'))} bytes (round, one-time token, stratum, value; before"
            " transport encryption), of which the value needs 7 bits; the cost is n pi reports either way. Below left"
            " the trade-off: twice the bytes buy 29 percent less distance, at every point of the curve alike. Below"
            " right the paper's 'not a drastic difference' between a tenth and everybody: of raw estimates it is a"
            " factor of sqrt(10) or more (more where the noise is so small that sampling matters), of projected ones"
            " it is small only where epsilon is so small that neither is of use."
        ),
    )


def _reports_panel(results: Results, chances: Sequence[str]) -> Panel:
    x = tuple(map(float, chances))
    mean = tuple(results[distance_key("one", EPSILONS[0], rate)]["reports"][0] for rate in chances)
    return Panel(
        title="reports",
        x_label=_RATE,
        y_label="reports of a round",
        curves=(
            Curve(label="expected, n pi", x=x, y=tuple(NODES * rate for rate in x)),
            Curve(label="simulated mean", x=x, y=mean, style="points"),
        ),
    )


def megabytes(rate: str) -> float:
    """Return the expected megabytes of a round of direct encoding."""
    return NODES * float(Fraction(rate)) * report_length(randomiser("1")) / 1e6


def _bytes_panel() -> Panel:
    x = (float(RATES[0]), 1.0)
    return Panel(
        title="bytes",
        x_label=_RATE,
        y_label="expected megabytes of a round",
        curves=(
            Curve(label="reports as they travel", x=x, y=(megabytes(RATES[0]), megabytes(EVERYBODY))),
            Curve(label="values alone", x=x, y=tuple(NODES * rate * _BIT_BYTES / 1e6 for rate in x), style="dashed"),
        ),
    )


def _trade_off(results: Results, chances: Sequence[str]) -> Panel:
    fine = tuple(megabytes(rate) for rate in _FINE)
    curves = []
    for epsilon in EPSILONS:
        y = tuple(exact_distance("one", epsilon, rate, Estimator.C_HAT) for rate in _FINE)
        curves.append(Curve(label=f"epsilon = {epsilon}, raw", x=fine, y=y, group=epsilon))
        distances = [results[distance_key("one", epsilon, rate)]["c_hat"]["projected"][0] for rate in chances]
        coarse = tuple(megabytes(rate) for rate in chances)
        label = f"epsilon = {epsilon}, projected"
        curves.append(Curve(label=label, x=coarse, y=tuple(distances), style="dashed", group=epsilon))
    return Panel(
        title="distance against bytes, c_hat",
        x_label="expected megabytes of a round",
        y_label=_DISTANCE,
        curves=tuple(curves),
        x_log=True,
        y_log=True,
    )


def ratio_of_distances(results: Results, epsilon: str, kind: str) -> float:
    """Return the simulated distance of c_hat at a tenth of the nodes over that at all of them."""
    tenth, everybody = (results[distance_key("one", epsilon, rate)]["c_hat"][kind][0] for rate in (RATES[0], EVERYBODY))
    return float(tenth / everybody)


def _tenth_panel(results: Results) -> Panel:
    x = tuple(map(float, SWEPT))
    fine = tuple(f"{epsilon:.3g}" for epsilon in np.geomspace(x[0], x[-1], 25))
    expected = tuple(
        exact_distance("one", epsilon, RATES[0], Estimator.C_HAT)
        / exact_distance("one", epsilon, EVERYBODY, Estimator.C_HAT)
        for epsilon in fine
    )
    simulated = (
        Curve(
            label=f"{kind}, simulated",
            x=x,
            y=tuple(ratio_of_distances(results, epsilon, kind) for epsilon in SWEPT),
            style="points",
            group=kind,
        )
        for kind in ("raw", "projected")
    )
    return Panel(
        title="a tenth of the nodes instead of all",
        x_label="epsilon of a report (nats)",
        y_label="distance at pi = .1 over that at pi = 1",
        curves=(
            *simulated,
            Curve(label="raw, expected", x=tuple(map(float, fine)), y=expected, group="raw"),
            Curve(label="no difference", x=(x[0], x[-1]), y=(1.0, 1.0), style="dashed"),
        ),
        x_log=True,
        y_log=True,
    )
