"""Texts as cells of a CSV file, which people open in a spreadsheet."""

import re

_SIGNS = (
    "=+@-\N{MINUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
    "\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH COMMERCIAL AT}"
)
_FORMULA = re.compile(rf'[\s"]*[{re.escape(_SIGNS)}]|[\t\r\n]')
_FORMULA_INSIDE = re.compile(rf'([;|\t\r\n][\s"]*)(?=[{re.escape(_SIGNS)}])')
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def plain_cell(text: str) -> str:
    """Return a text as a cell of a CSV file: what a spreadsheet takes for a formula gets an apostrophe before it.

    A spreadsheet may divide the text at semicolons, bars, tabs or line ends. A number stays as it is.
    """
    if _NUMBER.fullmatch(text):
        return text
    return ("'" if _FORMULA.match(text) else "") + _FORMULA_INSIDE.sub(r"\1'", text)
