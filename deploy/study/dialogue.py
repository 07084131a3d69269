"""Asks a curator, on a terminal, about each proposal for its part of a study."""

import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import click

from veiltab.common.command.cli import printable
from veiltab.common.errors import InvalidInputError
from veiltab.curator.check.drafted_table import TableProposal
from veiltab.curator.check.proposal import AttributeProposal, Omission


def check_person_is_there() -> None:
    """Refuse to ask where nobody can answer, with InvalidInputError."""
    if not sys.stdin.isatty():
        raise InvalidInputError(
            "nobody can be asked: the standard input is not a terminal",
            remedy="Add --yes to take every proposal, or --json to see them.",
        )


Propose = Callable[[Mapping[str, Collection[str]]], TableProposal]
"""Reads the table again, with more texts that stand for missing values, by column."""


def confirm_table(proposal: TableProposal, again: Propose, *, takes_all: bool) -> TableProposal:
    """Show what is proposed and why; return what the person at the terminal takes.

    Args:
        again: proposes anew where a person names missing values.
        takes_all: whether to show everything, and to ask nothing.

    Raises:
        InvalidInputError: the person does not take the id columns.
    """
    _show(f"{proposal.rows:,} rows, {proposal.respondents:,} of them stay. Table: {proposal.description}.")
    for omission in proposal.omissions:
        _show(f"{omission.column} stays out: {omission.reason}" if omission.column else omission.reason)
    _show(f"\n{proposal.ids.as_text()}")
    if not takes_all and not click.confirm("Do these name the respondents?", default=True):
        raise InvalidInputError("the id columns are not confirmed", remedy="Name the id columns with --id.")
    answers = [_confirm_attribute(attribute, again, takes_all=takes_all) for attribute in proposal.attributes]
    attributes = tuple(one for one in answers if isinstance(one, AttributeProposal))
    refused = (one for one in answers if isinstance(one, Omission))
    return replace(proposal, attributes=attributes, omissions=(*proposal.omissions, *refused))


def _confirm_attribute(proposal: AttributeProposal, again: Propose, *, takes_all: bool) -> AttributeProposal | Omission:
    """Return an attribute as the person takes it, or that it stays out.

    What comes with a warning stays out unless the person says otherwise.
    """
    _show(f"\n{proposal.as_text()}")
    if takes_all:
        return proposal
    missing = set[str]()
    while True:
        edges = f", edges such as {proposal.edges_example}" if proposal.edges_example else ""
        edges += ", grid 0 20 40 80 for means" if proposal.numbers else ""
        question = f"Take it (y, n{edges}, or missing and a text that means a missing value)"
        answer = click.prompt(question, default="n" if proposal.warnings else "y").strip()
        if answer.lower() in {"y", "yes"}:
            return proposal
        if answer.lower() in {"n", "no"}:
            return Omission(column=proposal.rule.column, reason="nobody took it")
        try:
            first, *texts = _words(answer)
            if first == "grid":
                proposal = proposal.with_grid(texts)
                _show(proposal.as_text())
                continue
            if first != "missing":
                return proposal.with_edges([first, *texts])
            missing |= set(texts)
            proposal = _proposed(again({proposal.rule.column: missing}), proposal.rule.column)
            _show(proposal.as_text())
        except InvalidInputError as error:
            _show(f"  {error}")


def _words(answer: str) -> list[str]:
    """Return the words of an answer; one in quotes may have spaces."""
    try:
        return shlex.split(answer) or [""]
    except ValueError:
        raise InvalidInputError("a quote is open", remedy="Close it.") from None


def _proposed(table: TableProposal, column: str) -> AttributeProposal:
    """Return what is proposed for a column; InvalidInputError says why nothing is."""
    for attribute in table.attributes:
        if attribute.rule.column == column:
            return attribute
    (reason,) = (omission.reason for omission in table.omissions if omission.column == column)
    raise InvalidInputError(reason, where=column)


def _show(text: str) -> None:
    click.echo(printable(text))
