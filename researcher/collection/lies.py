"""What reports of nodes that lie can do to a round, and whether its counts look as if some did."""

from math import ceil, sqrt

from veiltab.common.collection.round import RoundStatus
from veiltab.researcher.frequency.tally import Tally

_DEVIATIONS = 6
"""Standard deviations above the mean from which counts are warned of: about one honest round in 10^9 comes there."""


def weight_of_a_lie(status: RoundStatus) -> float:
    """Return for how many nodes one report that lies counts at most, over the values that it chooses together.

    A report that supports k values adds (1 - q) / ((p - q) pi) to each of them: k is 1 under k-ary randomised response,
    w under subset selection, and up to d under unary encoding and local hashing, which fix no number.
    """
    oracle = status.round.randomiser
    most = {"krr": 1, "ss": oracle.parameters.get("w", 1)}.get(status.round.oracle, oracle.size)
    rate = min(stratum.probability for stratum in status.round.strata)
    return float(most * (1 - oracle.q) / ((oracle.p - oracle.q) * rate))


def weight_text(status: RoundStatus) -> str:
    """Write the weight of a lie for people."""
    return (
        f"A node that lies counts for up to {ceil(weight_of_a_lie(status)):,} nodes, over all values that it chooses,"
        " and is not noticed."
    )


def excess_text(tally: Tally) -> str:
    """Return a warning if the reports support more values than those of honest nodes do; empty if they do not.

    An honest report supports p + (d - 1) q values on average, whatever its node holds, with a variance of
    p (1 - p) + (d - 1) q (1 - q) where values are supported independently, and of less under the other randomisers.
    """
    reports, others = int(tally.reports.sum()), tally.values - 1
    p, q = float(tally.p), float(tally.q)
    usual, variance = reports * (p + others * q), reports * (p * (1 - p) + others * q * (1 - q))
    found = int(tally.counts.sum())
    if found <= usual + _DEVIATIONS * sqrt(variance) + 1:
        return ""
    return (
        f"Warning: the reports support {found:,} values together, and those of honest nodes {usual:,.0f} +- "
        f"{sqrt(variance):,.0f}: some are made to count more. Do not use the estimates before you know whose they are."
    )
