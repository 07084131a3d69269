from collections import Counter
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.play.joined import joined
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.file import load_study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.table.table_reading import load_table
from veiltab.play.studies.adult_extract import FILES, command, extract
from veiltab.play.studies.linked_tables import ATTRIBUTION, POPULATION, STUDY_FILE, linked_study, truth, write_tables

PEOPLE = STUDY_FILE.with_name("people.parquet")
RAW = Path(__file__).parents[2] / ".." / "shared" / "data" / "adult"
MISSING = {"workclass": 2799, "occupation": 2809, "country": 857}


def raw_folder() -> Path:
    if not RAW.is_dir():
        pytest.skip("the original Adult files are not beside this repository (../shared/data/adult)")
    return RAW


def test_each_curator_has_seven_attributes_and_three_have_a_category_of_missing_values() -> None:
    study = load_study(STUDY_FILE)
    assert [len(study.attributes_of(name)) for name in ("alice", "bob")] == [7, 7]
    assert {rule.name for rule in study.attributes if rule.coding.missing == "missing"} == set(MISSING)
    assert max(a.attribute.size * b.attribute.size for a, b in combinations(study.attributes, 2)) == 672


def test_a_written_study_takes_other_endpoints_and_a_budget() -> None:
    read = study_from_bytes(
        linked_study(endpoints={"bob": "localhost:9"}, epsilon=Decimal(9), delta=Decimal("1e-4")), "linked"
    )
    assert (read.curator("bob").endpoint, read.curator("alice").endpoint) == ("localhost:9", "localhost:7401")
    assert (read.budget_epsilon, read.budget_delta) == (Decimal(9), Decimal("1e-4"))
    assert read.attributes == load_study(STUDY_FILE).attributes
    assert study_from_bytes(linked_study(), "linked").budget_epsilon == load_study(STUDY_FILE).budget_epsilon


def test_the_true_rows_have_the_counts_that_are_known_of_adult() -> None:
    rows, study = truth(), load_study(STUDY_FILE)
    assert rows.shape == (POPULATION, 14)
    counts = {
        rule.name: dict(zip(rule.attribute.categories, np.bincount(rows[:, place]).tolist(), strict=True))
        for place, rule in enumerate(study.attributes)
    }
    assert {name: counts[name]["missing"] for name in MISSING} == MISSING
    assert counts["salary"] == {"<=50K": 37_155, ">50K": 11_687}
    assert counts["sex"] == {"Male": 32_650, "Female": 16_192}
    assert counts["education"]["Doctorate"] == counts["education_years"]["16"] == 594
    assert (counts["capital_gain"]["[0, 1)"], counts["capital_loss"]["[0, 1)"]) == (44_807, 46_560)


def test_the_tables_of_the_curators_join_to_the_true_rows(tmp_path: Path) -> None:
    study = load_study(STUDY_FILE)
    paths = write_tables(tmp_path)
    assert all(inspect_table(path, study, name).ok for name, path in paths.items())
    tables = {name: load_table(path, study, name) for name, path in paths.items()}
    assert {name: (table.rows, table.rows_dropped) for name, table in tables.items()} == {
        "alice": (48_842, 0),
        "bob": (49_742, 0),
    }
    rows = joined(study, tables).astype(np.uint8)
    assert Counter(map(bytes, rows)) == Counter(map(bytes, truth().astype(np.uint8)))


def test_the_file_of_people_is_small_and_names_its_authors() -> None:
    assert PEOPLE.stat().st_size < 300_000
    attribution = pq.read_schema(PEOPLE).metadata[b"attribution"].decode()
    assert attribution == ATTRIBUTION.read_text("utf-8")
    for words in ("Becker, B. and Kohavi, R.", "CC BY 4.0", "What was changed"):
        assert words in attribution


@pytest.mark.long
def test_the_people_are_those_of_the_original_files(tmp_path: Path) -> None:
    made = extract(raw_folder())
    assert made.equals(pq.read_table(PEOPLE))
    outs = [tmp_path / name for name in ("once.parquet", "again.parquet")]
    for out in outs:
        command.main([str(raw_folder()), str(out)], standalone_mode=False)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    written = [pq.ParquetFile(path).metadata.created_by for path in (outs[0], PEOPLE)]
    if written[0] == written[1]:
        assert outs[0].read_bytes() == PEOPLE.read_bytes()


GOOD = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, {}\n"


def test_numbers_become_the_lower_edges_of_their_bins(tmp_path: Path) -> None:
    (tmp_path / FILES[0]).write_text(GOOD.format("?, <=50K") + "\n", "utf-8")
    (tmp_path / FILES[1]).write_text("|1x3 Cross validator\n" + GOOD.format("Cuba, >50K."), "utf-8")
    first, second = extract(tmp_path).to_pylist()
    assert (first["age"], first["capital_gain"], first["hours"]) == ("35", "1", "40")
    assert [(row["country"], row["salary"]) for row in (first, second)] == [("?", "<=50K"), ("Cuba", ">50K")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (GOOD.format("Cuba"), "a line has 14 values instead of 15"),
        (GOOD.format("Atlantis, <=50K"), "country: a line has a value that the study does not know, 'Atlantis'"),
        (GOOD.replace("39,", "9,").format("Cuba, <=50K"), "age: a line has a value"),
        (None, "the file cannot be read"),
    ],
)
def test_files_that_are_not_those_of_adult_are_refused(tmp_path: Path, line: str | None, problem: str) -> None:
    (tmp_path / FILES[0]).write_text(GOOD.format("Cuba, <=50K"), "utf-8")
    if line is not None:
        (tmp_path / FILES[1]).write_text(line, "utf-8")
    with pytest.raises(InvalidInputError, match=problem):
        extract(tmp_path)
