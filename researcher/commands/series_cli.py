"""`veiltab researcher series`: one question put to the waves of a study."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, listed
from veiltab.common.command.new_files import NEW_FILE, force_option
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.commands.linkage_options import Linkage, linkage_option
from veiltab.researcher.commands.options_cli import absent_option, confidence_option, with_client
from veiltab.researcher.commands.question_options import check_files, question_argument, write_files
from veiltab.researcher.report.plain_data import analysis_dict

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client


@click.command(
    epilog='Example: veiltab researcher series study.toml "mean of hours by sex" --identity pki/researcher-rosa'
    " --releases 2026-01,2026-02,2026-03 --changes --picture hours.svg"
)
@with_client
@question_argument
@click.option("--releases", required=True, metavar="A,B[,C]", help="Labels or ids of the waves, in order.")
@click.option("--changes", is_flag=True, help="How each wave differs from the one before.")
@linkage_option
@absent_option
@confidence_option
@click.option("--out", type=NEW_FILE, help="Also write the table here (.csv, .parquet or .json).")
@click.option("--picture", type=NEW_FILE, help="Draw the series (.svg or .png).")
@force_option
def series(
    client: "Client",
    *,
    question: str,
    releases: str,
    changes: bool,
    linkage: Linkage,
    absent: str,
    confidence: float,
    out: Path | None,
    picture: Path | None,
) -> None:
    """Put one QUESTION to several releases, the waves of a study, and show what each says or how they changed.

    `veiltab researcher estimate --help` lists the questions.
    """
    from veiltab.researcher.questions import series as waves

    check_files(out, picture)
    answers, waves_of = {}, dict[str, str]()
    for name in listed(releases):
        release = client.release(name)
        if release.id in waves_of:
            raise InvalidInputError(
                f"{waves_of[release.id]} and {name} are the same release", where="--releases", remedy="Name each once."
            )
        waves_of[release.id] = name
        try:
            answers[name] = release.ask(question, confidence=confidence, linkage_error=linkage, absent=absent)
        except InvalidInputError as error:
            where = f"{name}, {error.where}" if error.where else name
            raise InvalidInputError(error.problem, where=where, remedy=error.remedy) from error
    analysis = waves.series(answers, as_changes=changes)
    written = write_files(analysis, out, picture)
    data = {"releases": list(answers), **analysis_dict(client.study, analysis), "out": out, "plot": picture}
    emit(data, "\n".join((analysis.text(), f"Study: {client.study.title}.", *written)))
