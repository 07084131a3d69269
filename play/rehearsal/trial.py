"""What is tried in a rehearsal: one request, approved as by persons, or one round, each beside the dummy truth."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veiltab.common.collection.population import parse_population
from veiltab.common.dataclass import dataclass
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.local.asking import client_of, progress
from veiltab.play.local.rounds import AnsweredRound, AskedRound, answered_round
from veiltab.play.rehearsal.rehearsal import Rehearsal
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.client.release import Release
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.frequency.frequencies import Frequencies, estimate, total_variation
from veiltab.researcher.numbers.means import means_by_each
from veiltab.researcher.status.release_status import Status

_SECONDS = 900.0
_APPROVE = "`veiltab curator approve`"
"""What a curator says that it waits for, when a person has to decide."""


@dataclass(frozen=True, kw_only=True)
class TableBesideTruth:
    """A table of a release, and the true one of the dummy people.

    Args:
        truth: (K,) true counts of its cells.
    """

    estimate: TableEstimate
    truth: NDArray[np.int64]

    @property
    def fractions(self) -> NDArray[np.float64]:
        """True fractions of the cells."""
        fractions: NDArray[np.float64] = self.truth / self.truth.sum()
        return fractions

    @property
    def distance(self) -> float:
        """Total variation distance of the projected estimate from the truth."""
        return float(total_variation(self.estimate.projected, self.fractions))

    @cached_property
    def means(self) -> Mapping[str, tuple[Analysis, Analysis]]:
        """Attribute of numbers -> its mean, of all and by group, and that of the truth."""
        domain = self.estimate.domain
        true = ModelledTable(domain=domain, raw=self.fractions, population=int(self.truth.sum()))
        names = [attribute.name for attribute in domain.attributes if attribute.number]
        return {name: (means_by_each(self.estimate, name), means_by_each(true, name)) for name in names}


@dataclass(frozen=True, kw_only=True)
class RehearsedRelease:
    """A release of the rehearsal.

    Args:
        tables: each table beside the truth.
        approved: curators at which a person had to approve.
    """

    status: Status
    tables: tuple[TableBesideTruth, ...]
    approved: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RehearsedRound:
    """A round of the rehearsal.

    Args:
        estimate: how many nodes hold each value.
        truth: how many do.
    """

    request: AskedRound
    answer: AnsweredRound
    estimate: Frequencies
    truth: NDArray[np.int64]

    @property
    def distance(self) -> float:
        """Total variation distance of the projected estimate from the truth."""
        return float(total_variation(self.estimate.shares(self.estimate.projected), self.truth / self.truth.sum()))


def rehearsed_release(rehearsal: Rehearsal, words: Sequence[str], say: Callable[[str], None]) -> RehearsedRelease:
    """Make one request, approve what waits for a person, and compare the result with the truth.

    Args:
        words: options of `veiltab researcher request`.
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused, the policy denies it, or it is not ready in time.
    """
    dummies = rehearsal.curators_tables()
    local, researcher = rehearsal.local, rehearsal.study.researchers[0].name
    say(f"{researcher} asks: {' '.join(words)}")
    options = [word for word in words if word != "--wait"]
    answer, _ = local.run_as_researcher(researcher, "researcher", "request", *options)
    approvals = _Approvals(rehearsal, say)
    with client_of(local, researcher) as client:
        release = client.release(answer["release"]["id"])
        status = release.wait(_SECONDS, approvals.look)
        tables = tuple(
            TableBesideTruth(estimate=one, truth=dummies.truth(one.domain.names)) for one in _estimates(release, status)
        )
    return RehearsedRelease(status=status, tables=tables, approved=tuple(approvals.curators))


def _estimates(release: Release, status: Status) -> list[TableEstimate]:
    """Return every table of a release once, pooled if it ran twice."""
    if not status.tables:
        return [release.estimate()]
    names = dict.fromkeys(table.attributes for table in status.ready_tables)
    return [release.estimate(table) for table in names]


class _Approvals:
    """Approves, as a person would, what a release waits for."""

    def __init__(self, rehearsal: Rehearsal, say: Callable[[str], None]) -> None:
        self._rehearsal, self._say, self._watch = rehearsal, say, progress(say)
        self.curators: list[str] = []

    def look(self, status: Status) -> None:
        """Say where the release stands if that has changed, and approve it where a person has to decide."""
        self._watch(status)
        for curator in self._rehearsal.study.curators:
            if curator.name not in self.curators and _APPROVE in status.waits.get(f"curator {curator.name}", ""):
                self._say(f"  a person at {curator.name} approves it")
                self._approve(curator.name, status.release_id)
                self.curators.append(curator.name)

    def _approve(self, curator: str, release_id: str) -> None:
        """Approve it as so many persons as the policy asks for."""
        local, person, is_missing = self._rehearsal.local, 0, True
        own = ("--state", str(local.state_folder(Role.CURATOR, curator)))
        while is_missing:
            person += 1
            who = ("--person", f"rehearsal {person}", "--reason", "rehearsal")
            answer, _ = local.run("curator", "approve", str(local.study_path), *own, "--release", release_id, *who)
            is_missing = bool(answer.get("missing"))


def rehearsed_round(rehearsal: Rehearsal, say: Callable[[str], None]) -> RehearsedRound:
    """Open a round, let a fleet of dummy nodes answer it, and compare the result with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    request = rehearsal.usual_round()
    answer = answered_round(rehearsal.local, request, say)
    nodes, size = answer.status.round.population, answer.status.round.size
    return RehearsedRound(
        request=request,
        answer=answer,
        estimate=estimate(answer.tally),
        truth=parse_population(request.values).counts(nodes, size),
    )
