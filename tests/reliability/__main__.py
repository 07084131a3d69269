"""Run the tests of every promise and write docs/reliability.md: `python -m tests.reliability`."""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import click

from tests.reliability.rows import ROWS, Row
from tests.reliability.table import PATH, figures_of, table

QUICK_REPEATS = 1
_COUNT = re.compile(r"\b\d+\b")


def run_tests(row: Row, *, quick: bool) -> tuple[Counter[str], list[str]]:
    """Run a row's tests; return how many ended how, and what they measured."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        tests = [f"tests/{test}" for test in row.tests]
        words = [
            "-m",
            "not compose" + (" and not long" if quick else ""),
            f"--junitxml={report}",
            "-o",
            "junit_family=xunit1",
            "-q",
            *tests,
        ]
        how = os.environ | ({"VEILTAB_RELAYED": "1"} if row.relayed else {})
        subprocess.run([sys.executable, "-m", "pytest", *words], check=False, env=how)
        root = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it
    counts, measured = Counter[str](), list[str]()
    for case in root.iter("testcase"):
        ends = {child.tag for child in case} & {"failure", "error", "skipped"}
        counts[ends.pop() if ends else "passed"] += 1
        measured += [str(one.get("value")) for one in case.iter("property") if one.get("name") == "figure"]
    return counts, measured


def summed(figures: Sequence[str]) -> list[str]:
    """Return figures, those that differ in their counts alone as one, with the counts added up."""
    counts: dict[str, list[int]] = {}
    for figure in figures:
        # What has a decimal point is no count.
        is_counted = "." not in figure
        text = _COUNT.sub("{}", figure) if is_counted else figure
        found = [int(one) for one in _COUNT.findall(figure)] if is_counted else []
        counts[text] = [a + b for a, b in zip(counts[text], found, strict=True)] if text in counts else found
    return [text.format(*found) for text, found in counts.items()]


def measured(row: Row, *, quick: bool, repeats: int) -> tuple[str, bool]:
    """Return a row's figure, and whether everything held."""
    counts, figures = Counter[str](), list[str]()
    for _ in range(min(repeats, row.repeats) if row.tests else 0):
        more, found = run_tests(row, quick=quick)
        counts += more
        figures += found
    ran = counts["passed"] + counts["failure"] + counts["error"]
    holds = counts["passed"] == ran
    parts = [f"all {ran}" if holds else f"{counts['passed']} of {ran}"] if ran else ["nothing was run"]
    parts += [f"{counts['skipped']} skipped"] if counts["skipped"] else []
    parts += summed(figures)
    if row.command:
        ended = subprocess.run([sys.executable, "-m", *row.command], stdout=subprocess.PIPE, text=True, check=False)
        parts.append(ended.stdout.strip())
        holds = holds and ended.returncode == 0
    return "; ".join(parts), holds


@click.command(help=__doc__)
@click.option("--row", "numbers", type=click.IntRange(1, len(ROWS)), multiple=True, help="Measure these rows alone.")
@click.option("--quick", is_flag=True, help="Leave the long tests out.")
@click.option("--kills", default=100, show_default=True, help="Most repeats of tests that draw their moments anew.")
def main(numbers: tuple[int, ...], quick: bool, kills: int) -> None:  # noqa: FBT001 - an option
    """Measure rows and write the page; exit with 1 if something does not hold."""
    figures = figures_of(PATH.read_text("utf-8")) if PATH.exists() else {}
    all_hold = True
    for row in ROWS:
        if not numbers or row.number in numbers:
            figure, holds = measured(row, quick=quick, repeats=QUICK_REPEATS if quick else kills)
            figures[row.number] = f"{figure}{' (quick)' if quick else ''}, {datetime.now(UTC):%Y-%m-%d}"
            all_hold = all_hold and holds
            PATH.write_text(table(figures), "utf-8")
            click.echo(f"row {row.number}: {figure}")
    sys.exit(0 if all_hold else 1)


if __name__ == "__main__":
    main()
