"""The releases that the facts of a charge describe, with the noise of either side."""

from collections.abc import Mapping

from veiltab.common.core.mechanism import GammaDiagonal, TwoSidedNoise
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.cards.all_releases import Slots
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import description_of
from veiltab.common.release.modes import Sampling


def releases_of(facts: Mapping[str, object]) -> tuple[TwoSidedRelease | Slots, ...]:
    """Return the release of a charge, or its tables; each table that runs a second time is any of the candidates.

    Raises:
        InvalidInputError: the entry of an earlier version says too little.
    """
    if "tables" not in facts:
        return (_release_of(facts),)
    tables, repeated, repeats = (facts.get(name) for name in ("tables", "repeated", "repeats"))
    if not isinstance(tables, list) or not isinstance(repeated, list) or not isinstance(repeats, int):
        raise InvalidInputError("an entry says too little of its tables", where="ledger")
    first = tuple(Slots(candidates=(_release_of(kind),), count=kind["count"]) for kind in tables)
    return (*first, Slots(candidates=tuple(map(_release_of, repeated)), count=repeats)) if repeats else first


def _release_of(facts: Mapping[str, object]) -> TwoSidedRelease:
    """Return what an entry says of its release; before there was noise of curators, all of it was the server's."""
    described = description_of(facts, "ledger")
    curators, server = facts.get("curator_replacement", 0), facts.get("server_replacement")
    if not isinstance(server, int):
        server = GammaDiagonal.from_gamma(described.cells, described.gamma).replacement
    noise = TwoSidedNoise(cells=described.cells, curator_replacement=int(str(curators)), server_replacement=server)
    sampling = Sampling(facts.get("sampling", Sampling.SERVER))
    return TwoSidedRelease(scheme=described.scheme, noise=noise, is_sampled_by_server=sampling.is_by_server)
