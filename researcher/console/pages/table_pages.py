"""The page of a table: shares with intervals, given others or compared, as a picture and in numbers; and its files."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from starlette.responses import Response

from veiltab.common.errors import InvalidInputError, NotReadyError
from veiltab.common.web.document import write_page
from veiltab.common.web.forms import Form
from veiltab.common.web.pages import Visit
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.console.desk import Desk
from veiltab.researcher.console.display import Display
from veiltab.researcher.console.downloads import file_name, written_file
from veiltab.researcher.console.view import CONFIDENCES, NUMBERS, View
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.table import SUFFIXES, to_frame, write
from veiltab.researcher.numbers.points import are_numbers
from veiltab.researcher.questions.question import answer
from veiltab.researcher.report.presentation import report_page, source_sentence
from veiltab.researcher.status.release_status import Status

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.common.core.domain import Domain

_MOST_GROUPS = 200
"""Groups that are listed as the reference of a comparison."""

_MOST_DRAWN = 64
"""Pictures that are kept, of some 100 KB each."""


class TablePages:
    """Shows tables of releases and sends them as files."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._drawn: dict[tuple[str, View], Display] = {}

    def show(self, visit: Visit) -> Response:
        """Show a table as a picture and in numbers."""
        status = self._desk.ready(visit.parameters["release"])
        view = self._view(status, visit.query)
        table = self._desk.table(status, view.attributes, float(view.confidence), view.links)
        display = None if table is None else self._display(status, view, table)
        return visit.render(
            "table.html",
            release=status,
            view=view,
            display=display,
            source="" if table is None else source_sentence(table, status),
            respondents=self._desk.release(status).respondents(),
            names=status.measured_attributes,
            contrasts=[one.value for one in Contrast],
            groups=_groups(self._desk.study.domain(view.given)) if view.given else (),
            confidences=CONFIDENCES,
            numbers=_numbers(self._desk.study.domain(status.measured_attributes)),
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
        table = self._desk.table(status, view.attributes, float(view.confidence), view.links)
        if table is None:
            raise NotReadyError(
                "the model of the release is being fitted", where="table", remedy="Try again in some seconds."
            )
        frame = _frame(view, table)
        name = file_name(
            status, "-".join((view.contrast or view.number.partition(" ")[0], *view.attributes)), suffix=suffix
        )
        return written_file(partial(write, frame), name)

    def download_report(self, visit: Visit) -> Response:
        """Send the report of a release of one table."""
        status = self._desk.ready(visit.parameters["release"])
        html = report_page(self._desk.study, status, self._desk.release(status).estimate())
        return written_file(partial(write_page, html), file_name(status, "report", suffix=".html"))

    def _display(self, status: Status, view: View, table: Table) -> Display:
        """Return what a page shows of a table; the last ones are kept, as drawing takes up to a second."""
        key = status.release_id, view
        display = self._drawn.get(key)
        if display is None:
            display = self._drawn[key] = Display.of(view, table)
            if len(self._drawn) > _MOST_DRAWN:
                self._drawn.pop(next(iter(self._drawn)), None)
        return display

    def _view(self, status: Status, query: Form) -> View:
        """Return what an address asks for.

        Raises:
            InvalidInputError: an attribute without a result, or parts that do not go together.
        """
        names = status.measured_attributes
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
        domain, number = self._desk.study.domain(names), query.text("number")
        if number and number not in _numbers(domain):
            raise InvalidInputError(f"{number[:60]!r} is nothing that the page shows", where="number")
        attributes = tuple(name for name in names if name in chosen or name in given)
        view = View(
            attributes=attributes or names[: 2 if status.tables else 3],
            given=tuple(name for name in names if name in given),
            contrast=contrast if given and not number else "",
            reference=query.text("reference") if given and contrast and not number else "",
            confidence=confidence,
            number=number,
            links=query.text("links"),
        )
        asked = view.question  # a view that exists can be asked
        return replace(view, attributes=asked.attributes(domain)) if number else view


def _numbers(domain: "Domain") -> tuple[str, ...]:
    """Return what is shown of each attribute of numbers."""
    names = [attribute.name for attribute in domain.attributes if attribute.number or are_numbers(attribute)]
    return tuple(f"{kind} {name}" for name in names for kind in NUMBERS)


def _frame(view: View, table: Table) -> "pd.DataFrame":
    if view.question.is_plain and isinstance(table, TableEstimate):
        return to_frame(table)
    return answer(view.question, table).frame()


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
