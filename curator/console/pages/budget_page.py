"""The budget: what is spent and left, how it came about, and what each coalition faces of all releases together."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import accumulate

from starlette.responses import Response

from veiltab.common.dataclass import dataclass
from veiltab.common.web.pages import Page, Visit
from veiltab.curator.budget.entries import Entry
from veiltab.curator.console.budget_chart import budget_chart
from veiltab.curator.console.state_reader import StateReader

MOST_POINTS = 200
MOST_AT_ONCE = 200
"""Charges whose releases are put together without being asked: of ten thousand it takes seconds."""

_MONTHS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The budget after a charge.

    Args:
        time: of the charge, Unix seconds.
        share: charged until then, as the sum of the shares of the budget.
    """

    time: int
    share: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthLine:
    """The charges of a month and what they took."""

    month: str
    releases: int
    share: Decimal
    total: Decimal


def budget_page(books: StateReader) -> Page:
    """Return the page of the budget."""
    return Page(path="/budget", label="Budget", show=partial(_show, books))


def _show(books: StateReader, visit: Visit) -> Response:
    own_state, entries = books.own_state, books.entries()
    points = points_of(entries)
    is_asked = visit.query.text("together") == "yes"
    return visit.render(
        "budget.html",
        ledger=own_state.ledger,
        chart=budget_chart([(point.time, float(point.share)) for point in thinned(points)], books.now),
        months=months_of(entries)[-_MONTHS:],
        bounds=books.bounds() if is_asked or len(entries) <= MOST_AT_ONCE else (),
        is_asked=is_asked,
        entries=len(entries),
    )


def points_of(entries: Sequence[Entry]) -> list[Point]:
    """Return the budget after each charge."""
    totals = accumulate(entry.share for entry in entries)
    return [Point(time=entry.time, share=total) for entry, total in zip(entries, totals, strict=True)]


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most about 200 of some points, the last among them."""
    step = -(-len(points) // MOST_POINTS) or 1
    return list(points[::-1][::step][::-1])


def months_of(entries: Sequence[Entry]) -> list[MonthLine]:
    """Return what was charged in each month, oldest first."""
    sums: dict[str, tuple[int, Decimal]] = {}
    for entry in entries:
        month = f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m}"
        releases, share = sums.get(month, (0, Decimal(0)))
        sums[month] = releases + 1, share + entry.share
    totals = accumulate(share for _, share in sums.values())
    return [
        MonthLine(month=month, releases=releases, share=share, total=total)
        for (month, (releases, share)), total in zip(sums.items(), totals, strict=True)
    ]
