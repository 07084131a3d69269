"""The populations of Biswas, Cormode, Maple, and the randomiser that every node runs."""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.oracles.krr import KaryRandomisedResponse
from veiltab.common.collection.population import parse_population
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.researcher.frequency.design import RoundDesign

PAPER = "Biswas, Cormode, Maple"

NODES = 50_000
VALUES = 100
"""The paper's size of the domain: the values 1 to 100."""

EPSILONS = ("1", "2", "4")
"""Nats. The paper does not state the epsilon of its figures."""

LAWS = {
    "one": "binomial:100:0.5",
    "sum": "binomial:50:0.6+binomial:50:0.4",
    "mixture": "binomial:50:0.6|binomial:50:0.4",
}
"""The paper's first population, and its second one in both readings of its plus sign."""

NAMES = {
    "one": "Bin(100, .5)",
    "sum": "Bin(50, .6) + Bin(50, .4), sum",
    "mixture": "Bin(50, .6) + Bin(50, .4), mixture",
}

RATES = tuple(f"0.{tenth}" for tenth in range(1, 10))
"""Figure 3's probabilities of reporting."""

EVERYBODY = "1"

Ints = NDArray[np.int64]


@cache
def truth(population: str) -> Ints:
    """Return how many nodes hold each value, shape (1, 100), read-only: shares of the law, rounded to whole nodes."""
    counts = parse_population(LAWS[population]).counts(NODES, VALUES)[None, :]
    counts.setflags(write=False)
    return counts


def with_share(values: int, share: Fraction, nodes: int = NODES) -> Ints:
    """Return a population whose first value has a given share; the others share the rest equally; shape (1, values).

    Args:
        values: d, at least 2.
        share: f of the first value; f n is rounded down to whole nodes.
        nodes: n.
    """
    first = int(share * nodes)
    each, more = divmod(nodes - first, values - 1)
    others = each + (np.arange(values - 1) < more)
    return np.concatenate([[first], others])[None, :].astype(np.int64)


@cache
def randomiser(epsilon: str, values: int = VALUES) -> KaryRandomisedResponse:
    """Return direct encoding at an epsilon (nats): the most accurate one that keeps it, as the nodes run it."""
    return KaryRandomisedResponse.from_epsilon(values, Decimal(epsilon))


def design(epsilon: str, rate: str, values: int = VALUES) -> RoundDesign:
    """Return a round of all nodes, each reporting with probability `rate`."""
    return krr_design((NODES,), (Fraction(rate),), randomiser(epsilon, values).mechanism)
