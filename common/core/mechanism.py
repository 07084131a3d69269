"""The one mechanism: gamma-diagonal PRAM of rows (k-ary randomised response over the cells), and its inverse."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import check_symbols, fill_uniform, row_slices
from veiltab.common.errors import InvalidInputError

UNIT = 2**64
"""Replacement probabilities are whole numbers of 1/UNIT."""

# Labels of the source that perturbs; noise of attribute j has label NOISE + j.
_LEADING, _TRAILING, _NOISE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDiagonal:
    """Keep a row with probability 1 - r, else replace all of it by a uniform cell (possibly the same).

    A[y, x] = (1 - r) 1{x = y} + r/K, r = replacement / 2^64: the largest ratio of two entries of a row of A is gamma.
    The matrix that runs is this one exactly: no float decides r (Mironov 2012).

    Args:
        cells: number of cells K of the joint table, at least 1.
        replacement: r in units of 2^-64, 1..2^64.

    Raises:
        InvalidInputError: a value out of range.

    Source: Lin, Wang, Rane, Section 3.2 (gamma-diagonal matrix); Mironov 2012 (why not floats).
    """

    cells: int
    replacement: int

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise InvalidInputError(f"a table has at least 1 cell, not {self.cells}")
        if not 1 <= self.replacement <= UNIT:
            raise InvalidInputError(f"a replacement probability is 1 to 2^64 units, not {self.replacement}")

    @classmethod
    def from_gamma(cls, cells: int, gamma: Fraction) -> "GammaDiagonal":
        """Return the mechanism whose gamma is the largest that does not exceed `gamma`.

        r = K / (gamma + K - 1), rounded up to a whole number of 2^-64.

        Args:
            cells: number of cells K.
            gamma: largest likelihood ratio wanted, above 1; its logarithm is the epsilon (nats) of one row.

        Raises:
            InvalidInputError: gamma is not above 1.
        """
        if gamma <= 1:
            raise InvalidInputError(f"gamma must exceed 1, not {float(gamma):g}", remedy="Raise epsilon.")
        return cls(cells=cells, replacement=ceil(cells * UNIT / (Fraction(gamma) + cells - 1)))

    @property
    def gamma(self) -> Fraction:
        """The likelihood ratio of what runs, exactly: 1 + K (1 - r)/r."""
        return 1 + Fraction(self.cells * (UNIT - self.replacement), self.replacement)

    @property
    def retention(self) -> Fraction:
        """The probability 1 - r that a row is kept, exactly."""
        return Fraction(UNIT - self.replacement, UNIT)

    def marginal(self, cells: int) -> "GammaDiagonal":
        """Return what this mechanism does to the margin of some attributes with `cells` cells: the same r."""
        return GammaDiagonal(cells=cells, replacement=self.replacement)


def perturb(
    columns: Sequence[Symbols],
    sizes: Sequence[int],
    mechanism: GammaDiagonal,
    source: ByteSource,
    out: Sequence[Symbols],
) -> None:
    """Apply the mechanism to every row of a table given as one column an attribute, encrypted or not.

    It commutes with any permutation of each alphabet, so perturbing symbol + pad mod K_a perturbs the symbol.

    Args:
        columns: one array (m,) of symbol_dtype(size) an attribute, symbols below its size; may be memory-mapped.
        sizes: alphabet sizes K_a, whose product is mechanism.cells.
        mechanism: what to apply.
        source: of randomness; a cipher stream serves one table, once.
        out: destination, like `columns`; may be the same arrays.

    Raises:
        InvalidInputError: sizes, columns and mechanism do not belong together.
        IntegrityError: a symbol lies outside its alphabet.

    Source: Lin, Wang, Rane, Lemma 3.1 (PRAM commutes with encryption) and Theorem 3.2 (privacy under sampling).
    """
    for chunk, rows in enumerate(row_slices(_check_table(columns, sizes, mechanism, out))):
        here, there = [column[rows] for column in columns], [column[rows] for column in out]
        perturb_chunk(here, sizes, mechanism, source, there, chunk=chunk)


def perturb_chunk(  # noqa: PLR0913  # what perturb takes, and which chunk
    inputs: Sequence[Symbols],
    sizes: Sequence[int],
    mechanism: GammaDiagonal,
    source: ByteSource,
    outputs: Sequence[Symbols],
    *,
    chunk: int,
) -> None:
    """Apply the mechanism to one chunk of rows, at most CHUNK of them; arguments as for perturb."""
    length = _check_table(inputs, sizes, mechanism, outputs)
    replaced = _replaced(length, mechanism, source, chunk)
    for j, (column, size, out) in enumerate(zip(inputs, sizes, outputs, strict=True)):
        check_symbols(column, size)
        noise: Symbols = np.empty(length, symbol_dtype(size))
        fill_uniform(noise, size, source, label=_NOISE + j, chunk=chunk)
        # column ^ ((noise ^ column) & mask) is noise where the mask is all ones: whatever r, it costs the same.
        noise ^= column
        noise &= np.negative(replaced.astype(noise.dtype))
        np.bitwise_xor(noise, column, out=out)


def _check_table(
    inputs: Sequence[Symbols], sizes: Sequence[int], mechanism: GammaDiagonal, outputs: Sequence[Symbols]
) -> int:
    """Return the number of rows of columns that make one table, in and out."""
    if not len(inputs) == len(sizes) == len(outputs) or prod(sizes) != mechanism.cells:
        raise InvalidInputError(f"{len(inputs)} columns do not make a table of {mechanism.cells} cells")
    lengths = {len(column) for column in (*inputs, *outputs)}
    if len(lengths) != 1:
        raise InvalidInputError("the columns of a table differ in length")
    return lengths.pop()


def _replaced(length: int, mechanism: GammaDiagonal, source: ByteSource, chunk: int) -> NDArray[np.bool_]:
    """Return the rows to replace: those with a 64-bit word u < r64; u is drawn past its first byte on a tie only."""
    leading, trailing = divmod(mechanism.replacement, 2**56)
    if leading == 256:
        return np.ones(length, np.bool_)
    first = np.empty(length, np.uint8)
    source.fill(first, label=_LEADING, chunk=chunk)
    replaced: NDArray[np.bool_] = first < np.uint8(leading)
    ties = np.flatnonzero(first == np.uint8(leading))
    rest = np.empty(ties.size, "<u8")
    source.fill(rest.view(np.uint8), label=_TRAILING, chunk=chunk)
    replaced[ties] = rest >> np.uint64(8) < np.uint64(trailing)
    return replaced


def invert(histogram: NDArray[np.int64], mechanism: GammaDiagonal) -> NDArray[np.float64]:
    """Estimate the distribution of the rows before perturbation, without bias.

    T_hat = (H/m - r/K) / (1 - r): A is never built, entries may be negative, and they sum to 1.

    Args:
        histogram: counts H of perturbed rows, shape (K,), m rows in all.
        mechanism: what perturbed them, with the same K.

    Returns:
        T_hat, shape (K,), probabilities.

    Raises:
        InvalidInputError: the histogram is empty or has another shape, or r = 1 left nothing of the rows.

    Source: Lin, Wang, Rane, Section 3.3 (estimator; its Theorem 3.4 bounds the error).
    """
    if histogram.shape != (mechanism.cells,):
        raise InvalidInputError(f"a histogram of shape {histogram.shape} is not one of {mechanism.cells} cells")
    rows = int(histogram.sum())
    if rows == 0:
        raise InvalidInputError("the histogram counts no rows", remedy="Fetch the release again.")
    if mechanism.retention == 0:
        raise InvalidInputError("every row was replaced (r = 1), so there is nothing to estimate")
    uniform = float((1 - mechanism.retention) / mechanism.cells)
    return (histogram / rows - uniform) / float(mechanism.retention)
