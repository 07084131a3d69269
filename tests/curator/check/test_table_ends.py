"""What is no header and no person's row is asked about before a draft has it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.curator.tables.written import write_xlsx
from veiltab.common.errors import InvalidInputError
from veiltab.curator.check.drafted_table import propose_table

Row = Sequence[object]
HEADER = ("id", "sex", "region", "wage")
PEOPLE = [
    (100_000 + 7 * row, "fm"[row * row % 7 % 2], "north" if row % 3 else "south", 900 + row * 37 % 4999)
    for row in range(300)
]
LETTERS = [(f"P-{row:04}", sex, region, wage) for row, (_, sex, region, wage) in enumerate(PEOPLE)]
TEXTS = [(name, sex, region, "high" if wage > 2000 else "low") for name, sex, region, wage in LETTERS]
SUM = sum(row[3] for row in PEOPLE)
NO_NAMES, BELOW, TITLE = "row 1 does not seem to hold the names", "seems to stand below the table", "row 2 seems to be"
ABOVE = "row 2 seems to stand above the table"

CASES: dict[str, tuple[Sequence[Row], str]] = {
    "no header": (PEOPLE, NO_NAMES),
    "no header, ids with letters": (LETTERS, NO_NAMES),
    "no header, texts alone": (TEXTS, NO_NAMES),
    "no header, the first wage missing": ([(*PEOPLE[0][:3], ""), *PEOPLE[1:]], NO_NAMES),
    "a title as wide": ([("Wages", "Office", "all", 2025), HEADER, *PEOPLE], TITLE),
    "a title as wide, ids with letters": ([("Wages", "Office", "all", "of 2025"), HEADER, *LETTERS], TITLE),
    "units below the header": ([HEADER, ("", "", "", "EUR"), *PEOPLE], TITLE),
    "a title and empty cells": ([("Extract of 2025", "", "", ""), HEADER, *PEOPLE], "row 1 names 1 of 4 columns"),
    "a total": ([HEADER, *PEOPLE, ("Total", "", "", SUM)], BELOW),
    "a total above": ([HEADER, ("Total", "", "", SUM), *PEOPLE], ABOVE),
    "a total above that has an id": ([HEADER, (999_999, "f", "north", SUM), *PEOPLE], ABOVE),
    "a total with categories": ([HEADER, *LETTERS, ("Total", "all", "all", 5)], BELOW),
    "a total that has an id": ([HEADER, *PEOPLE, (999_999, "f", "north", SUM)], "its wage is the sum of the others"),
    "a total and a remark": ([HEADER, *PEOPLE, ("Total", "", "", SUM), ("Source: office", "", "", "")], BELOW),
    "a remark": ([HEADER, *PEOPLE, ("Source: office", "", "", "")], BELOW),
    "a remark in another column": ([HEADER, *PEOPLE, ("", "", "Source: office", "")], "nothing but its region"),
}


def write_csv(path: Path, rows: Sequence[Row], separator: str = ",") -> Path:
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows), "utf-8")
    return path


def write_semicolons(path: Path, rows: Sequence[Row]) -> Path:
    return write_csv(path, rows, ";")


def write_sheet(path: Path, rows: Sequence[Row]) -> Path:
    return write_xlsx(
        path.with_suffix(".xlsx"), {"a": [[None if cell == "" else cell for cell in row] for row in rows]}
    )


@pytest.mark.parametrize("write", [write_csv, write_semicolons, write_sheet])
@pytest.mark.parametrize("case", CASES)
def test_what_looks_like_no_header_or_no_person_is_asked_about(
    tmp_path: Path, case: str, write: Callable[[Path, Sequence[Row]], Path]
) -> None:
    rows, problem = CASES[case]
    with pytest.raises(InvalidInputError, match=problem) as caught:
        propose_table(
            write(tmp_path / "a.csv", rows), "alice", id_columns=() if rows[0] is HEADER else [str(rows[0][0])]
        )
    assert "say --as-is" in caught.value.remedy


def test_a_person_may_say_that_a_table_is_right(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "a.csv", [("id", "2019", "2020"), *((f"a{row}", row % 5, row % 3) for row in range(20))]
    )
    with pytest.raises(InvalidInputError, match="'2019' is a number"):
        propose_table(path, "alice")
    proposal = propose_table(path, "alice", is_as_it_is=True)
    assert [one.rule.column for one in proposal.attributes] == ["2019", "2020"]


@pytest.mark.parametrize(
    "rows",
    [
        [("id", "male"), *((f"a{row}", row % 2) for row in range(20))],
        [("id", "y", "age"), *((row, "yn"[row % 2], 20 + row) for row in range(40))],
        [("id", "wage"), (1, "k.A."), *((row, row % 900) for row in range(2, 2000))],
        [("id", "wage"), *((row, row % 900) for row in range(2, 2000)), (2000, "k.A.")],
        [("id", "late"), *((row, int(row in {3, 9})) for row in range(20)), (21, 2)],
        [("city", "people"), *((name, 5) for name in ("Bonn", "Ulm", "Jena", "Gera", "Hof", "Suhl", "Bad Ems"))],
    ],
)
def test_what_is_strange_and_right_is_taken(tmp_path: Path, rows: Sequence[Row]) -> None:
    propose_table(write_csv(tmp_path / "a.csv", rows), "alice", id_columns=[str(rows[0][0])])


@pytest.mark.parametrize("more", [1, 2])
def test_columns_without_a_name_stay_out_however_many(tmp_path: Path, more: int) -> None:
    empty = ("",) * more
    path = write_csv(tmp_path / "a.csv", [(*HEADER, *empty), *((*row, *empty) for row in PEOPLE)])
    proposal = propose_table(path, "alice")
    assert [one.rule.column for one in proposal.attributes] == ["sex", "region", "wage"]
    (omission,) = proposal.omissions
    assert omission.reason == f"columns without a name: {more}; they stay out until the header names them"


def test_cells_below_a_merged_one_are_no_reason_to_fear_names(tmp_path: Path) -> None:
    rows = [("id", "group", "sex"), *((row, "" if row % 100 else f"group {row}", "fm"[row % 2]) for row in range(300))]
    (omission,) = propose_table(write_csv(tmp_path / "a.csv", rows), "alice").omissions
    assert omission.reason == "297 of 300 rows miss it, as below a merged cell: fill each row"
