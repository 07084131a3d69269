"""Simulated rounds: single ones for Figures 1 and 2, and many of them for Figure 3."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.papers.biswas.populations import EPSILONS, EVERYBODY, LAWS, NODES, RATES, design, randomiser, truth
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.researcher.collection.simulation.simulation import draw_reports
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, point_estimates
from veiltab.researcher.frequency.frequencies import total_variation

COMPARED = (Estimator.C, Estimator.G, Estimator.C_HAT, Estimator.HAJEK)
SHOWN_RATES = ("0.1", "0.9")
"""The two extremes of Figures 1 and 2."""

MODE = 50
"""The value that most nodes of Bin(100, .5) hold."""

SWEPT = ("0.1", "0.25", "0.5", "1", "2", "4", "8")
"""Epsilons (nats) at which a tenth of the nodes is compared with all of them."""

_QUICK_RATES = ("0.1", "0.3", "0.5", "0.7", "0.9")

Floats = NDArray[np.float64]


def tasks(settings: Settings) -> list[Task]:
    """Return the points: single rounds, and distances of many rounds."""
    singles = [
        Task(
            key=round_key(population, epsilon, rate),
            function=one_round,
            arguments={"population": population, "epsilon": epsilon, "rate": rate},
        )
        for population in LAWS
        for epsilon in EPSILONS
        for rate in SHOWN_RATES
    ]
    runs = settings.runs(1000, 40)
    many = [
        Task(
            key=distance_key(population, epsilon, rate),
            function=distances,
            arguments={"population": population, "epsilon": epsilon, "rate": rate, "runs": runs},
        )
        for population, epsilon, rate in _settings(settings)
    ]
    return [*singles, *many]


def rates(settings: Settings) -> tuple[str, ...]:
    """Return the probabilities of reporting of Figure 3, and certainty."""
    return (*(_QUICK_RATES if settings.quick else RATES), EVERYBODY)


def _settings(settings: Settings) -> list[tuple[str, str, str]]:
    figure_3 = [(law, epsilon, rate) for law in LAWS for epsilon in EPSILONS for rate in rates(settings)]
    sweep = [("one", epsilon, rate) for epsilon in SWEPT for rate in (RATES[0], EVERYBODY)]
    return list(dict.fromkeys([*figure_3, *sweep]))


def round_key(population: str, epsilon: str, rate: str) -> str:
    """Return the key of a single round."""
    return f"round/{population}/epsilon={epsilon}/rate={rate}"


def distance_key(population: str, epsilon: str, rate: str) -> str:
    """Return the key of the distances of many rounds."""
    return f"distance/{population}/epsilon={epsilon}/rate={rate}"


def one_round(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return what one round estimates.

    Args:
        arguments: population, epsilon (nats, text), rate (text).

    Returns:
        g and c_hat: (100,) (nodes) of the same reports; reports: how many.
    """
    _, reports, estimates = _estimates(arguments, 1, generator)
    counts = {which.value: estimates[which][0].tolist() for which in (Estimator.G, Estimator.C_HAT)}
    return {**counts, "reports": int(reports[0, 0])}


def distances(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return how far the estimates of many rounds are from the truth.

    Args:
        arguments: population, epsilon (nats, text), rate (text), runs.

    Returns:
        For each estimator raw and projected: mean and the 5th and 95th percentile of the total variation, of the raw
        estimate and of its projection on the simplex; mode: mean and standard error of the estimated nodes with MODE.
        Also reports: their mean number and its standard error.
    """
    true_shares, reports, estimates = _estimates(arguments, arguments["runs"], generator)
    summaries = {which.value: _distance(counts, true_shares) for which, counts in estimates.items()}
    chance = float(arguments["rate"])
    error = (NODES * chance * (1 - chance) / len(reports)) ** 0.5
    return {**summaries, "reports": [float(reports.mean()), error]}


def draw_rounds(
    truth: NDArray[np.int64], design: RoundDesign, mechanism: GammaDiagonal, trials: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the counts of many rounds by k-ary randomised response, all values together by their exact law.

        S_si ~ Bin(n_si, pi_s)    kept_si ~ Bin(S_si, 1 - r)    replaced_s ~ Mult(sum_i (S_si - kept_si); uniform)

    Args:
        truth: n_si, shape (strata, d).
        mechanism: that perturbs, with d cells.
        trials: number of rounds.

    Returns:
        N_si, shape (trials, strata, d), and S_s, shape (trials, strata), int64.
    """
    reports = draw_reports(truth, design, trials, generator)
    counts = generator.binomial(reports, float(mechanism.retention))
    replaced = (reports - counts).sum(axis=-1)
    counts += generator.multinomial(replaced, np.full(truth.shape[1], 1 / truth.shape[1]))
    return counts, reports.sum(axis=-1)


def _estimates(
    arguments: Plain, runs: int, generator: np.random.Generator
) -> tuple[Floats, NDArray[np.int64], Mapping[Estimator, Floats]]:
    """Return true shares, reports, and each estimator's counts (runs, d)."""
    holders = truth(arguments["population"])
    spec = design(arguments["epsilon"], arguments["rate"])
    counts, reports = draw_rounds(holders, spec, randomiser(arguments["epsilon"]).mechanism, runs, generator)
    return holders[0] / NODES, reports, {which: point_estimates(which, counts, reports, spec) for which in COMPARED}


def _distance(counts: Floats, true_shares: Floats) -> dict[str, list[float]]:
    shares = counts / NODES
    projected = np.array([project_to_simplex(row) for row in shares])
    mode = counts[:, MODE - 1]
    # One run has no error estimate; an error as large as the value claims nothing.
    error = float(mode.std(ddof=1)) / len(mode) ** 0.5 if len(mode) > 1 else abs(float(mode[0]))
    return {
        "raw": _summary(total_variation(shares, true_shares)),
        "projected": _summary(total_variation(projected, true_shares)),
        "mode": [float(mode.mean()), error],
    }


def _summary(values: Floats) -> list[float]:
    return [float(values.mean()), *(float(end) for end in np.quantile(values, (0.05, 0.95)))]
