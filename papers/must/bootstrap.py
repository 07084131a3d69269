"""Experiment 1: mean and variance of a normal population, as averages over private subsamples."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.schemes import Scheme
from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must.calibration import corrected_scale, paper_scale
from veiltab.papers.must.designs import BOOTSTRAP, LABELS, Design
from veiltab.papers.must.draws import draw

Floats = NDArray[np.float64]

STAGES = (10, 20, 30, 50, 70, 100)
"""First stages b of the paper's sensitivity analysis; its Table 4 leaves 70 out."""

TABLE_STAGES = (10, 20, 30, 50, 100)
"""Columns of Table 4."""

EPSILON = 0.1
"""epsilon' of a query, nats."""

SUBSAMPLES = 500
"""B, subsamples of a data set; 500 in the authors' program."""

BOUND = 4.0
"""Bound of the values' absolute size."""


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each scheme, and for each first stage of those that have one and allow it."""
    repeats = settings.runs(200, 60)
    stages = TABLE_STAGES if settings.quick else STAGES
    return [
        Task(
            key=key_of(name, stage),
            function=estimates,
            arguments={"scheme": name, "stage": stage, "repeats": repeats, "seed": settings.seed},
        )
        for name, stage in variants(stages)
    ]


def variants(stages: Sequence[int]) -> list[tuple[str, int | None]]:
    """Return schemes with their first stages; MUST.WO needs b >= m."""
    return [
        (name, stage)
        for name in LABELS
        for stage in (stages if name.startswith("must") else (None,))
        if not (name == "must.wo" and stage is not None and stage < BOOTSTRAP.sample)
    ]


def key_of(scheme: str, stage: int | None) -> str:
    """Return the key of a scheme's task."""
    return f"experiment-1/{scheme}" + (f"/b={stage}" if stage is not None else "")


def design_of(stage: int | None) -> Design:
    """Return the experiment's sizes with another first stage."""
    return Design(population=BOOTSTRAP.population, sample=BOOTSTRAP.sample, stage=stage or BOOTSTRAP.stage)


def widths(scheme: Scheme) -> dict[str, float]:
    """Return by how much one row moves m times the mean, and m times the variance; see `corrected_scale`.

    Replaced within [-4, 4] it moves the sum by at most 8, and (m-1) S^2 by at most 64 (m-1)/m. Added or removed
    (Poisson), by 4 and 64; divided by m and m-1 the two hardly depend on the size of the subset.
    """
    m, reach = scheme.sample, 2 * BOUND
    if isinstance(scheme, Poisson):
        return {"mean": BOUND, "variance": reach**2 * m / (m - 1)}
    return {"mean": reach, "variance": reach**2}


def estimates(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return mean and standard deviation, over data sets, of each estimate without noise and with both noises.

    Args:
        arguments: scheme; stage, or None; repeats, the number of data sets; seed of the data sets, which are the same
            for all schemes, as in the paper.
        generator: of the subsamples and the noise.

    Returns:
        For mean and variance, and for "none", "paper" and "corrected" noise: [mean, standard deviation].
    """
    scheme = design_of(arguments["stage"]).scheme(arguments["scheme"])
    data_sets = np.random.default_rng([arguments["seed"], BOOTSTRAP.population])
    averages = [
        one_data_set(data_sets.standard_normal(scheme.population), scheme, generator)
        for _ in range(arguments["repeats"])
    ]
    noises = noise_scales(scheme)
    summary: dict[str, dict[str, list[float]]] = {}
    for place, statistic in enumerate(("mean", "variance")):
        raw = {"none": np.array([one[0][place] for one in averages])}
        safe = np.array([one[1][place] for one in averages])
        # The average of the subsamples' noise terms is one normal variable.
        raw["paper"] = raw["none"] + _averaged_noise(noises["paper"][statistic], len(averages), generator)
        raw["corrected"] = safe + _averaged_noise(noises["corrected"][statistic], len(averages), generator)
        summary[statistic] = {
            noise: [float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0]
            for noise, values in raw.items()
        }
    return summary


def noise_scales(scheme: Scheme) -> dict[str, dict[str, float]]:
    """Return the standard deviation of a query's noise: "paper" and "corrected", for mean and variance."""
    needed = widths(scheme)
    reach = 2 * BOUND
    return {
        "paper": {"mean": paper_scale(scheme, EPSILON, reach), "variance": paper_scale(scheme, EPSILON, reach**2)},
        "corrected": {name: corrected_scale(scheme, EPSILON, width) for name, width in needed.items()},
    }


def _averaged_noise(scale: float, repeats: int, generator: np.random.Generator) -> Floats:
    return scale / sqrt(SUBSAMPLES) * generator.standard_normal(repeats)


def one_data_set(
    values: Floats, scheme: Scheme, generator: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return averages over subsamples of (mean, variance): as the paper has them, and of a known sensitivity.

    Args:
        values: float64, shape (n,).
        scheme: how the subsamples are drawn.
    """
    subsets = draw(scheme, SUBSAMPLES, generator)
    sizes, used = np.maximum(subsets.sizes, 1), subsets.used
    plain = _moments(values[subsets.rows], used, sizes)
    m = scheme.sample if isinstance(scheme, Poisson) else sizes
    total, squares = _sums(np.clip(values, -BOUND, BOUND)[subsets.rows], used, sizes)
    return plain, (float((total / m).mean()), float((squares / (m - 1)).mean()))


def _moments(values: Floats, used: NDArray[np.bool_], sizes: NDArray[np.int64]) -> tuple[float, float]:
    total, squares = _sums(values, used, sizes)
    return float((total / sizes).mean()), float((squares / np.maximum(sizes - 1, 1)).mean())


def _sums(values: Floats, used: NDArray[np.bool_], sizes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the sum of each subset, and that of its squares about its own mean."""
    total = np.where(used, values, 0.0).sum(axis=1)
    about = np.where(used, values - (total / sizes)[:, None], 0.0)
    return total, (about * about).sum(axis=1)
