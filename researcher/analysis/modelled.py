"""A table whose values come from a model and not from a measurement: no error of theirs is known."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.core.numbers.confidence import CONFIDENCE
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study
from veiltab.researcher.estimates.people_present import cells_among_present, nobody_present, present_sentence, spokes_of


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
        present: share of the n rows that the fractions are of: the people whom every curator of the table has.
        remarks: what was done to the tables that the model is of, a sentence each.

    Raises:
        InvalidInputError: not one finite fraction a cell, or fractions that do not sum to 1.
    """

    domain: Domain
    raw: NDArray[np.float64]
    population: int
    present: float = 1.0
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

    @property
    def people(self) -> float:
        """How many people the shares are of."""
        return self.population * self.present

    def marginal(self, names: Sequence[str]) -> "ModelledTable":
        """Return the table of a subset of the attributes, in the order of `names`.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none.
        """
        domain = self.domain.subset(names)
        return replace(self, domain=domain, raw=self.domain.summed(self.raw, names))

    def among_present(self, study: Study) -> "ModelledTable":
        """Return the table of the people whom every curator of an attribute has; itself if nobody may be absent.

        Raises:
            InvalidInputError: the model has none.
        """
        domain, spokes = self.domain.without_absent, spokes_of(self.domain, study)
        if not spokes:
            return self
        cells = cells_among_present(self.domain, domain.names)
        shares = np.bincount(cells, weights=self.raw, minlength=domain.cells + 1)[:-1]
        if not (present := float(shares.sum())) > 0:
            raise nobody_present(study.hub, spokes)
        remark = present_sentence(study.hub, spokes, self.population, present * self.population)
        return replace(self, domain=domain, raw=shares / present, present=present, remarks=(*self.remarks, remark))
