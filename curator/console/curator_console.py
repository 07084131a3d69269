"""The console of one curator, put together."""

from collections.abc import Callable
from pathlib import Path

from veiltab.common.privacy.cards.guarantee_text import odds_text
from veiltab.common.rpc.parties.identity import Identity
from veiltab.common.web.pages import Console, Journal
from veiltab.curator.budget.entries import percent
from veiltab.curator.budget.ledger_text import adding_up
from veiltab.curator.check.inspection import Inspection
from veiltab.curator.console.pages.audit_page import audit_page
from veiltab.curator.console.pages.budget_page import budget_page
from veiltab.curator.console.pages.evidence_page import evidence_page
from veiltab.curator.console.pages.ledger_page import ledger_page
from veiltab.curator.console.pages.links_page import links_page
from veiltab.curator.console.pages.parties_page import parties_page
from veiltab.curator.console.pages.policy_page import policy_page
from veiltab.curator.console.pages.release_page import release_page, releases_page
from veiltab.curator.console.pages.table_page import table_page
from veiltab.curator.console.pages.waiting_page import waiting_page
from veiltab.curator.console.state_reader import StateReader
from veiltab.curator.console.words import badge_of_verdict, guarantee, nats, tables_text

_FILTERS: dict[str, Callable[..., object]] = {
    "adding_up": adding_up,
    "badge_of_verdict": badge_of_verdict,
    "guarantee": guarantee,
    "nats": nats,
    "odds": odds_text,
    "percent": percent,
    "tables_text": tables_text,
}


def curator_console(
    books: StateReader, journal: Journal, *, identity: Identity | None, inspect: Callable[[], Inspection] | None
) -> Console:
    """Return a curator's console.

    Args:
        identity: asks the other parties for their certificates and the own service how far it is, and signs evidence;
            None does none of it.
        inspect: checks its table; None leaves that page out.
    """
    own_state = books.own_state
    return Console(
        title=f"Curator {own_state.name}",
        study=own_state.study.title,
        folder=Path(__file__).parent,
        pages=(
            waiting_page(books),
            releases_page(books),
            release_page(books),
            budget_page(books),
            ledger_page(books),
            policy_page(books),
            parties_page(books, identity),
            *(() if inspect is None else (table_page(inspect),)),
            *(() if own_state.study.identity is None else (links_page(books, identity),)),
            audit_page(books),
            *(() if identity is None else (evidence_page(books, identity),)),
        ),
        journal=journal,
        filters=_FILTERS,
    )
