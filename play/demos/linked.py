"""The linked census on this machine: pairs of attributes of two curators, microdata of all of them, and the truth."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.privacy.cards.card import EpsilonCard
from veiltab.common.release.guarantees import asked_price
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.release.tables import Workload
from veiltab.common.study.file import study_from_bytes
from veiltab.common.web.document import write_page
from veiltab.play.local.asking import client_of, progress
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints
from veiltab.play.studies import linked_tables
from veiltab.researcher.analysis.comparisons import conditional_shares
from veiltab.researcher.analysis.modelled import ModelledTable
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.client.release import Release
from veiltab.researcher.microdata.comparison import fractions_of, mean_distance
from veiltab.researcher.microdata.expectation import ExpectedError
from veiltab.researcher.model.row_drawing import Rows
from veiltab.researcher.numbers.linear import linear
from veiltab.researcher.numbers.means import means
from veiltab.researcher.numbers.points import are_numbers
from veiltab.researcher.status.release_status import Status

RESEARCHER = "rosa"
_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class LinkedOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        attributes: names in the study; none for all fourteen.
        people: so many that both curators hold.
        epsilon: of all tables together, nats.
    """

    out: Path
    attributes: tuple[str, ...] = ()
    people: int = linked_tables.POPULATION
    epsilon: Decimal = Decimal(1)
    delta: Decimal = Decimal("1e-6")
    seed: str = "census"

    def __post_init__(self) -> None:
        if not 1000 <= self.people <= linked_tables.POPULATION:
            raise InvalidInputError(f"there are 1,000 to {linked_tables.POPULATION:,} people", where="people")


@dataclass(frozen=True, kw_only=True)
class LinkedTruth:
    """The true rows of some attributes.

    Args:
        rows: symbols, shape (people, attributes).
    """

    domain: Domain
    rows: Rows

    def table(self, names: tuple[str, ...]) -> ModelledTable:
        """Return the true table of some attributes."""
        axes = [self.domain.names.index(name) for name in names]
        return ModelledTable(
            domain=self.domain.subset(names),
            raw=fractions_of(self.rows, self.domain.shape, axes),
            population=len(self.rows),
        )


@dataclass(frozen=True, kw_only=True)
class NumberAnalyses:
    """What is shown of an attribute of numbers, each analysis of the release and of the true rows.

    Args:
        given: the attribute of the groups of the means.
    """

    attribute: str
    given: str
    means: tuple[Analysis, Analysis]
    formula: str
    linear: tuple[Analysis, Analysis]


@dataclass(kw_only=True)
class LinkedResult:
    """Everything that the demonstration shows.

    Args:
        pairs: mean total variation distance of the microdata from the true rows over all pairs.
        expected: of the pairs, as a researcher knows it, without the truth.
        shares: one conditional table as it was measured.
        true_shares: the same of the true rows.
        numbers: means and a linear model of an attribute of numbers; None if there is none.
        card: who faces which epsilon of all tables together.
        certificate: of the release, one file.
        seconds: step -> seconds.
    """

    status: Status
    pairs: float
    triples: float
    expected: ExpectedError
    shares: Analysis
    true_shares: Analysis
    numbers: NumberAnalyses | None
    card: EpsilonCard
    microdata: Path
    certificate: Path
    report: Path
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def workload(self) -> ReleaseSpec:
        """The public description of the release."""
        return self.status.description()

    @property
    def mu(self) -> Decimal:
        """The price of all tables together, at most."""
        return asked_price(self.workload).mu

    @property
    def phases(self) -> tuple[int, ...]:
        """How many tables ran in each phase."""
        numbers = [table.phase for table in self.status.tables]
        return tuple(numbers.count(phase) for phase in range(1, max(numbers) + 1))


