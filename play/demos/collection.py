"""A round of collection on this machine: server, researcher and fleet as processes, compared with the truth."""

import time
from collections.abc import Callable
from decimal import Decimal
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.choosing import Choice, choose
from veiltab.common.collection.oracles import ORACLE_NAMES
from veiltab.common.collection.population import parse_population
from veiltab.common.collection.round import RoundStatus
from veiltab.common.dataclass import dataclass, field
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.toml_text import toml_text
from veiltab.common.web.document import write_page
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import LocalStudy, free_endpoints
from veiltab.play.local.rounds import AskedRound, answered_round
from veiltab.researcher.collection.results.round_report import report_page
from veiltab.researcher.frequency.frequencies import Frequencies, estimate, total_variation
from veiltab.researcher.frequency.tally import Tally

ESTIMATORS = ("c", "g", "c_hat", "hajek", "horvitz_thompson")
_RESEARCHER, _SERVER, _NODES, _QUESTION = "rosa", "cloud", "fleet", "value"

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
        return {name: self._distance(one.fractions) for name, one in self.estimates.items()}

    def projected_total_variation(self) -> dict[str, float]:
        """Return the same of the projected estimates."""
        return {name: self._distance(one.shares(one.projected)) for name, one in self.estimates.items()}

    def _distance(self, fractions: NDArray[np.float64]) -> float:
        return float(total_variation(fractions, self.truth / self.truth.sum()))


def run_collection(options: CollectionOptions, say: Callable[[str], None]) -> CollectionResult:
    """Make the study, start the server, run a round with a fleet, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    began = time.monotonic()
    truth = parse_population(options.values).counts(options.nodes, options.domain)
    choice = options.choice()
    local = prepare(options)
    with local:
        say("starting the server as a process of its own, under mutual TLS")
        pid = local.start(Role.SERVER, _SERVER)
        local.wait_for(Role.SERVER, _SERVER)
        say(choice.reason)
        say(foresight(choice))
        request = AskedRound(
            researcher=_RESEARCHER,
            question=_QUESTION,
            epsilon=options.epsilon,
            rate=options.rate,
            nodes=options.nodes,
            values=options.values,
            oracle=choice.best.oracle.name,
        )
        answer = answered_round(local, request, say)
    status, tally = answer.status, answer.tally
    counts = truth.astype(np.float64)
    page = report_page(local.study, status, tally, truth=counts)
    report = options.out / "report.html"
    write_page(page, report)
    return CollectionResult(
        parties=[{"role": "server", "name": _SERVER, "pid": pid}, *answer.parties],
        choice=choice,
        status=status,
        tally=tally,
        estimates={name: estimate(tally, name) for name in ESTIMATORS},
        truth=counts,
        fleet=answer.fleet,
        seconds=time.monotonic() - began,
        report=report,
    )


def foreseen_variation(choice: Choice) -> float:
    """Return the expected half of the sum of |estimate - truth| over the values, as fractions of the population.

    d s / sqrt(2 pi)    for the standard error s, since E|X| = s sqrt(2/pi) for X normal of mean 0

    Raw estimates are nearly normal; where their variances differ among the values, this is an upper bound.
    """
    return choice.best.oracle.size * choice.best.standard_error / sqrt(2 * pi)


def foresight(choice: Choice) -> str:
    """Return a sentence on the error that a round will have, with advice if its answer will say little."""
    foreseen = foreseen_variation(choice)
    sentence = f"total variation foreseen for raw estimates: {foreseen:.4f}"
    if foreseen <= _LITTLE:
        return sentence
    return f"{sentence}, hardly better than a guess; take more nodes, a larger epsilon, a larger rate or fewer values"


def prepare(options: CollectionOptions) -> LocalStudy:
    """Make the study, its certificates and its folder; start nothing."""
    new_folder(options.out)
    endpoints = free_endpoints((_SERVER, _RESEARCHER))
    text = toml_text(
        {
            "study": {"id": "collection", "title": "A round of collection"},
            "server": {"name": _SERVER, "endpoint": endpoints[_SERVER]},
            "researcher": [{"name": _RESEARCHER, "endpoint": endpoints[_RESEARCHER]}],
            "nodes": {"name": _NODES, "budget_epsilon": options.epsilon},
            "question": [{"name": _QUESTION, "integers": [1, options.domain]}],
        }
    ).encode()
    return LocalStudy.made_in(options.out, text, tables={}, policies={})
