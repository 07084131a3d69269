"""The parties of a study: names and endpoints, and what makes two rows of a curator's table the same respondent."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InvalidInputError
from common.naming import check_endpoint, check_name, check_one_of

NORMALISE_STEPS = ("strip", "casefold", "nfc")
"""Steps of id normalisation, in the order in which they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A server or a researcher: its name and where its service listens (host:port)."""

    name: str
    endpoint: str

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_endpoint(self.endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorMember(Member):
    """A curator: its name, its endpoint, and what makes two rows the same respondent.

    Args:
        name: the curator's name.
        endpoint: host:port of its service.
        id_columns: columns of its table that together name a respondent.
        normalise: steps applied to each of them before they are compared, of NORMALISE_STEPS.
    """

    id_columns: tuple[str, ...]
    normalise: tuple[str, ...] = NORMALISE_STEPS

    def __post_init__(self) -> None:
        Member.__post_init__(self)
        if not self.id_columns or not all(name.strip() == name != "" for name in self.id_columns):
            raise InvalidInputError("id_columns names no column", remedy='List one or more, such as ["id"].')
        check_once("id_columns names", self.id_columns, "List each id column once.")
        check_once("normalise names", self.normalise, "List each step once.")
        for step in self.normalise:
            check_one_of("normalise", step, NORMALISE_STEPS)


def check_once(what: str, values: Sequence[str], remedy: str) -> None:
    """Refuse a list that names something twice."""
    for value, count in Counter(values).items():
        if count > 1:
            raise InvalidInputError(f"{what} {value!r} twice", remedy=remedy)
