from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.symbols import CHUNK
from veiltab.common.core.tabulation import tabulate
from veiltab.common.errors import IntegrityError, InvalidInputError

SHAPES = [(2,), (2, 2), (3, 2, 2, 2), (1, 256), (256, 1), (1, 65536), (65536, 1, 1), (257, 255), (16, 16), (16, 17)]


def table(shape: tuple[int, ...], rows: int, seed: int) -> list[Symbols]:
    generator = np.random.default_rng(seed)
    columns: list[Symbols] = [np.empty(rows, symbol_dtype(size)) for size in shape]
    for column, size in zip(columns, shape, strict=True):
        column[:] = generator.integers(0, size, rows)
    return columns


@pytest.mark.parametrize("shape", [*SHAPES, (1000, 1000), (300, 70, 5)])
@pytest.mark.parametrize("rows", [0, 1, 4097, CHUNK + 5001])
def test_counts_equal_those_of_numbered_cells(shape: tuple[int, ...], rows: int) -> None:
    columns = table(shape, rows, 1)
    histogram = np.zeros(prod(shape), np.int64)
    tabulate(columns, shape, histogram)
    expected = np.bincount(np.ravel_multi_index(tuple(columns), shape), minlength=prod(shape))
    assert np.array_equal(histogram, expected)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 50), st.integers(0, 2**32))
def test_chunks_add_up_one_row_at_a_time(shape: tuple[int, ...], rows: int, seed: int) -> None:
    columns = table(shape, rows, seed)
    histogram, expected = np.zeros(prod(shape), np.int64), np.zeros(shape, np.int64)
    tabulate([column[:20] for column in columns], shape, histogram)
    tabulate([column[20:] for column in columns], shape, histogram)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        expected[row] += 1
    assert np.array_equal(histogram, expected.ravel())


def test_columns_that_do_not_fit_are_refused() -> None:
    one, two = np.zeros(1, np.uint8), np.zeros(2, np.uint8)
    with pytest.raises(InvalidInputError, match="6 cells"):
        tabulate([two, two], (2, 3), np.zeros(5, np.int64))
    with pytest.raises(InvalidInputError, match="6 cells"):
        tabulate([two], (2, 3), np.zeros(6, np.int64))
    with pytest.raises(InvalidInputError, match="length"):
        tabulate([two, one], (2, 3), np.zeros(6, np.int64))
    with pytest.raises(IntegrityError, match="1 of 1 symbols"):
        tabulate([one, one + np.uint8(3)], (2, 3), np.zeros(6, np.int64))
