"""`veiltab curator ledger`: what was charged."""

import click

from veiltab.common.command.cli import emit
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger_text import entry_data, entry_text, purpose_of, spent_text, statements_text
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import policy_option


@click.command(epilog="Example: veiltab curator ledger study.toml --state state")
@policy_option
@with_own_state
def ledger(own_state: OpenedState) -> None:
    """Show every charge, check the ledger's chain, and say what each coalition faces of all of them together."""
    book = own_state.ledger
    charges = [(entry, purpose_of(entry, own_state.store)) for entry in book.chain.entries]
    lines = [entry_text(entry, purpose) for entry, purpose in charges]
    lines += [f"{spent_text(book)} The chain is whole.", statements_text(book)]
    entries = [entry_data(entry, purpose) for entry, purpose in charges]
    bounds = bounds_of_charges(book)
    lines.extend(f"  {bound.name}: {bound.faces}" for bound in bounds)
    lines += [f"  {N_IS_EXACT}"] if bounds else []
    together = [bound.as_dict() for bound in bounds]
    emit({**budget_data(own_state), "entries": entries, "card": together}, "\n".join(lines))


def budget_data(own_state: OpenedState) -> dict[str, object]:
    """Return the budget, and what is spent and left of it, for JSON."""
    book, path = own_state.ledger, own_state.policy_path
    return {
        "budget": book.budget.epsilon,
        "delta": book.budget.delta,
        "policy": None if path is None else str(path),
        "spent": book.budget.spent,
        "share": book.budget.share,
        **book.budget.spent_price.statements(),
        **book.budget.rest.as_dict(),
    }
