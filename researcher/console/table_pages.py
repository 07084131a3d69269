"""The page of a table: shares with intervals, given others or compared, as a picture and in numbers; and its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.privacy.planning import FEW_ROWS
from veiltab.common.web.forms import Form
from veiltab.common.web.pages import Visit
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.question import Question, answer
from veiltab.researcher.console.charts import chart
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.console.files import file_name, written_file
from veiltab.researcher.estimation import Estimate, TableEstimate
from veiltab.researcher.pictures import CELLS_SHOWN, analysis_picture, estimates_picture, heat_map, largest
from veiltab.researcher.presentation import report_page, source_sentence
from veiltab.researcher.release_status import Status
from veiltab.researcher.report import CELLS_LISTED, cell_texts, pair_tests, texts_of_test
from veiltab.researcher.table import SUFFIXES, to_frame, write

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.common.core.domain import Domain
    from veiltab.researcher.analysis.result import Analysis

CONFIDENCES = ("0.8", "0.9", "0.95", "0.99")
_MOST_TESTED = 6
"""Attributes whose pairs are all tested for dependence on one page."""

_MOST_GROUPS = 200
"""Groups that are listed as the reference of a comparison."""

_MOST_DRAWN = 64
"""Pictures that are kept, of some 100 KB each."""

_LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a release is looked at, as an address says it.

    Args:
        attributes: of the table, those that are given among them; in study order.
        given: those that are conditioned on.
        contrast: how groups are compared; "" for shares.
        reference: the group that others are compared with, as a subgroup; "" for the first.
        confidence: of the intervals, as text.
    """

    attributes: tuple[str, ...]
    given: tuple[str, ...]
    contrast: str
    reference: str
    confidence: str

    @property
    def question(self) -> Question:
        """What is asked of the table.

        Raises:
            InvalidInputError: parts that do not go together.
        """
        return Question(
            given=self.given, contrast=Contrast(self.contrast) if self.contrast else None, reference=self.reference
        )

    @property
    def query(self) -> str:
        """The view as the query of an address."""
        fields = {"attributes": self.attributes, "given": self.given, "confidence": self.confidence}
        if self.contrast:
            fields |= {"contrast": self.contrast}
        if self.reference:
            fields |= {"reference": self.reference}
        return urlencode(fields, doseq=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a table or an analysis, as a page shows them.

    Args:
        headings: of the columns.
        rows: texts.
        labels: how many columns name the row.
        caption: what they are.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    caption: str


class TablePages:
    """Shows tables of releases and sends them as files.

    Args:
        desk: reads them.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._drawn: dict[tuple[str, View], Shown] = {}

    def show(self, visit: Visit) -> Response:
        """Show a table as a picture and in numbers."""
        status = self._desk.ready(visit.parameters["release"])
        view = self._view(status, visit.query)
        table = self._desk.table(status, view.attributes, float(view.confidence))
        shown = None if table is None else self._shown(status, view, table)
        return visit.render(
            "table.html",
            release=status,
            view=view,
            shown=shown,
            source="" if table is None else source_sentence(table, status),
            respondents=self._desk.release(status).respondents(),
            names=_names(status),
            contrasts=[one.value for one in Contrast],
            groups=_groups(self._desk.study.domain(view.given)) if view.given else (),
            confidences=CONFIDENCES,
            suffixes=SUFFIXES,
            codebook=self._desk.study.domain(view.attributes).codebook,
        )

    def download(self, visit: Visit) -> Response:
        """Send the numbers of a table as a file."""
        suffix = f".{visit.parameters['kind']}"
        if suffix not in SUFFIXES:
            raise InvalidInputError(
                "there is no such kind of file", where="file", remedy=f"Kinds: {', '.join(SUFFIXES)}."
            )
        status = self._desk.ready(visit.parameters["release"])
        view = self._view(status, visit.query)
        table = self._desk.table(status, view.attributes, float(view.confidence))
        if table is None:
            raise NotReadyError(
                "the model of the release is being fitted", where="table", remedy="Try again in some seconds."
            )
        frame = _frame(view, table)
        name = file_name(status, "-".join((view.contrast, *view.attributes)), suffix=suffix)
        return written_file(partial(write, frame), name)

    def download_report(self, visit: Visit) -> Response:
        """Send the report of a release of one table."""
        status = self._desk.ready(visit.parameters["release"])
        html = report_page(self._desk.study, status, self._desk.release(status).estimate())

        def write_page(path: Path) -> None:
            path.write_text(html, "utf-8")

        return written_file(write_page, file_name(status, "report", suffix=".html"))

    def _shown(self, status: Status, view: View, table: Table) -> "Shown":
        """Return what a page shows of a table; the last ones are kept, as drawing takes up to a second."""
        key = status.release_id, view
        shown = self._drawn.get(key)
        if shown is None:
            shown = self._drawn[key] = Shown.of(view, table)
            if len(self._drawn) > _MOST_DRAWN:
                self._drawn.pop(next(iter(self._drawn)), None)
        return shown

    def _view(self, status: Status, query: Form) -> View:
        """Return what an address asks for.

        Raises:
            InvalidInputError: an attribute without a result, or parts that do not go together.
        """
        names = _names(status)
        chosen, given = query.texts("attributes"), query.texts("given")
        for name in (*chosen, *given):
            if name not in names:
                raise InvalidInputError(
                    f"the release has no result of an attribute {name[:60]!r}",
                    where="attributes",
                    remedy=f"It has {', '.join(names)}.",
                )
        confidence, contrast = query.text("confidence", "0.95"), query.text("contrast")
        if confidence not in CONFIDENCES or contrast not in {"", *(one.value for one in Contrast)}:
            raise InvalidInputError("the page has no such choice", where="table", remedy="Choose on the page.")
        attributes = tuple(name for name in names if name in chosen or name in given)
        view = View(
            attributes=attributes or names[: 2 if status.tables else 3],
            given=tuple(name for name in names if name in given),
            contrast=contrast if given else "",
            reference=query.text("reference") if given and contrast else "",
            confidence=confidence,
        )
        view.question  # noqa: B018 - a view that exists can be asked
        return view


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page shows of a table.

    Args:
        title: what was asked.
        picture: of it.
        scope: which part of it the picture has; empty for all.
        fields: the joint table of two attributes as a picture; empty for others.
        numbers: of it.
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
    def of(cls, view: View, table: Table) -> "Shown":
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
                picture=chart(
                    lambda sheet: estimates_picture(table, sheet=sheet).svg,
                    _alternative(title),
                ),
                scope=_scope("largest", table.domain.cells),
                fields=_fields(table),
                numbers=_cells(table),
                remarks=(*_how_to_read(table), *((FEW_ROWS,) if table.has_few_rows else ())),
                tests=tests,
                is_measured=True,
            )
        analysis = answer(question, table)
        return cls(
            title=analysis.title,
            picture=chart(
                lambda sheet: analysis_picture(analysis, sheet).svg,
                _alternative(analysis.title),
            ),
            scope=_scope("first", len(analysis.estimate)),
            fields=Markup(),
            numbers=_rows(analysis),
            remarks=analysis.said(),
            tests=tests,
            is_measured=analysis.is_measured,
        )


def _frame(view: View, table: Table) -> "pd.DataFrame":
    if view.question.is_plain and isinstance(table, TableEstimate):
        return to_frame(table)
    return answer(view.question, table).frame()


def _names(status: Status) -> tuple[str, ...]:
    """Return the attributes that have a result, in study order."""
    measured = {name for table in status.ready_tables for name in table.attributes}
    return tuple(name for name in status.attributes if name in measured)


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


def _rows(analysis: "Analysis") -> Numbers:
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


def _groups(domain: "Domain") -> tuple[Mapping[str, str], ...]:
    """Return the groups that a comparison may refer to, as subgroups and as labels; none if there are very many."""
    if domain.cells > _MOST_GROUPS:
        return ()
    return tuple(
        {
            "value": " & ".join(f"{name}={one}" for name, one in zip(domain.names, categories, strict=True)),
            "label": ", ".join(categories),
        }
        for categories in product(*(attribute.categories for attribute in domain.attributes))
    )
