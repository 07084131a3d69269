"""Spellings of one person's fields agree after these steps, which are version 2 (`identity_rule.NORMALISATION`).

A step that changes makes other keys, so it makes another version. Every step looks at one value alone: nothing depends
on how often a value occurs, else one row's key would depend on other rows.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import partial

from veiltab.common.core.texts.months import month_numbered
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

_DATE = re.compile(r"(\d+)[-/. ]+(\d+)[-/. ]+(\d+)(?:[T: ]\d{1,2}:\d{2}.*)?", re.ASCII)
_JOINED = re.compile(r"\d{8}|\d{6}", re.ASCII)
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08ca-\u08ff\u02b9-\u02df\u0559\u07f4\u07f5\ua78b\ua78c]"
)
"""Marks of Latin, Greek, Cyrillic, Hebrew and Arabic letters, and apostrophes that Unicode counts as letters."""

_SPREADSHEET = re.compile(r"(\d+)\.0+", re.ASCII)
_ZIP_PLUS_4 = re.compile(r"(\d{5})-\d{4}", re.ASCII)
_COUNTRY = re.compile(r"[a-z]{1,3}-(?=\d)", re.ASCII)


def normaliser(
    kind: FieldKind, date_order: str, default_dates: Collection[str], missing_values: Collection[str] = ()
) -> Callable[[str], str]:
    """Return what normalises the values of a field; it makes "" of a value that counts as missing.

    Args:
        date_order: "ymd", "dmy" or "mdy": how the column writes dates; "dmy:1926" where two digits mean 1926 to 2025.
        default_dates: YYYY-MM-DD, dates that stand for "unknown", and MM-DD for a day of any year.
        missing_values: texts that stand for a missing value, in any spelling that is normalised alike.

    Raises:
        InvalidInputError: another order.
    """
    if date_order[:3] not in DATE_ORDERS:
        raise InvalidInputError(
            f"date_order = {date_order[:20]!r} is not known", remedy=f"Use one of: {', '.join(DATE_ORDERS)}."
        )
    if kind is FieldKind.BIRTH:
        return partial(normal_date, order=date_order, missing=frozenset(default_dates))
    normal = _NORMAL[kind]
    missing = frozenset(map(normal, missing_values))
    return lambda value: "" if (form := normal(value)) in missing else form


def plain(text: str) -> str:
    """Return a text in lower case without `_MARKS`; other scripts stay."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold()).translate(PLAIN_LETTERS)
    return unicodedata.normalize("NFC", _MARKS.sub("", folded))


def normal_name(text: str, *, is_family: bool) -> str:
    """Return the letters of a name; titles and suffixes leave, and particles behind a family name come before it."""
    words = [*filter(None, map(_letters, _WORDS.split(plain(text))))]
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

    A year has four digits, unless the order names the first year that two digits mean: they name no century. A text
    that begins with four digits, such as 1980-02-03, is read as year, month and day whatever the order; in one with the
    name of a month, day and year stand around it in this order, or behind it.
    """
    text, (order, _, first_year) = unicodedata.normalize("NFKC", text).strip(), order.partition(":")
    if around := month_numbered(text):
        text = " ".join(around).replace(",", " ").strip()
        order = "mdy" if not around[0] else "ymd" if order == "ymd" and not re.match(r"\D*\d{4}", around[2]) else "dmy"
    if _JOINED.fullmatch(text):
        width = len(text) - 4
        cuts = (width, width + 2) if order == "ymd" else (2, 4)
        parts = [text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]]
    elif match := _DATE.fullmatch(text):
        parts = list(match.groups())
        order = "ymd" if len(parts[0]) == 4 else order
    else:
        return ""
    year, month, day = (parts[order.index(one)] for one in "ymd")
    if len(year) == 2 and first_year:
        year = f"{int(first_year) + (int(year) - int(first_year)) % 100:04}"
    if len(year) != 4 or len(month) > 2 or len(day) > 2:
        return ""
    try:
        day = date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return ""
    return "" if {day, day[5:]}.intersection(missing) else day.replace("-", "")


def normal_sex(text: str) -> str:
    """Return "m", "f" or "x"; "" for what is not known to be one of them."""
    return _SEXES.get(normal_number(text), "")


def normal_postcode(text: str) -> str:
    """Return a postcode as `normal_number`, without the letters of its country, and five digits of a ZIP+4."""
    short = _COUNTRY.sub("", plain(text).strip(), count=1)
    return normal_number(_ZIP_PLUS_4.sub(r"\1", short))


def normal_number(text: str) -> str:
    """Return the letters and digits of a number; of digits alone without zeros in front, and without .0 behind."""
    short = plain(text).strip()
    text = match[1] if (match := _SPREADSHEET.fullmatch(short)) else short
    joined = text if text.isdigit() else "".join(one for one in text if _is_letter(one) or one.isdigit())
    return (joined.lstrip("0") or "0") if joined.isascii() and joined.isdigit() else joined


def normal_text(text: str) -> str:
    """Return the words of a text with one blank between them; signs count as blanks."""
    return " ".join("".join(one if _is_letter(one) or one.isdigit() else " " for one in plain(text)).split())


def _letters(text: str) -> str:
    return text if text.isalpha() else "".join(filter(_is_letter, text))


def _is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a mark that a script writes a vowel with."""
    return character.isalpha() or unicodedata.category(character) in {"Mn", "Mc"}


_NORMAL: Mapping[FieldKind, Callable[[str], str]] = {
    FieldKind.GIVEN: partial(normal_name, is_family=False),
    FieldKind.FAMILY: partial(normal_name, is_family=True),
    FieldKind.SEX: normal_sex,
    FieldKind.POSTCODE: normal_postcode,
    FieldKind.NUMBER: normal_number,
    FieldKind.TEXT: normal_text,
}
