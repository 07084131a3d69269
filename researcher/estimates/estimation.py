"""From counted noisy rows to an estimate of the table: unbiased fractions, their errors, their marginals."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.core.mechanism import invert
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.privacy.planning.planning import FEW_ROWS, FEWEST_ROWS
from veiltab.researcher.drawing.drawable import at_level
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.estimates.uncertainty import (
    CovarianceTerms,
    Design,
    ReleaseDesign,
    contrast_covariance,
    covariance,
    score_interval,
    total_variance,
    variances,
)

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.researcher.drawing.style import Picture

__all__ = ["Estimate", "ReleaseDesign", "TableEstimate"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TableEstimate(ABC):
    """A table of some attributes, estimated without bias, and how far it may be from the true one.

    `raw` is unbiased and may be negative; `projected` is the nearest probability table to it, with less error and a
    bias. Intervals lie within 0 and 1. Everything is a fraction of the n respondents; `rows` turns it into rows.

    Args:
        domain: the attributes; cells in C order.
        design: what its errors depend on, over the cells of `domain`.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file that names the attributes and categories of `domain`, hexadecimal;
            empty if no study file does, as in a simulation.

    Raises:
        InvalidInputError: domain and design do not have the same number of cells, or a confidence outside (0, 1).
    """

    domain: Domain
    design: Design
    confidence: float = CONFIDENCE
    study_digest: str = ""

    def __post_init__(self) -> None:
        if self.design.cells != self.domain.cells:
            raise InvalidInputError(f"the mechanism does not have the {self.domain.cells} cells of the table")
        if not 0.0 < self.confidence < 1.0:
            raise InvalidInputError(f"the confidence is {self.confidence}, not between 0 and 1")

    @property
    @abstractmethod
    def raw(self) -> NDArray[np.float64]:
        """T_hat, shape (K,): unbiased, sums to 1, possibly negative (probabilities)."""

    @abstractmethod
    def marginal(self, names: Sequence[str]) -> Self:
        """Return the estimate of a subset of the attributes, in the order of `names`; `raw` is summed."""

    @cached_property
    def projected(self) -> NDArray[np.float64]:
        """Nearest probability table to `raw`, shape (K,): biased, never farther from the truth (probabilities)."""
        return project_to_simplex(self.raw)

    @cached_property
    def se(self) -> NDArray[np.float64]:
        """Standard error of `raw`, shape (K,): exact formula at the projected table (probabilities).

        Of the plug-ins compared (raw, clipped, projected, and the unbiased variance estimate) the projected table came
        nearest to nominal coverage, most clearly with many cells and few rows; and it alone makes every covariance here
        that of a real table, hence never negative.
        """
        return np.sqrt(variances(self.projected, self.design))

    @property
    def low(self) -> NDArray[np.float64]:
        """Lower ends of the score intervals, shape (K,), at least 0 (probabilities)."""
        return self._interval[0]

    @property
    def high(self) -> NDArray[np.float64]:
        """Upper ends of the score intervals, shape (K,), at most 1 (probabilities)."""
        return self._interval[1]

    @cached_property
    def root_mse(self) -> float:
        """Root of the expected squared error summed over all cells, sqrt(E||T_hat - T||^2) (probability)."""
        return sqrt(total_variance(_sum_of_squares(self.raw, self.design), self.design))

    @property
    def contradiction(self) -> float:
        """Most standard errors by which a cell of a table that is pooled here differs from the pooled one; 0 of one."""
        return 0.0

    @property
    def terms(self) -> CovarianceTerms | None:
        """Coefficients of the covariance of `raw`; None if it has another form, which `contrast_covariance` knows."""
        return self.design.terms

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to the table as it was measured, a sentence each."""
        return ()

    @property
    def rows(self) -> tuple[NDArray[np.float64], ...]:
        """Estimate, standard error and both ends of the interval of each cell in rows, shape (K,) each."""
        return tuple(self.design.people * one for one in (self.raw, self.se, self.low, self.high))

    def as_measured(self, contrasts: NDArray[np.float64]) -> tuple[NDArray[np.float64], "TableEstimate"]:
        """Return contrasts of the measured table that have the errors of contrasts of this one, and that table."""
        return contrasts, self

    @property
    def has_few_rows(self) -> bool:
        """Whether a cell of the projected table expects so few noisy rows that its interval may hold less often."""
        return bool(self.design.expected_rows(self.projected).min() < FEWEST_ROWS)

    @property
    def population(self) -> int:
        """Respondents n."""
        return self.design.population

    @property
    def sample(self) -> int:
        """Noisy rows that were counted, m."""
        return self.design.sample

    @property
    def released_counts(self) -> NDArray[np.int64] | None:
        """Noisy rows in each cell, shape (K,); None if the estimate is not of one release."""
        return None

    def covariance(self) -> NDArray[np.float64]:
        """Return the (K, K) covariance of `raw`; refuses more than uncertainty.MATRIX_LIMIT cells."""
        return covariance(self.projected, self.design)

    def contrast_covariance(self, contrasts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (c, c) covariance of c linear combinations of cells, given as rows of shape (c, K)."""
        return contrast_covariance(contrasts, self.projected, self.design)

    def frame(self) -> "pd.DataFrame":
        """Return the estimates as a DataFrame, one row a cell; see veiltab.researcher.estimates.table.to_frame."""
        from veiltab.researcher.estimates.table import to_frame  # noqa: PLC0415 - not for results in text

        return to_frame(self)

    def plot(self) -> "Picture":
        """Draw the estimates with their intervals; a notebook shows the picture, and `save` writes it."""
        from veiltab.researcher.drawing.pictures import estimates_picture  # noqa: PLC0415 - not for results in text

        return estimates_picture(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.domain.names)}: {self.domain.cells:,} cells>"

    def __str__(self) -> str:
        """Return the text table: one line a cell, and below it what the numbers are."""
        from veiltab.researcher.estimates.table import to_text  # noqa: PLC0415 - not for data frames

        remarks = (FEW_ROWS,) if self.has_few_rows else ()
        error = f"Expected root-mean-square distance of all cells: {self.root_mse:.5f}."
        below = f"{error} Intervals {at_level(self.confidence, self.remarks)}."
        return "\n".join([to_text(self), "", below, *remarks, *self.remarks])

    def _repr_html_(self) -> str:
        from veiltab.researcher.estimates.table import to_html  # noqa: PLC0415 - not for results in text

        return to_html(self)

    @cached_property
    def _interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return score_interval(self.raw, self.design, self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Estimate(TableEstimate):
    """The joint table of some attributes, estimated from the histogram of the noisy rows of one release.

    Args:
        domain: the attributes; cells in C order.
        design: the public parameters of the release, over the cells of `domain`.
        counts: noisy rows in each cell, shape (K,), integers summing to m.
        confidence: probability that one cell's interval holds its true fraction.
        study_digest: SHA-256 of the study file, as of every TableEstimate.

    Raises:
        InvalidInputError: domain, design and counts do not have the same number of cells, or a confidence outside
            (0, 1).
        IntegrityError: counts that are negative or do not sum to m.

    Source: Lin, Wang, Rane, section III-A (inversion of the gamma-diagonal matrix).
    """

    design: ReleaseDesign
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        TableEstimate.__post_init__(self)
        cells = self.domain.cells
        if self.counts.shape != (cells,):
            raise InvalidInputError(f"there are not {cells} counts, one a cell")
        if not np.issubdtype(self.counts.dtype, np.integer):
            raise InvalidInputError("the counts are not whole numbers of rows")
        counts = np.array(self.counts, dtype=np.int64)
        # A count beyond m could make the sum overflow to m.
        if int(counts.min()) < 0 or int(counts.max()) > self.design.sample or int(counts.sum()) != self.design.sample:
            raise IntegrityError("the counted rows are not the m rows of the release")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @property
    def released_counts(self) -> NDArray[np.int64]:
        """Noisy rows in each cell, shape (K,)."""
        return self.counts

    @cached_property
    def raw(self) -> NDArray[np.float64]:
        """T_hat = (H/m - r/K)/(1-r), shape (K,): unbiased, sums to 1, possibly negative (probabilities)."""
        return invert(self.counts, self.design.mechanism)

    def marginal(self, names: Sequence[str]) -> "Estimate":
        """Return the estimate of a subset of the attributes, in the order of `names`.

        The histogram is summed over the other attributes and inverted with the same replacement probability over the
        smaller table: the rows of the release seen through fewer columns are a release of those columns. Its `raw` is
        the sum of this `raw`; its `projected` is not the sum of this `projected`.

        Args:
            names: attributes to keep, each once.

        Returns:
            The estimate over the product of their categories.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.

        Source: derived; a row kept or replaced uniformly in all attributes is so in any of them.
        """
        domain = self.domain.subset(names)
        return Estimate(
            domain=domain,
            design=self.design.marginal(domain.cells),
            counts=self.domain.summed(self.counts, names),
            confidence=self.confidence,
            study_digest=self.study_digest,
        )


def _sum_of_squares(raw: NDArray[np.float64], design: Design) -> float:
    """Return the unbiased estimate of sum T^2, kept within its range [1/K, 1]."""
    sampling = float(design.terms.sampling)
    if sampling >= 1.0:
        return 1.0 / design.cells  # one sampled row says nothing about it: take the value with the largest error
    # E sum T_hat^2 = sum T^2 + error, and the error is linear in sum T^2.
    observed = float(raw @ raw) - total_variance(0.0, design)
    return min(max(observed / (1.0 - sampling), 1.0 / design.cells), 1.0)
