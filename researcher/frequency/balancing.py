"""A sample of reports in which each value is reported equally often: what it is, and what it is not.

A round by k-ary randomised response has N_i reports of value i. If of each value min_j N_j reports are kept, chosen at
random, the reported values are balanced. This is post-processing and costs no privacy. The nodes behind them are not
balanced, because reports are randomised: a kept report is of a node that holds i with probability

    t_i = (1/d) sum_y P(holds i | reports y),    P(holds i | reports y) = n_i p_iy / sum_j n_j p_jy

where p_iy is p for y = i and q otherwise. The rarer a value, the smaller is its t_i: most of its reports are noise.
"""

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.frequency.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BalancedSample:
    """What is kept of a round.

    Args:
        each: reports of each value that are kept; reports.
        size: all that are kept; reports.
        kept_shares: share of the reports of each value that is kept, shape (d,).
        value_shares: t_i, the estimated share of the kept reports whose node holds the value, shape (d,) (probability).
    """

    each: int
    size: int
    kept_shares: NDArray[np.float64]
    value_shares: NDArray[np.float64]

    @property
    def bias(self) -> NDArray[np.float64]:
        """t_i - 1/d, shape (d,): 0 if the nodes were balanced too (probability)."""
        return self.value_shares - 1 / len(self.value_shares)


def balance(tally: Tally, shares: NDArray[np.float64]) -> BalancedSample:
    """Return what a value-balanced sample of the reports of a round would hold.

    Args:
        tally: of a round in which each report names one value.
        shares: estimated n_i/n, a probability table, shape (d,).

    Raises:
        InvalidInputError: a report supports several values or none, so that none is "reported".
    """
    counts = tally.counts.sum(axis=0)
    if tally.p + (tally.values - 1) * tally.q != 1 or counts.sum() != tally.reports.sum():
        raise InvalidInputError(
            "a report of this round does not name one value", where="oracle", remedy="Take a round of krr."
        )
    p, q = float(tally.p), float(tally.q)
    reported = q + (p - q) * shares
    # sum_y n_i p_iy / reported_y = n_i (q sum_y 1/reported_y + (p - q)/reported_i)
    masses = shares * (q * (1 / reported).sum() + (p - q) / reported) / tally.values
    each = int(counts.min())
    return BalancedSample(
        each=each, size=each * tally.values, kept_shares=each / np.maximum(counts, 1), value_shares=masses
    )
