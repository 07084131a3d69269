"""A round of collection on this machine: server, researcher and fleet as processes, compared with the truth."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.choosing import Choice, choose
from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.collection.population import parse_population
from veiltab.common.collection.round import RoundStatus
from veiltab.common.errors import VeiltabError, error_class
from veiltab.common.rpc.identity import Role
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.local.folder import new_folder
from veiltab.deploy.local.processes import LocalStudy, free_ports
from veiltab.deploy.pki import init_pki
from veiltab.deploy.toml_text import toml_text
from veiltab.researcher.collection.client import Rounds
from veiltab.researcher.collection.report import report_page
from veiltab.researcher.frequency.estimation import Frequencies, estimate, total_variation
from veiltab.researcher.frequency.tally import Tally

ESTIMATORS = ("c", "g", "c_hat", "hajek", "horvitz_thompson")
_RESEARCHER, _SERVER, _NODES = "rosa", "cloud", "fleet"

_LITTLE = 0.5
"""Total variation above which an estimate says little."""


@dataclass(frozen=True, kw_only=True)
class CollectionOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        nodes: number of nodes.
        domain: values 1 to d.
        epsilon: of one report, nats.
        rate: probability of reporting.
        distribution: of the values; empty for binomial with probability one half.
        oracle: the local randomiser; "auto" for the one with the least expected variance.
    """

    out: Path
    nodes: int = 10_000
    domain: int = 12
    epsilon: Decimal = Decimal(2)
    rate: Decimal = Decimal("0.5")
    distribution: str = ""
    oracle: str = "auto"

    @property
    def values(self) -> str:
        """The distribution of the nodes' values."""
        return self.distribution or f"binomial:{self.domain}:0.5"

    def choice(self) -> Choice:
        """Return the oracle that the nodes use, with its expected error."""
        among = ORACLE_NAMES if self.oracle == "auto" else (self.oracle,)
        return choose(self.domain, self.epsilon, population=self.nodes, rate=float(self.rate), among=among)


@dataclass(kw_only=True)
class CollectionResult:
    """Everything that the demonstration shows."""

    parties: list[dict[str, Any]] = field(default_factory=list)
    choice: Choice
    status: RoundStatus
    tally: Tally
    estimates: dict[str, Frequencies]
    truth: NDArray[np.float64]
    fleet: dict[str, Any]
    seconds: float
    report: Path

    def total_variation(self) -> dict[str, float]:
        """Return half the sum of |raw estimate - truth| over the values, as fractions of the nodes, by estimator."""
        return {name: self._distance(found.fractions) for name, found in self.estimates.items()}

    def projected_total_variation(self) -> dict[str, float]:
        """Return the same of the projected estimates."""
        return {name: self._distance(found.shares(found.projected)) for name, found in self.estimates.items()}

    def _distance(self, fractions: NDArray[np.float64]) -> float:
        return float(total_variation(fractions, self.truth / self.truth.sum()))


