"""`veiltab researcher request` and `status`: ask for a release, and see how it stands."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import emit, finite, note
from veiltab.common.command.options import NOISE_OPTIONS, repeats_option, tables_options
from veiltab.common.command.rare_options import rare_options
from veiltab.common.privacy.planning.planning import few_rows_warning
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState, not_ready
from veiltab.common.schemes import SCHEMES
from veiltab.common.study.missing import respondents_sentence
from veiltab.researcher.commands.options_cli import RELEASE, member_option, with_client
from veiltab.researcher.commands.status_cli import Watcher, status_text
from veiltab.researcher.report.plain_data import status_dict

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.status.release_status import Status


@click.command(
    epilog="Example: veiltab researcher request study.toml --identity pki/researcher-rosa"
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
    "--population",
    type=click.IntRange(min=1),
    help="Respondents that there will be at least: with enough of them --workload linked measures all triples.",
)
@click.option("--purpose", default="", help="Purpose, for the people who decide.")
@click.option("--label", default="", help="Your own name for the release; the same label is the same release.")
@click.option("--partial", is_flag=True, help="Continue with the granted attributes if some are denied.")
@rare_options(
    "--advanced",
    click.option(
        "--scheme", type=click.Choice(list(SCHEMES)), default="wor", help="How rows are drawn, wor by default."
    ),
    click.option("--stage", type=click.IntRange(min=1), help="Rows b that stage one of a MUST scheme draws."),
    *NOISE_OPTIONS,
    member_option("--sampling", Sampling, help="seed or indices; by default as the study says."),
    member_option("--pad", Pad, help="chacha20 or otp; by default as the study says."),
    click.option("--sample", type=click.IntRange(min=1), help="Rows to sample; by default the planner's choice."),
    repeats_option,
    click.option("--lifetime-hours", default=24.0, callback=finite, help="Until an unfinished release ends; 24."),
)
@click.option("--wait", is_flag=True, help="Wait until the release is ready.")
@click.option(
    "--timeout",
    default=600.0,
    show_default=True,
    callback=finite,
    help="Seconds to wait; the release continues after that.",
)
def request(
    client: "Client",
    *,
    attributes: tuple[str, ...],
    tables: tuple[tuple[str, ...], ...],
    lifetime_hours: float,
    wait: bool,
    timeout: float,
    **choices: Any,  # noqa: ANN401 - the other options are keywords of Client.request
) -> None:
    """Ask the curators for a release; the same command continues an unfinished one."""
    each = tables or ([] if choices["workload"] else [attributes])
    cells = max((client.study.domain(table).cells for table in each), default=0)
    rows = choices["sample"] or choices["population"]
    if warning := few_rows_warning(cells, rows, client.study.minimum_population):
        note(warning)
    release = client.request(attributes, tables=tables, lifetime_seconds=round(lifetime_hours * 3600), **choices)
    note(f"release {release.id}" + (" (continued)" if release.continued else ""))
    if choices["workload"] or tables:
        note(_planning_hint(attributes, tables, choices))
    status = release.wait(timeout, Watcher()) if wait else release.status()
    if status.state.unsuccessful:  # a script sees what it would see with --wait
        raise not_ready(status.state, status.failure, where=f"release {release.id}", remedy=status.advice)
    facts = {"continued": release.continued, "warnings": [warning] if warning else []}
    emit(status_dict(status) | facts, _text_of(status, client))


@click.command(epilog="Example: veiltab researcher status study.toml --identity pki/researcher-rosa --release wages")
@with_client
@click.option("--release", "release_name", help=f"{RELEASE}; by default all are listed.")
@click.option("--accesses", is_flag=True, help="Show which analyst asked for what, and when; for the researcher alone.")
def status(client: "Client", release_name: str | None, accesses: bool) -> None:
    """Show releases, and the parties that they wait for."""
    if accesses:
        _show_accesses(client, release_name)
    elif release_name:
        answer = client.status(release_name)
        emit(status_dict(answer), _text_of(answer, client))
    else:
        every = client.releases()
        text = "\n".join(status_text(one) for one in every) or "No releases yet."
        emit({"releases": [status_dict(one) for one in every]}, text)


def _text_of(status: "Status", client: "Client") -> str:
    """Return a status and, of a release that is ready under the client's study file, whom n counts."""
    if status.state is not ReleaseState.READY or status.study_digest != client.study.digest:
        return status_text(status)
    return f"{status_text(status)}\n  {respondents_sentence(client.study, status.measured_attributes, status.left_out)}"


def _show_accesses(client: "Client", release_name: str | None) -> None:
    """Show what analysts asked for, of one release or at all."""
    labels = {status.release_id: status.label for status in client.releases()}
    only = None if release_name is None else client.status(release_name).release_id
    accesses = [access for access in client.accesses() if only in {None, access.release_id}]
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
    emit({"accesses": data}, "\n".join(lines) or "No analyst has asked for anything.")


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _planning_hint(attributes: Sequence[str], tables: Sequence[Sequence[str]], choices: Mapping[str, Any]) -> str:
    """Return the command that says what several tables cost and how near to the truth they come."""
    own = {name: choices[name] for name in ("workload", "epsilon", "delta", "sample")}
    words = [f"--population {choices['population'] or 'N'}"]
    words += [f"--advanced repeats={choices['repeats']}"] if choices["repeats"] else []
    words += [f"--{name} {shlex.quote(str(value))}" for name, value in own.items() if value]
    words += [f"--attributes {shlex.quote(','.join(attributes))}"] if attributes else []
    words += [f"--tables {shlex.quote(','.join(table))}" for table in tables]
    return (
        f"veiltab plan --study STUDY.toml {' '.join(words)} says the tables, the price, the foreseen error and the"
        " bytes; N is the number of rows of the hub."
    )
