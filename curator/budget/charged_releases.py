"""The tables that the facts of a charge describe, with the noise of either side."""

from collections.abc import Mapping
from typing import Any

from veiltab.common.core.mechanism import TwoSidedNoise
from veiltab.common.privacy.cards.all_releases import Slots
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import description_of
from veiltab.common.release.modes import Sampling


def releases_of(charge: Mapping[str, Any]) -> tuple[Slots, ...]:
    """Return the tables of a charge; each that runs a second time is any of the candidates.

    Raises:
        InvalidInputError: a kind of table that is not known here.
    """
    first = tuple(Slots(candidates=(_release_of(kind),), count=kind["count"]) for kind in charge["tables"])
    again = tuple(map(_release_of, charge["repeated"]))
    return (*first, Slots(candidates=again, count=charge["repeats"])) if again else first


def _release_of(fields: Mapping[str, Any]) -> TwoSidedRelease:
    described = description_of(fields, "ledger")
    noise = TwoSidedNoise(
        cells=described.cells,
        curator_replacement=fields["curator_replacement"],
        server_replacement=fields["server_replacement"],
    )
    sampling = Sampling(fields["sampling"])
    return TwoSidedRelease(scheme=described.scheme, noise=noise, is_sampled_by_server=sampling.is_by_server)
