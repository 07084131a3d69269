"""Spellings of one person's fields agree after these steps, which are version 1 (`identity_rule.NORMALISATION`).

A step that changes makes other keys, so it makes another version. Every step looks at one value alone: nothing depends
on how often a value occurs, else one row's key would depend on other rows.
"""

import re
import unicodedata
from collections.abc import Callable, Collection
from datetime import date
from functools import partial

from veiltab.common.core.texts.spelling import PLAIN_LETTERS
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import FieldKind

DATE_ORDERS = ("ymd", "dmy", "mdy")
"""In which order a column writes year, month and day."""

_WORDS = re.compile(r"[\s.,;/()]+")
_TITLES = frozenset(
    ("dr", "prof", "professor", "mr", "mrs", "ms", "miss", "sir", "dame", "rev", "herr", "frau", "dipl")
)
_SUFFIXES = frozenset(("jr", "sr", "junior", "senior", "ii", "iii", "iv", "esq", "phd"))
_PARTICLES = frozenset(
    re.findall(r"\w+", "van von vom der den de del della di da do dos das du la le los las el al")
    + re.findall(r"\w+", "ibn bin bint abu ter ten te zu zur af av")
)
_SEXES = {
    **dict.fromkeys(("m", "male", "man", "1", "homme", "mann", "mannlich", "masculin"), "m"),
    **dict.fromkeys(("hombre", "varon", "masculino", "uomo", "maschio"), "m"),
    **dict.fromkeys(("mujer", "femenino", "femminile", "donna", "femmina"), "f"),
    **dict.fromkeys(("f", "female", "woman", "2", "w", "femme", "frau", "weiblich", "feminin", "v", "vrouw"), "f"),
    **dict.fromkeys(("x", "d", "diverse", "other"), "x"),
}
"""1 and 2 are those of ISO 5218; its 0 and 9 say that the sex is not known."""

_DATE = re.compile(r"(\d+)[-/. ]+(\d+)[-/. ]+(\d+)(?:[T ]\d{1,2}:\d{2}.*)?", re.ASCII)
_JOINED = re.compile(r"\d{8}", re.ASCII)


def normaliser(kind: FieldKind, date_order: str, default_dates: Collection[str]) -> Callable[[str], str]:
    """Return what normalises the values of a field; it makes "" of a value that counts as missing.

    Args:
        date_order: "ymd", "dmy" or "mdy": how the column writes dates.
        default_dates: YYYY-MM-DD, dates that stand for "unknown".

    Raises:
        InvalidInputError: another order.
    """
    if date_order not in DATE_ORDERS:
        raise InvalidInputError(
            f"date_order = {date_order[:20]!r} is not known", remedy=f"Use one of: {', '.join(DATE_ORDERS)}."
        )
    match kind:
        case FieldKind.GIVEN:
            return partial(normal_name, is_family=False)
        case FieldKind.FAMILY:
            return partial(normal_name, is_family=True)
        case FieldKind.BIRTH:
            return partial(normal_date, order=date_order, missing=frozenset(default_dates))
        case FieldKind.SEX:
            return normal_sex
        case FieldKind.POSTCODE | FieldKind.NUMBER:
            return normal_number
        case FieldKind.TEXT:
            return normal_text


def plain(text: str) -> str:
    """Return a text in lower case, without the marks of Latin, Greek and Cyrillic letters; other scripts stay."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold()).translate(PLAIN_LETTERS)
    return unicodedata.normalize("NFC", "".join(one for one in folded if not "\u0300" <= one <= "\u036f"))


def normal_name(text: str, *, is_family: bool) -> str:
    """Return the letters of a name; titles and suffixes leave, and particles behind a family name come before it."""
    words = [word for one in _WORDS.split(plain(text)) if (word := _letters(one))]
    while len(words) > 1 and words[0] in _TITLES:
        del words[0]
    while len(words) > 1 and words[-1] in _SUFFIXES:
        del words[-1]
    if is_family:
        behind = len(words)
        while behind > 1 and words[behind - 1] in _PARTICLES:
            behind -= 1
        words = words[behind:] + words[:behind]
    return "".join(words)


def normal_date(text: str, *, order: str, missing: Collection[str]) -> str:
    """Return a date as YYYYMMDD; "" if the calendar does not have it, or if it stands for an unknown one.

    A year has four digits: which century two digits mean, nobody knows. A text that begins with it, such as 1980-02-03,
    is read as year, month and day whatever the order.
    """
    text = unicodedata.normalize("NFKC", text).strip()
    if _JOINED.fullmatch(text):
        cuts = (4, 6) if order == "ymd" else (2, 4)
        parts = [text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]]
    elif match := _DATE.fullmatch(text):
        parts = list(match.groups())
        order = "ymd" if len(parts[0]) == 4 else order
    else:
        return ""
    year, month, day = (parts[order.index(one)] for one in "ymd")
    if len(year) != 4 or len(month) > 2 or len(day) > 2:
        return ""
    try:
        found = date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return ""
    return "" if found in missing else found.replace("-", "")


def normal_sex(text: str) -> str:
    """Return "m", "f" or "x"; "" for what is not known to be one of them."""
    return _SEXES.get(_alphanumeric(plain(text)), "")


def normal_number(text: str) -> str:
    """Return the letters and digits of a number or postcode; "" if it has none."""
    return _alphanumeric(plain(text))


def normal_text(text: str) -> str:
    """Return the words of a text with one blank between them; signs count as blanks."""
    return " ".join("".join(one if _is_letter(one) or one.isdigit() else " " for one in plain(text)).split())


def _letters(text: str) -> str:
    return "".join(one for one in text if _is_letter(one))


def _alphanumeric(text: str) -> str:
    return "".join(one for one in text if _is_letter(one) or one.isdigit())


def _is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a mark that a script writes a vowel with."""
    return character.isalpha() or unicodedata.category(character) in {"Mn", "Mc"}
