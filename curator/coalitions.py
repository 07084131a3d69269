"""What each coalition faces of all releases that this curator's ledger charged."""

import json
from decimal import Decimal

from veiltab.common.core.mechanism import GammaDiagonal, TwoSidedNoise
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.card import Bound, advised_delta
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.price import Price, price
from veiltab.common.privacy.together import Slots, bounds_together
from veiltab.common.release.modes import Sampling
from veiltab.curator.ledger import Entry, Ledger
from veiltab.curator.store import CuratorStore


def bounds_of_charges(ledger: Ledger, store: CuratorStore) -> tuple[Bound, ...]:
    """Return one bound a coalition, at the delta of the budget or else the advised one.

    Args:
        ledger: of the curator.
        store: keeps the price of every view, as one takes about 50 ms.

    Returns:
        Upper bounds; none if nothing is charged, or if an entry of an earlier version says too little.
    """
    try:
        releases = [release for entry in ledger.entries for release in _releases_of(entry)]
    except InvalidInputError:
        return ()
    if not releases:
        return ()
    delta = ledger.delta or advised_delta(max(_population(release) for release in releases))
    return bounds_together(releases, delta, pricing=lambda view, slack: _kept_price(store, view, slack))


def _population(release: TwoSidedRelease | Slots) -> int:
    one = release.candidates[0] if isinstance(release, Slots) else release
    return one.scheme.population


def _releases_of(entry: Entry) -> tuple[TwoSidedRelease | Slots, ...]:
    """Return what an entry says of its release, or of its tables; those that run a second time are any of them."""
    if "tables" not in entry.facts:
        return (_release_of(entry.facts),)
    tables, repeated, repeats = (entry.facts[name] for name in ("tables", "repeated", "repeats"))
    if not isinstance(tables, list) or not isinstance(repeated, list) or not isinstance(repeats, int):
        raise InvalidInputError("an entry says too little of its tables", where="ledger")
    first = tuple(Slots(candidates=(_release_of(kind),), count=kind["count"]) for kind in tables)
    return (*first, Slots(candidates=tuple(map(_release_of, repeated)), count=repeats)) if repeats else first


def _release_of(facts: dict[str, object]) -> TwoSidedRelease:
    """Return what an entry says of its release; before there was noise of curators, all of it was the server's."""
    described = description_of(facts, "ledger")
    curators, server = facts.get("curator_replacement", 0), facts.get("server_replacement")
    if not isinstance(server, int):
        server = GammaDiagonal.from_gamma(described.cells, described.gamma).replacement
    noise = TwoSidedNoise(cells=described.cells, curator_replacement=int(str(curators)), server_replacement=server)
    sampling = Sampling(facts.get("sampling", Sampling.SERVER))
    return TwoSidedRelease(scheme=described.scheme, noise=noise, is_sampled_by_server=sampling.is_by_server)


def _kept_price(store: CuratorStore, view: ReleaseDescription, slack: Decimal) -> Price:
    key = json.dumps([view.as_dict(), str(slack)], sort_keys=True)
    mu = store.view_price(key)
    if mu is None:
        mu = price(view, slack).mu
        store.set_view_price(key, mu)
    return Price(mu=mu, slack=slack)
