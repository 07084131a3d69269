"""A table of match rates as a curator releases it: linked and unlinked rows of each category, with noise.

Every count has independent noise from the two-sided geometric law at half the epsilon of the table,

    P(z) = (1 - a)/(1 + a) a^|z|,    a = e^(-epsilon/2),    variance 2a/(1-a)^2.

**Guarantee.** Two counts change by 1 where one row changes its category or is linked instead of not, so epsilon is pure
for one row, whatever anybody else knows. k rows make k epsilon: see `changed_rows`.

Relation: substitution of one row of the curator's own table. Against: everybody but this curator.

Source: Ghosh, Roughgarden, Sundararajan, Universally utility-maximizing privacy mechanisms (2009), the law; Canonne,
Kamath, Steinke, The discrete Gaussian for differential privacy (2020), Algorithms 1 and 2, its exact draw.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import expm1, sqrt

import numpy as np

from veiltab.common.core.numbers.rounding import parse_epsilon
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.texts.canonical import canonical_json, read_canonical
from veiltab.common.errors import InvalidInputError

Below = Callable[[int], int]
"""A uniform whole number from 0 to below another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRates:
    """The table.

    Args:
        curator: whose rows they are.
        categories: of the attribute, in the study's order.
        linked: noisy rows of each category that all curators link; perhaps below 0.
        unlinked: noisy rows of each that they do not.
        epsilon: of the table, nats, pure.

    Raises:
        InvalidInputError: the counts are not one for each category, or the epsilon is out of range.
    """

    study: str
    curator: str
    attribute: str
    categories: tuple[str, ...]
    linked: tuple[int, ...]
    unlinked: tuple[int, ...]
    epsilon: Decimal

    def __post_init__(self) -> None:
        parse_epsilon(self.epsilon)
        if not len(self.categories) == len(self.linked) == len(self.unlinked) > 0:
            raise InvalidInputError("there is not one linked and one unlinked count for each category")

    @property
    def sd(self) -> float:
        """Standard deviation of the noise of each count, rows."""
        half = float(self.epsilon) / 2
        return sqrt(2 * (1 + expm1(-half))) / -expm1(-half)


def changed_rows(*, is_hub: bool) -> tuple[int, int]:
    """Return how many rows of a curator's table of match rates change if one row of a spoke is added, and if altered.

    Of the spoke itself: the row, which of its rows it frees, and which it displaces. At the hub a row changes its
    status for each link that changes.

    Source: docs/linkage.md, the theorem.
    """
    return (1, 2) if is_hub else (2, 3)


def rates_of(text: str, where: str) -> MatchRates:
    """Read the JSON object of a file; fields that a table does not have are left out.

    Raises:
        InvalidInputError: it is no table of match rates.
    """
    names = {field.name for field in fields(MatchRates)}
    try:
        known = {name: value for name, value in json.loads(text).items() if name in names}
        return read_canonical(MatchRates, canonical_json(known))
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError, InvalidInputError):
        raise InvalidInputError(
            "this is no table of match rates",
            where=where,
            remedy="`veiltab curator match-rates --out FILE` writes one.",
        ) from None


def below_by_key(key: bytes) -> Below:
    """Return a source of uniform whole numbers that follow from a key: the same key gives the same ones in a row."""
    stream, chunks = CipherStream(key), count()

    def below(bound: int) -> int:
        bits = (bound - 1).bit_length()
        drawn = np.empty(bits // 8 + 1, np.uint8)
        while True:
            stream.fill(drawn, label=0, chunk=next(chunks))
            number = int.from_bytes(drawn.tobytes()) >> (8 * drawn.size - bits)
            if number < bound:
                return number

    return below


def geometric(rate: Fraction, below: Below) -> int:
    """Return a whole number with P(z) proportional to e^(-rate |z|), drawn exactly.

    Args:
        rate: nats, above 0.
    """
    while True:
        # A geometric number with ratio e^(-1/denominator), by its part below the denominator and the rest.
        part = below(rate.denominator)
        if not _has_happened(Fraction(part, rate.denominator), below):
            continue
        whole = 0
        while _has_happened(Fraction(1), below):
            whole += 1
        size = (part + rate.denominator * whole) // rate.numerator
        if (is_negative := below(2) == 1) and size == 0:
            continue
        return -size if is_negative else size


def _has_happened(x: Fraction, below: Below) -> bool:
    """Return True with probability e^-x, x from 0 to 1."""
    tries = 1
    while below(x.denominator * tries) < x.numerator:
        tries += 1
    return tries % 2 == 1
