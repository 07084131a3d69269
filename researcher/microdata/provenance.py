"""What a file of microdata says about itself: where its rows come from, and what they keep."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import asdict, dataclass

WARNING = "Rows are drawn from a model and are not people."
"""What every file and every page of microdata says first."""

DRAWN = (
    "between the points beside the point that the model drew, so that means, variances and covariances are those of the"
    " release"
)
"""How numbers became those of a file."""

ABSENT_ROWS = (
    'Rows are those of the hub: "absent", or an empty number, is what stands there of a person whom the curator of a'
    " column lacks. The model does not know that whoever is absent in one column is so in all of the same curator."
)
"""What a reader must know of a file with people who are absent from a table."""

RELATION = "substitution of one respondent's whole row"
"""Neighbouring tables, as every epsilon of a release understands them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """All that is the same in every copy of a file.

    Args:
        study_digest: SHA-256 of the study file, hexadecimal.
        release_digest: SHA-256 of its description, hexadecimal.
        epsilon: of the whole release, as text.
        delta: as text; empty if epsilon is pure.
        respondents: n.
        tables: attributes of every measured table, as often as it was measured.
        graph: pairs of attributes that the model joins directly.
        seed: what the rows are drawn from.
        replicates: M, how often the release was played again; 0 for a file without intervals.
        copies: files that stand for the replicates; 0 for one file with weights.
        unjoined: pairs of attributes that no played truth joins directly, for want of room.
        coarse: what else is lost, a sentence each: of numbers whose steps are long, and of people who are absent.
        links: which wrong links were undone before the model was fitted, as sentences; empty if none were.
    """

    study_digest: str
    release: str
    release_digest: str
    epsilon: str
    delta: str
    respondents: int
    tables: tuple[tuple[str, ...], ...]
    model: str
    graph: tuple[tuple[str, str], ...]
    seed: str
    rows: int
    replicates: int
    copies: int
    unjoined: int
    coarse: tuple[str, ...] = ()
    links: str = ""

    @property
    def preserved(self) -> str:
        """What the rows keep, as a sentence."""
        measured = len(set(self.tables))
        return (
            f"The {measured} tables that were measured, up to noise, the fit of the model and the drawing of the rows."
        )

    @property
    def lost(self) -> str:
        """What the rows do not keep, as a sentence."""
        return (
            "Dependences among more attributes than a measured table has, beyond what the graph of the model implies;"
            " combinations so rare that the noise hides them; any single person."
        )

    @property
    def remark(self) -> str:
        """What is to be said of intervals from these rows, as a sentence; empty if nothing is."""
        if not (self.replicates and self.unjoined):
            return ""
        return (
            f"{self.unjoined} pairs of attributes have no room in the graph of the model: intervals of what depends on"
            " them may be too short."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person must know of the rows: that they are not people, and what they lose."""
        return (WARNING, *filter(None, (self.remark, self.links, *self.coarse)))

    def facts(self, domain: Domain, copy: int | None = None) -> dict[str, Any]:
        """Return everything about a file, ready for JSON.

        Args:
            domain: the columns of the file.
            copy: its number, from 1, where there are copies.
        """
        facts = {"warning": WARNING, "veiltab": version("veiltab"), "relation": RELATION} | asdict(self)
        if not self.links:
            del facts["links"]
        facts |= {"preserved": self.preserved, "not_preserved": self.lost}
        numbers = [attribute.name for attribute in domain.attributes if attribute.number]
        facts |= {"numbers": {"columns": numbers, "drawn": DRAWN}} if numbers else {}
        if copy is not None:
            facts["copy"] = copy
        elif self.replicates:
            facts["replicates"] = replicate_design(weight_columns(domain, self.replicates)) | {"remark": self.remark}
        return facts | {"codebook": domain.codebook}


def weight_columns(domain: Domain, replicates: int) -> list[str]:
    """Return the names of the weight and of each replicate weight; underscores keep them apart from attributes."""
    first, prefix = "weight", "replicate_"
    while first in domain.names:
        first += "_"
    while any(name.startswith(prefix) for name in domain.names):
        prefix += "_"
    return [first, *(f"{prefix}{number}" for number in range(1, replicates + 1))]


def replicate_design(columns: Sequence[str]) -> dict[str, Any]:
    """Return how statistical packages are to read the weights, ready for JSON.

    Args:
        columns: the weight, then every replicate weight.
    """
    weight, *others = columns
    count, prefix = len(others), others[0].removesuffix("1")
    return {
        "weight": weight,
        "columns": others,
        "count": count,
        "scale": 1 / count,
        "centre": weight,
        "degrees": count,
        "rule": "mse",
        "not_counted": "dependences among more attributes than a measured table has; the drawing of the rows (small if"
        " they are ten times the respondents)",
        "R": f'd <- survey::svrepdesign(data = x, weights = ~{weight}, repweights = "^{prefix}[0-9]+$", type = "other",'
        f" scale = 1/{count}, rscales = rep(1, {count}), combined.weights = TRUE, mse = TRUE, degf = {count})",
        "Stata": f"svyset [pw={weight}], brrweight({prefix}*) vce(brr) mse dof({count})",
        "SAS": f"proc surveymeans varmethod=brr; weight {weight}; repweights {prefix}1-{prefix}{count} / df={count};",
    }
