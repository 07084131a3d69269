"""Figures 6 to 13 of Hu, Drechsler, Kim: the median of a sample beside that of the population."""

from math import log

import numpy as np

from veiltab.papers.experiment import Curve, Figure, Mark, Panel
from veiltab.papers.hu.formulas import PAPER, density_panel, horizontal
from veiltab.papers.hu.medians import median_law
from veiltab.papers.hu.populations import EPSILONS, SHOWN, SIZE, SIZES, SMALL, population
from veiltab.papers.hu.simulation import CONTESTED, CONTESTED_SIZES, Medians, Others
from veiltab.papers.hu.violins import laplace_violin, sample_violin, violin
from veiltab.papers.privacy.gain import sample_epsilon

NAMES = {"lognormal": "Lognormal(5, .5)", "bimodal": "two modes"}


def lognormal_figures(of: Medians, others: Others) -> tuple[Figure, ...]:
    """Return Figures 6, 7 and 8."""
    contested = min(of.sample_variance(CONTESTED, size) for size in SIZES) / of.whole_variance(CONTESTED)
    return (
        _sensitivities(
            6,
            of,
            "Smaller samples have a larger smooth sensitivity, the more so the larger epsilon is; as in the paper.",
        ),
        _noise(
            7,
            of,
            "As in the paper, sampling lowers the noise at epsilon = .1, and at .5 with n = 1001; else it raises it.",
        ),
        Figure(
            name="hu-figure-8",
            title=f"{PAPER}, Figure 8: error of the privatised median, {NAMES[of.name]}",
            panels=(_errors(of), _contested(of, others)),
            caption="Small samples gain for epsilon <= .1, as in the paper. It sees no gain at .5; without logarithm "
            f"(right) middle rates gain there, up to {1 - contested:.0%} of the mean square error, and over 5% in "
            f"{others.gaining} of {len(others.variances)} further populations of the same law (band: 5% to 95%).",
        ),
    )


def bimodal_figures(of: Medians) -> tuple[Figure, ...]:
    """Return Figures 9 to 13."""
    return (
        Figure(
            name="hu-figure-9",
            title=f"{PAPER}, Figure 9: a median beside a gap",
            panels=(density_panel(population(of.name)),),
            caption="The very population of the paper's Appendix B, from R's random numbers and its seed; the median "
            "is the largest value of the lower mode.",
        ),
        _sensitivities(
            10, of, "Most samples have their median inside a mode, so their sensitivity is below the population's."
        ),
        _medians(of),
        _noise(12, of, "Sampling lowers the noise at every epsilon shown, as in the paper."),
        Figure(
            name="hu-figure-13",
            title=f"{PAPER}, Figure 13: error of the privatised median, {NAMES[of.name]}",
            panels=(_errors(of),),
            caption="Gains up to epsilon = 3 and none at 5, as in the paper; what is left at a large epsilon is the "
            "error of medians that fall into a mode.",
        ),
    )


def _sensitivities(number: int, of: Medians, caption: str) -> Figure:
    return Figure(
        name=f"hu-figure-{number}",
        title=f"{PAPER}, Figure {number}: smooth sensitivity of samples, {NAMES[of.name]}",
        panels=tuple(_ratio_panel(of, epsilon) for epsilon in SHOWN),
        caption=caption,
    )


def _ratio_panel(of: Medians, epsilon: float) -> Panel:
    ratios = [of.ratios(epsilon, size) for size in SMALL]
    medians = " and ".join(f"{np.median(one):.2f}" for one in ratios)
    return Panel(
        title=f"epsilon = {epsilon}: medians {medians}",
        x_label="smooth sensitivity, sample / population",
        y_label="one outline a size (width: density)",
        curves=tuple(
            sample_violin(f"n = {size}", at, one)
            for at, (size, one) in enumerate(zip(SMALL, ratios, strict=True), start=1)
        ),
    )


def _noise(number: int, of: Medians, caption: str) -> Figure:
    return Figure(
        name=f"hu-figure-{number}",
        title=f"{PAPER}, Figure {number}: noise added to the median, {NAMES[of.name]}",
        panels=tuple(_noise_panel(of, epsilon) for epsilon in SHOWN),
        caption=caption + " Outlines are the Laplace densities averaged over the drawn samples.",
    )


