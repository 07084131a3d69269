"""Releases of linked people of whom a known share of links is wrong, drawn person by person or cell by cell."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign, TableEstimate
from veiltab.researcher.linkage_errors.corrected import corrected
from veiltab.researcher.linkage_errors.linkage_error import LinkageErrors, LinkError

Floats = NDArray[np.float64]

AGE = Attribute(name="age", categories=("1", "2", "3", "4"))
WAGE = Attribute(name="wage", categories=("0", "1", "2"))
DOMAIN = Domain(attributes=(AGE, WAGE))
OWNERS = {"age": "registry", "wage": "bank"}

SHARES = np.array([[0.16, 0.06, 0.03], [0.12, 0.08, 0.05], [0.07, 0.09, 0.09], [0.03, 0.07, 0.15]])
"""The true table: the wage grows with the age."""


def people(n: int, shares: Floats = SHARES) -> NDArray[np.int64]:
    """Return how many people are in each cell of a table."""
    counts = np.rint(n * shares).astype(np.int64)
    counts.reshape(-1)[0] += n - counts.sum()
    return counts


def relinked(
    counts: NDArray[np.int64], share: float | Floats, rng: np.random.Generator, *, kin: float = 0.0
) -> NDArray[np.int64]:
    """Return the table as it is linked: each person gets another wage with the probability `share`.

    Args:
        counts: of the true people, shape (ages, wages).
        share: of wrong links; of each age, shape (ages, 1).
        rng: draws.
        kin: share of the wrong ones whose wage is that of somebody of the same age.
    """
    wrong = rng.binomial(counts, share)
    alike = rng.binomial(wrong, kin).sum(axis=1)
    found = counts - wrong
    wages, by_age = counts.sum(axis=0) / counts.sum(), counts / counts.sum(axis=1, keepdims=True)
    for age, (row, some) in enumerate(zip(wrong.sum(axis=1), alike, strict=True)):
        found[age] += rng.multinomial(row - some, wages) + rng.multinomial(some, by_age[age])
    return found


def released(counts: NDArray[np.int64], gamma: int, rng: np.random.Generator, domain: Domain = DOMAIN) -> Estimate:
    """Return the estimate of a release of a table, without a sample."""
    n, cells = int(counts.sum()), counts.size
    design = ReleaseDesign(population=n, sample=n, mechanism=GammaDiagonal.from_gamma(cells, Fraction(gamma)))
    kept = rng.binomial(counts.reshape(-1), float(design.mechanism.retention))
    noisy = kept + rng.multinomial(n - kept.sum(), np.full(cells, 1 / cells))
    return Estimate(domain=domain, design=design, counts=noisy)


def undone(estimate: TableEstimate, share: float, sd: float = 0.0, least: float | None = None) -> TableEstimate:
    """Return an estimate whose wrong links are undone."""
    errors = LinkageErrors(of=LinkError(share=share, sd=sd, least=least))
    return corrected(estimate, errors, OWNERS)
