"""`veiltab collect`: ask thousands of nodes for one randomised value each."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.command.cli import PATH, emit, finite, note
from veiltab.common.errors import ClosedRoundError, InvalidInputError
from veiltab.researcher.collection.guarantee import DELTA_OF_COINS
from veiltab.researcher.collection.plan_cli import plan
from veiltab.researcher.collection.results.results_cli import estimate
from veiltab.researcher.collection.round_options import CONNECTION, optional_round_option, round_option, with_rounds
from veiltab.researcher.collection.round_text import by_stratum_name, spec_dict, spec_text, status_dict, status_text
from veiltab.researcher.collection.simulation.simulate_cli import simulate

if TYPE_CHECKING:
    from veiltab.common.collection.round import RoundStatus
    from veiltab.researcher.collection.rounds_client import Rounds


@click.group()
def collect() -> None:
    """Ask thousands of nodes for one randomised value each, and estimate how many hold which value.

    Example: veiltab collect open study.toml --identity pki/researcher-rosa --epsilon 2 --rate 0.5
    --population 2000
    """


@collect.command(
    "open",
    epilog=f"Example: veiltab collect open {CONNECTION} --epsilon 2 --rate north=0.2,south=0.5"
    " --population north=4000,south=6000",
)
@with_rounds
@click.option("--question", help="A question of the study; required if it has several.")
@click.option("--epsilon", required=True, help="Largest epsilon of a report, nats, pure.")
@click.option("--rate", required=True, help="Probability of reporting: one for all, or stratum=rate,stratum=rate.")
@click.option("--population", required=True, help="Number of nodes: one for every stratum, or stratum=nodes,...")
@click.option(
    "--oracle",
    type=click.Choice(["auto", *ORACLE_NAMES]),
    default="auto",
    show_default=True,
    help="The local randomiser; auto chooses the one with the least expected variance.",
)
@click.option(
    "--central-epsilon",
    help="Choose at this epsilon against an adversary who sees only counts: a report has the largest epsilon up to"
    " --epsilon that keeps it, if as many nodes report as expected.",
)
@click.option(
    "--lifetime-hours",
    default=24.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=8760),
    callback=finite,
    help="Time until the round closes by itself.",
)
def open_round(
    rounds: "Rounds",
    question: str | None,
    epsilon: str,
    rate: str,
    population: str,
    oracle: str,
    central_epsilon: str | None,
    lifetime_hours: float,
) -> None:
    """Open a round, and print its id, which the nodes need."""
    from veiltab.researcher.collection.strata import by_stratum, rate_of

    strata = rounds.strata
    name = question or rounds.only_question
    rates = by_stratum(rate, strata, rate_of, "--rate")
    populations = by_stratum(population, strata, int, "--population")
    law, nats, why = _oracle(rounds, name, epsilon, rates, populations, oracle, central_epsilon)
    spec = rounds.open(
        name,
        epsilon=nats,
        rates={stratum: str(value) for stratum, value in rates.items()},
        populations=populations,
        oracle=law,
        lifetime_seconds=round(lifetime_hours * 3600),
    )
    note(why)
    emit({**spec_dict(spec), "why": why}, spec_text(spec))


def _oracle(
    rounds: "Rounds",
    question: str,
    epsilon: str,
    rates: dict[str, Decimal],
    populations: dict[str, int],
    oracle: str,
    central: str | None,
) -> tuple[str, str, str]:
    """Return an oracle's name, the epsilon of a report, and the reason for the choice."""
    from veiltab.common.collection.choosing import choose
    from veiltab.common.core.numbers.rounding import parse_epsilon
    from veiltab.common.privacy.cards.card import advised_delta
    from veiltab.researcher.collection.central_choice import choose_centrally

    if oracle != "auto" and central is None:
        return oracle, epsilon, f"{oracle}, as you asked."
    total = sum(populations.values())
    if any(population < 1 for population in populations.values()):
        raise InvalidInputError("the population is below 1", where="--population")
    harmonic = total / sum(populations[name] / float(rate) for name, rate in rates.items())
    size = rounds.study.question(question).attribute.size
    cap, rate = parse_epsilon(epsilon), min(1.0, harmonic)
    if central is None:
        choice = choose(size, cap, population=total, rate=rate)
        return choice.best.oracle.name, epsilon, choice.reason
    choice = choose_centrally(
        size,
        cap,
        central=parse_epsilon(central, what="--central-epsilon"),
        delta=advised_delta(max(total, 2)) * (1 - DELTA_OF_COINS),
        crowds=[(populations[name], int(populations[name] * rate)) for name, rate in rates.items()],
        population=total,
        rate=rate,
        among=ORACLE_NAMES if oracle == "auto" else (oracle,),
    )
    best = choice.best.oracle
    return best.name, str(best.epsilon), f"{choice.reason} A report has epsilon {best.epsilon}."


