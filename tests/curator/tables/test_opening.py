from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veiltab.curator.formats.address import TableAddress
from veiltab.curator.formats.columns.named_columns import NamedColumns
from veiltab.curator.formats.opening import file_of, open_table


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


def test_parquet_files_state_their_rows(tmp_path: Path) -> None:
    for name, rows in (("a", 3), ("b", 4)):
        pq.write_table(pa.table({"id": [f"{name}{n}" for n in range(rows)]}), tmp_path / f"{name}.parquet")
    (tmp_path / "c.csv").write_text("id\nx\n", "utf-8")
    found = [open_table(tmp_path / name).rows for name in ("a.parquet", "*.parquet", "c.csv")]
    assert found == [3, 7, None]


def test_a_large_row_group_is_never_in_memory_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    ids = pa.array(np.random.default_rng(0).bytes(2**20).hex(" ", 16).split(" "))
    pq.write_table(pa.table({"id": ids}), path, data_page_size=2**14, use_dictionary=False)
    monkeypatch.setattr("veiltab.curator.formats.files.parquet.BATCH_ROWS", 2**10)
    before = pa.total_allocated_bytes()
    taken = [pa.total_allocated_bytes() - before for _ in NamedColumns(open_table(path), ["id"], ()).batches()]
    assert max(taken) < path.stat().st_size / 2
