"""`veiltab researcher`: run the service, ask for a release, see how it stands, estimate, report."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import EXIT_CODES, PATH, Command, emit, finite, json_option, listed, note
from veiltab.common.command.options import (
    ServeOptions,
    connected,
    noise_options,
    serve_options,
    tables_options,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.observe.progress import without_figures
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.schemes import SCHEMES
from veiltab.common.storage.files import written_whole
from veiltab.researcher.analysis.options import QUESTION_EXAMPLES, question_options

if TYPE_CHECKING:
    from veiltab.common.release.spec import ReleaseSpec
    from veiltab.common.study.file import Study
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.client.release import Release
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.status.release_status import Status

_RELEASE = "Label of the release, or its id or the beginning of it"
release_option = click.option("--release", "release_name", required=True, help=f"{_RELEASE}.")
confidence_option = click.option(
    "--confidence", default=0.95, show_default=True, type=click.FloatRange(0, 1, min_open=True, max_open=True)
)
attributes_option = click.option(
    "--attributes",
    help="Only these attributes, separated by commas: the marginal over the others. By default those that --model or"
    " --total names, else all of the only table.",
)


def _member_option(name: str, kind: type[Enum], *, help: str) -> Callable[[Command], Command]:  # noqa: A002 - click's
    def member(_context: click.Context, _option: click.Parameter, value: str | None) -> Enum | None:
        return None if value is None else kind(value)

    return click.option(name, type=click.Choice([one.value for one in kind]), callback=member, help=help)


def _client(study_path: Path, identity: Path, name: str) -> "Client":
    from veiltab.researcher.client.client import Client

    return Client(study_path, identity=identity, name=name)


with_client = connected("client", _client)
"""Gives a command a Client, of the researcher or analyst whom its options name."""


@click.group(epilog=EXIT_CODES)
def researcher() -> None:
    """Ask for releases and read their results.

    A researcher's analysts read results with their own names and identities: status, estimate, report.

    Example: veiltab researcher status study.toml --name rosa --identity pki/researcher-rosa
    """


@researcher.command(
    epilog="Example: veiltab researcher serve study.toml --name rosa --identity pki/researcher-rosa --state state"
)
@serve_options
def serve(options: ServeOptions) -> None:
    """Carry requests to the curators, fetch and decrypt releases, keep results."""
    from veiltab.researcher.desk.serving import serve_researcher

    serve_researcher(options)


@researcher.command(
    epilog="Example: veiltab researcher request study.toml --name rosa --identity pki/researcher-rosa"
    " --attributes education,salary --epsilon 1 --purpose 'wage gap' --wait\n\n"
    "Several tables: --attributes age,education,salary --workload linked --epsilon 1 --delta 1e-6,"
    " or --tables age,salary education,salary"
)
@with_client
@tables_options
@click.option("--epsilon", required=True, help="Epsilon in nats, of all tables together; pure unless with --delta.")
@click.option("--delta", help="Keep (epsilon, delta) by the secret order instead: far more accurate.")
@click.option(
    "--max-local-epsilon", help="Largest ln gamma of the server's noise: a row's epsilon against who knows its person."
)
@click.option(
    "--scheme", type=click.Choice(list(SCHEMES)), default="wor", show_default=True, help="How rows are drawn."
)
@click.option("--stage", type=click.IntRange(min=1), help="Rows b that stage one of a MUST scheme draws.")
@noise_options
@click.option("--purpose", default="", help="Purpose, for the people who decide.")
@click.option("--label", default="", help="Your own name for the release; the same label is the same release.")
@click.option("--partial", is_flag=True, help="Continue with the granted attributes if some are denied.")
@_member_option("--sampling", Sampling, help="By default as the study says.")
@_member_option("--pad", Pad, help="By default as the study says.")
@click.option("--sample", type=click.IntRange(min=1), help="Rows to sample; by default the planner's choice.")
@click.option(
    "--lifetime-hours",
    default=24.0,
    show_default=True,
    callback=finite,
    help="Time until an unfinished release is abandoned.",
)
@click.option("--wait", is_flag=True, help="Wait until the release is ready.")
@click.option(
    "--timeout",
    default=600.0,
    show_default=True,
    callback=finite,
    help="Seconds to wait; the release continues after that.",
)
@json_option
def request(
    client: "Client",
    *,
    attributes: tuple[str, ...],
    tables: tuple[tuple[str, ...], ...],
    lifetime_hours: float,
    wait: bool,
    timeout: float,
    as_json: bool,
    **choices: Any,  # noqa: ANN401 - the other options are keywords of Client.request
) -> None:
    """Ask the curators for a release; the same command continues an unfinished one."""
    release = client.request(attributes, tables=tables, lifetime_seconds=round(lifetime_hours * 3600), **choices)
    note(f"release {release.id}" + (" (continued)" if release.continued else ""))
    if choices["workload"] or tables:
        note(_planning_hint(attributes, tables, choices))
    status = release.wait(timeout, _Watcher()) if wait else release.status()
    emit(as_json, _status_dict(status) | {"continued": release.continued}, _status_text(status))


@researcher.command(
    epilog="Example: veiltab researcher status study.toml --name rosa --identity pki/researcher-rosa --release wages"
)
@with_client
@click.option("--release", "release_name", help=f"{_RELEASE}; by default all are listed.")
@json_option
def status(client: "Client", release_name: str | None, as_json: bool) -> None:
    """Show releases, and the parties that they wait for."""
    found = [client.status(release_name)] if release_name else client.releases()
    if release_name:
        emit(as_json, _status_dict(found[0]), _status_text(found[0]))
    else:
        text = "\n".join(_status_text(one) for one in found) or "No releases yet."
        emit(as_json, {"releases": [_status_dict(one) for one in found]}, text)


@researcher.command(epilog=QUESTION_EXAMPLES)
@with_client
@release_option
@attributes_option
@question_options
@confidence_option
@click.option("--out", type=PATH, help="Also write the table here (.csv, .parquet or .json).")
@json_option
def estimate(
    client: "Client",
    *,
    release_name: str,
    attributes: str | None,
    given: str | None,
    contrast: str | None,
    compare: str | None,
    confidence: float,
    out: Path | None,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 - the other options are fields of Question
) -> None:
    """Estimate the joint distribution, or a marginal, with standard errors and intervals; or analyse it.

    A table that was not measured comes from a model of those that were, and is marked. An analysis takes one of
    --given, --total, --model and --compare (which may go with --given).
    """
    from veiltab.researcher.analysis.contrasts import Contrast
    from veiltab.researcher.analysis.question import Question, answer
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.estimates.table import check_table_path

    if out is not None:
        check_table_path(out)
    question = Question(
        given=listed(given) if given else (), contrast=Contrast(contrast) if contrast else None, **asked
    )
    release = client.release(release_name)
    names: Sequence[str] = ()
    if attributes is not None:
        names = listed(attributes)
    elif question.model or question.totals:
        names = question.attributes(release.domain())
    found = _table(release, names, confidence)
    if question.is_plain and compare is None and isinstance(found, TableEstimate):
        _emit_table(client.study, release, found, out, as_json)
        return
    other = None if compare is None else _other_table(client, compare, release, names, confidence)
    _emit_analysis(client.study, release, found, answer(question, found, other), out, as_json)


def _emit_table(study: "Study", release: "Release", found: "TableEstimate", out: Path | None, as_json: bool) -> None:
    from veiltab.common.privacy.planning.planning import FEW_ROWS
    from veiltab.researcher.estimates.table import to_frame, to_records, write
    from veiltab.researcher.report.presentation import source_sentence

    known = release.status()
    frame = to_frame(found)
    respondents = release.respondents()
    if out is not None:
        write(frame, out)
    data = {
        "release": _status_dict(known)["release"],
        "study": study.title,
        "attributes": list(found.domain.names),
        "study_digest": found.study_digest,
        "codebook": found.codebook,
        "confidence": found.confidence,
        "cells": to_records(found),
        "root_mse": found.root_mse,
        "few_rows": found.has_few_rows,
        "respondents": respondents,
        "out": out,
    }
    card = [] if known.spec is None else _card_lines(known.spec)
    lines = [
        frame.to_string(index=False),
        "",
        f"Expected root-mean-square distance of all cells: {found.root_mse:.5f}. Intervals at {found.confidence:.0%}.",
        *([FEW_ROWS] if found.has_few_rows else []),
        source_sentence(found, known),
        respondents,
        *card,
        f"Study: {study.title}. Its file: {found.study_digest}.",
        *([] if out is None else [f"Written: {out}"]),
    ]
    emit(as_json, data, "\n".join(lines))


def _emit_analysis(
    study: "Study", release: "Release", found: "Table", analysis: "Analysis", out: Path | None, as_json: bool
) -> None:
    from veiltab.researcher.estimates.table import write
    from veiltab.researcher.report.presentation import source_sentence

    if out is not None:
        write(analysis.frame(), out)
    known = release.status()
    respondents = release.respondents()
    data = {
        "release": _status_dict(known)["release"],
        "study": study.title,
        "title": analysis.title,
        "unit": analysis.unit.value,
        "confidence": analysis.confidence,
        "measured": analysis.is_measured,
        "study_digest": analysis.study_digest,
        "rows": analysis.records(),
        "remarks": list(analysis.remarks),
        "respondents": respondents,
        "out": out,
    }
    about = f"Study: {study.title}."
    source = source_sentence(found, known)
    lines = [analysis.text(), source, respondents, about, *([] if out is None else [f"Written: {out}"])]
    emit(as_json, data, "\n".join(lines))


@researcher.command(
    epilog="Example: veiltab researcher report study.toml --name rosa --identity pki/researcher-rosa"
    " --release wages --out wages.html"
)
@with_client
@release_option
@confidence_option
@click.option("--out", required=True, type=PATH, help="HTML file to write.")
@json_option
def report(client: "Client", release_name: str, confidence: float, out: Path, as_json: bool) -> None:
    """Write one self-contained HTML page with pictures, the epsilon card and every number.

    Of a release of several tables it is about microdata of as many rows as there are respondents, with the seed
    "report"; `veiltab researcher synthesise --report` writes the page that goes with a file of your own.
    """
    from veiltab.common.web.document import check_page, write_page
    from veiltab.researcher.report.microdata_page import render
    from veiltab.researcher.report.presentation import card_of, microdata_report, report_page

    check_page(out)
    release = client.release(release_name)
    known = release.status()
    if known.tables:
        html = render(microdata_report(client.study, release.synthesise(seed="report"), card_of(known)))
    else:
        html = report_page(client.study, known, release.estimate(confidence=confidence))
    write_page(html, out)
    emit(as_json, {"release": release.id, "report": out}, f"Report: {out}")


@researcher.command(
    epilog="Example: veiltab researcher synthesise study.toml --name rosa --identity pki/researcher-rosa"
    " --release linked --rows 400000 --seed census --out linked.parquet"
)
@with_client
@release_option
@click.option("--attributes", help="Only these attributes, separated by commas; by default all that were asked for.")
@click.option(
    "--rows", type=int, help="Rows; by default as many as there are respondents. For intervals, take ten times that."
)
@click.option(
    "--replicates",
    type=int,
    help="Columns of weights for intervals, 20 by default: the release is played again so often. 0 for none.",
)
@click.option("--copies", type=int, help="Instead of weights, so many files, for mitools and its like; an even number.")
@click.option("--seed", help="The same seed gives the same rows; by default a random one, which is printed.")
@click.option(
    "--out", required=True, type=PATH, help="File to write (.parquet or .csv); copies get numbers, -1, -2, ..."
)
@click.option("--report", "page", type=PATH, help="Also write an HTML page about the file.")
@json_option
def synthesise(
    client: "Client",
    release_name: str,
    attributes: str | None,
    rows: int | None,
    replicates: int | None,
    copies: int | None,
    seed: str | None,
    out: Path,
    page: Path | None,
    as_json: bool,
) -> None:
    """Write microdata: rows drawn from a model of all tables of a release, which are no people.

    The rows are the best estimate. Columns of weights say how far they may be from the truth: R's survey, Stata and SAS
    read them by the line that the file brings, and veiltab.with_replicates in Python. Where the rows come from stands
    in the file (Parquet: pandas reads it as attrs) or beside it (CSV: a .json of the same name).
    """
    from veiltab.common.web.document import check_page, write_page
    from veiltab.researcher.microdata.files import check_microdata_path
    from veiltab.researcher.microdata.provenance import WARNING
    from veiltab.researcher.microdata.synthesis import REPLICATES

    if copies is not None and replicates is not None:
        raise InvalidInputError(
            "a file has weights, or there are copies",
            where="--copies",
            remedy="Give --replicates for one file with weights, or --copies for files without.",
        )
    check_microdata_path(out)
    if page is not None:
        check_page(page)
    release = client.release(release_name)
    microdata = release.synthesise(
        rows=rows,
        replicates=REPLICATES if replicates is None and not copies else replicates or 0,
        copies=copies or 0,
        seed=seed,
        attributes=listed(attributes) if attributes else None,
        progress=lambda done, whole: None if done % 5 else note(f"the release was played again: {done} of {whole}"),
    )
    files = microdata.write(out)
    if page is not None:
        from veiltab.researcher.report.microdata_page import render
        from veiltab.researcher.report.presentation import card_of, microdata_report

        write_page(render(microdata_report(client.study, microdata, card_of(release.status()))), page)
    known = microdata.provenance
    data = {
        "release": release.id,
        "files": files,
        "rows": known.rows,
        "replicates": known.replicates,
        "copies": known.copies,
        "seed": known.seed,
        "model": known.model,
        "graph": known.graph,
        "report": page,
    }
    lines = [
        *(f"Written: {file}" for file in files),
        f"{known.rows:,} rows{' a file' if known.copies else ''}, model: {known.model}; seed {known.seed}",
        *(
            [f"Weights of {known.replicates} replicates, for intervals"]
            if known.replicates and not known.copies
            else []
        ),
        WARNING,
        *([known.remark] if known.remark else []),
        *([] if page is None else [f"Report: {page}"]),
    ]
    emit(as_json, data, "\n".join(lines))


@researcher.command(
    epilog="Example: veiltab researcher certificate study.toml --name rosa --identity pki/researcher-rosa"
    " --release wages --out wages.certificate"
)
@with_client
@release_option
@click.option("--out", type=PATH, required=True, help="File to write.")
@json_option
def certificate(client: "Client", release_name: str, out: Path, as_json: bool) -> None:
    """Write the release certificate: description, receipts and ledgers, signed by every curator and the server.

    One file holds all tables of a release, and says that none is missing. An auditor checks it offline, with the study
    file and `veiltab verify`. It holds the counts of the tests: keep it from analysts, who may not ask for it.
    """
    release = client.release(release_name)
    with written_whole(out) as file:
        file.write(release.certificate().encode())
    emit(as_json, {"release": release.id, "certificate": out}, f"Certificate: {out}")


@researcher.command(epilog="Example: veiltab researcher console study.toml --name rosa --identity pki/researcher-rosa")
@with_client
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Of the loopback interface; 0 takes a free one."
)
@json_option
def console(client: "Client", port: int, as_json: bool) -> None:
    """Show releases, tables and plans as pages of a browser on this machine, and ask for releases there.

    It prints a link that works once. An analyst's console has no page that asks for a release.
    """
    with importing("console", "the console"):
        from veiltab.researcher.console.console import run_console

    run_console(client, port=port, as_json=as_json)


@researcher.command(
    epilog="Example: veiltab researcher access-log study.toml --name rosa --identity pki/researcher-rosa"
)
@with_client
@json_option
def access_log(client: "Client", as_json: bool) -> None:
    """Show which analyst asked for what of which release, and when; for the researcher alone."""
    accesses = client.accesses()
    labels = {status.release_id: status.label for status in client.releases()}
    data = [
        {
            "analyst": access.analyst,
            "subject": access.subject.value,
            "release": access.release_id or None,
            "label": labels.get(access.release_id) or None,
            "times": access.times,
            "first": _instant(access.first).isoformat(),
            "last": _instant(access.last).isoformat(),
        }
        for access in accesses
    ]
    lines = [
        f"{_instant(access.first):%Y-%m-%d %H:%M:%S} to {_instant(access.last):%H:%M:%S} UTC  {access.analyst}"
        f"  {access.times}x {access.subject.value}  {access.release_id}  {labels.get(access.release_id, '')}".rstrip()
        for access in accesses
    ]
    emit(as_json, {"accesses": data}, "\n".join(lines) or "No analyst has asked for anything.")


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _planning_hint(attributes: Sequence[str], tables: Sequence[Sequence[str]], choices: Mapping[str, Any]) -> str:
    """Return the command that says what several tables cost and how near to the truth they come."""
    own = {name: choices[name] for name in ("workload", "repeats", "epsilon", "delta", "sample")}
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in own.items() if value]
    words += [f"--attributes {shlex.quote(','.join(attributes))}"] if attributes else []
    words += [f"--tables {shlex.quote(','.join(table))}" for table in tables]
    return (
        f"veiltab plan --study STUDY.toml --population N {' '.join(words)} says the tables, the price, the foreseen"
        " error and the bytes; N is the number of common respondents."
    )


def _other_table(
    client: "Client", name: str, release: "Release", attributes: Sequence[str], confidence: float
) -> "Table":
    """Return the table of another release, with which that of a release is compared."""
    other = client.release(name)
    if other.id == release.id:
        raise InvalidInputError("a release is compared with itself", where="--compare", remedy="Name another release.")
    try:
        return _table(other, attributes, confidence)
    except InvalidInputError as error:
        where = f"--compare {name}: {error.where}" if error.where else f"--compare {name}"
        raise InvalidInputError(error.problem, where=where, remedy=error.remedy) from error


def _table(release: "Release", attributes: Sequence[str], confidence: float) -> "Table":
    """Return the table of some attributes; without any, the only table of a release."""
    if not attributes:
        return release.estimate(confidence=confidence)
    return release.table(attributes, confidence=confidence)


_SAME_WORK_SECONDS = 10.0
"""Between two lines that say how far the same work is."""


class _Watcher:
    """Prints a release's status to stderr when it changes; how far the same work is, from time to time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = ""
        self._printed = 0.0

    def __call__(self, status: "Status") -> None:
        line, now = "; ".join(filter(None, (status.state.value, status.progress, status.waiting_for))), self._clock()
        is_same_work = without_figures(line) == without_figures(self._last)
        if line != self._last and not (is_same_work and now - self._printed < _SAME_WORK_SECONDS):
            note(f"{datetime.now(UTC):%H:%M:%S}  {line}")
            self._last, self._printed = line, now


