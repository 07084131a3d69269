"""American Soundex: names that sound alike in English share a letter and three digits."""

from functools import lru_cache

_GROUPS = ("bfpv", "cgjkqsxz", "dt", "l", "mn", "r")
_DIGITS = {letter: str(digit) for digit, group in enumerate(_GROUPS, 1) for letter in group}
_SILENT = "hw"
"""Between two letters of one digit these leave them one sound; a vowel makes two of them."""


@lru_cache(maxsize=2**14)  # each pass asks for the same names
def soundex(name: str) -> str:
    """Return the American Soundex of a name, such as "r163" of "robert"; "" if it does not begin with a to z.

    Args:
        name: lower-case letters; what is not a to z counts as a vowel.

    Source: United States National Archives, "The Soundex Indexing System", 2007.
    """
    if not ("a" <= name[:1] <= "z"):
        return ""
    code, before = name[0], _DIGITS.get(name[0], "")
    for letter in name[1:]:
        digit = _DIGITS.get(letter, "")
        if digit and digit != before:
            code += digit
        if letter not in _SILENT:
            before = digit
    return f"{code:0<4}"[:4]
