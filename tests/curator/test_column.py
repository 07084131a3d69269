"""A batch of one column, as its readers hand it over: a slice of a larger array, with and without absent values."""

import pyarrow as pa
import pytest

from veiltab.common.core.coding import DROP, Coding
from veiltab.common.core.domain import Attribute
from veiltab.common.study.file import AttributeRule
from veiltab.curator.column import ColumnReader

CATEGORIES = ("red", "green", "blue")
RULE = AttributeRule(
    attribute=Attribute(name="colour", categories=CATEGORIES),
    owner="alice",
    column="colour",
    coding=Coding(categories=CATEGORIES),
)


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("absent", [False, True])
def test_a_slice_is_coded_as_its_own_values(index: pa.DataType, absent: bool) -> None:  # noqa: FBT001
    values = ["blue", "red", None if absent else "red", "green", "blue", "green"]
    column = pa.array(values).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    for start in range(len(values)):
        reader = ColumnReader(RULE)
        expected = [DROP if value is None else CATEGORIES.index(value) for value in values[start:]]
        assert reader.codes(column.slice(start), 2).tolist() == expected
        assert reader.reading().counts == tuple(expected.count(symbol) for symbol in range(3))
