"""A round of collection of a study on this machine: opened, answered by a fleet of nodes, and closed."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from veiltab.common.collection.round import RoundStatus
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.local.processes import LocalStudy
from veiltab.researcher.collection.rounds_client import Rounds
from veiltab.researcher.frequency.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRound:
    """What a round asks, and who answers.

    Args:
        epsilon: of one report, nats.
        rate: probability of reporting.
        nodes: how many, of each stratum.
        oracle: the local randomiser; "auto" for the one with the least expected variance.
        values: the distribution of the nodes' values.
    """

    researcher: str
    question: str
    epsilon: Decimal
    rate: Decimal
    nodes: int
    values: str
    oracle: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRound:
    """A round that is closed.

    Args:
        fleet: what the command of the fleet printed.
        parties: the processes that took part beside the server.
    """

    status: RoundStatus
    tally: Tally
    fleet: dict[str, Any]
    parties: tuple[dict[str, Any], ...]


def answered_round(local: LocalStudy, request: AskedRound, say: Callable[[str], None]) -> AnsweredRound:
    """Run a round of a study whose server runs.

    Args:
        local: the study; the tokens and the state of the nodes go into its folder.
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    nodes = local.study.nodes
    if nodes is None:
        raise InvalidInputError("the study has no nodes", where=f"study {local.study.id}")
    reply, opening = local.run_as_researcher(
        request.researcher,
        "collect",
        "open",
        "--question",
        request.question,
        "--epsilon",
        f"{request.epsilon:f}",
        "--rate",
        str(request.rate),
        "--population",
        str(request.nodes),
        "--oracle",
        request.oracle,
    )
    round_id, total = str(reply["round"]), request.nodes * max(1, len(nodes.strata))
    size = local.study.question(request.question).attribute.size
    say(f"round {round_id}: {size} values, {reply['oracle']} at epsilon {request.epsilon}")
    tokens = local.folder / "tokens.csv"
    number = ("--nodes", str(request.nodes))
    local.run_as_researcher(request.researcher, "collect", "enrol", "--round", round_id, *number, "--out", str(tokens))
    say(f"{total} nodes toss their coins and randomise; about {request.rate * total:.0f} report")
    fleet, answering = local.run(
        "node",
        "fleet",
        str(local.study_path),
        "--identity",
        str(local.identity_folder(Role.NODE, nodes.name)),
        "--state",
        str(local.folder / "fleet"),
        "--round",
        round_id,
        "--tokens",
        str(tokens),
        "--distribution",
        request.values,
    )
    local.run_as_researcher(request.researcher, "collect", "close", "--round", round_id)
    identity = local.identity_folder(Role.RESEARCHER, request.researcher)
    with Rounds(local.study_path, identity=identity, name=request.researcher) as rounds:
        status, tally = rounds.result(round_id)
    return AnsweredRound(
        status=status,
        tally=tally,
        fleet=fleet,
        parties=(
            {"role": "researcher", "name": request.researcher, "pid": opening},
            {"role": "node", "name": nodes.name, "pid": answering},
        ),
    )
