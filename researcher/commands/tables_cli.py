"""`veiltab researcher estimate` and `report`: tables, analyses, pages."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import NEW_FILE, emit, force_option, listed
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.commands.linkage_options import Linkage, linkage_options
from veiltab.researcher.commands.options_cli import attributes_option, confidence_option, release_option, with_client
from veiltab.researcher.commands.question_options import QUESTION_EXAMPLES, question_options
from veiltab.researcher.commands.status_cli import card_lines
from veiltab.researcher.report.plain_data import analysis_dict, said_of_links, status_dict, table_dict

if TYPE_CHECKING:
    from veiltab.common.study.file import Study
    from veiltab.researcher.analysis.comparisons import Table
    from veiltab.researcher.analysis.result import Analysis
    from veiltab.researcher.client.client import Client
    from veiltab.researcher.client.release import Release
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.questions.question import Question


@click.command(epilog=QUESTION_EXAMPLES)
@with_client
@release_option
@attributes_option
@question_options
@click.option(
    "--independence",
    metavar="A[,B]",
    help="Test whether these attributes are independent of the others of the table.",
)
@click.option("--compare", metavar="RELEASE", help="Another release of the same study: this one minus that.")
@linkage_options
@confidence_option
@click.option("--out", type=NEW_FILE, help="Also write the table here (.csv, .parquet or .json).")
@force_option
def estimate(
    client: "Client",
    *,
    release_name: str,
    attributes: str | None,
    question: "Question",
    independence: str | None,
    compare: str | None,
    linkage: Linkage,
    confidence: float,
    out: Path | None,
) -> None:
    """Estimate the joint distribution, or a marginal, with standard errors and intervals; or analyse it.

    A table that was not measured comes from a model of those that were, and is marked. An analysis takes one of
    --given, --mean, --sum, --variance, --quantile or --survival (perhaps with --given), --total, --model, --linear,
    --correlation, --independence and --compare (perhaps with --given). The level of a test is 1 less the confidence.
    """
    from veiltab.researcher.estimates.estimation import TableEstimate
    from veiltab.researcher.estimates.table import check_table_path
    from veiltab.researcher.questions.question import answer, answer_of_all

    if out is not None:
        check_table_path(out)
    release = client.release(release_name)
    names = named_attributes(attributes, question, release)
    if question.is_of_all_tables:
        if attributes is not None or compare is not None or independence is not None:
            raise InvalidInputError("it goes with no other question", where="--linear and --correlation")
        analysis = answer_of_all(release.measured(confidence=confidence, linkage_error=linkage), question)
        _emit_analysis(client.study, release, None, analysis, out)
        return
    found = table_of(release, names, confidence, linkage)
    if independence is not None:
        if linkage is not None:
            raise InvalidInputError(
                "a test of independence takes the table as it was released",
                where="--linkage-error and --match-rates",
                remedy="Leave them out: links that are wrong by chance make nothing of two curators dependent.",
            )
        if not question.is_plain or compare is not None or out is not None:
            raise InvalidInputError("a test goes with no other question", where="--independence")
        _emit_test(release, found, listed(independence), 1 - confidence)
        return
    if question.is_plain and compare is None and isinstance(found, TableEstimate):
        _emit_table(client.study, release, found, out)
        return
    other = None if compare is None else _other_table(client, compare, release, names, confidence, linkage)
    _emit_analysis(client.study, release, found, answer(question, found, other), out)


def named_attributes(attributes: str | None, question: "Question", release: "Release") -> Sequence[str]:
    """Return the attributes of the table that is asked; none for the only table."""
    if attributes is not None:
        return listed(attributes)
    return question.attributes(release.domain()) if question.names_attributes else ()


def _emit_table(study: "Study", release: "Release", found: "TableEstimate", out: Path | None) -> None:
    from veiltab.researcher.estimates.table import write
    from veiltab.researcher.report.presentation import source_sentence

    known = release.status()
    respondents = release.respondents()
    if out is not None:
        write(found.frame(), out)
    data = {**table_dict(study, known, found, respondents), "out": out}
    table = None if known.spec is None else known.spec.only_table
    card = [] if table is None else card_lines(table)
    lines = [
        str(found),
        *said_of_links(found),
        source_sentence(found, known),
        respondents,
        *card,
        f"Study: {study.title}. Its file: {found.study_digest}.",
        *([] if out is None else [f"Written: {out}"]),
    ]
    emit(data, "\n".join(lines))


def _emit_test(release: "Release", found: "Table", left: Sequence[str], level: float) -> None:
    """Show whether some attributes of a measured table are independent of its others."""
    from veiltab.researcher.estimates.estimation import Estimate
    from veiltab.researcher.estimates.independence import independence

    if not isinstance(found, Estimate):
        raise InvalidInputError(
            "independence is tested in a table that one release measured",
            where="--independence",
            remedy="Ask for a release of these attributes as one table.",
        )
    unknown = [name for name in left if name not in found.domain.names]
    if unknown:
        raise InvalidInputError(
            f"the table has no attribute {unknown[0]!r}",
            where="--independence",
            remedy=f"It has {', '.join(found.domain.names)}.",
        )
    test = independence(found, left, [name for name in found.domain.names if name not in left], level=round(level, 12))
    data = {
        "release": release.id,
        "left": list(test.left),
        "right": list(test.right),
        "statistic": test.statistic,
        "degrees": test.degrees,
        "p_value": test.p_value,
        "level": test.level,
        "dependent": test.dependent,
        "association": test.association,
        "least_expected": test.least_expected,
        "approximate": test.approximate,
    }
    facts = (
        f"W = {test.statistic:.4g} with {test.degrees} degrees of freedom, p = {test.p_value:.3g};"
        f" Cramer's V {test.association:.3f}, noise taken off."
    )
    emit(data, f"{test.verdict}\n{facts}")


def _emit_analysis(
    study: "Study", release: "Release", found: "Table | None", analysis: "Analysis", out: Path | None
) -> None:
    from veiltab.researcher.estimates.table import write
    from veiltab.researcher.report.presentation import source_sentence

    if out is not None:
        write(analysis.frame(), out)
    known = release.status()
    respondents = release.respondents()
    data = {
        "release": status_dict(known)["release"],
        **analysis_dict(study, analysis),
        "respondents": respondents,
        "out": out,
    }
    about, source = f"Study: {study.title}.", "" if found is None else source_sentence(found, known)
    parts = (analysis.text(), source, respondents, about, "" if out is None else f"Written: {out}")
    emit(data, "\n".join(part for part in parts if part))


@click.command(
    epilog="Example: veiltab researcher report study.toml --name rosa --identity pki/researcher-rosa"
    " --release wages --out wages.html"
)
@with_client
@release_option
@confidence_option
@click.option("--out", required=True, type=NEW_FILE, help="HTML file to write.")
@force_option
def report(client: "Client", release_name: str, confidence: float, out: Path) -> None:
    """Write one self-contained HTML page with pictures, the epsilon card and every number.

    Of a release of several tables it is about microdata of as many rows as there are respondents, with the seed
    "report"; `veiltab researcher synthesise --report` writes the page that goes with a file of your own.
    """
    from veiltab.common.web.document import write_page
    from veiltab.researcher.report.microdata_page import render
    from veiltab.researcher.report.presentation import card_of, microdata_report, report_page

    release = client.release(release_name)
    known = release.status()
    if known.tables:
        html = render(microdata_report(client.study, release.synthesise(seed="report"), card_of(known)))
    else:
        html = report_page(client.study, known, release.estimate(confidence=confidence))
    write_page(html, out)
    emit({"release": release.id, "report": out}, f"Report: {out}")


def _other_table(
    client: "Client",
    name: str,
    release: "Release",
    attributes: Sequence[str],
    confidence: float,
    linkage: Linkage,
) -> "Table":
    """Return the table of another release, with which that of a release is compared."""
    other = client.release(name)
    if other.id == release.id:
        raise InvalidInputError("a release is compared with itself", where="--compare", remedy="Name another release.")
    try:
        return table_of(other, attributes, confidence, linkage)
    except InvalidInputError as error:
        where = f"--compare {name}: {error.where}" if error.where else f"--compare {name}"
        raise InvalidInputError(error.problem, where=where, remedy=error.remedy) from error


def table_of(release: "Release", attributes: Sequence[str], confidence: float, linkage: Linkage) -> "Table":
    """Return the table of some attributes; without any, the only table of a release."""
    if not attributes:
        return release.estimate(confidence=confidence, linkage_error=linkage)
    return release.table(attributes, confidence=confidence, linkage_error=linkage)
