"""The counts of a round of collection: reports by stratum, and how many of them support each value."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.researcher.frequency.design import RoundDesign


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """The counts of a round and its public parameters; everything that an estimator needs.

    Args:
        counts: N_si, reports of stratum s whose support holds value i; shape (strata, d), integers.
        reports: S_s, reports of each stratum; shape (strata,), integers.
        populations: n_s, nodes of each stratum.
        rates: pi_s, probability that a node of the stratum reports, exact, in (0, 1].
        p: P(support holds i | value is i), exact.
        q: P(support holds i | value is not i), exact.
        labels: names of the d values; by default 1 to d.
        strata: names of the strata; by default their numbers from 1.

    Raises:
        InvalidInputError: shapes that do not fit, numbers out of range, or more reports than nodes.
        IntegrityError: a count that is not within 0 and the reports of its stratum.
    """

    counts: NDArray[np.int64]
    reports: NDArray[np.int64]
    populations: tuple[int, ...]
    rates: tuple[Fraction, ...]
    p: Fraction
    q: Fraction
    labels: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        design = self.design
        counts, reports = _whole(self.counts), _whole(self.reports)
        if counts.ndim != 2 or counts.shape[1] < 1 or len(counts) != len(design.rates):
            raise InvalidInputError(f"counts of {len(design.rates)} strata do not have the shape {counts.shape}")
        if reports.shape != (len(counts),):
            raise InvalidInputError(f"{len(counts)} strata need one number of reports each")
        object.__setattr__(self, "labels", self.labels or tuple(str(i + 1) for i in range(counts.shape[1])))
        object.__setattr__(self, "strata", self.strata or tuple(str(s + 1) for s in range(len(counts))))
        if len(self.labels) != counts.shape[1] or len(self.strata) != len(counts):
            raise InvalidInputError("there is not one label a value, or not one name a stratum")
        _check_reports(counts, reports, self.strata, design)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "reports", reports)

    @property
    def design(self) -> RoundDesign:
        """The public parameters of the round."""
        return RoundDesign(populations=self.populations, rates=self.rates, p=self.p, q=self.q)

    @property
    def values(self) -> int:
        """Number of values d."""
        return int(self.counts.shape[1])


def _whole(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a read-only copy of an array of whole numbers."""
    if not np.issubdtype(numbers.dtype, np.integer):
        raise InvalidInputError("a count, or a number of reports, is not a whole number")
    copy = np.array(numbers, dtype=np.int64)
    copy.setflags(write=False)
    return copy


def _check_reports(
    counts: NDArray[np.int64], reports: NDArray[np.int64], strata: tuple[str, ...], design: RoundDesign
) -> None:
    for name, row, received, population in zip(strata, counts, reports.tolist(), design.populations, strict=True):
        if received > population:
            raise InvalidInputError(
                f"{received} reports came from a population of {population} nodes",
                where=f"stratum {name}",
                remedy="Correct the population; every node reports at most once.",
            )
        if int(row.min()) < 0 or int(row.max()) > received:
            raise IntegrityError("a count is not within 0 and the reports", where=f"stratum {name}")