def run_collection(options: CollectionOptions, say: Callable[[str], None]) -> CollectionResult:
    """Make the study, start the server, run a round with a fleet, and compare with the truth.

    Args:
        options: what to show.
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    began = time.monotonic()
    truth = parse_population(options.values).counts(options.nodes, options.domain)
    choice = options.choice()
    local = prepare(options)
    parties: list[dict[str, Any]] = []
    with local:
        say("starting the server as a process of its own, under mutual TLS")
        pid = local.start(Role.SERVER, _SERVER)
        local.wait_for(Role.SERVER, _SERVER)
        parties.append({"role": "server", "name": _SERVER, "pid": pid})
        opened, pid = _researcher(
            local, "open", "--epsilon", str(options.epsilon), "--rate", str(options.rate),
            "--population", str(options.nodes), "--oracle", choice.best.oracle.name,
        )  # fmt: skip
        parties.append({"role": "researcher", "name": _RESEARCHER, "pid": pid})
        round_id = opened["round"]
        say(f"round {round_id}: {options.domain} values, {choice.best.oracle.name} at epsilon {options.epsilon}")
        say(choice.reason)
        say(foresight(choice))
        tokens = options.out / "tokens.csv"
        _researcher(local, "enrol", "--round", round_id, "--nodes", str(options.nodes), "--out", str(tokens))
        say(f"{options.nodes} nodes toss their coins and randomise; about {options.rate * options.nodes:.0f} report")
        fleet, pid = _run(
            local, "node", "fleet", str(local.study_path), "--identity", str(local.identity_folder(Role.NODE, _NODES)),
            "--state", str(options.out / "fleet"), "--round", round_id, "--tokens", str(tokens),
            "--distribution", options.values,
        )  # fmt: skip
        parties.append({"role": "node", "name": _NODES, "pid": pid})
        _researcher(local, "close", "--round", round_id)
        status, tally = _fetch(local, round_id)
    counts = truth.astype(np.float64)
    page = report_page(local.study, status, tally, truth=counts)
    report = options.out / "report.html"
    report.write_text(page, "utf-8")
    return CollectionResult(
        parties=parties,
        choice=choice,
        status=status,
        tally=tally,
        estimates={name: estimate(tally, name) for name in ESTIMATORS},
        truth=counts,
        fleet=fleet,
        seconds=time.monotonic() - began,
        report=report,
    )


def foresight(choice: Choice) -> str:
    """Return a sentence on the error that a round will have, with advice if its answer will say little."""
    said = f"total variation foreseen for raw estimates: {choice.best.total_variation:.4f}"
    if choice.best.total_variation <= _LITTLE:
        return said
    return f"{said}, hardly better than a guess; take more nodes, a larger epsilon, a larger rate or fewer values"


def prepare(options: CollectionOptions) -> LocalStudy:
    """Make the study, its certificates and its folder; start nothing."""
    new_folder(options.out)
    server, researcher = free_ports(2)
    text = toml_text(
        {
            "study": {"id": "collection", "title": "A round of collection"},
            "server": {"name": _SERVER, "endpoint": f"localhost:{server}"},
            "researcher": [{"name": _RESEARCHER, "endpoint": f"localhost:{researcher}"}],
            "nodes": {"name": _NODES, "budget_epsilon": options.epsilon},
            "question": [{"name": "value", "integers": [1, options.domain]}],
        }
    ).encode()
    (options.out / "study.toml").write_bytes(text)
    init_pki(study_from_bytes(text, "study.toml"), options.out / "pki")
    return LocalStudy(folder=options.out, tables={})


def _researcher(local: LocalStudy, command: str, *arguments: str) -> tuple[dict[str, Any], int]:
    """Run a command of `veiltab collect` as the researcher's own process."""
    identity = local.identity_folder(Role.RESEARCHER, _RESEARCHER)
    connection = (str(local.study_path), "--name", _RESEARCHER, "--identity", str(identity))
    return _run(local, "collect", command, *connection, *arguments)


def _run(local: LocalStudy, *arguments: str) -> tuple[dict[str, Any], int]:
    """Run a command as a process of its own; return its JSON object and its process id."""
    command = [*local.launcher, *arguments, "--json"]
    process = subprocess.Popen(  # noqa: S603 - the product's own command
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        out, err = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode:
        raise _refusal(out, err, arguments[:2])
    answer: dict[str, Any] = json.loads(out)
    return answer, process.pid


def _refusal(out: str, err: str, command: Sequence[str]) -> VeiltabError:
    try:
        told = json.loads(out)["error"]
    except (ValueError, KeyError):
        return VeiltabError(f"veiltab {' '.join(command)} failed: {err.strip()[-300:]}")
    return error_class(told["reason"])(told["problem"], where=told["where"], remedy=told["remedy"])


def _fetch(local: LocalStudy, round_id: str) -> tuple[RoundStatus, Tally]:
    identity = local.identity_folder(Role.RESEARCHER, _RESEARCHER)
    with Rounds(local.study_path, identity=identity, name=_RESEARCHER) as rounds:
        return rounds.result(round_id)
