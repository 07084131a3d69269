import csv
import tomllib
from decimal import Decimal
from math import prod
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.play.joined import joined
from veiltab.common.study.file import Study, load_study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_reading import load_table
from veiltab.play.studies import adult_tables
from veiltab.play.studies.adult_tables import adult_study, assignment, truth, write_tables

STUDY_FILE = Path(adult_tables.__file__).parent / "adult" / "study.toml"
RAW = Path(__file__).parents[2] / ".." / "shared" / "data" / "adult"
COLUMNS = {"education": 3, "marital": 5, "sex": 9, "salary": 14}


def common_counts(study: Study, tables: dict[str, Table]) -> NDArray[np.int64]:
    shape = study.domain(rule.name for rule in study.attributes).shape
    cells = np.ravel_multi_index(tuple(joined(study, tables).T), shape)
    return np.bincount(cells, minlength=prod(shape))


@pytest.mark.long
@pytest.mark.parametrize("curators", [2, 3, 4])
def test_the_tables_join_to_the_published_counts(tmp_path: Path, curators: int) -> None:
    study = study_from_bytes(adult_study(curators=curators), "adult")
    paths = write_tables(tmp_path, assignment(curators))
    tables = {name: load_table(path, study, name) for name, path in paths.items()}
    assert sorted(tables) == [curator.name for curator in study.curators]
    assert common_counts(study, tables).tolist() == truth().tolist()
    assert truth().sum() == 45_222
    assert [table.rows for table in tables.values()] == [45_222, 46_122, 45_822, 45_822][:curators]
    assert all(inspect_table(path, study, name).ok for name, path in paths.items())


@pytest.mark.long
def test_each_further_curator_holds_one_attribute_more(tmp_path: Path) -> None:
    study = study_from_bytes(adult_study(curators=8), "adult")
    tables = {name: load_table(path, study, name) for name, path in write_tables(tmp_path, assignment(8)).items()}
    assert [rule.owner for rule in study.attributes] == [curator.name for curator in study.curators]
    assert common_counts(study, tables).tolist() == truth(8).tolist()
    assert (truth(8).sum(), len(truth(8)), len(truth(5))) == (48_842, 24 * 16, 48)


def test_the_tables_are_the_same_each_time_and_in_different_orders(tmp_path: Path) -> None:
    once, again = tmp_path / "once", tmp_path / "again"
    once.mkdir()
    again.mkdir()
    first, second = write_tables(once), write_tables(again)
    assert {n: p.read_bytes() for n, p in first.items()} == {n: p.read_bytes() for n, p in second.items()}
    ids = {n: [line.split(",")[0] for line in p.read_text().splitlines()[1:]] for n, p in first.items()}
    healed = [spelling.strip().upper() for spelling in ids["bob"]]
    place = {key: row for row, key in enumerate(ids["alice"])}
    assert sum(spelling not in place for spelling in ids["bob"]) > 30_000
    ranks = [place[key] for key in healed if key in place]
    assert abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]) < 0.02


@pytest.mark.long
def test_without_normalisation_careless_ids_do_not_meet(tmp_path: Path) -> None:
    text = adult_study().decode().replace('["strip", "casefold", "nfc"]', "[]")
    study = study_from_bytes(text.encode(), "adult")
    tables = {name: load_table(path, study, name) for name, path in write_tables(tmp_path).items()}
    assert common_counts(study, tables).sum() < 15_000


def test_the_written_study_says_what_the_ready_file_says() -> None:
    ready = tomllib.loads(STUDY_FILE.read_text("utf-8"), parse_float=Decimal)
    assert tomllib.loads(adult_study().decode(), parse_float=Decimal) == ready
    study = load_study(STUDY_FILE)
    assert [rule.name for rule in study.attributes] == ["education", "marital", "sex", "salary"]
    assert [researcher.name for researcher in study.researchers] == ["rosa", "rita"]
    assert study.budget_epsilon == 4
    assert study.domain(COLUMNS).shape == (3, 2, 2, 2)


def test_a_written_study_takes_other_endpoints_and_limits() -> None:
    data = adult_study(
        curators=3,
        endpoints={"carol": "localhost:9001", "cloud": "localhost:9000"},
        epsilon=Decimal("0.75"),
        minimum_population=7,
        release={"sampling": "indices", "pad": "otp"},
    )
    study = study_from_bytes(data, "adult")
    assert (study.curator("carol").endpoint, study.server.endpoint) == ("localhost:9001", "localhost:9000")
    assert (study.budget_epsilon, study.minimum_population) == (Decimal("0.75"), 7)
    assert (study.sampling, study.pad) == ("indices", "otp")
    assert [len(study.attributes_of(name)) for name in ("alice", "bob", "carol")] == [1, 2, 1]


def raw_rows() -> list[list[str]]:
    if not RAW.is_dir():
        pytest.skip("the original Adult files are not beside this repository (../shared/data/adult)")
    rows = []
    for name in ("adult.data", "adult.test"):
        with (RAW / name).open(encoding="utf-8", newline="") as file:
            rows += [row for row in csv.reader(file) if len(row) == 15]
    return rows


def load_raw(folder: Path, rows: list[list[str]]) -> dict[str, Table]:
    study = load_study(STUDY_FILE)
    tables = {}
    for curator in study.curators:
        names = [rule.name for rule in study.attributes_of(curator.name)]
        path = folder / f"{curator.name}.csv"
        lines = [",".join([str(i), *(row[COLUMNS[name]] for name in names)]) for i, row in enumerate(rows)]
        path.write_text("\n".join([",".join(["id", *names]), *lines, ""]), "utf-8")
        tables[curator.name] = load_table(path, study, curator.name)
    return tables


def test_the_published_counts_are_those_of_the_original_rows_without_a_question_mark(tmp_path: Path) -> None:
    rows = raw_rows()
    complete = [row for row in rows if not any(value.strip() == "?" for value in row)]
    assert (len(rows), len(complete)) == (48_842, 45_222)
    counts = common_counts(load_study(STUDY_FILE), load_raw(tmp_path, complete))
    assert counts.tolist() == truth().tolist()
