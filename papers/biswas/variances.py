"""Theorem 3.5: the variances of g and c_hat: exact, as printed, and simulated."""

from fractions import Fraction

import numpy as np

from veiltab.papers.biswas.populations import NODES, VALUES, design, randomiser, with_share
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.researcher.collection.simulation.simulation import simulate
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

FEW = 4
"""Values of a small domain, where the difference is large."""

FEW_EPSILON = "1"
MANY_EPSILONS = ("1", "4")
RATE = "0.1"
SHARE = "0.08"
"""About the largest share of Bin(100, .5)."""

_BATCHES = 20
_SHARES = ("0", "0.125", "0.25", "0.375", "0.5", "0.625", "0.75", "0.875", "1")
_RATES = ("0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
_MANY_SHARES, _QUICK_SHARES = ("0", "0.1", "0.2", "0.4", "0.6", "0.8", "1"), ("0", "0.4", "1")
_MANY_RATES, _QUICK_RATES = ("0.05", "0.1", "0.3", "0.5", "0.7", "0.9", "1"), ("0.1", "0.5", "0.9")


def tasks(settings: Settings) -> list[Task]:
    """Return the points: over shares at one rate and over rates at one share, few values and the paper's 100."""
    few = [(FEW, FEW_EPSILON, RATE, share) for share in _SHARES]
    few += [(FEW, FEW_EPSILON, rate, "0.25") for rate in _RATES]
    shares, rates = (_QUICK_SHARES, _QUICK_RATES) if settings.quick else (_MANY_SHARES, _MANY_RATES)
    many = [(VALUES, epsilon, RATE, share) for epsilon in MANY_EPSILONS for share in shares]
    many += [(VALUES, epsilon, rate, SHARE) for epsilon in MANY_EPSILONS for rate in rates]
    return [_task(settings, *one) for one in dict.fromkeys([*few, *many])]


def _task(settings: Settings, values: int, epsilon: str, rate: str, share: str) -> Task:
    # Few values cost little, so they get more rounds.
    full, quick = (40_000, 4000) if values == FEW else (20_000, 1000)
    runs = max(2 * _BATCHES, settings.runs(full, quick))
    return Task(
        key=variance_key(values, epsilon, rate, share),
        function=simulated,
        arguments={"values": values, "epsilon": epsilon, "rate": rate, "share": share, "runs": runs},
    )


def variance_key(values: int, epsilon: str, rate: str, share: str) -> str:
    """Return the key of a point."""
    return f"variance/d={values}/epsilon={epsilon}/rate={rate}/f={share}"


def simulated(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the variances of g and c_hat over simulated rounds, of the count of the first value.

    Args:
        arguments: values, epsilon (nats, text), rate (text), share of the first value (text), runs.

    Returns:
        g, c_hat: variance over n (nodes) and its standard error; ratio: g's over c_hat's and its standard error.
        Errors are those of the mean of 20 batches.
    """
    holders = with_share(arguments["values"], Fraction(arguments["share"]))
    oracle, rate = randomiser(arguments["epsilon"], arguments["values"]), Fraction(arguments["rate"])
    spec = RoundDesign(populations=(NODES,), rates=(rate,), p=oracle.p, q=oracle.q)
    values = []
    for _ in range(_BATCHES):
        seed = int(generator.integers(2**63))
        trials = arguments["runs"] // _BATCHES
        one = simulate(holders, spec, trials=trials, seed=seed)
        values.append([float(one[which].variance[0]) / NODES for which in (Estimator.G, Estimator.C_HAT)])
    of_g, of_c_hat = np.array(values).T
    return {
        "g": _mean(of_g),
        "c_hat": _mean(of_c_hat),
        # The ratio of sums, not the mean of ratios: the ratio of a short batch is biased.
        "ratio": [float(of_g.sum() / of_c_hat.sum()), _mean(of_g - of_c_hat)[1] / float(of_c_hat.mean())],
    }


def _mean(values: np.ndarray) -> list[float]:
    return [float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5]


def exact(values: int, epsilon: str, rate: str, share: str, estimator: Estimator) -> float:
    """Return the exact variance of the estimated count of a value with a share, over n (nodes)."""
    holders = with_share(values, Fraction(share))
    return float(moments(estimator, holders, design(epsilon, rate, values)).variance[0]) / NODES


def claimed(values: int, epsilon: str, rate: str, share: str) -> float:
    """Return the variance of c_hat that the paper derives, over n (nodes): Var(g) + Var(S) q^2/(pi^2 (p-q)^2).

    It leaves out 2 Cov(N, S) q/(pi^2 (p-q)^2), which is larger and is subtracted.

    Source: Biswas, Cormode, Maple, equation 6.
    """
    spec = design(epsilon, rate, values)
    chance = spec.rates[0]
    added = (1 - chance) / chance * spec.q**2 / (spec.p - spec.q) ** 2
    return exact(values, epsilon, rate, share, Estimator.G) + float(added)
