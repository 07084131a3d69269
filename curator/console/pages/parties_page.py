"""The parties of the study: where they are, what is known here of their ledgers, how long their certificates last."""

from functools import partial

from starlette.responses import Response

from veiltab.common.command.parties import serving_parties
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.pages.certificates import EndpointCertificate, endpoint_certificates
from veiltab.curator.console.state_reader import StateReader

SOON_DAYS = 30


def parties_page(books: StateReader, identity: Identity | None) -> Page:
    """Return the page of the parties; without an identity nobody is asked for a certificate."""
    return Page(path="/parties", label="Parties", show=partial(_show, books, identity))


def _show(books: StateReader, identity: Identity | None, visit: Visit) -> Response:
    own_state = books.own_state
    own = Party(study=own_state.study.id, role=Role.CURATOR, name=own_state.name)
    parties = serving_parties(own_state.study)
    is_asked = identity is not None and visit.query.text("ask") == "yes"
    ends: dict[Party, EndpointCertificate] = {}
    if identity is not None:
        if is_asked and identity.folder is not None:
            ends = endpoint_certificates(identity, {party: at for party, at in parties.items() if party != own})
        ends[own] = EndpointCertificate(ends=identity.certificate_facts.not_after)
    others = [party.name for party in parties if party.role is Role.CURATOR and party != own]
    charges = {name: own_state.store.alignments.witness(name)[0] for name in others}
    lines = [
        {"party": one, "endpoint": at, "is_own": one == own, "charges": charges.get(one.name), "cert": ends.get(one)}
        for one, at in parties.items()
    ]
    return visit.render(
        "parties.html",
        lines=lines,
        analysts=own_state.study.analysts,
        can_ask=identity is not None,
        is_asked=is_asked,
        soon=SOON_DAYS,
        charges=own_state.ledger.chain.head[0],
        aborted=own_state.store.coins.aborted(),
        claims=own_state.store.coins.aborted(claims=True),
    )
