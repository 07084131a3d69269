"""`veiltab researcher estimate`: tables, analyses, waves."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from veiltab.common.command.cli import emit
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.missing import WRONG_LINKS
from veiltab.researcher.commands.linkage_options import Linkage, linkage_option
from veiltab.researcher.commands.options_cli import RELEASE, absent_option, confidence_option, with_client
from veiltab.researcher.commands.question_options import QUESTION_EXAMPLES, check_files, question_argument, write_files
from veiltab.researcher.commands.status_cli import card_lines
from veiltab.researcher.report.plain_data import analysis_dict, remarks_on_links, status_dict, table_dict

if TYPE_CHECKING:
    from veiltab.common.study.file import Study
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.client.release import Release
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.estimates.independence import IndependenceTest
    from veiltab.researcher.status.release_status import Status


@click.command(epilog=QUESTION_EXAMPLES)
@with_client
@question_argument
@click.option(
    "--release",
    "release_names",
    required=True,
    multiple=True,
    help=f"{RELEASE}. Repeat it for the waves of a study, in their order.",
)
@click.option("--compare", metavar="RELEASE", help="Another release of the same study: this one minus that.")
@click.option("--changes", is_flag=True, help="How each wave differs from the one before.")
@linkage_option
@absent_option
@confidence_option
@click.option("--out", type=NEW_FILE, help="Also write the table here (.csv, .parquet or .json).")
@click.option("--picture", type=NEW_FILE, help="Also draw it (.svg or .png).")
@force_option
def estimate(
    client: "Client",
    *,
    question: str,
    release_names: tuple[str, ...],
    compare: str | None,
    changes: bool,
    linkage: Linkage,
    absent: str,
    confidence: float,
    out: Path | None,
    picture: Path | None,
) -> None:
    """Answer a QUESTION about a release: its table, with standard errors and intervals, if there is none.

    Shares, means and models are of the people whom every curator of the released table has. A table that was not
    measured comes from a model of those that were, and is marked. The level of a test is 1 less the confidence.
    --compare takes shares, perhaps by group. A question to several waves shows what each says, or how they changed.
    """
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.questions.question import answer
    from veiltab.researcher.questions.sentence import parse_question

    check_files(out, picture)
    choices: dict[str, Any] = {"confidence": confidence, "linkage_error": linkage, "absent": absent}
    if changes or len(release_names) > 1:
        if compare is not None:
            raise InvalidInputError(
                "waves are not compared with another release", where="--compare", remedy="Take --changes instead."
            )
        _emit_waves(client, release_names, question, choices, out, picture, as_changes=changes)
        return
    release = client.release(release_names[0])
    parsed = parse_question(question, release.domain(absent=absent))
    if parsed.independence:
        refuse_beside_test({"--compare": compare, "--linkage-error": linkage, "--out": out, "--picture": picture})
        _emit_test(release, release.test(question, level=1 - confidence, absent=absent))
        return
    if parsed.is_of_all_tables:
        if compare is not None:
            raise InvalidInputError("something else than shares was to be compared", where="--compare")
        _emit_analysis(client.study, release, None, release.ask(question, **choices), out, picture)
        return
    table = release.table(parsed.attributes, **choices)
    if parsed.is_plain and compare is None and isinstance(table, TableEstimate):
        _emit_table(client.study, release, table, out, picture)
        return
    other = None
    if compare is not None:
        other = _other_table(client, compare, release, parsed.attributes, choices)
    _emit_analysis(client.study, release, table, answer(parsed, table, other), out, picture)


def refuse_beside_test(options: Mapping[str, object]) -> None:
    """Refuse options that a test of independence does not take."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError("this option does not go with a test of independence", where=name)


def _emit_table(
    study: "Study", release: "Release", estimate: "TableEstimate", out: Path | None, picture: Path | None
) -> None:
    status = release.status()
    respondents = release.respondents()
    files = write_files(estimate, out, picture)
    data = {**table_dict(study, status, estimate, respondents), "out": out, "picture": picture}
    table = None if status.spec is None else status.spec.only_table
    card = [] if table is None else card_lines(table)
    lines = [
        str(estimate),
        *(one for one in remarks_on_links(estimate) if one not in estimate.remarks),
        _source_sentence(estimate, status),
        respondents,
        *card,
        f"Study: {study.title}. Its file: {estimate.study_digest}.",
        *files,
    ]
    emit(data, "\n".join(lines))


def _emit_test(release: "Release", test: "IndependenceTest") -> None:
    data = {"release": release.id, **asdict(test), "dependent": test.dependent, "approximate": test.approximate}
    emit(data, str(test))


def _emit_analysis(
    study: "Study",
    release: "Release",
    table: "Table | None",
    analysis: "Analysis",
    out: Path | None,
    picture: Path | None,
) -> None:
    files = write_files(analysis, out, picture)
    status = release.status()
    whole = {"respondents": release.respondents(), "out": out, "picture": picture}
    data = {"release": status_dict(status)["release"], **analysis_dict(study, analysis), **whole}
    links = "" if study.identity is None else WRONG_LINKS
    about, source = f"Study: {study.title}.", "" if table is None else _source_sentence(table, status)
    parts = (analysis.text(), source, links, about, *files)
    emit(data, "\n".join(part for part in parts if part))


def _source_sentence(table: "Table", status: "Status") -> str:
    """Say of how many respondents a table is, and of a release of several tables how often it was measured."""
    from veiltab.researcher.analysis.comparisons import source_sentence

    return f"n = {table.population:,}. {source_sentence(table) if status.tables else ''}".rstrip()


def _emit_waves(
    client: "Client",
    names: Sequence[str],
    question: str,
    choices: Mapping[str, Any],
    out: Path | None,
    picture: Path | None,
    *,
    as_changes: bool,
) -> None:
    from veiltab.researcher.questions.series import series

    answers, waves = {}, dict[str, str]()
    for name in names:
        release = client.release(name)
        if release.id in waves:
            raise InvalidInputError(
                f"{waves[release.id]} and {name} are the same release", where="--release", remedy="Name each once."
            )
        waves[release.id] = name
        try:
            answers[name] = release.ask(question, **choices)
        except InvalidInputError as error:
            where = f"{name}, {error.where}" if error.where else name
            raise InvalidInputError(error.problem, where=where, remedy=error.remedy) from error
    analysis = series(answers, as_changes=as_changes)
    files = write_files(analysis, out, picture)
    data = {"releases": list(answers), **analysis_dict(client.study, analysis), "out": out, "picture": picture}
    emit(data, "\n".join((analysis.text(), f"Study: {client.study.title}.", *files)))


def _other_table(
    client: "Client", name: str, release: "Release", attributes: Sequence[str], choices: Mapping[str, Any]
) -> "Table":
    """Return the table of another release, with which that of a release is compared."""
    other = client.release(name)
    if other.id == release.id:
        raise InvalidInputError("a release is compared with itself", where="--compare", remedy="Name another release.")
    try:
        return other.table(attributes, **choices)
    except InvalidInputError as error:
        where = f"--compare {name}: {error.where}" if error.where else f"--compare {name}"
        raise InvalidInputError(error.problem, where=where, remedy=error.remedy) from error
