from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.tabulation import tabulate
from veiltab.researcher.model.rows import rows_of_counts

KEY = bytes(range(32))


@given(st.data(), st.lists(st.sampled_from([1, 2, 3, 16, 100]), min_size=1, max_size=3))
def test_rows_have_the_counts_from_which_they_are_drawn(data: st.DataObject, shape: list[int]) -> None:
    cells = int(np.prod(shape))
    counts = np.zeros(cells, np.int64)
    for cell in data.draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=40)):
        counts[cell] += 1
    columns = rows_of_counts(counts, shape, data.draw(st.binary(min_size=32, max_size=32)))
    assert [column.dtype for column in columns] == [symbol_dtype(size) for size in shape]
    counted = np.zeros(cells, np.int64)
    tabulate(columns, shape, counted)
    assert np.array_equal(counted, counts)


@pytest.mark.parametrize("shape", [(65_536,), (65_536, 1), (1, 65_536), (256,), (255, 257), (2, 65_536)])
def test_the_last_cell_of_every_width_is_the_last_category_of_each(shape: tuple[int, ...]) -> None:
    counts = np.zeros(int(np.prod(shape)), np.int64)
    counts[-1] = 3
    assert [column.tolist() for column in rows_of_counts(counts, shape, KEY)] == [[size - 1] * 3 for size in shape]


def test_every_order_is_equally_likely() -> None:
    counts, shape = np.array([2, 1, 0, 1]), (2, 2)
    rows = [(0, 0), (0, 0), (0, 1), (1, 1)]
    orders = {order for order in product(rows, repeat=4) if Counter(order) == Counter(rows)}
    assert len(orders) == 12
    seen: Counter[tuple[tuple[int, int], ...]] = Counter()
    for number in range(6000):
        first, second = rows_of_counts(counts, shape, number.to_bytes(32, "big"))
        seen[tuple(zip(first.tolist(), second.tolist(), strict=True))] += 1
    assert set(seen) <= orders
    # The keys are fixed; of other keys one set in 10^6 would fail.
    assert chisquare([seen[order] for order in orders]).pvalue > 1e-6
