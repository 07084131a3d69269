"""Where to stop (Section 6): the error of a round for the bytes that it sends, and the best oracle for them.

Every number is an expectation, by the exact variances; nothing is simulated.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from math import sqrt

import numpy as np

from veiltab.common.collection.choosing import expected_variance
from veiltab.common.collection.oracles import ORACLE_NAMES, Oracle, oracle_for
from veiltab.papers.biswas.communication import report_length
from veiltab.papers.biswas.expected_distance import expected_distance
from veiltab.papers.biswas.populations import EPSILONS, NAMES, NODES, PAPER, VALUES, truth
from veiltab.papers.experiment import Curve, Figure, Mark, Panel

TARGET = 0.2
"""A total variation to stop at."""

_BUDGET = 1e6
"""Bytes of a round in the comparison over domains."""

_DOMAINS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_STEPS = 13
_LEAST = 0.02
"""Least probability of reporting of a curve."""


@cache
def _oracle(name: str, size: int, epsilon: str) -> Oracle:
    return oracle_for(name, size, Decimal(epsilon))


@cache
def _length(name: str, size: int, epsilon: str) -> int:
    return report_length(_oracle(name, size, epsilon))


def megabytes(name: str, epsilon: str, rate: float, size: int = VALUES) -> float:
    """Return the expected megabytes of a round, its reports as they travel."""
    return NODES * rate * _length(name, size, epsilon) / 1e6


def distance(name: str, epsilon: str, rate: float) -> float:
    """Return the expected total variation of c_hat's raw estimates of Bin(100, .5)."""
    shares, counts = np.unique(truth("one")[0] / NODES, return_counts=True)
    oracle = _oracle(name, VALUES, epsilon)
    variances = [expected_variance(oracle, population=NODES, rate=rate, frequency=float(share)) for share in shares]
    return expected_distance(0.0, np.repeat(variances, counts), NODES)


def stopping_rate(name: str, epsilon: str, target: float = TARGET) -> float | None:
    """Return the probability of reporting at which the expected distance is the target; None if it never is.

    The distance is a multiple of 1/sqrt(pi), but for the share of the sampling itself.
    """
    low, high = _LEAST / 100, 1.0
    if distance(name, epsilon, high) > target:
        return None
    for _ in range(40):
        middle = sqrt(low * high)
        low, high = (middle, high) if distance(name, epsilon, middle) > target else (low, middle)
    return high


def relative_error(name: str, epsilon: str, size: int, budget: float = _BUDGET) -> float:
    """Return an oracle's standard error over that of direct encoding at the same bytes, root mean square of the values.

    Args:
        epsilon: nats.
        budget: expected bytes of a round; nobody reports twice, so the probability of reporting is at most 1.
    """

    def variance(which: str) -> float:
        rate = min(1.0, budget / (NODES * _length(which, size, epsilon)))
        return expected_variance(_oracle(which, size, epsilon), population=NODES, rate=rate, frequency=1 / size)

    return sqrt(variance(name) / variance("krr"))


def figure() -> Figure:
    """Return distance against bytes for every oracle, and their standard errors at the same bytes over domains."""
    return Figure(
        name="biswas-where-to-stop",
        title=f"Beyond {PAPER}: where to stop, and which oracle to spend the bytes on (50,000 nodes)",
        panels=(*map(_bytes_panel, EPSILONS), *map(_domain_panel, EPSILONS)),
        caption=_caption(),
    )


def _caption() -> str:
    stops = ", ".join(f"{_stop('krr', epsilon)} at epsilon {epsilon}" for epsilon in EPSILONS)
    best = ", ".join(
        f"{name} at epsilon {epsilon}" for epsilon, name in ((one, best_oracle(one, VALUES)) for one in EPSILONS)
    )
    return (
        "Above: the distance falls as one over the root of the bytes up to the last node, so there is no point after"
        " which more reports stop helping; one stops where the distance is small enough. For a distance of"
        f" {TARGET:g} direct encoding (krr) takes {stops}. Curves end where everybody reports. Below: standard error"
        " over that of direct encoding for the same megabyte of reports as they travel, most of which are round,"
        " token and stratum, so that accuracy decides before length. For 100 values the least error has"
        f" {best}. Where direct encoding is best, subset selection is the same mechanism (subsets of one)."
    )


def _stop(name: str, epsilon: str) -> str:
    rate = stopping_rate(name, epsilon)
    return "more than all nodes" if rate is None else f"{100 * rate:.2g} percent of the nodes"


def best_oracle(epsilon: str, size: int) -> str:
    """Return the oracle of the least standard error at the same bytes."""
    return min(ORACLE_NAMES, key=lambda name: relative_error(name, epsilon, size))


def _bytes_panel(epsilon: str) -> Panel:
    return Panel(
        title=f"{NAMES['one']}, epsilon = {epsilon}",
        x_label="expected megabytes of a round",
        y_label="expected total variation, raw",
        curves=tuple(_against_bytes(name, epsilon) for name in ORACLE_NAMES),
        x_log=True,
        y_log=True,
        marks=tuple(_marks(epsilon)),
    )


def _against_bytes(name: str, epsilon: str) -> Curve:
    rates = np.geomspace(_LEAST, 1.0, _STEPS)
    return Curve(
        label=name,
        x=tuple(megabytes(name, epsilon, float(rate)) for rate in rates),
        y=tuple(distance(name, epsilon, float(rate)) for rate in rates),
    )


def _marks(epsilon: str) -> Iterator[Mark]:
    for name, label in (("krr", "krr"), (best_oracle(epsilon, VALUES), "best oracle")):
        rate = stopping_rate(name, epsilon)
        if rate is not None:
            yield Mark(x=megabytes(name, epsilon, rate), label=f"total variation {TARGET:g} by {label}")


def _domain_panel(epsilon: str) -> Panel:
    return Panel(
        title=f"the same megabyte, epsilon = {epsilon}",
        x_label="values d of the domain",
        y_label="standard error over that of krr",
        curves=tuple(
            Curve(
                label=name,
                x=tuple(map(float, _DOMAINS)),
                y=tuple(relative_error(name, epsilon, size) for size in _DOMAINS),
            )
            for name in ORACLE_NAMES
        ),
        x_log=True,
        y_log=True,
    )
