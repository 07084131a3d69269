"""A whole release on this machine: every party a process of its own, real TLS, compared with the truth."""

import time
from collections.abc import Callable
from decimal import Decimal
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain, symbol_dtype
from veiltab.common.dataclass import dataclass, field
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.demos.own_tables import first_rows, own_tables, study_text
from veiltab.play.local.asking import client_of, progress
from veiltab.play.local.folder import new_folder
from veiltab.play.local.processes import APPROVAL, LocalStudy, free_endpoints
from veiltab.play.studies import adult_tables
from veiltab.play.studies.registers import among_present
from veiltab.play.studies.templates import relayed
from veiltab.researcher.client.client import Client
from veiltab.researcher.client.release import Release
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.uncertainty import total_variance
from veiltab.researcher.status.release_status import Status
from veiltab.server.release.perturbation import published_parts

RESEARCHER = "rosa"
PARTIAL_RESEARCHER = "rita"
_OTHERS = ("cloud", RESEARCHER, PARTIAL_RESEARCHER)


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of the demonstration.

    Args:
        out: folder for all output; new or empty.
        curators: 2 to 8, for the Adult table.
        epsilon: epsilon of the release, nats; pure unless there is a delta.
        pad: "chacha20" or "otp".
        sampling: "seed", "indices" or "server".
        noise_split: the curators' part of the noise, as text; None for the default.
        max_pair_epsilon: most epsilon that a pair of parties faces, as text; None for no cap.
        canaries: rows that test the server; None lets the plan choose.
        tables: the user's own tables instead of Adult, one a curator.
        relay: curators and researchers listen nowhere, and are called through a relay.
        partial: also run a release for a second researcher, to whom only the first curator grants anything.
    """

    out: Path
    curators: int = 2
    epsilon: Decimal = Decimal(1)
    delta: Decimal | None = None
    pad: str = "chacha20"
    sampling: str = "seed"
    noise_split: str | None = None
    max_pair_epsilon: str | None = None
    canaries: int | None = None
    tables: tuple[Path, ...] = ()
    partial: bool = False
    relay: bool = False


@dataclass(frozen=True, kw_only=True)
class TrueTable:
    """The true joint counts of the hub's people, one a cell of the study's attributes."""

    domain: Domain
    counts: NDArray[np.int64]

    def marginal(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Return the counts of some attributes' cells, in study order, of the people whom all their curators have."""
        return among_present(self.domain.subset(names), self.domain.summed(self.counts, names))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One release's result beside the truth.

    Args:
        status: the released spec, how long each step took, and the bytes over each link.
        truth: (K,) true counts of the estimate's cells.
    """

    researcher: str
    status: Status
    estimate: TableEstimate
    truth: NDArray[np.int64]

    @property
    def spec(self) -> TableSpec:
        """The release's public description."""
        return self.status.description().table(0)

    @property
    def fractions(self) -> NDArray[np.float64]:
        """True fractions of the cells."""
        fractions: NDArray[np.float64] = self.truth / self.truth.sum()
        return fractions

    @property
    def l2_error(self) -> float:
        """Euclidean distance of the unbiased estimate from the truth."""
        return float(np.linalg.norm(self.estimate.raw - self.fractions))

    @property
    def expected_root_mse(self) -> float:
        """Expected root mean square of that distance, by the closed form at the true table."""
        return sqrt(total_variance(float(np.sum(self.fractions**2)), self.estimate.design))


@dataclass(kw_only=True)
class DemoResult:
    """Everything that the demonstration shows."""

    parties: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    report: Path = Path()
    certificate: Path = Path()


def run_table_demo(options: DemoOptions, say: Callable[[str], None]) -> DemoResult:
    """Make the study, start every party, run the release, and compare with the truth.

    Args:
        say: called with a line about each step.

    Raises:
        VeiltabError: a party refused.
    """
    result = DemoResult()
    began = time.monotonic()
    local, truth = prepare(options, say)
    result.seconds["prepare tables and certificates"] = time.monotonic() - began
    with local:
        say("starting every party as a process of its own, under mutual TLS")
        began = time.monotonic()
        pids = local.start_all()
        result.parties = [{"role": role.value, "name": name, "pid": pid} for (role, name), pid in pids.items()]
        result.seconds["start the parties"] = time.monotonic() - began
        result.outcomes.append(_release(local, RESEARCHER, truth, options, say))
        if options.partial:
            result.outcomes.append(_release(local, PARTIAL_RESEARCHER, truth, options, say))
        result.views = _what_each_saw(local, result.outcomes[0])
        result.certificate = options.out / "release.certificate"
        with client_of(local, RESEARCHER) as client:
            certificate = client.release(result.outcomes[0].spec.release_id).certificate()
        result.certificate.write_text(certificate, "utf-8")
    result.report = _write_report(local, result.outcomes[0], options.out)
    return result


