"""Dates of all kinds of tables fall into the same bins."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.curator.made_rows import columns_in
from tests.curator.tables import written
from tests.curator.tables.test_forms import STUDY
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.table.table_reading import load_table

DAYS = (date(1990, 1, 1), date(2000, 6, 30), date(2000, 7, 1), date(2009, 12, 31))
EDGES = 'dates = ["1990", "2000-07", "2010"]'


def study(rule: str = EDGES) -> Study:
    return study_from_bytes(STUDY.replace(b"bins = [0, 3.5, 2000]", rule.encode()), "s.toml")


def rows(*days: object) -> list[list[object]]:
    return [["pid", "land", "wage", "kids"], *([row, "A", day, 0] for row, day in enumerate(days))]


def test_dates_have_one_digest_in_all_forms(tmp_path: Path) -> None:
    times = [datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC) for day in DAYS]
    others = {"pid": range(4), "land": ["A"] * 4, "kids": [0] * 4}
    pq.write_table(pa.table({**others, "wage": pa.array(times)}), tmp_path / "times.parquet")
    pq.write_table(pa.table({**others, "wage": pa.array(DAYS)}), tmp_path / "days.parquet")
    paths = [
        tmp_path / "times.parquet",
        tmp_path / "days.parquet",
        written.write_text(tmp_path / "t.csv", rows(*DAYS)),
        written.write_xlsx(tmp_path / "t.xlsx", {"people": rows(*DAYS)}),
        written.write_ods(tmp_path / "t.ods", rows(*DAYS)),
        written.write_duckdb(tmp_path / "t.duckdb", rows(*DAYS)),
    ]
    tables = [load_table(path, study(), "alice") for path in paths]
    assert [columns_in(table.respondents)["wage"].tolist() for table in tables] == [[0, 0, 1, 1]] * len(paths)
    german = written.write_text(tmp_path / "g.csv", rows(*(f"{day:%d.%m.%Y}" for day in DAYS)))
    tables.append(load_table(german, study(f'{EDGES}\ndate_format = "%d.%m.%Y"'), "alice"))
    assert {table.content_digest for table in tables} == {tables[0].content_digest}


def test_dates_that_do_not_fit_are_counted_with_their_rows(tmp_path: Path) -> None:
    path = written.write_text(tmp_path / "t.csv", rows("1990-01-01", "01.02.1990", "2010-01-01"))
    with pytest.raises(
        InvalidInputError,
        match=r"values that are not written as ISO 8601 .*, and dates outside the bins, in 2 rows, first in rows 3, 4",
    ):
        load_table(path, study(), "alice")


def test_the_bins_have_names_that_read_well() -> None:
    assert study().domain(["wage"]).attributes[0].categories == ("1990-01 to 2000-06", "2000-07 to 2009-12")
    named = study(f'{EDGES}\ncategories = ["before", "after", "none"]\nmissing = "none"')
    assert named.domain(["wage"]).attributes[0].categories == ("before", "after", "none")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ('date_format = "%Y"\ncategories = ["a", "b"]', "stands without dates"),
        (f"{EDGES}\nbins = [1, 2]", "dates stands beside recode or bins"),
        (f"{EDGES}\nintegers = [1, 2]", "integers stands beside dates"),
        ("dates = [1990, 2000]", "dates is of another kind"),
    ],
)
def test_rules_that_contradict_one_another_are_refused(rule: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        study(rule)
