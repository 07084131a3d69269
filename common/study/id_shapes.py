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
from collections.abc import Sequence

from veiltab.common.errors import InvalidInputError

WHOLE_NUMBERS = "9+"
DECIMALS = "9+.0"
TEXT = "text"

COMPARE_IDS = (
    'Compare the id columns: they hold different things, or need each another normalise (docs/tables.md, "Ids").'
)
"""What to do where no step makes ids alike."""

MOST_CHARACTERS = 80
"""Of a shape; what is longer is a text."""


def check_id_shape(shape: str) -> None:
    """Refuse a text that is no shape, such as an id itself."""
    if shape == DECIMALS:
        return
    if not 1 <= len(shape) <= MOST_CHARACTERS or not shape.isprintable() or re.search(r"[1-8]|.0", shape):
        raise InvalidInputError(
            f"id_shapes has {shape[:MOST_CHARACTERS]!r}, which is not a shape",
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


def shape_after(shape: str, steps: Sequence[str]) -> str:
    """Return the shape of ids after steps of normalisation that change numbers: digits, integer or zfill."""
    for name in ("digits", "integer", "zfill"):
        for step in steps:
            if step.partition(":")[0] == name:
                shape = _after(shape, step)
    return shape


def repair(one: str, other: str) -> str:
    """Return the step of normalisation that lets ids of two shapes match, taken by both curators; "" if none does."""
    widths = {len(shape) for shape in (one, other) if set(shape) <= {"0", "9"}}
    steps = ["integer", *(f"zfill:{width}" for width in sorted(widths)), "digits"]
    fitting = (step for step in steps if _match_after(one, other, step))
    return next(fitting, "")


def repair_sentence(one: str, other: str) -> str:
    """Say how ids of two shapes may become alike."""
    step = repair(one, other)
    if step:
        why = "; a spreadsheet or a column of floats adds the .0" if DECIMALS in {one, other} else ""
        return f'Add "{step}" to normalise of both{why}.'
    return COMPARE_IDS


def _match_after(one: str, other: str, step: str) -> bool:
    """Return whether a step leads two shapes to some that match; digits alone must be as many in both."""
    after, other_after = _after(one, step), _after(other, step)
    if TEXT in {after, other_after} or (step == "digits" and WHOLE_NUMBERS in {after, other_after}):
        return False
    return can_match(after, other_after)


def _after(shape: str, step: str) -> str:
    """Return the shape of ids after one step."""
    name, _, width = step.partition(":")
    is_number = shape == WHOLE_NUMBERS or set(shape) <= {"0", "9"}
    match name:
        case "integer":
            if shape == DECIMALS or (is_number and shape.startswith("0")):
                return WHOLE_NUMBERS
            return shape if is_number else TEXT
        case "digits":
            kept = "".join(one for one in shape if one in "09")
            return shape if is_number or shape in {TEXT, DECIMALS} else kept or TEXT
        case "zfill":
            if shape == WHOLE_NUMBERS:
                return "0" + "9" * (int(width) - 1)
            return shape if not is_number or len(shape) >= int(width) else "0" + "9" * (int(width) - 1)
        case _:
            raise ValueError(step)


def _digits(shape: str) -> str:
    """Return a shape without its mark of leading zeros."""
    return "9" + shape[1:] if shape.startswith("0") else shape
