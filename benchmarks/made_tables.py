"""Synthetic tables of two curators: common respondents in different orders, and some that one curator holds alone."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

ID = "id"
CATEGORIES = {
    "education": ("no college", "some college", "post-graduate"),
    "sex": ("Female", "Male"),
    "marital": ("married", "else"),
    "salary": ("<=50K", ">50K"),
}
OWNERS = {"alice": ("education", "sex"), "bob": ("marital", "salary")}
KINDS = ("csv", "parquet")

_OWN_SHARE = 50
"""For this many common respondents, each table has one more of its own."""


def write_tables(folder: Path, rows: int, kind: str) -> dict[str, Path]:
    """Write both curators' tables and return their paths.

    Args:
        folder: where to.
        rows: common respondents n; each table has n/50 more of its own.
        kind: "csv" or "parquet".
    """
    paths = {}
    for number, (owner, attributes) in enumerate(OWNERS.items()):
        own = rows // _OWN_SHARE
        numbers = np.arange(rows + own)
        numbers[rows:] += number * own
        np.random.default_rng(number + 1).shuffle(numbers)
        columns = {ID: _ids(numbers)} | {name: _column(name, rows + 2 * own).take(numbers) for name in attributes}
        paths[owner] = folder / f"{owner}.{kind}"
        _write(pa.table(columns), paths[owner])
    return paths


def _ids(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Write numbers as ids of 13 characters."""
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 10, "0")
    return pc.binary_join_element_wise("id-", digits, "")


def _column(name: str, people: int) -> pa.DictionaryArray:
    """Draw everyone's value of an attribute, the earlier categories more often."""
    categories = CATEGORIES[name]
    seed = list(CATEGORIES).index(name) + 10
    symbols = (np.random.default_rng(seed).random(people, np.float32) ** 1.5 * len(categories)).astype(np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(symbols), pa.array(categories))


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
        return
    plain = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    pa.csv.write_csv(plain, path)
