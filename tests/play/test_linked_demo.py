"""The linked demonstration: its options, and whole runs whose figures are those that are promised."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.play.demos.linked import LinkedOptions, LinkedTruth, conditional_pair, prepare
from veiltab.play.studies.linked_tables import POPULATION, truth


@pytest.mark.parametrize("people", [0, 999, POPULATION + 1])
def test_people_beyond_the_data_set_are_refused(tmp_path: Path, people: int) -> None:
    with refuses(InvalidInputError, where="people"):
        LinkedOptions(out=tmp_path / "out", people=people)


def test_an_unknown_attribute_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="iq"):
        prepare(LinkedOptions(out=tmp_path / "out", attributes=("age", "iq"), people=1000))


def test_the_truth_is_that_of_the_people_and_attributes_asked_for(tmp_path: Path) -> None:
    local, known = prepare(LinkedOptions(out=tmp_path / "out", attributes=("sex", "age"), people=1000))
    every = [rule.name for rule in local.study.attributes]
    assert known.rows.shape == (1000, 2)
    for axis, name in enumerate(known.domain.names):
        assert np.array_equal(known.rows[:, axis], truth()[:1000, every.index(name)])
    held = [len(path.read_text("utf-8").splitlines()) - 1 for path in local.tables.values()]
    assert sorted(held) == [1000, 1900]
    assert local.study.budget_delta is not None
    part = LinkedTruth(domain=known.domain, rows=known.rows).table(known.domain.names[::-1])
    assert part.raw.sum() == pytest.approx(1)
    assert part.domain.names == known.domain.names[::-1]


def test_salary_is_shown_by_education_where_both_are_there() -> None:
    assert conditional_pair(("age", "education", "salary")) == ("education", "salary")
    assert conditional_pair(("age", "education", "sex")) == ("age", "sex")


def run(*args: str) -> dict[str, Any]:
    command = [sys.executable, "-c", "from veiltab.deploy.cli import main; main()", "demo", "linked", "--json", *args]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=dict(os.environ), timeout=1100)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
def test_a_small_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run("--people", "3000", "--attributes", "age,sex,education,salary", "--out", str(out))
    assert {"id", "n", "tables", "epsilon", "delta", "mu", "phases"} <= set(found["release"])
    assert (found["release"]["n"], found["release"]["tables"], found["release"]["phases"]) == (3000, 12, [6, 6])
    assert set(found["errors"]) == {"pairs", "triples", "expected_pairs"}
    # Independent columns are .13 away, and the noise of one run moves the error by a few thousandths.
    assert found["errors"]["pairs"] < 0.1
    assert found["expected"]["pairs"] == pytest.approx(found["errors"]["pairs"], rel=0.5)
    frame = pd.read_parquet(found["microdata"])
    assert len(frame) == 3000
    assert frame.attrs["release"] == found["release"]["id"]
    assert "actual, mean over all pairs" in Path(found["report"]).read_text("utf-8")
    assert (found["means"], found["linear"]) == ([], None)  # no attribute of these has numbers
    assert found["card"]
    assert found["bytes"]
    assert found["seconds"]["release"] > 0


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_whole_census_is_as_near_as_a_trusted_curator_would_bring_it(tmp_path: Path) -> None:
    found = run("--out", str(tmp_path / "out"))
    assert found["release"]["tables"] == 91 + 40
    assert found["errors"]["pairs"] < 0.021
    assert found["errors"]["triples"] < 0.048
    assert found["expected"]["pairs"] == pytest.approx(found["errors"]["pairs"], rel=0.2)
    for row in (*found["means"], *found["linear"]["coefficients"]):
        # The interval, three times as wide: chance misses it once in many thousand runs.
        assert abs(row["estimate"] - row["truth"]) < 1.5 * (row["high"] - row["low"])
    assert {row["group"] for row in found["means"]} == {"<=50K", ">50K"}
