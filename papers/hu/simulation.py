"""The simulated part of Hu, Drechsler, Kim: samples, for their smooth sensitivity.

The sample median has an exact law (`medians`), and given the sample the Laplace noise has a known one, so neither is
drawn: the mean square error of a privatised sample median is

    E (m_n - m_N)^2 + E 2 (2 S_n/epsilon_n)^2

and only the mean of S_n^2 is over runs.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.hu.medians import sampling_error, smooth_sensitivities
from veiltab.papers.hu.populations import DELTA, EPSILONS, SHOWN, SIZE, SIZES, SMALL, Population, lognormal, population
from veiltab.papers.privacy.gain import sample_epsilon
from veiltab.papers.privacy.sensitivity import median_smooth_sensitivity, smooth_decay

Array = NDArray[np.float64]
DRAWN = ("lognormal", "bimodal")
CONTESTED = 0.5
"""The epsilon at which the paper sees no gain for the lognormal median, and there is one."""
CONTESTED_SIZES = SIZES[2:]


def runs(settings: Settings) -> int:
    """Return the samples of a point: the paper's 1,000, fewer if quick."""
    return settings.runs(full=1000, quick=200)


def tasks(settings: Settings) -> list[Task]:
    """Return the points: the two populations, their samples of each size, and further lognormal populations."""
    count = runs(settings)
    whole = [Task(key=f"{name}/whole", function=whole_sensitivities, arguments={"name": name}) for name in DRAWN]
    samples = [
        Task(
            key=f"{name}/n={size}",
            function=sample_sensitivities,
            arguments={"name": name, "size": size, "runs": count, "keep": size in SMALL},
        )
        for name in DRAWN
        for size in SIZES
    ]
    others = [
        Task(key=f"another-lognormal/{number}", function=another_lognormal, arguments={"runs": max(1, count // 10)})
        for number in range(8 if settings.quick else 40)
    ]
    return [*whole, *samples, *others]


def whole_sensitivities(arguments: Plain, _generator: np.random.Generator) -> Plain:
    """Return the smooth sensitivity of a population's median at each epsilon; nothing is drawn."""
    return {"sensitivities": [_whole_sensitivity(population(arguments["name"]), epsilon) for epsilon in EPSILONS]}


def _whole_sensitivity(of: Population, epsilon: float) -> float:
    decay = smooth_decay(epsilon, DELTA)
    return median_smooth_sensitivity(of.values, low=of.low, high=of.high, beta=decay)


def sample_sensitivities(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the mean of S_n^2 at each epsilon and its standard error; each run's S_n if it is to be kept."""
    size, runs = arguments["size"], arguments["runs"]
    values = draw_sensitivities(population(arguments["name"]), size, EPSILONS, runs, generator)
    squares = values**2
    # One run has no error estimate; an error as large as the value claims nothing.
    error = squares.std(axis=0, ddof=1) / sqrt(runs) if runs > 1 else squares[0]
    samples = [values[:, EPSILONS.index(epsilon)].tolist() for epsilon in SHOWN] if arguments["keep"] else []
    return {"mean_square": squares.mean(axis=0).tolist(), "error": error.tolist(), "runs": samples}


def draw_sensitivities(
    of: Population, size: int, epsilons: Sequence[float], runs: int, generator: np.random.Generator
) -> Array:
    """Return S_n of samples without replacement: (runs, epsilons).

    Every sample serves all epsilons; (epsilon_n, delta_n) are what a sample may be protected with (Theorem 1).
    """
    whole = len(of.values)
    decays = [
        smooth_decay(sample_epsilon(epsilon, population=whole, sample=size), DELTA * whole / size)
        for epsilon in epsilons
    ]
    rows = []
    for _ in range(runs):
        ranks = np.sort(generator.choice(whole, size, replace=False, shuffle=False))
        rows.append(smooth_sensitivities(of.values[ranks], low=of.low, high=of.high, decays=decays))
    return np.array(rows)


def another_lognormal(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return, of a further population, V_n/V_N at the contested epsilon and the medians of S_n/S_N of small samples."""
    of, runs = lognormal(generator.standard_normal(SIZE)), arguments["runs"]
    whole = np.array([_whole_sensitivity(of, epsilon) for epsilon in SHOWN])
    contested = noise_variance(whole[SHOWN.index(CONTESTED)] ** 2, CONTESTED)
    ratios = []
    for size in CONTESTED_SIZES:
        values = draw_sensitivities(of, size, (CONTESTED,), runs, generator)
        noise = noise_variance(float((values**2).mean()), sample_epsilon(CONTESTED, population=SIZE, sample=size))
        ratios.append((sampling_error(of, size) + noise) / contested)
    medians = [np.median(draw_sensitivities(of, size, SHOWN, runs, generator) / whole, axis=0) for size in SMALL]
    return {"variances": ratios, "sensitivities": [column.tolist() for column in medians]}


def noise_variance(mean_square: float, epsilon: float) -> float:
    """Return 2 (2 S/epsilon)^2, the variance of the median's noise, for a mean S^2."""
    return 8 * mean_square / epsilon**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Medians:
    """The privatised medians of one population and of its samples; positions are those of EPSILONS.

    Args:
        mean_squares: a size's mean of S_n^2 at each epsilon.
        runs: a small size's S_n, run by run, at each shown epsilon.
    """

    name: str
    whole: tuple[float, ...]
    mean_squares: Mapping[int, Sequence[float]]
    errors: Mapping[int, Sequence[float]]
    runs: Mapping[int, Sequence[Sequence[float]]]

    def whole_variance(self, epsilon: float) -> float:
        """Return V_N: all of it noise."""
        return noise_variance(self.whole[EPSILONS.index(epsilon)] ** 2, epsilon)

    def sample_noise(self, epsilon: float, size: int) -> float:
        """Return the noise's share of V_n."""
        mean_square = self.mean_squares[size][EPSILONS.index(epsilon)]
        return noise_variance(mean_square, sample_epsilon(epsilon, population=SIZE, sample=size))

    def sample_variance(self, epsilon: float, size: int) -> float:
        """Return V_n about the population's median: sampling, bias and noise."""
        return sampling_error(population(self.name), size) + self.sample_noise(epsilon, size)

    def sample_variance_error(self, epsilon: float, size: int) -> float:
        """Return the standard error of V_n."""
        error = self.errors[size][EPSILONS.index(epsilon)]
        return noise_variance(error, sample_epsilon(epsilon, population=SIZE, sample=size))

    def ratios(self, epsilon: float, size: int) -> Array:
        """Return S_n/S_N of each run, for a shown epsilon and a small size."""
        return np.array(self.runs[size][SHOWN.index(epsilon)]) / self.whole[EPSILONS.index(epsilon)]

    def gains(self, epsilon: float) -> bool:
        """Return whether some sample beats the population, by more than 3.3 standard errors (alpha = .0005 a size)."""
        least = self.whole_variance(epsilon)
        return any(
            self.sample_variance(epsilon, size) + 3.3 * self.sample_variance_error(epsilon, size) < least
            for size in SIZES
        )

    def best_rate(self, epsilon: float) -> float:
        """Return the sampling rate of the least V_n."""
        return min(SIZES, key=lambda size: self.sample_variance(epsilon, size)) / SIZE


def medians(name: str, results: Mapping[str, Plain]) -> Medians:
    """Return a population's medians from the results."""
    of = {size: results[f"{name}/n={size}"] for size in SIZES}
    return Medians(
        name=name,
        whole=tuple(results[f"{name}/whole"]["sensitivities"]),
        mean_squares={size: result["mean_square"] for size, result in of.items()},
        errors={size: result["error"] for size, result in of.items()},
        runs={size: of[size]["runs"] for size in SMALL},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Further lognormal populations, to distinguish chance from law.

    Args:
        variances: V_n/V_N at the contested epsilon, (populations, contested sizes).
        sensitivities: median of S_n/S_N, (populations, small sizes, shown epsilons).
    """

    variances: Array
    sensitivities: Array

    @property
    def gaining(self) -> int:
        """How many of them gain over 5% at the contested epsilon; with few runs, less may be chance."""
        return int((self.variances.min(axis=1) < 0.95).sum())

    def spread(self, epsilon: float, size: int) -> float:
        """Return the standard deviation between populations of the median of S_n/S_N."""
        return float(self.sensitivities[:, SMALL.index(size), SHOWN.index(epsilon)].std(ddof=1))


def others(results: Mapping[str, Plain]) -> Others:
    """Return the further lognormal populations from the results."""
    points = [result for key, result in sorted(results.items()) if key.startswith("another-lognormal/")]
    return Others(
        variances=np.array([result["variances"] for result in points]),
        sensitivities=np.array([result["sensitivities"] for result in points]),
    )
