"""The paper's Section 4.3: how many different rows a subset has, and how long it takes to draw one."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import Scheme
from veiltab.common.schemes.must_ow import MustOW
from veiltab.common.schemes.must_wo import MustWO
from veiltab.common.schemes.must_ww import MustWW
from veiltab.common.schemes.poisson import Poisson
from veiltab.common.schemes.with_replacement import WithReplacement
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must.designs import BOOTSTRAP, CLASSIFICATION, LABELS, REGRESSION, Design
from veiltab.papers.must.draws import draw

DESIGNS: tuple[Design, ...] = (BOOTSTRAP, REGRESSION, CLASSIFICATION)
"""Experiments 1 to 3."""

BATCH = 10_000
"""Subsets behind a row of Table 9."""


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each scheme and experiment, and one an experiment for the clock."""
    batches = 2 if settings.quick else 12
    counting = [
        Task(
            key=distinct_key(number, scheme),
            function=distinct_rows,
            arguments={"experiment": number, "scheme": scheme, "batches": batches},
        )
        for number in (1, 2, 3)
        for scheme in LABELS
    ]
    timing = [
        Task(
            key=time_key(number),
            function=drawing_times,
            arguments={"experiment": number, "rounds": 15 if settings.quick else 60},
        )
        for number in (1, 2, 3)
    ]
    return [*counting, *timing]


def distinct_key(experiment: int, scheme: str) -> str:
    """Return the key of a cell of Table 9."""
    return f"table-9/experiment={experiment}/{scheme}"


def time_key(experiment: int) -> str:
    """Return the key of a row of Table 10."""
    return f"table-10/experiment={experiment}"


def distinct_rows(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the least and the largest number of different rows, of each batch of 10,000 subsets.

    Args:
        arguments: experiment 1 to 3; scheme; batches.

    Returns:
        min and max, each a list of a number a batch; spread, the standard deviation over subsets; expected, n eta.
    """
    scheme = DESIGNS[arguments["experiment"] - 1].scheme(arguments["scheme"])
    batches = [_one_batch(scheme, generator) for _ in range(arguments["batches"])]
    return {
        "min": [int(counts.min()) for counts in batches],
        "max": [int(counts.max()) for counts in batches],
        "spread": float(np.std(np.concatenate(batches))),
        "expected": scheme.population * scheme.eta,
    }


def _one_batch(scheme: Scheme, generator: np.random.Generator) -> np.ndarray:
    return np.concatenate([draw(scheme, 1000, generator).distinct for _ in range(BATCH // 1000)])


def drawing_times(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return how much longer than without replacement each scheme takes to draw one subset, in per cent.

    One subset at a time, as numpy's users would; Poisson by n coins, as in the paper. Medians over rounds in which
    the schemes take turns. The clock makes this the one task whose result its generator does not decide.

    Args:
        arguments: experiment 1 to 3; rounds.
    """
    design = DESIGNS[arguments["experiment"] - 1]
    drawers = {name: drawer(design.scheme(name), generator) for name in LABELS}
    rounds = [{name: _seconds(drawers[name]) for name in drawers} for _ in range(arguments["rounds"])]
    medians = {name: float(np.median([one[name] for one in rounds])) for name in drawers}
    return {name: 100 * (seconds / medians["wor"] - 1) for name, seconds in medians.items()}


def _seconds(drawer: Callable[[], np.ndarray], repeats: int = 30) -> float:
    begin = perf_counter()
    for _ in range(repeats):
        drawer()
    return perf_counter() - begin


def drawer(scheme: Scheme, generator: np.random.Generator) -> Callable[[], np.ndarray]:
    """Return what draws one subset with numpy's own functions, stage by stage."""
    n, m = scheme.population, scheme.sample
    match scheme:
        case Poisson():
            return lambda: np.flatnonzero(generator.random(n) < m / n)
        case WithoutReplacement():
            return lambda: generator.choice(n, m, replace=False)
        case WithReplacement():
            return lambda: generator.integers(n, size=m)
        case MustOW(stage=b):
            return lambda: generator.choice(n, b, replace=False)[generator.integers(b, size=m)]
        case MustWO(stage=b):
            return lambda: generator.integers(n, size=b)[generator.choice(b, m, replace=False)]
        case MustWW(stage=b):
            return lambda: generator.integers(n, size=b)[generator.integers(b, size=m)]
        case _:
            raise InvalidInputError(f"scheme {scheme.name} cannot be drawn here", where="draws")
