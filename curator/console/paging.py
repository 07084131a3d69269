"""Long lists, a page at a time."""

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.web.bodies import Form, whole_number

_MOST_PAGES = 9_999_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which part of a list a page shows.

    Args:
        page: its number, from 1.
        pages: how many there are.
        start: index of its first item.
        total: items of the whole list.
    """

    page: int
    pages: int
    start: int
    stop: int
    total: int


def read_page(query: Form) -> int:
    """Return the number of the page that an address asks for, by default 1.

    Raises:
        InvalidInputError: it is not a number of a page.
    """
    number = whole_number(query.text("page", "1"), 1, _MOST_PAGES)
    if number is None:
        raise InvalidInputError("the page's number is not a whole number from 1", where="page")
    return number


def span_of(total: int, size: int, page: int) -> Span:
    """Return a page of a list; the last one if the list is shorter than that."""
    pages = max(1, -(-total // size))
    page = min(page, pages)
    return Span(page=page, pages=pages, start=(page - 1) * size, stop=min(page * size, total), total=total)