class Clock:
    """Seconds that named steps take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


def run_linked(options: LinkedOptions, say: Callable[[str], None]) -> LinkedResult:
    """Make the study, start every party, run the release, draw microdata, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        InvalidInputError: the packages for the report are missing.
        VeiltabError: a party refused.
    """
    with importing("researcher", "the report of the demonstration"):
        import_module("matplotlib")
    clock = Clock()
    with clock.step("prepare tables and certificates"):
        say(f"writing the tables of two curators: {options.people:,} people whom both hold, and some whom one holds")
        local, truth = prepare(options)
    with local:
        with clock.step("start the parties"):
            say("starting every party as a process of its own, under mutual TLS")
            local.start_all()
        with client_of(local, RESEARCHER) as client:
            say(f"{RESEARCHER} asks for every pair of {len(truth.domain.names)} attributes, epsilon {options.epsilon}")
            with clock.step("release"):
                release = client.request(
                    truth.domain.names,
                    workload=Workload.LINKED,
                    epsilon=str(options.epsilon),
                    delta=f"{options.delta:f}",
                    purpose="demonstration",
                )
                release.wait(_SECONDS, progress(say))
            return _finish(say, clock, local=local, release=release, truth=truth, options=options)


def prepare(options: LinkedOptions) -> tuple[LocalStudy, LinkedTruth]:
    """Write the tables, the study file, the certificates and the policies.

    Returns:
        The study, whose parties are not started, and the true rows.
    """
    new_folder(options.out)
    (options.out / "tables").mkdir()
    endpoints = free_endpoints(("alice", "bob", "cloud", RESEARCHER))
    text = linked_tables.linked_study(
        endpoints=endpoints, epsilon=max(Decimal(4), 2 * options.epsilon), delta=min(4 * options.delta, Decimal("0.01"))
    )
    study = study_from_bytes(text, "study.toml")
    every = [rule.name for rule in study.attributes]
    domain = study.domain(options.attributes or every)
    paths = linked_tables.write_tables(options.out / "tables", options.people)
    policies = dict.fromkeys((curator.name for curator in study.curators), APPROVAL)
    rows = linked_tables.truth()[: options.people, [every.index(name) for name in domain.names]]
    local = LocalStudy.made_in(options.out, text, tables=paths, policies=policies)
    return local, LinkedTruth(domain=domain, rows=rows)


def _finish(  # noqa: PLR0913 - one argument a part of the demonstration
    say: Callable[[str], None],
    clock: Clock,
    *,
    local: LocalStudy,
    release: Release,
    truth: LinkedTruth,
    options: LinkedOptions,
) -> LinkedResult:
    """Draw microdata, write them and their report, and compare them with the truth."""
    from veiltab.researcher.report.microdata_page import render  # noqa: PLC0415 - not for results in text
    from veiltab.researcher.report.presentation import card_of, microdata_report  # noqa: PLC0415 - not for other demonstrations

    status, microdata_path, page = release.status(), options.out / "linked.parquet", options.out / "report.html"
    certificate = options.out / "release.certificate"
    # The card is priced on the other core meanwhile.
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as other:
        pricing = other.submit(card_of, status)
        say("fitting a model to the noisy tables, and drawing microdata from it")
        with clock.step("microdata"):
            microdata = release.synthesise(seed=options.seed)
            microdata.write(microdata_path)
        say("writing the report: which pairs depend on each other, and what error is to be expected")
        with clock.step("report"):
            card = pricing.result()
            report = microdata_report(local.study, microdata, card, truth.rows)
            write_page(render(report), page)
    say("asking every party to sign what it knows of each table")
    with clock.step("certificate"):
        certificate.write_text(release.certificate(), "utf-8")
    with clock.step("compare with the truth"):
        pairs, triples = (mean_distance(report.rows, truth.rows, truth.domain.shape, size) for size in (2, 3))
        condition, target = conditional_pair(truth.domain.names)
        shares = conditional_shares(release.estimate([condition, target]), [condition])
        true_shares = conditional_shares(truth.table((condition, target)), [condition])
        numbers = analyses_of_numbers(release, truth)
    return LinkedResult(
        status=status,
        pairs=pairs,
        triples=triples,
        expected=report.expected,
        shares=shares,
        true_shares=true_shares,
        numbers=numbers,
        card=card,
        microdata=microdata_path,
        certificate=certificate,
        report=page,
        seconds=clock.seconds,
    )


def conditional_pair(names: tuple[str, ...]) -> tuple[str, str]:
    """Return the attribute that is conditioned on, and the one whose shares are shown."""
    return ("education", "salary") if {"education", "salary"} <= set(names) else (names[0], names[-1])


def analyses_of_numbers(release: Release, truth: LinkedTruth) -> NumberAnalyses | None:
    """Return what is shown of the first attribute of numbers; None if no attribute has numbers."""
    number = next((one.name for one in truth.domain.attributes if are_numbers(one)), None)
    groups = [name for name in ("salary", "sex", *truth.domain.names) if name in truth.domain.names and name != number]
    if number is None or len(groups) < 2:
        return None
    formula = f"{number} ~ {groups[0]} + {groups[1]}"
    true_table = truth.table((number, *groups[:2]))
    return NumberAnalyses(
        attribute=number,
        given=groups[0],
        means=(release.ask(f"mean of {number} by {groups[0]}"), means(true_table, number, groups[:1])),
        formula=formula,
        linear=(release.ask(f"linear {formula}"), linear([true_table], formula)),
    )
