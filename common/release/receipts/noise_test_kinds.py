"""The families of tests of a server's noise, and what each counts."""

from decimal import Decimal
from enum import Enum


class Family(Enum):
    """A family of tests, and its share of the false alarm."""

    AMOUNT = "amount"
    COLUMN = "column"
    PAIR = "pair"
    ARCS = "arcs"
    SEEN = "seen before"
    PLACES = "places"
    RUNS = "runs"
    REPEATS = "repeats"

    __hash__ = object.__hash__  # an enum's own hashes the name, each time anew

    @property
    def share(self) -> Decimal:
        """The family's share of the false alarm; the tests of a family have equal parts of it."""
        return _SHARES[self]

    @property
    def is_one_sided(self) -> bool:
        """Whether only too great a number speaks against the server."""
        return self is Family.SEEN or self is Family.REPEATS

    @property
    def meaning(self) -> str:
        """What is counted, for people."""
        return _MEANINGS[self]


_SHARES = {
    Family.AMOUNT: Decimal("0.50"),
    Family.COLUMN: Decimal("0.20"),
    Family.PAIR: Decimal("0.05"),
    Family.ARCS: Decimal("0.08"),
    Family.SEEN: Decimal("0.05"),
    Family.PLACES: Decimal("0.08"),
    Family.RUNS: Decimal("0.02"),
    Family.REPEATS: Decimal("0.02"),
}
_MEANINGS = {
    Family.AMOUNT: "canaries changed",
    Family.COLUMN: "of the changed canaries changed there",
    Family.PAIR: "of the changed canaries changed in both",
    Family.ARCS: "lie within this half of the alphabet",
    Family.SEEN: "values of the second half stand in the first half",
    Family.PLACES: "canaries changed there",
    Family.RUNS: "runs of changed canaries",
    Family.REPEATS: "changes equal the one before",
}
