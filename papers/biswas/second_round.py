"""Adaptive second rounds (Section 6, i and iii): rates by public stratum, chosen from what a first round estimated."""

from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.population import parse_population
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.papers.biswas.populations import EPSILONS, VALUES, randomiser
from veiltab.papers.biswas.rounds import draw_rounds
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.researcher.collection.allocation import LEAST_RATE, allocate, minimax_rates, node_costs
from veiltab.researcher.collection.simulation.simulation import simulate
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import moments

STRATA = (
    ("uniform", 30_000, "uniform:100"),
    ("binomial", 10_000, "binomial:100:0.5"),
    ("Zipf 1", 5_000, "zipf:100:1"),
    ("Zipf 3", 5_000, "zipf:100:3"),
)
"""Name, nodes and law of each stratum: the common values of the small strata are rare elsewhere."""

FIRST_RATE = Fraction(1, 10)
"""Of the first round, for all strata."""

_BUDGETS = (2_500, 5_000, 10_000, 15_000, 20_000, 25_000)
_QUICK_BUDGETS = (5_000, 15_000, 25_000)

Floats = NDArray[np.float64]


@cache
def strata() -> NDArray[np.int64]:
    """Return n_si, shape (strata, 100), read-only."""
    holders = np.array([parse_population(law).counts(nodes, VALUES) for _, nodes, law in STRATA])
    holders.setflags(write=False)
    return holders


def tasks(settings: Settings) -> list[Task]:
    """Return the points: one for every epsilon and number of reports of the second round."""
    return [
        Task(
            key=round_key(epsilon, budget),
            function=adapted,
            arguments={
                "epsilon": epsilon,
                "budget": budget,
                "rounds": settings.runs(100, 8),
                "trials": max(2, settings.runs(2000, 200)),
            },
        )
        for epsilon in EPSILONS
        for budget in (_QUICK_BUDGETS if settings.quick else _BUDGETS)
    ]


def round_key(epsilon: str, budget: int) -> str:
    """Return the key of a point."""
    return f"second/epsilon={epsilon}/reports={budget}"


def adapted(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the largest standard error of a second round's counts, at equal and at adapted rates.

    Args:
        arguments: epsilon (nats, text), budget: expected reports of the second round, rounds: first rounds to adapt
            to, trials: second rounds to simulate at the rates of the one in the middle.

    Returns:
        equal, known: at one rate, and at the best rates for the true values (nodes). performance: mean, 5th and 95th
        percentile over first rounds, of the exact error at the rates they led to; middle: their median. simulated: the
        error at the rates that led to it, of the value with the largest exact variance, and its standard error. rates:
        mean rates of the strata.
    """
    epsilon, budget = arguments["epsilon"], arguments["budget"]
    all_rates = [_rates_after(epsilon, budget, generator) for _ in range(arguments["rounds"])]
    errors = [largest_error(epsilon, rates) for rates in all_rates]
    middle = int(np.argsort(errors)[len(errors) // 2])
    one_rate = (Fraction(budget, int(strata().sum())),) * len(STRATA)
    return {
        "equal": largest_error(epsilon, one_rate),
        "known": largest_error(epsilon, _best_rates(epsilon, budget)),
        "found": [float(np.mean(errors)), *(float(end) for end in np.quantile(errors, (0.05, 0.95)))],
        "simulated": _simulated(epsilon, all_rates[middle], arguments["trials"], int(generator.integers(2**63))),
        "middle": errors[middle],
        "rates": np.array(all_rates, np.float64).mean(axis=0).tolist(),
    }


def largest_error(epsilon: str, rates: tuple[Fraction, ...]) -> float:
    """Return the largest exact standard error of a count by Horvitz and Thompson's estimator (nodes)."""
    return float(np.sqrt(_variances(epsilon, rates).max()))


def _variances(epsilon: str, rates: tuple[Fraction, ...]) -> Floats:
    return moments(Estimator.HORVITZ_THOMPSON, strata(), _design(epsilon, rates)).variance


def _design(epsilon: str, rates: tuple[Fraction, ...]) -> RoundDesign:
    return krr_design([nodes for _, nodes, _ in STRATA], rates, randomiser(epsilon).mechanism)


def _rates_after(epsilon: str, budget: int, generator: np.random.Generator) -> tuple[Fraction, ...]:
    """Return the rates that one first round leads to."""
    first = _design(epsilon, (FIRST_RATE,) * len(STRATA))
    counts, reports = draw_rounds(strata(), first, randomiser(epsilon).mechanism, 1, generator)
    tally = Tally(
        counts=counts[0], reports=reports[0], populations=first.populations, rates=first.rates, p=first.p, q=first.q
    )
    return allocate(tally, budget=budget).rates


def _best_rates(epsilon: str, budget: int) -> tuple[Fraction, ...]:
    """Return the best rates if every value were known."""
    holders, nodes = strata(), strata().sum(axis=1).astype(np.float64)
    costs = node_costs(holders / nodes[:, None], _design(epsilon, (FIRST_RATE,) * len(STRATA)))
    rates = minimax_rates(costs, holders.sum(axis=0).astype(np.float64), nodes, float(budget), float(LEAST_RATE))
    return tuple(Fraction(rate) for rate in rates.tolist())


def _simulated(epsilon: str, rates: tuple[Fraction, ...], trials: int, seed: int) -> list[float]:
    """Return the simulated standard error of the value whose exact one is largest, and its own error."""
    worst = int(np.argmax(_variances(epsilon, rates)))
    performance = simulate(strata(), _design(epsilon, rates), trials=trials, seed=seed)
    error = float(np.sqrt(performance[Estimator.HORVITZ_THOMPSON].variance[worst]))
    return [error, error / (2 * trials) ** 0.5]