@collect.command(epilog=f"Example: veiltab collect enrol {CONNECTION} --round ID --nodes 10000 --out tokens.csv")
@with_rounds
@round_option
@click.option("--nodes", required=True, help="How many tokens: one number for every stratum, or stratum=number,...")
@click.option("--out", required=True, type=PATH, help="New CSV file for the tokens.")
def enrol(rounds: "Rounds", round_id: str, nodes: str, out: Path) -> None:
    """Make one-time tokens, one for each node; the server gets only their digests.

    Hand every node one line of the file, in an order of your own. Anyone who has a token can spend it. If the command
    is interrupted, the same command continues with the tokens of its file.
    """
    from veiltab.researcher.collection.strata import by_stratum
    from veiltab.researcher.collection.token_file import kept_tokens

    numbers = by_stratum(nodes, rounds.strata, int, "--nodes")
    if any(number < 1 for number in numbers.values()):
        raise InvalidInputError("a stratum was given fewer than 1 node", where="--nodes")
    if not out.exists():
        _check_room(rounds.status(round_id), numbers)
    tokens = kept_tokens(out, round_id, numbers)
    for stratum, batch in tokens.items():
        rounds.enrol(round_id, stratum, batch)
    status = rounds.status(round_id)
    count = sum(numbers.values())
    emit(
        {"round": round_id, "made": count, "enrolled": by_stratum_name(status, status.enrolled), "out": out},
        f"{count} tokens: {out}. Keep it like a key, and hand each node one line.",
    )


def _check_room(status: "RoundStatus", numbers: Mapping[str, int]) -> None:
    """Refuse tokens that the server would refuse, before writing a file of them."""
    from veiltab.common.collection.round import RoundState

    if status.state is not RoundState.OPEN:
        raise ClosedRoundError("the round is closed", where=f"round {status.round.round_id}")
    for stratum, enrolled in zip(status.round.strata, status.enrolled, strict=True):
        if enrolled + numbers[stratum.name] > stratum.population:
            raise InvalidInputError(
                f"{enrolled} tokens and {numbers[stratum.name]} more are above the population of {stratum.population}",
                where=f"stratum {stratum.name}",
                remedy="Enrol no more tokens than there are nodes.",
            )


@collect.command(epilog=f"Example: veiltab collect status {CONNECTION} --round ID")
@with_rounds
@optional_round_option
def status(rounds: "Rounds", round_name: str | None) -> None:
    """Show rounds: open or closed, tokens, reports."""
    statuses = [rounds.status(one) for one in ([rounds.whole_id(round_name)] if round_name else rounds.rounds())]
    text = "\n".join(status_text(one) for one in statuses) or "No rounds yet."
    emit(status_dict(statuses[0]) if round_name else {"rounds": [status_dict(one) for one in statuses]}, text)


@collect.command(epilog=f"Example: veiltab collect close {CONNECTION} --round ID")
@with_rounds
@round_option
def close(rounds: "Rounds", round_id: str) -> None:
    """Close a round for good: later reports are refused, and its counts can be fetched."""
    closed, already = rounds.close_round(round_id)
    status = rounds.status(round_id)
    when = f"{datetime.fromtimestamp(closed, UTC):%Y-%m-%d %H:%M:%S} UTC"
    emit(
        status_dict(status) | {"already": already},
        f"The round {'was closed already, at' if already else 'is closed since'} {when},"
        f" with {sum(status.reports)} reports.",
    )


for command in (estimate, plan, simulate):
    collect.add_command(command)
