"""The check of the curator's own table; it quotes values of it, on this machine alone."""

from collections.abc import Callable
from functools import partial

from starlette.responses import Response

from veiltab.common.web.pages import Page, Visit
from veiltab.curator.check.inspection import Inspection


def table_page(inspect: Callable[[], Inspection]) -> Page:
    """Return the page of the table.

    Args:
        inspect: checks it; takes as long as reading it.
    """
    return Page(path="/table", label="Table", show=partial(_show, inspect))


def _show(inspect: Callable[[], Inspection], visit: Visit) -> Response:
    is_asked = visit.query.text("check") == "yes"
    return visit.render("table.html", report=inspect() if is_asked else None)
