"""What a file of microdata says about itself: where its rows come from, and what they keep."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Any

from veiltab.common.core.domain import Domain

WARNING = "Rows are drawn from a model and are not people."
"""What every file and every page of microdata says first."""

RELATION = "substitution of one respondent's whole row"
"""Neighbouring tables, as every epsilon of a release understands them."""


class Parameters(StrEnum):
    """Where the parameters of the model of one copy come from."""

    FITTED = "fitted to the release"
    DRAWN = "fitted to noisy tables drawn anew from the model of the release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """All that is the same in every copy.

    Args:
        study_digest: SHA-256 of the study file, hexadecimal.
        release: id of the release.
        release_digest: SHA-256 of its description, hexadecimal.
        epsilon: of the whole release, as text.
        delta: as text; empty if epsilon is pure.
        respondents: n.
        tables: attributes of every measured table, as often as it was measured.
        model: kind of the model.
        graph: pairs of attributes that the model joins directly.
        seed: what the rows are drawn from.
        rows: of each copy.
        copies: how many there are.
        parameters: of the model of each copy.
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
    copies: int
    parameters: Parameters

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

    def facts(self, domain: Domain, copy: int) -> dict[str, Any]:
        """Return everything about one copy, ready for JSON.

        Args:
            domain: the columns of the file.
            copy: its number, from 1.
        """
        facts = {"warning": WARNING, "veiltab": version("veiltab"), "relation": RELATION} | asdict(self)
        facts |= {"copy": copy, "preserved": self.preserved, "not_preserved": self.lost}
        return facts | {"codebook": domain.codebook}
