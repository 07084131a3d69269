"""The rehearsal of a study on this machine: every party a process of its own, over real TLS, with dummy tables.

Of the study it keeps everything but the endpoints, the id and the title. No other file of the study is read but the
policies that are given: certificates are made anew, for another study.
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal
from pathlib import Path

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, read_file, study_from_bytes
from veiltab.curator.officer.policy import policy_of
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import LocalStudy, free_endpoints
from veiltab.play.local.rounds import AskedRound
from veiltab.play.studies.dummy_tables import DummyTables, dummy_tables
from veiltab.play.studies.templates import rehearsal_of

_USUAL_PEOPLE = 2000
_RATE = Decimal("0.5")


@dataclass(frozen=True, kw_only=True)
class RehearsalOptions:
    """Options of a rehearsal.

    Args:
        out: folder for all output; new or empty.
        people: dummy people whom every curator holds, or nodes of each stratum; None for as many as the study needs.
        policies: curator -> its policy file; without one, a person decides about everything.
    """

    study: Path
    out: Path
    people: int | None = None
    policies: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """The files of a rehearsal, whose parties are not started.

    Args:
        local: the study that is run.
        people: as in the options.
        tables: what the curators hold; None in a study of nodes alone.
    """

    local: LocalStudy
    people: int
    tables: DummyTables | None

    @property
    def study(self) -> Study:
        """The study that is run."""
        return self.local.study

    def curators_tables(self) -> DummyTables:
        """Return what the curators hold.

        Raises:
            InvalidInputError: the study has no curators.
        """
        if self.tables is None:
            raise InvalidInputError(
                "the study has no curators", where="--request", remedy="Its nodes answer a round: use --once."
            )
        return self.tables

    def usual_request(self) -> tuple[str, ...]:
        """Return options of `veiltab researcher request` for a first release: an attribute of each curator."""
        study = self.study
        names: list[str] = []
        for curator in study.curators:
            more = [*names, *(rule.name for rule in study.attributes_of(curator.name)[:1])]
            names = more if study.domain(more).cells <= study.maximum_cells else names
        epsilon = _rounded(study.budget_epsilon / 4)
        words = ("--attributes", ",".join(names), "--epsilon", f"{epsilon:f}")
        if study.budget_delta is None:
            return words
        delta = min(study.budget_delta / 10, Decimal(1).scaleb(-len(str(self.people)) - 1))
        return (*words, "--delta", f"{delta:f}")

    def usual_round(self) -> AskedRound:
        """Return a first round: of the first question, by the researcher with the largest share of a node's budget."""
        study, question = self.study, self.study.questions[0]
        researcher = max((one.name for one in study.researchers), key=study.share_of)
        share = study.share_of(researcher)
        return AskedRound(
            researcher=researcher,
            question=question.name,
            epsilon=min(Decimal(2), _rounded(Decimal(share.numerator) / share.denominator / 2)),
            rate=_RATE,
            nodes=self.people,
            values=f"binomial:{question.attribute.size}:0.5",
        )


@dataclass(frozen=True, kw_only=True)
class RehearsalDraft:
    """What a rehearsal consists of, before it is written.

    Args:
        people: as in the options.
        tables: what the curators hold; None in a study of nodes alone.
        policies: curator -> the text of its policy file, if it has one.
    """

    source: bytes
    people: int
    tables: DummyTables | None
    policies: Mapping[str, str]

    def written_to(self, folder: Path) -> Rehearsal:
        """Write it into a folder that exists, with an authority and certificates of its own."""
        paths = {} if self.tables is None else self.tables.write(folder)
        local = LocalStudy.made_in(folder, self.source, tables=paths, policies=self.policies)
        return Rehearsal(local=local, people=self.people, tables=self.tables)


def draft_rehearsal(options: RehearsalOptions, endpoints: Callable[[Study], Mapping[str, str]]) -> RehearsalDraft:
    """Return what a rehearsal consists of; write nothing.

    Args:
        options: of the rehearsal; its folder does not matter.
        endpoints: returns where the parties of the study are called in it.

    Raises:
        InvalidInputError: the study file or a policy is not valid.
    """
    source = read_file(options.study)
    study = study_from_bytes(source, str(options.study))
    policies = {name: _policy_text(study, name, path) for name, path in options.policies.items()}
    rehearsed = rehearsal_of(source, endpoints(study))
    people = options.people or max(_USUAL_PEOPLE, study.minimum_population * 5 // 4 + 10)
    tables = dummy_tables(study_from_bytes(rehearsed, "study.toml"), people) if study.curators else None
    return RehearsalDraft(source=rehearsed, people=people, tables=tables, policies=policies)


def prepare(options: RehearsalOptions) -> Rehearsal:
    """Write the study file of the rehearsal, its certificates, the dummy tables and the policies; start nothing.

    Raises:
        InvalidInputError: the study file or a policy is not valid, or the folder is not empty.
    """
    draft = draft_rehearsal(options, _endpoints_here)
    new_folder(options.out)
    return draft.written_to(options.out)


def _endpoints_here(study: Study) -> dict[str, str]:
    """Return free ports of this machine for the parties of a study."""
    return free_endpoints([party.name for party in (study.server, *study.curators, *study.researchers)])


def _policy_text(study: Study, curator: str, path: Path) -> str:
    """Return a policy file that the study's curator may have."""
    study.curator(curator)
    policy_of(study, curator, path)
    return path.read_text("utf-8")


def _rounded(epsilon: Decimal) -> Decimal:
    """Return an epsilon with two significant digits, rounded down."""
    return epsilon.quantize(Decimal(1).scaleb(epsilon.adjusted() - 1), rounding=ROUND_DOWN).normalize()