def _noise_panel(of: Medians, epsilon: float) -> Panel:
    runs = [np.array(of.runs[size][SHOWN.index(epsilon)]) for size in SMALL]
    scales = [
        np.array([of.whole[EPSILONS.index(epsilon)] * 2 / epsilon]),
        *(
            2 * run / sample_epsilon(epsilon, population=SIZE, sample=size)
            for size, run in zip(SMALL, runs, strict=True)
        ),
    ]
    labels = ["population", *(f"n = {size}" for size in SMALL)]
    return Panel(
        title=f"epsilon = {epsilon}",
        x_label="noise, unit of the values",
        y_label="one outline a size (width: density)",
        curves=tuple(
            laplace_violin(label, at, centre=0.0, scales=scale, runs=len(runs[0]))
            for at, (label, scale) in enumerate(zip(labels, scales, strict=True), start=1)
        ),
    )


def _errors(of: Medians) -> Panel:
    """Return log(MSE) against the rate, the population's at rate 1; bands are two standard errors."""
    lines = [_error_line(of, epsilon) for epsilon in EPSILONS]
    whole = Curve(
        label="population",
        x=(1.0,) * len(EPSILONS),
        y=tuple(log(of.whole_variance(epsilon)) for epsilon in EPSILONS),
        style="points",
    )
    return Panel(
        title="All sampling rates",
        x_label="sampling rate n/N",
        y_label="log of the mean square error",
        curves=(*lines, whole),
    )


def _error_line(of: Medians, epsilon: float) -> Curve:
    points = [(of.sample_variance(epsilon, size), of.sample_variance_error(epsilon, size)) for size in SIZES]
    return Curve(
        label=f"epsilon = {epsilon}",
        x=tuple(size / SIZE for size in SIZES),
        y=tuple(log(value) for value, _ in points),
        low=tuple(log(max(value - 2 * error, value / 10)) for value, error in points),
        high=tuple(log(value + 2 * error) for value, error in points),
    )


def _contested(of: Medians, others: Others) -> Panel:
    """Return V_n/V_N at the contested epsilon, of the paper's population and of further ones."""
    rates = tuple(size / SIZE for size in CONTESTED_SIZES)
    whole = of.whole_variance(CONTESTED)
    points = [
        (of.sample_variance(CONTESTED, size) / whole, 2 * of.sample_variance_error(CONTESTED, size) / whole)
        for size in CONTESTED_SIZES
    ]
    low, middle, high = (np.percentile(others.variances, share, axis=0).tolist() for share in (5, 50, 95))
    return Panel(
        title=f"epsilon = {CONTESTED}, beside the population's error",
        x_label="sampling rate n/N",
        y_label="mean square error, sample / population",
        curves=(
            Curve(
                label="Appendix B's seed",
                x=rates,
                y=tuple(ratio for ratio, _ in points),
                low=tuple(ratio - error for ratio, error in points),
                high=tuple(ratio + error for ratio, error in points),
            ),
            Curve(
                label=f"{len(others.variances)} further populations",
                x=rates,
                y=tuple(middle),
                low=tuple(low),
                high=tuple(high),
                style="dotted",
            ),
            horizontal("no gain", 1.0, rates[0], 1.0),
        ),
    )


def _medians(of: Medians) -> Figure:
    """Return the exact law of the sample median, in 100 bins."""
    values = population(of.name).values
    edges = np.linspace(0, 1, 101)
    middles = (edges[:-1] + edges[1:]) / 2
    laws = [np.histogram(values, edges, weights=median_law(SIZE, size))[0] for size in SMALL]
    curves = []
    for at, (size, law) in enumerate(zip(SMALL, laws, strict=True), start=1):
        inside = slice(int(np.argmax(law > 1e-4)), len(law) - int(np.argmax(law[::-1] > 1e-4)))
        curves.append(violin(f"n = {size}", at, middles[inside], law[inside]))
    median = population(of.name).median
    return Figure(
        name="hu-figure-11",
        title=f"{PAPER}, Figure 11: medians of samples, {NAMES[of.name]}",
        panels=(
            Panel(
                title="Sample medians before any noise",
                x_label="sample median",
                y_label="one outline a size (width: density)",
                curves=tuple(curves),
                marks=(Mark(x=median, label="median of the population"),),
            ),
        ),
        caption="The median of a sample falls into one of the two modes, hardly ever near the population's. Outlines "
        "are its exact law (a bin is 1% of the range), not draws.",
    )
