"""Figures 1 and 2: the truth, and what one round estimates of it, at the two extremes of the sampling probability."""

from collections.abc import Mapping

import numpy as np

from veiltab.papers.biswas.populations import EPSILONS, LAWS, NAMES, PAPER, VALUES, design, truth
from veiltab.papers.biswas.rounds import SHOWN_RATES, round_key
from veiltab.papers.experiment import Curve, Figure, Panel, Plain
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

_FIGURES = {
    "one": ("biswas-figure-1", "1"),
    "sum": ("biswas-figure-2-sum", "2"),
    "mixture": ("biswas-figure-2-mixture", "2"),
}
_X = tuple(float(value) for value in range(1, VALUES + 1))
_WITHIN = 1.96
"""Standard errors around the truth that hold 95 percent of the estimates."""

_CAPTIONS = {
    "one": (
        "Points are the estimates of one round; the band around the truth is where 95 percent of c_hat's lie, by its"
        " exact variance. Estimates at .9 are closer to the truth than at .1, as the paper says. It does not say its"
        " epsilon; at 1 a tenth of 50,000 nodes hardly shows the hump. The scales of the panels differ."
    ),
    "sum": (
        "Read as the sum of two independent values, the second population is hardly another one: its variance is 24"
        " instead of 25. The scales of the panels differ."
    ),
    "mixture": (
        "Read as half of the nodes from each law, the second population has two humps, at 20 and 30, and no value above"
        " 50; of half of the domain the round estimates a nought. The scales of the panels differ."
    ),
}


def figures(results: Mapping[str, Plain]) -> tuple[Figure, ...]:
    """Return one figure a population, both readings of the paper's second one."""
    return tuple(_figure(population, results) for population in LAWS)


def _figure(population: str, results: Mapping[str, Plain]) -> Figure:
    name, number = _FIGURES[population]
    return Figure(
        name=name,
        title=f"{PAPER}, Figure {number}: one round of 50,000 nodes, {NAMES[population]}",
        panels=tuple(
            _panel(population, epsilon, rate, results[round_key(population, epsilon, rate)])
            for rate in SHOWN_RATES
            for epsilon in EPSILONS
        ),
        caption=_CAPTIONS[population],
    )


def _panel(population: str, epsilon: str, rate: str, estimates: Plain) -> Panel:
    return Panel(
        title=f"epsilon = {epsilon}, pi = {rate}",
        x_label="value",
        y_label="nodes with the value",
        curves=(
            Curve(label="g, one round", x=_X, y=tuple(estimates["g"]), style="points", group="g"),
            Curve(label="c_hat, the same round", x=_X, y=tuple(estimates["c_hat"]), style="points", group="c_hat"),
            _truth(population, epsilon, rate),
        ),
    )


def _truth(population: str, epsilon: str, rate: str) -> Curve:
    holders = truth(population)
    variance = moments(Estimator.C_HAT, holders, design(epsilon, rate)).variance
    low, high = (holders[0] + sign * _WITHIN * np.sqrt(variance) for sign in (-1, 1))
    return Curve(
        label="original distribution, and where 95 percent of c_hat lie",
        x=_X,
        y=tuple(holders[0].tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )
