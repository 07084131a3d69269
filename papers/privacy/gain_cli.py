"""`veiltab lab privacy gain`: whether privatising a sample beats privatising the population."""

from functools import cache
from pathlib import Path

import click
import numpy as np

from veiltab.common.command.cli import emit, note
from veiltab.papers.command import PapersCommand
from veiltab.papers.privacy.gain import Gain, mean_gain, mean_noise_ratio
from veiltab.papers.privacy.median_gain import (
    MedianMechanism,
    best_sample,
    exponential_median_error,
    median_gain,
    odd_values,
)
from veiltab.papers.privacy.privacy_inputs_cli import read_values, required

_OF_VALUES = (
    "These numbers are computed from the values without noise: to show them costs privacy, unless the values are"
    " public."
)


@click.command(
    cls=PapersCommand,
    epilog="Example: veiltab lab privacy gain --statistic mean --population 10001 --rate 0.1 --epsilon 1 --range 1"
    " --variance 0.01",
)
@click.option("--statistic", type=click.Choice(["mean", "median"]), required=True)
@click.option("--epsilon", required=True, type=float, help="Protection of a respondent, nats.")
@click.option(
    "--rate", type=click.FloatRange(0, 1, min_open=True), help="Sampled share, n/N; by default the best is searched."
)
@click.option("--population", type=click.IntRange(min=2), help="For the mean: N.")
@click.option("--range", "value_range", type=float, help="For the mean: width of the domain.")
@click.option("--variance", type=float, help="For the mean: variance of the population.")
@click.option(
    "--values",
    type=click.Path(path_type=Path),
    help="For the median: a file with one value a line. What is printed costs their privacy: name public values.",
)
@click.option("--low", type=float, help="For the median: least value of the domain.")
@click.option("--high", type=float, help="For the median: largest value of the domain.")
@click.option(
    "--mechanism",
    type=click.Choice(["laplace", "exponential"]),
    default="laplace",
    show_default=True,
    help="For the median: Laplace noise by smooth sensitivity, or the exponential mechanism.",
)
@click.option("--delta", type=float, help="For the median with Laplace noise; by default 1/(2N).")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(min=2))
@click.option("--seed", default=1, show_default=True)
def gain(
    statistic: str,
    epsilon: float,
    rate: float | None,
    population: int | None,
    value_range: float | None,
    variance: float | None,
    values: Path | None,
    low: float | None,
    high: float | None,
    mechanism: str,
    delta: float | None,
    trials: int,
    seed: int,
) -> None:
    """Say whether privatising a sample beats privatising the population at the same protection."""
    if statistic == "mean":
        size = int(required(population, "--population"))
        comparison, sample, extra = _of_mean(
            size, rate, epsilon, required(value_range, "--range"), required(variance, "--variance") + 0.0
        )
    else:
        comparison, sample, size, extra = _of_median(
            values, rate, mechanism, epsilon, delta, (required(low, "--low"), required(high, "--high")), trials, seed
        )
    data = {
        "gains": comparison.gains,
        "rate": sample / size,
        "population": {"noise": comparison.population.noise, "total": comparison.population.total},
        "sample": {
            "rows": sample,
            "epsilon": comparison.sample_epsilon,
            "delta": comparison.sample_delta,
            "sampling": comparison.sample.sampling,
            "noise": comparison.sample.noise,
            "total": comparison.sample.total,
        },
        **extra,
    }
    lines = [
        f"Privatised population: variance {comparison.population.total:.6g}, all noise.",
        (
            f"Privatised sample of {sample}, at epsilon {comparison.sample_epsilon:.6g}:"
            f" variance {comparison.sample.total:.6g}"
            f" = {comparison.sample.sampling:.6g} sampling + {comparison.sample.noise:.6g} noise."
        ),
        f"So {_verdict(comparison, sample, size, searched=rate is None)}.",
    ]
    if "exponential" in extra:
        lines.append(f"The exponential mechanism on the population: variance {extra['exponential']:.6g}.")
    emit(data, "\n".join([*lines, *([_OF_VALUES] if "warning" in extra else [])]))


def _of_mean(
    size: int, rate: float | None, epsilon: float, value_range: float, variance: float
) -> tuple[Gain, int, dict[str, object]]:
    # n epsilon_n rises with n, and the sampling variance falls: the best sample of a mean is everybody.
    sample = size if rate is None else max(1, round(rate * size))
    comparison = mean_gain(population=size, sample=sample, epsilon=epsilon, value_range=value_range, variance=variance)
    return comparison, sample, {"noise_ratio": mean_noise_ratio(epsilon, population=size, sample=sample)}


def _of_median(
    path: Path | None,
    rate: float | None,
    mechanism: str,
    epsilon: float,
    delta: float | None,
    domain: tuple[float, float],
    trials: int,
    seed: int,
) -> tuple[Gain, int, int, dict[str, object]]:
    data, (low, high) = odd_values(read_values(path)), domain
    how, size = MedianMechanism(mechanism), len(data)
    is_pure = how is MedianMechanism.EXPONENTIAL
    stated = 0.0 if is_pure else 1 / (2 * size) if delta is None else delta

    @cache
    def of(sample: int) -> Gain:
        note(f"samples of {sample}")
        return median_gain(
            data,
            mechanism=how,
            sample=sample,
            epsilon=epsilon,
            delta=stated,
            low=low,
            high=high,
            trials=trials,
            seed=seed,
        )

    sample = best_sample(size, of) if rate is None else min(max(1, round(rate * size)) // 2 * 2 + 1, size)
    extra: dict[str, object] = {"mechanism": mechanism, "warning": _OF_VALUES}
    if not is_pure:
        middle = float(np.median(data))
        extra["exponential"] = exponential_median_error(data, epsilon=epsilon, low=low, high=high, about=middle)
    return of(sample), sample, size, extra


def _verdict(comparison: Gain, sample: int, size: int, *, searched: bool) -> str:
    if searched:
        if not comparison.gains:
            return "no sample is more accurate than the population"
        return f"a sample of {sample / size:.3g} of the population is the most accurate"
    return "the sample is more accurate" if comparison.gains else "the population is more accurate"
