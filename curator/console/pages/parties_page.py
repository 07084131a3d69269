"""The parties of the study: where they are, what is known here of their ledgers, how long their certificates last."""

from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from veiltab.common.command.parties import serving_parties
from veiltab.common.rpc.parties.identity import Identity, Party, Role
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.console.books import Books
from veiltab.curator.console.pages.certificates import Shown, shown_by

SOON_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyLine:
    """A party as the page shows it.

    Args:
        endpoint: host:port of its service.
        is_own: whether it is this curator.
        charges: entries of its ledger that this curator has seen; None unless it is another curator.
        shown: its certificate, if it was asked for.
    """

    party: Party
    endpoint: str
    is_own: bool
    charges: int | None
    shown: Shown | None


def parties_page(books: Books, identity: Identity | None) -> Page:
    """Return the page of the parties; without an identity nobody is asked for a certificate."""
    return Page(path="/parties", label="Parties", show=partial(_show, books, identity))


def _show(books: Books, identity: Identity | None, visit: Visit) -> Response:
    standing = books.standing
    own = Party(study=standing.study.id, role=Role.CURATOR, name=standing.name)
    parties = serving_parties(standing.study)
    is_asked = identity is not None and visit.query.text("ask") == "yes"
    shown: dict[Party, Shown] = {}
    if identity is not None:
        if is_asked and identity.folder is not None:
            shown = shown_by(identity, identity.folder, {party: at for party, at in parties.items() if party != own})
        shown[own] = Shown(ends=identity.certificate_facts.not_after)
    lines = [
        PartyLine(
            party=party,
            endpoint=endpoint,
            is_own=party == own,
            charges=standing.store.alignments.witness(party.name)[0]
            if party.role is Role.CURATOR and party != own
            else None,
            shown=shown.get(party),
        )
        for party, endpoint in parties.items()
    ]
    return visit.render(
        "parties.html",
        lines=lines,
        analysts=standing.study.analysts,
        can_ask=identity is not None,
        is_asked=is_asked,
        soon=SOON_DAYS,
        charges=standing.ledger.head[0],
        aborted=standing.store.coins.aborted(),
    )
