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


def answered_round(local: LocalStudy, asked: AskedRound, say: Callable[[str], None]) -> AnsweredRound:
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
    opened, opening = local.run_as_researcher(
        asked.researcher,
        "collect",
        "open",
        "--question",
        asked.question,
        "--epsilon",
        f"{asked.epsilon:f}",
        "--rate",
        str(asked.rate),
        "--population",
        str(asked.nodes),
        "--oracle",
        asked.oracle,
    )
    round_id, total = str(opened["round"]), asked.nodes * max(1, len(nodes.strata))
    size = local.study.question(asked.question).attribute.size
    say(f"round {round_id}: {size} values, {opened['oracle']} at epsilon {asked.epsilon}")
    tokens = local.folder / "tokens.csv"
    number = ("--nodes", str(asked.nodes))
    local.run_as_researcher(asked.researcher, "collect", "enrol", "--round", round_id, *number, "--out", str(tokens))
    say(f"{total} nodes toss their coins and randomise; about {asked.rate * total:.0f} report")
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
        asked.values,
    )
    local.run_as_researcher(asked.researcher, "collect", "close", "--round", round_id)
    identity = local.identity_folder(Role.RESEARCHER, asked.researcher)
    with Rounds(local.study_path, identity=identity, name=asked.researcher) as rounds:
        status, tally = rounds.result(round_id)
    return AnsweredRound(
        status=status,
        tally=tally,
        fleet=fleet,
        parties=(
            {"role": "researcher", "name": asked.researcher, "pid": opening},
            {"role": "node", "name": nodes.name, "pid": answering},
        ),
    )
