"""docs/reliability.md: the rows, and the figures that were last measured for them, with the date."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.reliability.rows import ROWS, Row

PATH = Path(__file__).parents[2] / "docs" / "reliability.md"
NOT_MEASURED = "not measured"
_HEAD = """# What must never happen, and what shows that it does not

For auditors and developers. Nothing acknowledged is lost; one release is perturbed and published once; no unperturbed
ciphertext leaves the server or outlives perturbation; a pad is used once; the ledger never under-counts; every refusal
says what to do next and leaks nothing. No test detects a malicious server that keeps the raw ciphertext for a desk, or
a curator that lies consistently about its own table; Python cannot promise to clear memory.

`make reliability` runs the tests of every row, which lie below `tests/`, and writes the figures;
`python -m tests.reliability --row 36` runs one row. "All 8" are eight tests that ran and held; "quick" leaves the long
tests out.

| # | promise | fault | tests | figure, date | not shown |
|---|---|---|---|---|---|
"""
_LINE = re.compile(r"^\| (\d+) \|.*\| ([^|]*) \| [^|]* \|$")


def figures_of(text: str) -> dict[int, str]:
    """Return the figures that a table holds, by number."""
    matches = (_LINE.match(line) for line in text.splitlines())
    return {int(match[1]): match[2] for match in matches if match}


def table(figures: Mapping[int, str]) -> str:
    """Return the whole page."""
    return _HEAD + "".join(_line(row, figures.get(row.number, NOT_MEASURED)) for row in ROWS)


def _line(row: Row, figure: str) -> str:
    tests = "<br>".join(f"`{test}`" for test in row.tests) or "none"
    tests += f"<br>`python -m {' '.join(row.command)}`" if row.command else ""
    return f"| {row.number} | {row.promise} | {row.fault} | {tests} | {figure} | {row.limits} |\n"
