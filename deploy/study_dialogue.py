"""Asks a curator, on a terminal, about each proposal for its part of a study."""

import sys
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import click

from veiltab.common.command.cli import printable
from veiltab.common.errors import InvalidInputError
from veiltab.curator.drafting.proposal import AttributeProposal
from veiltab.curator.drafting.table import TableProposal


def check_person_is_there() -> None:
    """Refuse to ask where nobody can answer, with InvalidInputError."""
    if not sys.stdin.isatty():
        raise InvalidInputError(
            "nobody can be asked: the standard input is no terminal",
            remedy="Add --yes to take every proposal, or --json to see them.",
        )


def confirm_table(proposal: TableProposal, *, takes_all: bool) -> TableProposal:
    """Show what is proposed and why; return what the person at the terminal takes.

    Args:
        proposal: of a table.
        takes_all: whether to show everything, and to ask nothing.

    Raises:
        InvalidInputError: the person does not take the id columns.
    """
    _show(f"{proposal.rows:,} rows, {proposal.respondents:,} of them complete. Table: {proposal.description}.")
    for omission in proposal.omissions:
        _show(f"{omission.column or 'a column without a name'} stays out: {omission.reason}")
    _show(f"\n{proposal.ids.as_text()}")
    if not takes_all and not click.confirm("Do these name the respondents?", default=True):
        raise InvalidInputError("the id columns are not confirmed", remedy="Name the id columns with --id.")
    confirmed = [_confirm_attribute(attribute, takes_all=takes_all) for attribute in proposal.attributes]
    return replace(proposal, attributes=tuple(attribute for attribute in confirmed if attribute is not None))


def _confirm_attribute(proposal: AttributeProposal, *, takes_all: bool) -> AttributeProposal | None:
    """Return an attribute as the person takes it; None if it stays out.

    What comes with a warning stays out unless the person says otherwise.
    """
    _show(f"\n{proposal.as_text()}")
    if takes_all:
        return proposal
    edges = "" if proposal.numbers is None else ", or other edges such as 0 18 65"
    default = "n" if proposal.warnings else "y"
    while True:
        answer = click.prompt(f"Take it (y, n{edges})", default=default).strip().lower()
        if answer in {"y", "yes"}:
            return proposal
        if answer in {"n", "no"}:
            return None
        try:
            return proposal.with_bins(_edges(answer, proposal))
        except InvalidInputError as error:
            _show(f"  {error}")


def _edges(answer: str, proposal: AttributeProposal) -> list[Decimal]:
    """Return the edges that a person typed."""
    try:
        edges = [Decimal(word) for word in answer.split()]
    except InvalidOperation:
        edges = []
    if proposal.numbers is None or not edges:
        raise InvalidInputError("this is no answer", remedy="Type y or n.")
    return edges


def _show(text: str) -> None:
    click.echo(printable(text))