def _card_lines(spec: "ReleaseSpec") -> list[str]:
    from veiltab.common.privacy.cards.card import N_IS_EXACT
    from veiltab.common.release.guarantees.guarantees import epsilon_card

    return [*(f"  {who}: {faces}" for who, faces in epsilon_card(spec).rows()), f"  {N_IS_EXACT}"]


def _status_dict(status: "Status") -> dict[str, object]:
    from veiltab.common.release.guarantees.guarantees import guaranteed_epsilon, release_facts

    spec = status.spec
    return {
        "release": {
            "id": status.release_id,
            "label": status.label,
            "state": status.state.value,
            "attributes": list(status.attributes),
            "epsilon": status.epsilon,
            "study_digest": status.study_digest,
            **({} if spec is None else release_facts(spec) | {"guaranteed_epsilon": guaranteed_epsilon(spec)}),
        },
        "granted": list(status.granted),
        "tables": [
            {
                "number": table.number,
                "phase": table.phase,
                "id": table.release_id,
                "state": table.state.value,
                "attributes": list(table.attributes),
            }
            for table in status.tables
        ],
        "receipts": [receipt.facts() for receipt in status.receipts],
        "failure": status.failure,
        "parties": {
            party: {"state": state.value, "waiting_for": status.waits.get(party, "")}
            for party, (state, _) in status.parties.items()
        },
        "seconds": status.seconds,
        "bytes": status.bytes,
    }


