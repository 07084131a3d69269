"""What each coalition faces of all releases that this curator's ledger charged."""

import json
from decimal import Decimal

from veiltab.common.core.mechanism import GammaDiagonal, TwoSidedNoise
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.card import Bound, advised_delta
from veiltab.common.privacy.coalitions import TwoSidedRelease
from veiltab.common.privacy.description import ReleaseDescription, description_of
from veiltab.common.privacy.price import Price, price
from veiltab.common.privacy.together import bounds_together
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
        releases = [_release_of(entry) for entry in ledger.entries]
    except InvalidInputError:
        return ()
    if not releases:
        return ()
    delta = ledger.delta or advised_delta(max(release.scheme.population for release in releases))
    return bounds_together(releases, delta, pricing=lambda view, slack: _kept_price(store, view, slack))


def _release_of(entry: Entry) -> TwoSidedRelease:
    """Return what an entry says of its release; before there was noise of curators, all of it was the server's."""
    facts = entry.facts
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
