"""Several rounds about the same nodes together: the best linear combination of their estimates.

Every round has an unbiased estimate X_r of how many nodes hold each value (horvitz_thompson), and coins of its own, so
the estimates are independent. With weights that sum to 1,

    X = sum_r w_r X_r,    Var X(i) = sum_r w_r^2 Var X_r(i),    w_r in proportion to 1 / sum_i Var X_r(i)

The sum over the values is public: each node holds one value, so it adds the same to it whatever it holds. So the
weights do not depend on the reports, X is unbiased, and its variance is exact; no other weights that are common to all
values make the sum of the variances smaller.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.frequency.design import RoundDesign
from veiltab.researcher.frequency.estimators import Estimator, linear_form
from veiltab.researcher.frequency.frequencies import Frequencies, estimate
from veiltab.researcher.frequency.intervals import combined_interval
from veiltab.researcher.frequency.tally import Tally
from veiltab.researcher.frequency.variances import node_variances

WHICH = Estimator.HORVITZ_THOMPSON
"""The estimator of every round: linear, and unbiased at any rates."""


def combine(tallies: Sequence[Tally], confidence: float = CONFIDENCE) -> Frequencies:
    """Estimate how many nodes hold each value from several rounds.

    Args:
        tallies: of rounds about the same values and the same number of nodes; strata, rates and oracles may differ.
        confidence: probability that one value's interval holds its true count.

    Raises:
        InvalidInputError: fewer than two rounds, or of other values or numbers of nodes.
        NotReadyError: a round without a report.

    Source: Aitken, On least squares and linear combination of observations (1935), for independent estimates.
    """
    if len(tallies) < 2:
        raise InvalidInputError("one round alone was to be combined", where="rounds", remedy="Name another round.")
    first = tallies[0]
    for tally in tallies[1:]:
        if (tally.labels, tally.design.population) != (first.labels, first.design.population):
            raise InvalidInputError(
                "the rounds asked for other values or other numbers of nodes",
                where="rounds",
                remedy="Combine rounds of one question and one population.",
            )
    weights = np.array([float(weight) for weight in best_weights([tally.design for tally in tallies], first.values)])
    each = [estimate(tally, WHICH, confidence) for tally in tallies]
    counts = weights @ np.array([one.counts for one in each])
    low, high = combined_interval(tallies, weights.tolist(), counts, confidence)
    n = first.design.population
    return Frequencies(
        estimator=WHICH,
        labels=first.labels,
        population=n,
        confidence=confidence,
        counts=counts,
        standard_errors=np.sqrt(weights**2 @ np.array([one.standard_errors**2 for one in each])),
        low=low,
        high=high,
        projected=n * project_to_simplex(counts / n),
        warning=" ".join(one.warning for one in each if one.warning),
    )


def best_weights(designs: Sequence[RoundDesign], values: int) -> tuple[Fraction, ...]:
    """Return w_r, exact; they sum to 1.

    Args:
        designs: public parameters of the rounds.
    """
    parts = [1 / total_variance(design, values) for design in designs]
    return tuple(part / sum(parts) for part in parts)


def total_variance(design: RoundDesign, values: int) -> Fraction:
    """Return sum_i Var X(i) of horvitz_thompson (nodes squared), exact, whatever the nodes hold."""
    holding, other = node_variances(linear_form(WHICH, design), design)
    strata = zip(design.populations, holding, other, strict=True)
    return sum((nodes * (own + (values - 1) * rest) for nodes, own, rest in strata), Fraction(0))
