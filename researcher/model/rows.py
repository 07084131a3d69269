"""Draws the noisy rows of a release anew from their counts.

A release's rows reach the desk in a uniformly random order that nobody there knows. Given the counts, every order of
the rows is therefore equally likely, and rows that are drawn from the counts in a fresh random order have the law of
those that were released: the counts are sufficient, and nobody needs the order.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.sampling import sample_indices


def rows_of_counts(counts: NDArray[np.int64], shape: Sequence[int], key: bytes) -> tuple[Symbols, ...]:
    """Return the counted rows in a uniformly random order.

    Args:
        counts: rows in each cell, shape (K,), cells in C order; at least one row in all.
        shape: alphabet sizes K_a, whose product is K.
        key: 32 bytes from the operating system, fresh for each call.

    Returns:
        One array (m,) of symbol_dtype(K_a) an attribute.
    """
    # The type holds K, and so every K_a.
    numbers = np.repeat(np.arange(len(counts), dtype=np.min_scalar_type(len(counts))), counts)
    numbers = numbers[sample_indices(len(numbers), len(numbers), key)]
    columns: list[Symbols] = []
    for size in reversed(shape):
        numbers, symbols = np.divmod(numbers, numbers.dtype.type(size))
        column: Symbols = np.empty(len(symbols), symbol_dtype(size))
        column[:] = symbols
        columns.append(column)
    return tuple(reversed(columns))
