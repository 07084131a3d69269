"""A table whose values come from a model and not from a measurement: no error of theirs is known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelledTable:
    """The fractions that a model gives to the cells of a table.

    Analyses take it as they take an estimate, and mark what comes out; they state no interval, because how far a
    model is from the truth is not derived from the noise.

    Args:
        domain: the attributes; cells in C order.
        raw: fractions, shape (K,), summing to 1 (probabilities).
        population: respondents n.
        confidence: as of an estimate; no interval uses it.
        study_digest: SHA-256 of the study file, or empty.
        remarks: what was done to the tables that the model is of, a sentence each.

    Raises:
        InvalidInputError: not one finite fraction a cell, or fractions that do not sum to 1.
    """

    domain: Domain
    raw: NDArray[np.float64]
    population: int
    confidence: float = CONFIDENCE
    study_digest: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.raw.shape != (self.domain.cells,) or not np.isfinite(self.raw).all():
            raise InvalidInputError(f"there are not {self.domain.cells} finite fractions, one a cell")
        if abs(float(self.raw.sum()) - 1.0) > 1e-6:
            raise InvalidInputError("the fractions of a table sum to 1")

    @property
    def has_few_rows(self) -> bool:
        """Whether intervals are doubtful for want of rows: there are no intervals."""
        return False

    def marginal(self, names: Sequence[str]) -> "ModelledTable":
        """Return the table of a subset of the attributes, in the order of `names`.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.
        """
        domain = self.domain.subset(names)
        return ModelledTable(
            domain=domain,
            raw=self.domain.summed(self.raw, names),
            population=self.population,
            confidence=self.confidence,
            study_digest=self.study_digest,
            remarks=self.remarks,
        )
