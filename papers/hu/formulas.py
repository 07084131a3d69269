"""Figures 1 to 5 of Hu, Drechsler, Kim, which need formulas only."""

from math import exp, log, sqrt

import numpy as np

from veiltab.papers.experiment import Curve, Figure, Mark, Panel
from veiltab.papers.hu.populations import DELTA, SHOWN, SIZE, Population, population
from veiltab.papers.hu.violins import kernel_density, laplace_violin
from veiltab.papers.privacy.gain import mean_noise_ratio, sample_epsilon
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity, smooth_decay

PAPER = "Hu, Drechsler, Kim"
FINE = 10**6
"""Rows of a population so large that any sampling rate is a whole number of rows."""
FIGURE_5_RATES = (1e-4, 1e-3, 0.01, 0.05, *(step / 10 for step in range(1, 10)), 0.95, 0.99)


def noise_bound(epsilon: float, *, population: int, sample: int) -> float:
    """Return q = 1 - (epsilon/epsilon_n)^2: a gain needs a sampling variance below q times the population's noise.

    Holds for Laplace noise if the sensitivity does not fall as the sample shrinks (Hu, Drechsler, Kim, equation 5).
    """
    return 1 - (epsilon / sample_epsilon(epsilon, population=population, sample=sample)) ** 2


def horizontal(label: str, y: float, low: float, high: float) -> Curve:
    """Return a dashed horizontal line."""
    return Curve(label=label, x=(low, high), y=(y, y), style="dashed")


def density_panel(of: Population) -> Panel:
    """Return a population's density, its median marked."""
    values, density = kernel_density(of.values)
    curve = Curve(label=f"{SIZE} values", x=tuple(values.tolist()), y=tuple(density.tolist()))
    return Panel(
        title="The population",
        x_label="value",
        y_label="density",
        curves=(curve,),
        marks=(Mark(x=of.median, label=f"median {of.median:.2f}"),),
    )


def figure_1(runs: int) -> Figure:
    """Return the Beta(2, 10) population and its privatised mean, of global sensitivity R/N."""
    of = population("beta")
    return Figure(
        name="hu-figure-1",
        title=f"{PAPER}, Figure 1: privatised mean, Beta(2, 10)",
        panels=(
            density_panel(of),
            _privatised("mean", float(of.values.mean()), [1 / (SIZE * epsilon) for epsilon in SHOWN], runs),
        ),
        caption="The mean of 10,001 values needs little noise at any epsilon. Outlines are the exact Laplace "
        f"densities, cut where {runs} runs are expected to end; the paper draws 1,000 runs.",
    )


def figure_2(runs: int) -> Figure:
    """Return the privatised median with the global and with the smooth sensitivity."""
    of = population("beta")
    smooth = [
        2 / epsilon * median_smooth_sensitivity(of.values, low=0, high=1, beta=smooth_decay(epsilon, DELTA))
        for epsilon in SHOWN
    ]
    inside = 1 - (exp(-of.median / smooth[0]) + exp(-(1 - of.median) / smooth[0])) / 2
    return Figure(
        name="hu-figure-2",
        title=f"{PAPER}, Figure 2: privatised median, Beta(2, 10)",
        panels=(
            _privatised("median, global sensitivity", of.median, [1 / epsilon for epsilon in SHOWN], runs),
            _privatised("median, smooth sensitivity", of.median, smooth, runs),
        ),
        caption="Noise for the global sensitivity drowns a median of values from 0 to 1; that for the smooth "
        f"sensitivity does not: at epsilon = .1 {inside:.0%} of the releases lie within 0 and 1. (delta = {DELTA:.4e}; "
        "the paper's caption lacks the exponent's minus sign.)",
    )


def _privatised(what: str, centre: float, scales: list[float], runs: int) -> Panel:
    violins = [
        laplace_violin(f"epsilon = {epsilon}", at, centre=centre, scales=np.array([scale]), runs=runs)
        for at, (epsilon, scale) in enumerate(zip(SHOWN, scales, strict=True), start=1)
    ]
    return Panel(
        title=f"Privatised {what}",
        x_label="released value",
        y_label="one outline an epsilon (width: density)",
        curves=tuple(violins),
        marks=(Mark(x=centre, label="true value"),),
    )


def _sample(rate: float) -> int:
    return max(1, round(rate * FINE))


def figure_3() -> Figure:
    """Return epsilon_n against the sampling rate."""
    rates = np.linspace(0.005, 1, 200).tolist()
    curves = [
        Curve(
            label=f"epsilon = {epsilon}",
            x=tuple(rates),
            y=tuple(sample_epsilon(epsilon, population=FINE, sample=_sample(rate)) for rate in rates),
        )
        for epsilon in SHOWN
    ]
    return Figure(
        name="hu-figure-3",
        title=f"{PAPER}, Figure 3: what a sample may be protected with",
        panels=(
            Panel(title="Amplification", x_label="sampling rate n/N", y_label="epsilon_n, nats", curves=tuple(curves)),
        ),
        caption="A sample may be released with a larger epsilon_n for the same epsilon; at a rate of 1% "
        "epsilon = 1 allows 5.15. The same as the paper's.",
    )


