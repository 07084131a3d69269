"""What tables and pictures show of an estimate and of an analysis; they know nothing of how these were made."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass

Floats = NDArray[np.float64]

NOT_COVERED = "NOT COVERED"
"""Words of a remark on what intervals do not know of."""


def is_covered(remarks: Sequence[str]) -> bool:
    """Return whether the intervals of a result hold the truth as often as their confidence says."""
    return not any(NOT_COVERED in one for one in remarks)


def at_level(confidence: float, remarks: Sequence[str]) -> str:
    """Return what stands behind the word interval: "at 95%", or that they are not covered."""
    return f"{'' if is_covered(remarks) else f'{NOT_COVERED} '}at {100 * confidence:g}%"


def aligned(columns: Sequence[Sequence[str]]) -> str:
    """Return columns as lines of text that end below one another."""
    widths = [max(map(len, column)) for column in columns]
    return "\n".join("  ".join(map(str.rjust, row, widths)) for row in zip(*columns, strict=True))


class ShownTable(Protocol):
    """Cells with estimates and intervals; see estimation.TableEstimate."""

    @property
    def domain(self) -> Domain:
        """The attributes; cells in C order."""

    @property
    def raw(self) -> Floats:
        """Unbiased estimates, shape (K,) (probabilities)."""

    @property
    def se(self) -> Floats:
        """Their standard errors."""

    @property
    def low(self) -> Floats:
        """Lower ends of the intervals."""

    @property
    def high(self) -> Floats:
        """Upper ends."""

    @property
    def projected(self) -> Floats:
        """The nearest probability table."""

    @property
    def confidence(self) -> float:
        """Of each interval (probability)."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to the table, a sentence each."""

    @property
    def released_counts(self) -> NDArray[np.int64] | None:
        """Noisy rows in each cell, of one release; None if the estimate is of several."""

    @property
    def population(self) -> int:
        """Respondents n."""

    @property
    def rows(self) -> tuple[Floats, ...]:
        """Estimates, standard errors and both ends of the intervals in rows, shape (K,) each."""

    @property
    def sample(self) -> int:
        """Noisy rows m."""

    @property
    def study_digest(self) -> str:
        """SHA-256 of the study file, hexadecimal, or empty."""

    def marginal(self, names: list[str]) -> Self:
        """Return the estimate of some of the attributes."""


class Unit(Enum):
    """What the numbers of an analysis are."""

    SHARE = "share"
    ROWS = "rows"
    NUMBER = "number"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quantities:
    """Quantities with intervals, as they are drawn; see analysis.result.Analysis, whose fields these are."""

    title: str
    labels: Mapping[str, tuple[str, ...]]
    unit: Unit
    estimate: Floats
    low: Floats
    high: Floats
    projected: Floats | None = None
    neutral: float | None = None
    confidence: float
    is_measured: bool
    remarks: tuple[str, ...] = ()
    along: str = ""
    begins: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The label of each row."""
        return tuple(" · ".join(texts) for texts in zip(*self.labels.values(), strict=True))

    @property
    def leaves_range(self) -> bool:
        """Whether the projected shares differ: a raw share leaves 0 to 1, or a survival curve rises."""
        return self.projected is not None and not np.array_equal(self.estimate, self.projected, equal_nan=True)