def prepare(options: DemoOptions, say: Callable[[str], None]) -> tuple[LocalStudy, TrueTable]:
    """Write the tables, the study file, the certificates and the policies of a demonstration.

    Args:
        say: called with a line about each step.

    Returns:
        The study, whose parties are not started, and the true counts.
    """
    new_folder(options.out)
    new_folder(options.out / "tables")
    budget = max(Decimal(4), 2 * options.epsilon)
    budget_delta = None if options.delta is None else min(2 * options.delta, Decimal("0.01"))
    if options.tables:
        own = own_tables(options.tables)
        curators, paths = list(own.paths), own.paths
        delta = None if budget_delta is None else f"{budget_delta:f}"
        text = study_text(own, free_endpoints([*curators, *_OTHERS]), str(budget), delta).encode()
        counts = own.truth()
    else:
        curators = list(adult_tables.NAMES[: options.curators])
        endpoints = free_endpoints([*curators, *_OTHERS])
        text = adult_tables.adult_study(
            curators=options.curators, endpoints=endpoints, epsilon=budget, delta=budget_delta
        )
        paths = adult_tables.write_tables(options.out / "tables", adult_tables.assignment(options.curators))
        counts = adult_tables.truth(options.curators)
        say(f"wrote the Adult tables: {counts.sum():,} people of alice, all of whom every curator holds")
    if options.relay:
        text = relayed(text, free_endpoints(["relay"])["relay"])
    denial = f'[[rule]]\nresearcher = "{PARTIAL_RESEARCHER}"\ndecision = "deny"\n\n'
    policies = {name: f"{denial if name != curators[0] else ''}{APPROVAL}" for name in curators}
    local = LocalStudy.made_in(options.out, text, tables=paths, policies=policies)
    domain = local.study.domain(rule.name for rule in local.study.attributes)
    return local, TrueTable(domain=domain, counts=counts)


def _release(
    local: LocalStudy, researcher: str, truth: TrueTable, options: DemoOptions, say: Callable[[str], None]
) -> Outcome:
    say(f"{researcher} asks for {', '.join(truth.domain.names)} at epsilon {options.epsilon}")
    with client_of(local, researcher) as client:
        release = ask(client, truth.domain.names, options, partial=researcher == PARTIAL_RESEARCHER)
        status = release.wait(600, progress(say))
        estimate = release.estimate()
    return Outcome(researcher=researcher, status=status, estimate=estimate, truth=truth.marginal(estimate.domain.names))


def ask(client: Client, names: tuple[str, ...], options: DemoOptions, *, partial: bool = False) -> Release:
    """Ask for a release as the options say; `partial` as for Client.request."""
    return client.request(
        names,
        epsilon=str(options.epsilon),
        delta=None if options.delta is None else str(options.delta),
        purpose="demonstration",
        partial=partial,
        sampling=Sampling(options.sampling),
        pad=Pad(options.pad),
        noise_split=options.noise_split,
        max_pair_epsilon=options.max_pair_epsilon,
        canaries=options.canaries,
    )


def _what_each_saw(local: LocalStudy, outcome: Outcome) -> dict[str, str]:
    """Return what each party sees of the release's first rows, as text."""
    spec = outcome.spec
    views = {}
    for curator in local.study.curators:
        names = [column.attribute for column in spec.columns_of(curator.name)]
        head = first_rows(local.tables[curator.name])
        views[f"curator {curator.name}"] = f"its own table ({', '.join(names)}), such as {' | '.join(head)}"
    published = local.state_folder(Role.SERVER, local.study.server.name) / "releases" / spec.release_id / "published"
    parts = published_parts(published, spec)
    columns = [parts[c.attribute].view(symbol_dtype(c.size))[:8].tolist() for c in spec.columns]
    ciphertext = "; ".join(f"{c.attribute} {symbols}" for c, symbols in zip(spec.columns, columns, strict=True))
    views[f"server {local.study.server.name}"] = f"{spec.published_rows} rows of padded symbols: {ciphertext} ..."
    with client_of(local, outcome.researcher) as client:
        rows = client.release(spec.release_id).rows().head(3)
    noisy = " | ".join(", ".join(map(str, row)) for row in rows.itertuples(index=False))
    share = float(spec.mechanism.retention)
    views[f"researcher {outcome.researcher}"] = f"noisy rows, {share:.0%} of them true and nobody knows which: {noisy}"
    return views


def _write_report(local: LocalStudy, outcome: Outcome, out: Path) -> Path:
    from veiltab.researcher.report.presentation import report_page  # noqa: PLC0415 - not for results in text

    path = out / "report.html"
    path.write_text(report_page(local.study, outcome.status, outcome.estimate, outcome.fractions), "utf-8")
    return path
