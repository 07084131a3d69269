"""Releases of Lin, Wang, Rane on sufficient statistics: counts of a sample, counts after perturbation, the estimate.

A release reaches the estimate through the counts of its cells alone. Sampling rows without replacement makes them
multivariate hypergeometric; perturbation keeps a binomial part of each count and spreads the others uniformly. So a
run costs as much as the table has cells, not rows, and has the law of common.core.mechanism.perturb on sampled rows.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.mechanism import NoiseLaw, invert
from veiltab.common.privacy.coalitions import order_epsilon
from veiltab.common.privacy.planning.planning import Plan, paper_sample, plan_release
from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.papers.experiment import Plain

Counts = NDArray[np.int64]


def histograms(
    counts: Counts, *, sample: int, mechanism: NoiseLaw, runs: int, generator: np.random.Generator
) -> Counts:
    """Draw the counts of perturbed rows in several releases.

    Args:
        counts: rows in each cell of the table, shape (K,).
        sample: rows drawn without replacement, m.
        runs: number of releases.

    Returns:
        int64, shape (runs, K), each row with sum m.

    Source: Lin, Wang, Rane, Section III-A (sampling, then PRAM with the gamma-diagonal matrix).
    """
    rows = generator.multivariate_hypergeometric(counts, sample, size=runs, method="marginals")
    intact = generator.binomial(rows, float(mechanism.retention))
    noise = generator.multinomial(sample - intact.sum(axis=1), np.full(len(counts), 1 / len(counts)))
    total: Counts = intact + noise
    return total


def error(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the error of simulated releases, and the error that the formula expects.

    Args:
        arguments: counts (rows in each cell), epsilon and delta (text; delta may be None), sample (rows), runs.

    Returns:
        sample; mean of ||T_hat - T||_2 over the runs, standard_error of that mean, low and high (between them lie 90%
        of the runs), expected (root of the mean square, by formula), gamma and local_epsilon (nats).
    """
    counts = np.array(arguments["counts"], np.int64)
    plan = plan_of(int(counts.sum()), len(counts), arguments["epsilon"], arguments["delta"], arguments["sample"])
    shares = counts / counts.sum()
    tables = histograms(
        counts, sample=plan.sample, mechanism=plan.mechanism, runs=arguments["runs"], generator=generator
    )
    errors = np.array([np.linalg.norm(invert(one, plan.mechanism) - shares) for one in tables])
    low, high = np.quantile(errors, [0.05, 0.95])
    return {
        "sample": plan.sample,
        "mean": float(errors.mean()),
        "standard_error": float(errors.std() / sqrt(len(errors))),
        "low": float(low),
        "high": float(high),
        "expected": plan.root_mse(float(shares @ shares)),
        "gamma": plan.gamma,
        "local_epsilon": float(plan.description.local_epsilon),
    }


def guarantee(arguments: Plain, _: np.random.Generator) -> Plain:
    """Return what a release at the paper's sample size guarantees, once its order is secret too.

    Args:
        arguments: population, cells, epsilon (text, pure), delta (text).

    Returns:
        pure and order: epsilon (nats) without delta, and with it; local_epsilon (nats).
    """
    release = paper_plan(arguments["population"], arguments["cells"], arguments["epsilon"]).description
    by_order = order_epsilon(release, Decimal(arguments["delta"])) or release.pure_epsilon
    return {
        "pure": float(release.pure_epsilon),
        "order": float(by_order),
        "local_epsilon": float(release.local_epsilon),
    }


@lru_cache(maxsize=4096)
def plan_of(population: int, cells: int, epsilon: str, delta: str | None, sample: int) -> Plan:
    """Return the product's plan of a release of this size."""
    return plan_release(
        population=population,
        cells=cells,
        epsilon=Decimal(epsilon),
        delta=None if delta is None else Decimal(delta),
        sample=sample,
    )


def paper_plan(population: int, cells: int, epsilon: str) -> Plan:
    """Return the plan at the paper's sample size m*.

    Source: Lin, Wang, Rane, Corollary 3.6.
    """
    star = paper_sample(population=population, cells=cells, epsilon=Decimal(epsilon))
    return plan_of(population, cells, epsilon, None, star)


def central_error(population: int, cells: int, epsilon: float, delta: float) -> float:
    """Return the root-mean-square error of a trusted curator's Gaussian histogram.

    sqrt(K) sigma / n, sigma the least with delta(epsilon) <= delta for sensitivity sqrt(2), substitution of one row

    Args:
        population: n, rows.
        cells: K.
        epsilon: nats.
        delta: in (0, 1).

    Source: Balle, Wang 2018, Theorem 8 (exact profile, calibrated numerically).
    """

    def excess(log_ratio: float) -> float:
        return log(max(Gaussian(ratio=float(np.exp(log_ratio))).delta(epsilon, 1), 1e-300) / delta)

    ratio = float(np.exp(largest_allowed(-20.0, log(epsilon / sqrt(2 * log(1.25 / delta))), 5.0, excess)))
    return sqrt(cells) * sqrt(2) / ratio / population


def synthetic(shape: str, cells: int, population: int) -> list[int]:
    """Return the counts of one of the paper's synthetic tables: "uniform", "linear" or "peaky".

    Source: Lin, Wang, Rane, Section IV: all cells alike; proportional to 1, ..., K; one cell with 90 percent.
    """
    weights: Sequence[float] = {
        "uniform": [1.0] * cells,
        "linear": [float(cell) for cell in range(1, cells + 1)],
        "peaky": [0.9, *[0.1 / (cells - 1)] * (cells - 1)],
    }[shape]
    exact = np.array(weights) / sum(weights) * population
    counts = np.floor(exact).astype(np.int64)
    largest_rests = np.argsort(counts - exact, kind="stable")[: population - int(counts.sum())]
    counts[largest_rests] += 1
    return [int(count) for count in counts]
