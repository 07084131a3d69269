"""Microdata files hold the study's categories, say where they come from, and are there whole or not at all."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.worlds.domains import domain_of
from veiltab.common.core.domain import ABSENT, Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.microdata.files import (
    Chunk,
    check_microdata_path,
    copy_paths,
    provenance_path,
    write_rows,
    written_paths,
)

HOSTILE = ("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", '<script>"x"</script>', "a,b\nc", "-5", "unused")
DOMAIN = domain_of(**{"text": HOSTILE, "=sex": "fm"})
ROWS = np.array([[0, 0], [1, 1], [2, 0], [3, 1], [4, 1], [5, 0]])
PROVENANCE = {"warning": "no people", "copy": 2, "codebook": {"text": list(HOSTILE)}}


def chunks() -> Iterator[Chunk]:
    yield ROWS[:4], {}
    yield ROWS[4:], {}


def test_parquet_has_categories_and_provenance(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows(path, DOMAIN, chunks(), PROVENANCE)
    frame = pd.read_parquet(path)
    assert frame.attrs == PROVENANCE
    assert tuple(frame["text"].cat.categories) == HOSTILE
    assert frame["text"].cat.ordered
    assert frame["text"].tolist() == [HOSTILE[i] for i in ROWS[:, 0]]
    assert frame["=sex"].tolist() == ["f", "m", "f", "m", "m", "f"]


def test_csv_reads_plainly_and_holds_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, DOMAIN, chunks(), PROVENANCE)
    frame = pd.read_csv(path, dtype=str)
    assert list(frame.columns) == ["text", "'=sex"]
    assert frame["text"].tolist() == [
        "'=1+1",
        "'+cmd|' /C calc'!A0",
        "'@SUM(A1)",
        '<script>"x"</script>',
        "a,b\nc",
        "-5",
    ]
    assert json.loads(provenance_path(path).read_text("utf-8")) == PROVENANCE


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_file_that_breaks_off_leaves_the_old_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    write_rows(path, DOMAIN, chunks(), PROVENANCE)
    before = path.read_bytes()

    def broken() -> Iterator[Chunk]:
        yield ROWS, {}
        raise OSError(28, "No space left on device")

    with pytest.raises(InvalidInputError, match="No space left"):
        write_rows(path, DOMAIN, broken(), PROVENANCE)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.csv").mkdir()
    for place in ("rows.xlsx", "rows", "none/rows.csv", "file/rows.csv", "folder.csv"):
        with pytest.raises(InvalidInputError):
            check_microdata_path(tmp_path / place)
    check_microdata_path(tmp_path / "rows.CSV")


def test_several_copies_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "linked.v1.parquet"
    assert [one.name for one in copy_paths(path, 3)] == [f"linked.v1-{i}.parquet" for i in (1, 2, 3)]


def test_nobody_else_reads_a_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", DOMAIN, chunks(), PROVENANCE)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_every_file_of_every_copy_is_asked_about_before_it_is_written() -> None:
    assert {path.name for path in written_paths(Path("wages.csv"), 2)} >= {
        *("wages-1.csv", "wages-1.csv.json", "wages-2.csv", "wages-2.csv.json")
    }
    assert [path.name for path in written_paths(Path("wages.csv"), 0)] == ["wages.csv", "wages.csv.json"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_of_people_who_are_absent_are_empty(tmp_path: Path, suffix: str) -> None:
    attributes = (
        Attribute(name="wage", categories=("0", "10", ABSENT), number="bob/wage"),
        Attribute(name="hours", categories=("7", "8", ABSENT)),
        Attribute(name="town", categories=("north", ABSENT)),
    )
    rows = np.array([[0, 1, 0], [2, 2, 1]])
    path = tmp_path / f"rows.{suffix}"
    write_rows(path, Domain(attributes=attributes), [(rows, {0: np.array([2.5, np.nan])})], PROVENANCE)
    frame = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    assert frame["wage"].isna().tolist() == frame["hours"].isna().tolist() == [False, True]
    assert (frame["wage"][0], frame["hours"][0]) == (2.5, 8)
    assert frame["town"].tolist() == ["north", ABSENT]
