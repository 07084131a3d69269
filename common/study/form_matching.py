"""Which forms of values can be the same texts, and what steps of normalisation make of them."""

import re
from collections.abc import Sequence

from veiltab.common.study.forms import DECIMALS, TEXT, Forms, rows_of, together

COMPARE_IDS = (
    'Compare the id columns: they hold different things, or need each another normalise (docs/tables.md, "Ids").'
)
"""What to do where no step makes ids alike."""

LOST_DIGITS = "are numbers with an exponent, such as 1.234567E+07, which have lost their last digits"
"""What is wrong with the rows that `lost_digits` counts."""

_MUCH_TEXT = 0.1
"""Share of texts from which a column may hold ids of any form."""

_GROUP = re.compile(r"(9\+|09+|9+)")
_THOUSANDS = re.compile(r"(9{1,3}|9\+)([,. '\u2019\u2423][09]99)+")
_EXPONENT = re.compile(r"9(\.[09]9*)?[aE]\+[09]9*")


def can_match(one: str, other: str) -> bool:
    """Return whether values of two forms can be the same texts.

    Numbers of several lengths match a fixed number of digits unless some of these begin with 0.
    """
    parts, others = _GROUP.split(one), _GROUP.split(other)
    return TEXT not in {one, other} and len(parts) == len(others) and all(map(_are_alike, parts, others))


def without_partner(own: Forms, other: Forms) -> Forms:
    """Return the forms of one column of which no row can be the same text as a row of another column.

    A column with many texts may hold rows of any form.
    """
    texts = dict(other).get(TEXT, 0)
    if texts >= _MUCH_TEXT * rows_of(other):
        return ()
    return tuple(
        (form, rows)
        for form, rows in own
        if not (form == TEXT and texts) and not any(can_match(form, there) for there, _ in other)
    )


def lost_zeros(forms: Forms) -> bool:
    """Return whether a column has numbers with leading zeros and shorter ones without, as spreadsheets leave them."""
    first = [(digit_groups(form) or ("",), _GROUP.sub("#", form, count=1)) for form, _ in forms]
    return any(
        group.startswith("0") and around == other_around and (other == "9+" or len(other) < len(group))
        for (group, *_), around in first
        for (other, *_), other_around in first
    )


def lost_digits(forms: Forms) -> int:
    """Return the rows whose number is written with an exponent, such as 1.234567E+07, which has lost digits."""
    return sum(rows for form, rows in forms if _EXPONENT.fullmatch(form))


def how_to_match(name: str, own: Forms, other_name: str, other: Forms) -> str:
    """Return what a person may do where ids of two tables cannot match and no step is proposed."""
    for one, forms in ((name, own), (other_name, other)):
        if 2 * sum(rows for form, rows in forms if _THOUSANDS.fullmatch(form)) > rows_of(forms):
            return f"Export the ids of {one} without a mark between thousands."
    for one, forms, others in ((name, own, other), (other_name, other, own)):
        if letters("".join(form for form, _ in forms)) and not without_partner(after(forms, ["digits"]), others):
            return (
                f"The ids of {one} have letters, such as a check letter or a place. Write into its normalise "
                '"digits" where two ids that differ in them alone are one person\'s.'
            )
    groups = [max((len(digit_groups(form)) for form, _ in forms), default=0) for forms in (own, other)]
    if groups[0] == groups[1] or not all(groups):
        return COMPARE_IDS
    return (
        f"{name if groups[0] > groups[1] else other_name} has more groups of digits, such as a check digit, a year or a"
        ' place. Write into its normalise "first" where the first group means the same in all tables, "last" for the'
        ' last, "digits" where all together do.'
    )


def digit_groups(form: str) -> tuple[str, ...]:
    """Return the groups of digits of a form, such as ("99", "9+")."""
    return tuple(_GROUP.split(form)[1::2])


def letters(form: str) -> str:
    """Return the letters of a form; "a" stands for any."""
    return "".join(one for one in form if one.isalpha())


def after(forms: Forms, steps: Sequence[str]) -> Forms:
    """Return the forms of ids after steps of normalisation that change numbers; TEXT for what a step refuses."""
    for name in ("first", "last", "digits", "integer", "zfill"):
        for step in steps:
            if step.partition(":")[0] == name:
                forms = together((_after(form, step), rows) for form, rows in forms)
    return forms


def _after(form: str, step: str) -> str:
    """Return a form after one step."""
    name, _, width = step.partition(":")
    groups = digit_groups(form)
    is_number = groups == (form,)
    match name:
        case "first" | "last":
            return groups[0 if name == "first" else -1] if groups and form != DECIMALS else TEXT
        case "digits":
            if form == DECIMALS or not groups or ("9+" in groups and len(groups) > 1):
                return form if form == DECIMALS else TEXT
            return groups[0] + "".join(groups[1:]).replace("0", "9")
        case "integer":
            if form == DECIMALS or (is_number and form.startswith("0")):
                return "9+"
            return form if is_number else TEXT
        case "zfill":
            is_shorter = is_number and (form == "9+" or len(form) < int(width))
            return "0" + "9" * (int(width) - 1) if is_shorter and int(width) > 1 else form
        case _:
            raise ValueError(step)


def _are_alike(one: str, other: str) -> bool:
    """Return whether two parts of forms, groups of digits or what is between them, can be the same text."""
    if one == other:
        return True
    if "9+" in {one, other}:
        (fixed,) = {one, other} - {"9+"}
        return fixed.startswith("9")
    if len(one) != len(other):
        return False
    return all(
        a == b or "0" in {a, b} or ("a" in {a, b} and (a + b).isalpha()) for a, b in zip(one, other, strict=True)
    )
