"""`veiltab node`: answer a round as one node, or as thousands."""

import asyncio
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import PATH, emit, finite, note
from veiltab.common.command.options import identity_option, state_option, study_argument
from veiltab.common.command.parties import load_party
from veiltab.common.core.texts.record_fields import same_fields
from veiltab.common.errors import ClosedRoundError, InvalidInputError, SpentTokenError, UnavailableError
from veiltab.common.rpc.parties.identity import Role

if TYPE_CHECKING:
    from veiltab.node.answers.values import BadRow
    from veiltab.node.reporters.fleet import FleetResult

_SHOWN = 20

round_option = click.option("--round", "round_id", required=True, help="Id of the round.")
timeout_option = click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    callback=finite,
    help="Seconds to keep trying; another run continues.",
)


@click.group()
def node() -> None:
    """Report one randomised value to a round, with the round's probability.

    Example: veiltab node report study.toml --identity pki/node-fleet --state state --round ID --value 42 --token TOKEN
    """


@node.command(
    epilog="Example: veiltab node report study.toml --identity pki/node-fleet --state state --round ID --value 42"
    " --token north,TOKEN"
)
@study_argument
@identity_option
@state_option
@round_option
@click.option(
    "--value",
    required=True,
    envvar="VEILTAB_VALUE",
    show_envvar=True,
    help="The node's raw value, as the study's question codes it.",
)
@click.option(
    "--token",
    required=True,
    envvar="VEILTAB_TOKEN",
    show_envvar=True,
    help="The node's one-time token, or its whole line of tokens.csv, which names its stratum.",
)
@timeout_option
def report(
    study_path: Path, identity_folder: Path, state_folder: Path, round_id: str, value: str, token: str, timeout: float
) -> None:
    """Answer a round as one node: toss the coin, randomise the value, report or stay silent.

    The node remembers its answer in the state folder: the same command repeats it and never draws again. Others on the
    machine see options in the list of processes, and environment variables not.
    """
    from veiltab.node.answers.token_line import token_line
    from veiltab.node.reporters.device import Node

    # What a shell reads from a file may begin with its byte order mark.
    value, token = (text.removeprefix("\ufeff").strip() for text in (value, token))
    line = token_line(token, round_id)
    node_here = Node(study_path, identity=identity_folder, state=state_folder)
    answer = node_here.answer(round_id, value=value, token=line.token, stratum=line.stratum, within=timeout)
    state = answer.state.value
    text = {"counted": "The report was counted.", "silent": "The coin said not to report; nothing was sent."}[state]
    if answer.before:
        text = (
            f"This folder answered this round before; that answer ({state}) stands, and this value and token were not"
            " used. Another node needs a folder of its own."
        )
    emit({"round": round_id, "state": state, "before": answer.before}, text)


@node.command(
    epilog="Example: veiltab node fleet study.toml --identity pki/node-fleet --state fleet --round ID"
    " --tokens tokens.csv --values values.csv"
)
@study_argument
@identity_option
@state_option
@round_option
@click.option(
    "--tokens", required=True, type=PATH, help="CSV file with round,stratum,token as `veiltab collect enrol` writes it."
)
@click.option("--values", type=PATH, help="CSV file with value[,stratum], one line a node.")
@click.option(
    "--distribution",
    help="Instead of values: spread one over all tokens, such as binomial:100:0.5. Its values 1 to d are the question's"
    " categories in their order.",
)
@click.option(
    "--concurrency",
    default=64,
    show_default=True,
    type=click.IntRange(1, 4096),
    help="Most reports in flight at a time.",
)
@timeout_option
def fleet(
    study_path: Path,
    identity_folder: Path,
    state_folder: Path,
    round_id: str,
    tokens: Path,
    values: Path | None,
    distribution: str | None,
    concurrency: int,
    timeout: float,
) -> int:
    """Answer a round as thousands of nodes, each with a coin, a randomisation and an RPC of its own.

    After an interruption the same command continues: nodes that have decided keep their decision.
    """
    from veiltab.common.rpc.channel import connect
    from veiltab.common.storage.files import OwnedFolder
    from veiltab.node.answers.journal import Journal
    from veiltab.node.answers.sending import fetch_round, server_of
    from veiltab.node.answers.values import fleet_from_distribution, fleet_from_file
    from veiltab.node.reporters.fleet import FleetRun
    from veiltab.v1.collection_pb2_grpc import CollectionServiceStub

    if (values is None) == (distribution is None):
        raise InvalidInputError("give either values or a distribution", where="--values, --distribution")
    began = time.monotonic()
    study, identity = load_party(study_path, identity_folder, Role.NODE, name=None)

    async def answer() -> "tuple[FleetResult, tuple[BadRow, ...]]":
        party = f"{identity.party.uri} (a fleet)"
        with OwnedFolder(state_folder, party) as folder, closing(Journal(folder.path)) as journal:
            channel = connect(identity, server_of(study), study.server.endpoint)
            try:
                stub = CollectionServiceStub(channel)
                spec, state, signed = await fetch_round(stub, study, identity.authority, round_id, timeout)
                if values is not None:
                    nodes = fleet_from_file(spec, study, values, tokens)
                else:
                    nodes = fleet_from_distribution(spec, distribution or "", tokens)
                if not nodes.nodes:
                    _print_bad_rows(nodes.bad_rows)
                run = FleetRun(
                    stub, study, spec, journal, signed=signed, state=state, concurrency=concurrency, within=timeout
                )
                result = await run.run(nodes, lambda done, total: note(f"{done} of {total} reports settled"))
                return result, nodes.bad_rows
            finally:
                await channel.close()

    result, bad = asyncio.run(answer())
    _print_bad_rows(bad)
    emit(_as_dict(round_id, result, bad, time.monotonic() - began), _as_text(result, bad))
    return _exit_code(result, bad)


def _exit_code(result: "FleetResult", bad: "tuple[BadRow, ...]") -> int:
    if bad or set(result.refused) - {SpentTokenError.reason, ClosedRoundError.reason}:
        return InvalidInputError.exit_code
    if result.refused:
        return ClosedRoundError.exit_code
    return UnavailableError.exit_code if result.unanswered else 0


def _print_bad_rows(bad: "tuple[BadRow, ...]") -> None:
    """Print each problem once, with the first lines that have it."""
    lines = defaultdict(list)
    for row in bad:
        lines[row.problem].append(row.line)
    for problem, places in lines.items():
        listing = ", ".join(map(str, places[:_SHOWN]))
        more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
        note(f"{problem}: {len(places):,} line{'s' if len(places) > 1 else ''}: {listing}{more}")


def _as_dict(round_id: str, result: "FleetResult", bad: "tuple[BadRow, ...]", seconds: float) -> dict[str, object]:
    return {
        "round": round_id,
        **same_fields(result, ("nodes", "silent", "counted", "unanswered", "bytes", "bytes_full_participation")),
        "refused": dict(result.refused),
        "bad_rows": bad,
        "seconds": round(seconds, 3),
    }


def _as_text(result: "FleetResult", bad: "tuple[BadRow, ...]") -> str:
    refused = ", ".join(f"{count} {reason}" for reason, count in result.refused.items())
    lines = [
        f"{result.nodes} nodes: {result.counted} reports counted, {result.silent} silent.",
        *([f"Refused: {refused}."] if refused else []),
        *([f"{result.unanswered} without an answer: run this again."] if result.unanswered else []),
        *([f"{len(bad)} lines were left out."] if bad else []),
        f"Reports: {result.bytes:,} bytes; {result.bytes_full_participation:,} if every node had reported.",
    ]
    return "\n".join(lines)
