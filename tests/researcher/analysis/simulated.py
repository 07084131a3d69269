"""Many releases of a known table, drawn from their sufficient statistics."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tests.worlds.domains import domain_of
from veiltab.common.core.domain import Domain
from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign

ADULT = np.array(
    [
        [6222, 2233, 802, 245, 5448, 185, 5218, 91],
        [3897, 4626, 600, 615, 4598, 510, 5770, 319],
        [438, 1715, 48, 198, 385, 270, 588, 201],
    ]
)
"""Education (low, mid, high) by marital status, sex and salary: 45,222 respondents."""

EDUCATION_BY_SALARY = ADULT.reshape(3, 2, 2, 2).sum(axis=(1, 2))

ADULT_DOMAIN = domain_of(
    education=("low", "mid", "high"), marital=("married", "single"), sex="mf", salary=("less", "more")
)
DOMAIN = ADULT_DOMAIN.subset(["education", "salary"])

REGIMES = {
    "a sample of 3,300 at epsilon 1": (3300, 0.55),
    "a sample of 2,000 with hardly any noise": (2000, 0.999),
    "everyone with much noise": (45_222, 0.1),
}
"""Name -> rows m that are sampled and the probability that one is kept."""


def design_for(table: NDArray[np.int64], sample: int, retention: float) -> ReleaseDesign:
    mechanism = GammaDiagonal(cells=table.size, replacement=UNIT - int(Fraction(retention) * UNIT))
    return ReleaseDesign(population=int(table.sum()), sample=sample, mechanism=mechanism)


def simulated_counts(
    table: NDArray[np.int64], design: ReleaseDesign, runs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the noisy rows in each cell, shape (runs, K)."""
    cells = table.reshape(-1)
    if design.sample == design.population:
        sampled = np.tile(cells, (runs, 1))
    else:
        sampled = rng.multivariate_hypergeometric(cells, design.sample, size=runs, method="marginals")
    kept = rng.binomial(sampled, float(design.mechanism.retention))
    noise = rng.multinomial(design.sample - kept.sum(axis=1), np.full(cells.size, 1 / cells.size))
    counts: NDArray[np.int64] = kept + noise
    return counts


def releases_of(  # noqa: PLR0913, PLR0917 - a table and a design
    table: NDArray[np.int64], domain: Domain, sample: int, retention: float, runs: int, rng: np.random.Generator
) -> list[Estimate]:
    """Return the estimates of releases of one design."""
    design = design_for(table, sample, retention)
    return [Estimate(domain=domain, design=design, counts=row) for row in simulated_counts(table, design, runs, rng)]


def simulated(table: NDArray[np.int64], domain: Domain, regime: str, *, runs: int, seed: int) -> list[Estimate]:
    """Return the estimates of many releases in one of REGIMES."""
    return releases_of(table, domain, *REGIMES[regime], runs, np.random.default_rng(seed))


def exact(table: NDArray[np.int64], domain: Domain) -> Estimate:
    """Return the estimate of a release of everyone with hardly any noise: the table itself, but for 2^-64."""
    design = ReleaseDesign(
        population=int(table.sum()), sample=int(table.sum()), mechanism=GammaDiagonal(cells=table.size, replacement=1)
    )
    return Estimate(domain=domain, design=design, counts=table.reshape(-1))
