"""What shuffling gains (Section 6, ii): central guarantees of rounds of local reports.

Counts reveal no more than reports in random order. Relation: substitution of one node's value.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import cast

import numpy as np

from veiltab.common.privacy.planning.planning import plan_release
from veiltab.papers.biswas.populations import EPSILONS, EVERYBODY, NODES, VALUES, design, randomiser, truth
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.researcher.collection.shuffling import (
    CentralComparison,
    central_guarantee,
    compare_with_gaussian,
    gaussian_standard_error,
)
from veiltab.researcher.frequency.estimators import Estimator
from veiltab.researcher.frequency.variances import moments

DELTA = "1e-6"
CENTRAL = ("0.1", "0.5", "1")
"""Central epsilons (nats) that rounds are planned for."""

_RATES = ("0.02", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", EVERYBODY)
_QUICK_RATES = ("0.1", "0.4", EVERYBODY)


def rates(settings: Settings) -> tuple[str, ...]:
    """Return the probabilities of reporting."""
    return _QUICK_RATES if settings.quick else _RATES


def tasks(settings: Settings) -> list[Task]:
    """Return the points: the guarantees of rounds, and rounds planned for a guarantee."""
    return [
        *(_task("guarantee", guarantee, epsilon, rate) for epsilon in EPSILONS for rate in rates(settings)),
        *(_task("planned", planned, epsilon, rate) for epsilon in CENTRAL for rate in rates(settings)),
    ]


def _task(kind: str, function: Callable[[Plain, np.random.Generator], Plain], epsilon: str, rate: str) -> Task:
    return Task(
        key=f"{kind}/epsilon={epsilon}/rate={rate}", function=function, arguments={"epsilon": epsilon, "rate": rate}
    )


def guarantee(arguments: Plain, _generator: np.random.Generator) -> Plain:
    """Return what a round of n pi reports guarantees, and what it costs beside a trusted centre's noise.

    Args:
        arguments: epsilon of a report (nats, text), rate (text).

    Returns:
        local, coins, shuffled, known: epsilons (nats), upper bounds: of a report, of the secret coins (pure), and of
        the counts at DELTA against adversaries who do not and who do know which nodes reported. collected, gaussian:
        standard errors (nodes), root mean square over the values, of c_hat and of a Gaussian histogram at the same
        (shuffled, DELTA).
    """
    epsilon, rate = arguments["epsilon"], arguments["rate"]
    central = central_guarantee(
        [NODES], [int(NODES * Fraction(rate))], oracle=randomiser(epsilon), delta=Decimal(DELTA)
    )
    errors = np.sqrt(moments(Estimator.C_HAT, truth("one"), design(epsilon, rate)).variance)
    beside = cast("CentralComparison", compare_with_gaussian(errors, central))  # k-RR always has a certificate
    return {
        "local": float(central.local_epsilon),
        "coins": float(central.pure_epsilon),
        "shuffled": float(beside.epsilon),
        "known": float(cast("Decimal", central.known_epsilon)),
        "collected": sqrt(float((errors**2).mean())),
        "gaussian": beside.gaussian,
    }


def planned(arguments: Plain, _generator: np.random.Generator) -> Plain:
    """Return the round of n pi reports with the least noise that keeps a central guarantee at DELTA.

    Args:
        arguments: epsilon of the counts (nats, text), rate (text).

    Returns:
        local: epsilon of a report (nats); collected, gaussian: standard errors (nodes), root mean square over the
        values, of the round given its number of reports and of a trusted centre's Gaussian histogram.
    """
    epsilon, rate = Decimal(arguments["epsilon"]), Fraction(arguments["rate"])
    plan = plan_release(
        population=NODES,
        cells=VALUES,
        epsilon=epsilon,
        delta=Decimal(DELTA),
        sample=int(NODES * rate),
        noise_split=Decimal(0),
    )
    shares = truth("one")[0] / NODES
    return {
        "local": float(plan.local_epsilon),
        "collected": NODES * plan.root_mse(float(shares @ shares)) / sqrt(VALUES),
        "gaussian": gaussian_standard_error(epsilon, Decimal(DELTA)),
    }
