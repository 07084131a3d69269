"""Counting rows into the cells of their joint table."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols
from veiltab.common.core.symbols import check_symbols, row_slices
from veiltab.common.errors import InvalidInputError

_FOLD = 2**12


def tabulate(columns: Sequence[Symbols], shape: Sequence[int], histogram: NDArray[np.int64]) -> None:
    """Add the number of rows in each cell to `histogram`, cells in C order.

    Args:
        columns: one array (m,) of symbol_dtype(size) an attribute.
        histogram: counts, shape (K,), K the product of the K_a; added to, so that chunks can follow one another.

    Raises:
        InvalidInputError: columns, shape and histogram do not belong together.
        IntegrityError: a symbol lies outside its alphabet.
    """
    cells = prod(shape)
    if len(columns) != len(shape) or histogram.shape != (cells,):
        raise InvalidInputError(f"{len(columns)} columns and {histogram.size} counts do not fit {cells} cells")
    if any(len(column) != len(columns[0]) for column in columns):
        raise InvalidInputError("the columns of a table differ in length")
    for rows in row_slices(len(columns[0])):
        histogram += _count(_cell_numbers([column[rows] for column in columns], shape), cells)


def _cell_numbers(columns: Sequence[Symbols], shape: Sequence[int]) -> NDArray[np.unsignedinteger]:
    """Number the cell of each row, in the narrowest type that holds all cells."""
    dtype = np.min_scalar_type(prod(shape) - 1)
    for column, size in zip(columns, shape, strict=True):
        check_symbols(column, size)
    numbers = columns[0].astype(dtype)
    for column, size in zip(columns[1:], shape[1:], strict=True):
        # A size beyond the type leaves one cell before it: all numbers are 0, whatever multiplies them.
        numbers *= dtype.type(min(size, np.iinfo(dtype).max))
        numbers += column.astype(dtype, copy=False)
    return numbers


def _count(numbers: NDArray[np.unsignedinteger], cells: int) -> NDArray[np.int64]:
    """Count each number 0..cells-1; small tables count pairs of rows at once, which halves the slow pass."""
    if cells * cells > _FOLD or numbers.size < _FOLD:
        return np.bincount(numbers, minlength=cells)
    half = numbers.size // 2
    dtype = np.min_scalar_type(cells * cells - 1)
    pairs = np.multiply(numbers[:half], dtype.type(cells), dtype=dtype)
    pairs += numbers[half : 2 * half]
    table = _count(pairs, cells * cells).reshape(cells, cells)
    counts: NDArray[np.int64] = table.sum(axis=0) + table.sum(axis=1)
    counts[numbers[2 * half :]] += 1
    return counts
