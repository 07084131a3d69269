"""The sizes of the paper's experiments, and the schemes under each, in the order of its tables."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import SCHEMES, Relation, Scheme, scheme_of

LABELS: Mapping[str, str] = {
    "poisson": "Poisson",
    "wor": "WOR",
    "wr": "WR",
    "must.wo": "MUST.WO",
    "must.ow": "MUST.OW",
    "must.ww": "MUST.WW",
}
"""Scheme -> its name in the paper."""

SHORT = tuple(label.removeprefix("MUST.") for label in LABELS.values())
"""Names of the schemes on an axis."""

PRINTED = ("poisson", "wor", "wr", "must.ow", "must.ww")
"""Schemes whose results the paper prints; it left MUST.WO out, which has the law of WR."""

FIXED_SIZE = ("wor", "wr", "must.ow", "must.ww")
"""Those of them that draw a fixed number of rows, so that substitution is their relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabulated:
    """The law of a scheme, worked out once for profiles that are read at hundreds of epsilons.

    Args:
        eta: P(a respondent is drawn at least once).
        pool: as in Scheme.
        law: P(a respondent is drawn j times), j = 0, 1, ...
    """

    relation: ClassVar[Relation] = Relation.SUBSTITUTION

    eta: float
    pool: float
    law: tuple[float, ...]

    @classmethod
    def of(cls, scheme: Scheme) -> "Tabulated":
        """Tabulate a scheme whose relation is substitution."""
        if scheme.relation is not Relation.SUBSTITUTION:
            raise InvalidInputError("only schemes of a fixed size are tabulated", where=f"scheme {scheme.name}")
        return cls(eta=scheme.eta, pool=scheme.pool, law=tuple(scheme.multiplicities().tolist()))

    def multiplicities(self) -> NDArray[np.float64]:
        """Return the law."""
        return np.array(self.law)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Sizes of an experiment.

    Args:
        population: n, rows.
        sample: m, rows in the final subset.
        stage: b, rows after stage one.
    """

    population: int
    sample: int
    stage: int

    def scheme(self, name: str) -> Scheme:
        """Return a scheme of these sizes."""
        if name not in SCHEMES:
            raise InvalidInputError(f"scheme {name!r} is not known", where="design")
        stage = self.stage if name.startswith("must") else None
        return scheme_of(name, population=self.population, sample=self.sample, stage=stage)


AMPLIFICATION = Design(population=1000, sample=400, stage=500)
"""Section 4.1: Table 3 and Figure 4."""

BOOTSTRAP = Design(population=300, sample=30, stage=50)
"""Experiment 1; its stage varies, and 50 is that of Tables 9 and 10."""

REGRESSION = Design(population=1000, sample=100, stage=200)
"""Experiment 2."""

CLASSIFICATION = Design(population=30969, sample=300, stage=500)
"""Experiment 3: three quarters of Adult's 41,292 complete rows of people from the United States."""

COMPOSITION = Design(population=10_000, sample=200, stage=118)
"""Supplement S7."""
