"""Synthetic tables of two curators: the people of the hub in different orders, and some whom the other holds alone.

They are made and written batch by batch, so that memory does not depend on their rows.
"""

from collections.abc import Iterator
from math import gcd
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

ID = "id"
CATEGORIES = {
    "education": ("no college", "some college", "post-graduate"),
    "sex": ("Female", "Male"),
    "marital": ("married", "else"),
    "salary": ("<=50K", ">50K"),
}
OWNERS = {"alice": ("education", "sex"), "bob": ("marital", "salary")}
KINDS = ("csv", "parquet")

OWN_SHARE = 50
"""For this many people of alice, who is the hub, bob has one more of his own."""

_BATCH = 2**20
"""Rows that are made and written at once, and those of a row group."""

_STRIDES = (0.6180339887, 0.7548776662)
"""Distance of the people of neighbouring rows of each table before they are shuffled, as a share of the table."""


def write_tables(folder: Path, rows: int, kind: str) -> dict[str, Path]:
    """Write both curators' tables and return their paths.

    Args:
        folder: where to.
        rows: n, those of alice, the hub; bob has n/50 more of his own.
        kind: "csv" or "parquet".
    """
    paths = {}
    for number, (owner, attributes) in enumerate(OWNERS.items()):
        paths[owner] = folder / f"{owner}.{kind}"
        value = pa.string() if kind == "csv" else pa.dictionary(pa.int8(), pa.string())
        schema = pa.schema([(ID, pa.string()), *((name, value) for name in attributes)])
        with _writer(paths[owner], schema) as writer:
            for people in _people(rows, number):
                columns = [_ids(people), *(_column(name, people).cast(value) for name in attributes)]
                writer.write_table(pa.table(columns, schema))
    return paths


def _writer(path: Path, schema: pa.Schema) -> pa.csv.CSVWriter | pa.parquet.ParquetWriter:
    return pa.csv.CSVWriter(path, schema) if path.suffix == ".csv" else pa.parquet.ParquetWriter(path, schema)


def _people(rows: int, number: int) -> Iterator[NDArray[np.int64]]:
    """Yield the people of a table in its order: 0..rows-1 are the hub's, the others follow."""
    rng = np.random.default_rng(number + 1)
    size = rows + number * (rows // OWN_SHARE)
    stride = int(size * _STRIDES[number])
    while gcd(stride, size) > 1:
        stride += 1
    for start in range(0, size, _BATCH):
        yield rng.permutation(np.arange(start, min(start + _BATCH, size)) * stride % size)


def _ids(people: NDArray[np.int64]) -> pa.Array:
    """Write numbers as ids of 13 characters."""
    digits = pc.utf8_lpad(pa.array(people).cast(pa.string()), 10, "0")
    return pc.binary_join_element_wise("id-", digits, "")


def _column(name: str, people: NDArray[np.int64]) -> pa.DictionaryArray:
    """Return the people's values of an attribute, the earlier categories more often."""
    categories = CATEGORIES[name]
    # A mixing function of 64 bits (the finaliser of splitmix64), so that a person's value depends on the person alone.
    words = (people.astype(np.uint64) + np.uint64(list(CATEGORIES).index(name) << 40)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    uniform = (words >> np.uint64(40)) / 2.0**24
    symbols = (uniform**1.5 * len(categories)).astype(np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(symbols), pa.array(categories))
