"""`veiltab curator policy`: try the rules that decide about requests."""

import click

from veiltab.common.command.cli import emit
from veiltab.common.core.numbers.rounding import parse_delta, parse_epsilon
from veiltab.common.errors import InvalidInputError
from veiltab.curator.officer.open_state import OpenedState, with_own_state
from veiltab.curator.officer.options import policy_option
from veiltab.curator.officer.policy import policy_of
from veiltab.curator.officer.policy_trial import hypothetical_request, try_policy


@click.group()
def policy() -> None:
    """Try the rules that decide about requests.

    Example: veiltab curator policy test study.toml --state state --researcher rosa --epsilon .5
    --attributes education
    """


@policy.command(
    epilog="Example: veiltab curator policy test study.toml --state state --policy policy.toml"
    " --researcher rosa --epsilon .5 --delta 1e-6 --attributes education"
)
@policy_option
@with_own_state
@click.option("--researcher", required=True, help="Who would ask.")
@click.option("--epsilon", required=True, help="Nats.")
@click.option("--delta", help="Of the guarantee; without it epsilon is pure.")
@click.option("--attributes", required=True, help="What would be asked for, separated by commas.")
@click.option("--population", type=click.IntRange(min=1), help="Rows of every table, by default of the alignment.")
def test(
    own_state: OpenedState, researcher: str, epsilon: str, delta: str | None, attributes: str, population: int | None
) -> None:
    """Say which rules would decide about a request, what it would be charged, and what would be left."""
    latest = own_state.store.alignments.latest_alignment()
    respondents = population or (latest[0] if latest else None)
    if respondents is None:
        raise InvalidInputError(
            "the tables are not aligned yet", where="--population", remedy="Say how many they share."
        )
    request = hypothetical_request(
        researcher, tuple(attributes.split(",")), parse_epsilon(epsilon), None if delta is None else parse_delta(delta)
    )
    rules = policy_of(own_state.study, own_state.name, own_state.policy_path)
    trial = try_policy(rules, request, own_state.study, own_state.name, own_state.ledger, respondents)
    emit(trial.as_dict(), trial.as_text())
