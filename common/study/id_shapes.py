"""How the ids of a column are written, as far as it is the same for all of them, and whether two columns can match.

A shape says nothing about one respondent: it is one pattern that all ids share, or a kind of number that all are.

    9999999      seven digits, the first never 0
    0999999      seven digits, some with leading zeros
    aa-9999      two letters, a hyphen, four digits
    9+           whole numbers of several lengths, without leading zeros
    9+.0         whole numbers written with decimals, as a spreadsheet or a column of floats writes them
    text         anything else
"""

import re

from veiltab.common.errors import InvalidInputError

WHOLE_NUMBERS = "9+"
DECIMALS = "9+.0"
TEXT = "text"

MOST_CHARACTERS = 80
"""Of a shape; what is longer is a text."""


def check_id_shape(shape: str) -> None:
    """Refuse a text that is no shape, such as an id itself."""
    if shape == DECIMALS:
        return
    if not 1 <= len(shape) <= MOST_CHARACTERS or not shape.isprintable() or re.search(r"[1-8]|.0", shape):
        raise InvalidInputError(
            f"id_shapes has {shape[:MOST_CHARACTERS]!r}, which is no shape",
            remedy=f"Write 9 for a digit, a for a letter, or one of: {WHOLE_NUMBERS}, {DECIMALS}, {TEXT}.",
        )


def can_match(one: str, other: str) -> bool:
    """Return whether ids of two shapes can be the same texts for all respondents.

    Ids of no shape can match anything. Whole numbers of several lengths match a fixed number of digits unless some of
    these begin with 0.
    """
    if one == other or TEXT in {one, other}:
        return True
    if WHOLE_NUMBERS in {one, other}:
        (fixed,) = {one, other} - {WHOLE_NUMBERS}
        return set(fixed) == {"9"}
    return _digits(one) == _digits(other)


def _digits(shape: str) -> str:
    """Return a shape without its mark of leading zeros."""
    return "9" + shape[1:] if shape.startswith("0") else shape
