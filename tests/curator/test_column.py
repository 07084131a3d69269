"""A batch of one column, as its readers hand it over: a slice of a larger array, with and without absent values."""

import pyarrow as pa
import pytest

from veiltab.common.core.domain import Attribute
from veiltab.common.study.coding.coding import DROP, UNKNOWN, Coding
from veiltab.common.study.coding.rules import AttributeRule
from veiltab.curator.table.column_coding import ColumnReader

CATEGORIES = ("red", "green", "blue")
RULE = AttributeRule(
    attribute=Attribute(name="colour", categories=CATEGORIES),
    owner="alice",
    column="colour",
    coding=Coding(categories=CATEGORIES),
)


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("absent", [False, True])
def test_a_slice_is_coded_as_its_own_values(index: pa.DataType, absent: bool) -> None:  # noqa: FBT001 - the product's signature
    values = ["blue", "red", None if absent else "red", "green", "blue", "green"]
    column = pa.array(values).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    for start in range(len(values)):
        reader = ColumnReader(RULE)
        expected = [DROP if value is None else CATEGORIES.index(value) for value in values[start:]]
        assert reader.codes(column.slice(start), 2).tolist() == expected
        assert reader.reading().counts == tuple(expected.count(symbol) for symbol in range(3))


@pytest.mark.parametrize("size", [2, 127, 128, 129, 256, 257, 32_768, 32_769])
def test_the_last_of_many_categories_has_its_code_beside_one_that_is_absent(size: int) -> None:
    categories = tuple(map(str, range(size)))
    attribute, coding = Attribute(name="place", categories=categories), Coding(categories=categories)
    reader = ColumnReader(AttributeRule(attribute=attribute, owner="alice", column="place", coding=coding))
    codes = reader.codes(pa.array([categories[-1], None, "unknown"]).dictionary_encode(), 2)
    assert codes.tolist() == [size - 1, DROP, UNKNOWN]
    assert codes[:1].astype(reader.dtype).tolist() == [size - 1]
    assert reader.reading().counts[-1] == 1
