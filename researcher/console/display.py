"""A table as a page shows it: a picture, its numbers, what the reader must know, and tests of dependence."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from veiltab.common.privacy.planning.planning import FEW_ROWS
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.console.charts import chart
from veiltab.researcher.console.view import View
from veiltab.researcher.drawing.pictures import CELLS_SHOWN, analysis_picture, estimates_picture, heat_map, largest
from veiltab.researcher.estimates.estimation import Estimate, TableEstimate
from veiltab.researcher.questions.question import answer
from veiltab.researcher.report.plain_data import said_of_links
from veiltab.researcher.report.report import CELLS_LISTED, cell_texts, pair_tests, texts_of_test

_MOST_TESTED = 6
"""Attributes whose pairs are all tested for dependence on one page."""

_LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a table or an analysis, as a page shows them.

    Args:
        labels: how many columns name the row.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """What a page shows of a table.

    Args:
        scope: which part of it the picture has; empty for all.
        fields: the joint table of two attributes as a picture; empty for others.
        remarks: what the reader must know, a sentence each.
        tests: of each pair of attributes for dependence.
        is_measured: whether the table was measured; else it comes from a model.
    """

    title: str
    picture: Markup
    scope: str
    fields: Markup
    numbers: Numbers
    remarks: Sequence[str]
    tests: Sequence[Sequence[str]]
    is_measured: bool

    @classmethod
    def of(cls, view: View, table: Table) -> "Display":
        """Return what a view shows of a table.

        Raises:
            InvalidInputError: the table cannot answer.
        """
        question = view.question
        tests = _tests(table)
        if question.is_plain and isinstance(table, TableEstimate):
            title = f"share of {', '.join(table.domain.names)}"
            return cls(
                title=title,
                picture=chart(lambda sheet: estimates_picture(table, sheet=sheet).svg, _alternative(title)),
                scope=_scope("largest", table.domain.cells),
                fields=_fields(table),
                numbers=_cells(table),
                remarks=(*_how_to_read(table), *((FEW_ROWS,) if table.has_few_rows else ()), *said_of_links(table)),
                tests=tests,
                is_measured=True,
            )
        analysis = answer(question, table)
        return cls(
            title=analysis.title,
            picture=chart(lambda sheet: analysis_picture(analysis, sheet).svg, _alternative(analysis.title)),
            scope=_scope("first", len(analysis.estimate)),
            fields=Markup(),
            numbers=_rows(analysis),
            remarks=analysis.footnotes(),
            tests=tests,
            is_measured=analysis.is_measured,
        )


def _cells(table: TableEstimate) -> Numbers:
    shown = largest(table.raw, CELLS_LISTED)
    rows = [
        (*table.domain.categories_of(int(cell)), *texts)
        for cell, texts in zip(shown, cell_texts(table, shown, None), strict=True)
    ]
    scope = f"The {len(shown):,} largest of {table.domain.cells:,} cells. " if len(shown) < table.domain.cells else ""
    return Numbers(
        headings=(
            *table.domain.names,
            "estimate",
            "se",
            f"{100 * table.confidence:g}% interval",
            "projected",
            "people, about",
        ),
        rows=rows,
        labels=len(table.domain.names),
        caption=f"{scope}Shares of all respondents.",
    )


def _rows(analysis: Analysis) -> Numbers:
    headings, rows = analysis.columns()
    scope = f"The first {CELLS_LISTED:,} of {len(rows):,} rows. " if len(rows) > CELLS_LISTED else ""
    return Numbers(
        headings=headings, rows=rows[:CELLS_LISTED], labels=len(analysis.labels), caption=f"{scope}{analysis.title}."
    )


def _how_to_read(table: TableEstimate) -> tuple[str, ...]:
    percent = f"{100 * table.confidence:g}%"
    return (
        "The raw estimate is unbiased and may be negative; the projected one is a proper distribution, and biased.",
        f"An interval holds the true share of its own cell in about {percent} of releases like this one.",
    )


def _fields(table: TableEstimate) -> Markup:
    if len(table.domain.names) != 2:
        return Markup()
    return chart(
        lambda sheet: heat_map(table, sheet),
        "Picture: the joint table as fields; darker is more. The numbers are in the table below.",
    )


def _scope(which: str, rows: int) -> str:
    return f"The {CELLS_SHOWN} {which} of {rows:,}." if rows > CELLS_SHOWN else ""


def _alternative(title: str) -> str:
    """Return what stands for a picture where it is not seen."""
    return f"Picture: {title}. The numbers are in the table of numbers."


def _tests(table: Table) -> list[Sequence[str]]:
    """Return the tests of each pair for dependence; none where the table was pooled or not measured."""
    if not isinstance(table, Estimate) or not 2 <= len(table.domain.names) <= _MOST_TESTED:
        return []
    return [texts_of_test(pair, outcome) for pair, outcome in pair_tests(table, _LEVEL)]
