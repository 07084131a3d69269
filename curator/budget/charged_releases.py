"""The tables that the facts of a charge describe, with the noise of either side."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.core.numbers.rounding import exp_above
from veiltab.common.privacy.cards.all_releases import Slots
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.release.modes import Sampling
from veiltab.common.schemes import scheme_of


def releases_of(facts: Mapping[str, Any]) -> tuple[Slots, ...]:
    """Return the tables of a charge; each that runs a second time is any of the candidates.

    Raises:
        InvalidInputError: a kind of table that is not known here.
    """
    first = tuple(Slots(candidates=(_release_of(kind),), count=kind["count"]) for kind in facts["tables"])
    again = tuple(map(_release_of, facts["repeated"]))
    return (*first, Slots(candidates=again, count=facts["repeats"])) if again else first


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnTable(TwoSidedRelease):
    """A table of pure epsilon that this curator releases alone: to all others as one row's randomised response."""

    def seen_by(self, coalition: Coalition) -> ReleaseDescription | None:
        if coalition.roles[-1] in {"curator", "curators"} and coalition is not Coalition.ANALYST_AND_CURATORS:
            return None
        one_row = scheme_of("wor", population=1, sample=1)
        return ReleaseDescription(scheme=one_row, cells=2, gamma=self.noise.server.gamma)


def _release_of(facts: Mapping[str, Any]) -> TwoSidedRelease:
    if facts["mechanism"] == "geometric":
        # Rounded down, so that ln gamma is no less than epsilon.
        replacement = int(2 * UNIT / (exp_above(Decimal(facts["epsilon"])) + 1))
        noise = TwoSidedNoise(cells=2, curator_replacement=0, server_replacement=replacement)
        everyone = scheme_of("wor", population=facts["population"], sample=facts["population"])
        return _OwnTable(scheme=everyone, noise=noise)
    described = description_of(facts, "ledger")
    noise = TwoSidedNoise(
        cells=described.cells,
        curator_replacement=facts["curator_replacement"],
        server_replacement=facts["server_replacement"],
    )
    sampling = Sampling(facts["sampling"])
    return TwoSidedRelease(scheme=described.scheme, noise=noise, is_sampled_by_server=sampling.is_by_server)
