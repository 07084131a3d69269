"""`veiltab researcher series`: one question put to the waves of a study."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import NEW_FILE, emit, force_option, listed
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.commands.linkage_options import Linkage, linkage_options
from veiltab.researcher.commands.options_cli import attributes_option, confidence_option, with_client
from veiltab.researcher.commands.question_options import question_options
from veiltab.researcher.commands.tables_cli import named_attributes, table_of
from veiltab.researcher.report.plain_data import analysis_dict

if TYPE_CHECKING:
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.questions.question import Question


@click.command(
    epilog="Example: veiltab researcher series study.toml --name rosa --identity pki/researcher-rosa"
    " --releases 2026-01,2026-02,2026-03 --mean hours --given sex --changes --plot hours.svg"
)
@with_client
@click.option("--releases", required=True, metavar="A,B[,C]", help="Labels or ids of the waves, in order.")
@click.option("--changes", is_flag=True, help="How each wave differs from the one before.")
@attributes_option
@question_options
@linkage_options
@confidence_option
@click.option("--out", type=NEW_FILE, help="Also write the table here (.csv, .parquet or .json).")
@force_option
@click.option("--plot", type=NEW_FILE, help="Draw the series (.svg or .png).")
def series(
    client: "Client",
    *,
    releases: str,
    changes: bool,
    attributes: str | None,
    question: "Question",
    linkage: Linkage,
    confidence: float,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Put one question to several releases, the waves of a study, and show what each says or how they changed.

    A question is that of `estimate`: shares of the --attributes, perhaps --given others, means, models and so on.
    """
    from veiltab.researcher.drawing.style import check_picture
    from veiltab.researcher.estimates.table import check_table_path, write
    from veiltab.researcher.questions import series as waves
    from veiltab.researcher.questions.question import answer, answer_of_all

    if out is not None:
        check_table_path(out)
    if plot is not None:
        check_picture(plot)
    answers, waves_of = {}, dict[str, str]()
    for name in listed(releases):
        release = client.release(name)
        if release.id in waves_of:
            raise InvalidInputError(
                f"{waves_of[release.id]} and {name} are the same release", where="--releases", remedy="Name each once."
            )
        waves_of[release.id] = name
        if question.is_of_all_tables:
            answers[name] = answer_of_all(release.measured(confidence=confidence, linkage_error=linkage), question)
        else:
            names = named_attributes(attributes, question, release)
            answers[name] = answer(question, table_of(release, names, confidence, linkage))
    analysis = waves.series(answers, as_changes=changes)
    if plot is not None:
        analysis.plot().save(plot)
    if out is not None:
        write(analysis.frame(), out)
    data = {"releases": list(answers), **analysis_dict(client.study, analysis), "out": out, "plot": plot}
    written = [f"Written: {path}" for path in (out, plot) if path is not None]
    emit(data, "\n".join((analysis.text(), f"Study: {client.study.title}.", *written)))
