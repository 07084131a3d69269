"""`veiltab curator ledger` and `witness`: what was charged, and who remembers it."""

import click

from veiltab.common.command.cli import emit
from veiltab.common.privacy.cards.card import N_IS_EXACT
from veiltab.curator.budget.coalitions import bounds_of_charges
from veiltab.curator.budget.ledger_text import (
    entry_data,
    entry_text,
    purpose_of,
    spent_text,
    statements_text,
    witness_text,
)
from veiltab.curator.officer.opened import OpenedState
from veiltab.curator.officer.options import named_person, person_option, with_standing
from veiltab.curator.officer.persons import person_name


@click.command(epilog="Example: veiltab curator ledger study.toml --name alice --state state")
@with_standing
def ledger(standing: OpenedState) -> None:
    """Show every charge, check the ledger's chain, and say what each coalition faces of all of them together."""
    book = standing.ledger
    charges = [(entry, purpose_of(entry, standing.store)) for entry in book.entries]
    lines = [entry_text(entry, purpose) for entry, purpose in charges]
    lines += [f"{spent_text(book)} The chain is whole.", statements_text(book)]
    entries = [entry_data(entry, purpose) for entry, purpose in charges]
    bounds = bounds_of_charges(book)
    lines.extend(f"  {bound.name}: {bound.faces}" for bound in bounds)
    lines += [f"  {N_IS_EXACT}"] if bounds else []
    together = [bound.as_dict() for bound in bounds]
    emit({**budget_data(standing), "entries": entries, "card": together}, "\n".join(lines))


def budget_data(standing: OpenedState) -> dict[str, object]:
    """Return the budget, and what is spent and left of it, for JSON."""
    book, path = standing.ledger, standing.policy_path
    return {
        "budget": book.budget,
        "delta": book.delta,
        "policy": None if path is None else str(path),
        "spent": book.spent,
        "share": book.share,
        **book.spent_price.statements(),
        **book.left.as_dict(),
    }


@click.command(epilog="Example: veiltab curator witness study.toml --name alice --state state --clear bob")
@with_standing
@click.option("--clear", "cleared", metavar="PARTY", help="Go on although this party has seen what the ledger lacks.")
@person_option
def witness(standing: OpenedState, cleared: str | None, person: str | None) -> None:
    """Show which ledgers this curator remembers, and who has seen entries that its own ledger lacks.

    Either the ledger was rolled back, or somebody showed an invented one under this curator's name. Clear a party only
    if it was invented: what a restored backup forgot is spent.
    """
    doubts = standing.ledger.doubts
    if cleared is not None:
        doubts.set_aside(cleared, person=person_name(named_person(person)))
    own, others = standing.ledger.head[0], [each.name for each in standing.study.curators if each.name != standing.name]
    remembered = {name: standing.store.alignments.witness(name)[0] for name in others}
    plain = {"entries": own, "remembered": remembered, "lacking": [one.as_dict() for one in doubts.all()]}
    emit(plain, witness_text(own, remembered, doubts.all()))
