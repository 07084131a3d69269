"""Names of months in dates, such as 08-MAY-1951 of Oracle, 08MAY1951 of SAS, or 8. Mai 1951."""

import re

_WORD = re.compile(r"[^\W\d_]{3,}(?:\.(?=\s))?")
"""A dot before a blank is the abbreviation's: 8 janv. 1951 is written as 8 mai 1951 is."""

_NAMES = (
    *("jan ene gen", "feb fev fév", "mar mär mrz maerz mrt", "apr abr avr", "may mai mag mei", "jun juin giu"),
    *("jul juil lug", "aug ago aoû aou", "sep set", "oct okt ott out", "nov", "dec dez déc dic"),
)
"""How the names of each month begin in English, German, French, Spanish, Italian, Dutch and Portuguese."""


def month_numbered(text: str) -> tuple[str, str, str] | None:
    """Return what stands before the name of a month, its number of two digits, and what stands behind it.

    Returns:
        None if the first word of three letters or more names no month.
    """
    if not (word := _WORD.search(text)):
        return None
    name = word[0].casefold()
    numbers = (f"{number:02}" for number, names in enumerate(_NAMES, 1) if name.startswith(tuple(names.split())))
    number = next(numbers, None)
    return (text[: word.start()], number, text[word.end() :]) if number else None