def figure_4() -> Figure:
    """Return q, the largest share of V_N that the sampling variance may take, against the sampling rate."""
    rates = np.linspace(0.002, 1, 250).tolist()
    curves = [
        Curve(
            label=f"epsilon = {epsilon}",
            x=tuple(rates),
            y=tuple(noise_bound(epsilon, population=FINE, sample=_sample(rate)) for rate in rates),
        )
        for epsilon in (0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 5.0)
    ]
    return Figure(
        name="hu-figure-4",
        title=f"{PAPER}, Figure 4: sampling variance that a gain can bear",
        panels=(
            Panel(
                title="Sensitivity that ignores the sample's size",
                x_label="sampling rate n/N",
                y_label="q, share of the population's noise variance",
                curves=(*curves, horizontal("q = 0.6", 0.6, 0, 1)),
                marks=tuple(
                    Mark(x=rate, label=f"rate {rate:.4f}") for rate in (bound_rate(3.0, 0.6), bound_rate(0.1, 0.6))
                ),
            ),
        ),
        caption="Below epsilon = .1 the curves meet 1 - (n/N)^2; a q of .6 needs a rate of at most 61.4% at "
        "epsilon = .1 and 16.77% at 3. The same as the paper's.",
    )


def bound_rate(epsilon: float, q: float) -> float:
    """Return the sampling rate at which noise_bound falls to q: (e^epsilon - 1)/(e^(epsilon/sqrt(1-q)) - 1)."""
    return (exp(epsilon) - 1) / (exp(epsilon / sqrt(1 - q)) - 1)


def figure_5() -> Figure:
    """Return the dots of the paper's curve r = 1, which are rounding errors, and r, which is below 1 everywhere."""
    dots = [largest_rounded_up(rate) for rate in FIGURE_5_RATES]
    accepted = [largest_rounded_up(rate, ACCEPTED) for rate in FIGURE_5_RATES]
    limits = [rounding_limit(rate) for rate in FIGURE_5_RATES]
    return Figure(
        name="hu-figure-5",
        title=f"{PAPER}, Figure 5: a curve that does not exist",
        panels=(
            _rounded("epsilon", dots, accepted, limits),
            _rounded("epsilon_n", _amplified(dots), _amplified(accepted), _amplified(limits)),
            _below_one(),
        ),
        caption="The ratio r of noise variances is below 1 at every epsilon > 0 and n < N (Bernoulli's inequality; "
        "right), so no epsilon gives r = 1 and the mean never gains. Dots like the paper's are where double precision "
        "rounds exp(epsilon) - 1 up far enough to report r >= 1 (left and middle, with the limit of rounding); the "
        f"printed ones come out where r >= 1 - {ACCEPTED:g} is taken for r >= 1.",
    )


ACCEPTED = 3.3e-7
"""How far below 1 a ratio r was taken for 1, where the paper's printed numbers of Figure 5 come from, as it seems."""


def rounding_limit(rate: float) -> float:
    """Return sqrt(2^-52 (1 + n/N) / (N/n - 1)): above it rounding cannot lift r to 1.

    To first order sqrt(r) lies (N/n - 1) epsilon/2 below 1. Just above 1 doubles are 2^-52 apart, so exp(epsilon) - 1
    is off by at most a relative 2^-53/epsilon, and the logarithm's argument less 1 by a further 2^-53 (n/N)/epsilon.
    """
    return sqrt(2**-52 * (1 + rate) / (1 / rate - 1))


def largest_rounded_up(rate: float, accepted: float = 0.0) -> float:
    """Return the largest epsilon at which equation 8, evaluated as it is written, reports r >= 1 - accepted."""
    limit = rounding_limit(rate) + accepted / (1 / rate - 1)
    tried = np.geomspace(1.5 * limit, limit / 4, 20_000)
    return next(float(epsilon) for epsilon in tried if ratio_as_written(float(epsilon), rate) >= 1 - accepted)


def ratio_as_written(epsilon: float, rate: float) -> float:
    """Return equation 8 in double precision without expm1 and log1p: wrong for a small epsilon."""
    return (rate * log(1 + (exp(epsilon) - 1) / rate) / epsilon) ** 2


def _amplified(epsilons: list[float]) -> list[float]:
    return [
        sample_epsilon(epsilon, population=FINE, sample=_sample(rate))
        for epsilon, rate in zip(epsilons, FIGURE_5_RATES, strict=True)
    ]


def _rounded(what: str, dots: list[float], accepted: list[float], limits: list[float]) -> Panel:
    return Panel(
        title=f"{what} where rounding reports r = 1",
        x_label="sampling rate n/N",
        y_label=f"log of {what}",
        curves=(
            Curve(label="as rounded", x=FIGURE_5_RATES, y=tuple(log(dot) for dot in dots), style="points"),
            Curve(
                label=f"r >= 1 - {ACCEPTED:g} taken for 1",
                x=FIGURE_5_RATES,
                y=tuple(log(dot) for dot in accepted),
                style="points",
            ),
            Curve(label="limit of rounding", x=FIGURE_5_RATES, y=tuple(log(limit) for limit in limits), style="dashed"),
        ),
    )


def _below_one() -> Panel:
    epsilons = np.geomspace(1e-6, 5, 80).tolist()
    curves = [
        Curve(
            label=f"n/N = {rate}",
            x=tuple(epsilons),
            y=tuple(1 - mean_noise_ratio(epsilon, population=FINE, sample=_sample(rate)) for epsilon in epsilons),
        )
        for rate in (1e-4, 0.01, 0.1, 0.5, 0.9)
    ]
    return Panel(
        title="The mean's noise ratio",
        x_label="epsilon, nats",
        y_label="1 - r",
        curves=tuple(curves),
        x_log=True,
        y_log=True,
    )
