"""The parties of the study: where they are, what is known here of their ledgers, how long their certificates last."""

from functools import partial

from starlette.responses import Response

from veiltab.common.command.parties import serving_parties
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.pages.certificates import Shown, shown_by
from veiltab.curator.console.state_reader import StateReader

SOON_DAYS = 30


def parties_page(books: StateReader, identity: Identity | None) -> Page:
    """Return the page of the parties; without an identity nobody is asked for a certificate."""
    return Page(path="/parties", label="Parties", show=partial(_show, books, identity))


def _show(books: StateReader, identity: Identity | None, visit: Visit) -> Response:
    standing = books.standing
    own = Party(study=standing.study.id, role=Role.CURATOR, name=standing.name)
    parties = serving_parties(standing.study)
    is_asked = identity is not None and visit.query.text("ask") == "yes"
    shown: dict[Party, Shown] = {}
    if identity is not None:
        if is_asked and identity.folder is not None:
            shown = shown_by(identity, {party: at for party, at in parties.items() if party != own})
        shown[own] = Shown(ends=identity.certificate_facts.not_after)
    others = [party.name for party in parties if party.role is Role.CURATOR and party != own]
    charges = {name: standing.store.alignments.witness(name)[0] for name in others}
    lines = [
        {"party": one, "endpoint": at, "is_own": one == own, "charges": charges.get(one.name), "shown": shown.get(one)}
        for one, at in parties.items()
    ]
    return visit.render(
        "parties.html",
        lines=lines,
        analysts=standing.study.analysts,
        can_ask=identity is not None,
        is_asked=is_asked,
        soon=SOON_DAYS,
        charges=standing.ledger.chain.head[0],
        aborted=standing.store.coins.aborted(),
        claims=standing.store.coins.aborted(claims=True),
    )
