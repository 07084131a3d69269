from pathlib import Path

import pytest

from veiltab.curator.tables.address import TableAddress
from veiltab.curator.tables.opening import file_of


@pytest.mark.parametrize(
    ("location", "file"),
    [
        ("a.csv", "a.csv"),
        ("a.xlsx#Sheet1", "a.xlsx"),
        ("a.sqlite", None),
        ("a.sqlite#people", None),
        ("absent.csv", None),
        ("*.csv", None),
        (".", None),
    ],
)
def test_the_file_of_a_table(tmp_path: Path, location: str, file: str | None) -> None:
    for name in ("a.csv", "a.xlsx", "a.sqlite"):
        (tmp_path / name).touch()
    found = file_of(TableAddress(location=str(tmp_path / location)))
    assert found == (None if file is None else tmp_path / file)


def test_a_database_server_has_no_file() -> None:
    assert file_of(TableAddress(location="postgresql://host/people", query="SELECT 1")) is None