def _status_text(status: "Status") -> str:
    asked = f"{', '.join(status.attributes)} at epsilon {status.epsilon}"
    lines = [f"{status.release_id}  {status.label or '-'}  {status.state.value}  {asked}"]
    if status.failure:
        advised = f"{status.failure.rstrip('.')}. {status.advice}" if status.advice else status.failure
        lines.append(f"  {advised}")
    if status.progress:
        lines.append(f"  {status.progress}")
    lines.extend(
        f"  {party}: {state.value}{', waits: ' + status.waits[party] if party in status.waits else ''}"
        for party, (state, _) in sorted(status.parties.items())
    )
    if status.workload is not None:
        workload = status.workload
        again = f", up to {workload.repeats} of them a second time" if workload.repeats else ""
        lines.append(f"  n = {workload.population}, m = {workload.sample}, {len(workload.tables)} tables{again}")
    if status.spec is not None:
        spec = status.spec
        lines.append(
            f"  n = {spec.population}, m = {spec.sample}, K = {spec.cells}, gamma = {float(spec.mechanism.gamma):.4f}"
        )
        lines.extend(_card_lines(spec))
    lines.extend(f"  test by {receipt.tested_by}: {receipt.sentence()}" for receipt in status.receipts)
    return "\n".join(lines)
