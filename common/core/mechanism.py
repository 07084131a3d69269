"""The one mechanism: gamma-diagonal PRAM of rows (k-ary randomised response over the cells), and its inverse."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.core.symbols import check_symbols, fill_uniform, row_slices
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError

UNIT = 2**64
"""Replacement probabilities are whole numbers of 1/UNIT."""

# Labels of the source that perturbs; noise of attribute j has label NOISE + j.
_LEADING, _TRAILING, _NOISE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw(ABC):
    """Keep a row with probability 1 - r, else replace all of it by a uniform cell (possibly the same).

    A[y, x] = (1 - r) 1{x = y} + r/K: the largest ratio of two entries of a row of A is gamma. This is the law of the
    rows for anyone who knows no coins; what ran may have had several parts (see TwoSidedNoise).

    Args:
        cells: number of cells K of the joint table, at least 1.

    Source: Lin, Wang, Rane, Section 3.2 (gamma-diagonal matrix).
    """

    cells: int

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise InvalidInputError(f"a table of {self.cells} cells was asked for")

    @property
    @abstractmethod
    def retention(self) -> Fraction:
        """The probability 1 - r that a row is kept, exactly; below 1."""

    @property
    def gamma(self) -> Fraction:
        """The likelihood ratio of what runs, exactly: 1 + K (1 - r)/r."""
        return 1 + self.cells * self.retention / (1 - self.retention)

    def marginal(self, cells: int) -> Self:
        """Return what this does to the margin of some attributes with `cells` cells: the same r."""
        return replace(self, cells=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDiagonal(NoiseLaw):
    """One randomiser: r = replacement / 2^64.

    The matrix that runs is that of NoiseLaw exactly: no float decides r (Mironov 2012).

    Args:
        cells: number of cells K of the joint table, at least 1.
        replacement: r in units of 2^-64, 1..2^64.

    Raises:
        InvalidInputError: a value out of range.

    Source: Lin, Wang, Rane, Section 3.2; Mironov 2012 (why not floats).
    """

    replacement: int

    def __post_init__(self) -> None:
        NoiseLaw.__post_init__(self)
        if not 1 <= self.replacement <= UNIT:
            raise InvalidInputError(f"the replacement probability is {self.replacement} units, not 1 to 2^64")

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
    def retention(self) -> Fraction:
        """The probability 1 - r that a row is kept, exactly."""
        return Fraction(UNIT - self.replacement, UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedNoise(NoiseLaw):
    """The noise of the curators, then that of the server, as one law: 1 - r = (1 - r_c)(1 - r_s).

    So it is to anyone who knows no coins. Two gamma-diagonal mechanisms, one after the other, are one: a row that
    either replaces is uniform.

    Args:
        cells: number of cells K of the joint table, at least 1.
        curator_replacement: r_c in units of 2^-64, 0..2^64 - 1; 0 where the curators add none.
        server_replacement: r_s in units of 2^-64, 1..2^64.

    Raises:
        InvalidInputError: a value out of range.

    Source: docs/coalitions.md.
    """

    curator_replacement: int
    server_replacement: int

    def __post_init__(self) -> None:
        NoiseLaw.__post_init__(self)
        if not 0 <= self.curator_replacement < UNIT:
            raise InvalidInputError(
                f"the curators' replacement probability is 0 to 2^64 - 1 units, not {self.curator_replacement}"
            )
        _ = self.server

    @property
    def server(self) -> GammaDiagonal:
        """What the server runs."""
        return GammaDiagonal(cells=self.cells, replacement=self.server_replacement)

    @property
    def curators(self) -> GammaDiagonal | None:
        """What the curators run together; None if nothing."""
        if self.curator_replacement == 0:
            return None
        return GammaDiagonal(cells=self.cells, replacement=self.curator_replacement)

    @property
    def retention(self) -> Fraction:
        """The probability (1 - r_c)(1 - r_s) that both sides keep a row, exactly."""
        return Fraction(UNIT - self.curator_replacement, UNIT) * self.server.retention


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


def perturb_chunk(  # noqa: PLR0913 - what perturb takes, and which chunk
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
    replaced = replaced_rows(length, mechanism, source, chunk=chunk)
    for j, (column, size, out) in enumerate(zip(inputs, sizes, outputs, strict=True)):
        replace_symbols(column, size, replaced, source, out, label=_NOISE + j, chunk=chunk)


def replace_symbols(  # noqa: PLR0913 - one argument a quantity
    column: Symbols, size: int, replaced: NDArray[np.bool_], source: ByteSource, out: Symbols, *, label: int, chunk: int
) -> None:
    """Write one column of one chunk with uniform symbols in the replaced rows.

    Args:
        column: symbols of symbol_dtype(size), at most CHUNK of them.
        size: number of categories K_a.
        replaced: which rows.
        source: of the uniform symbols, a symbol for every row: whatever is replaced, it costs the same.
        out: destination, like `column`; may be the same array.
        label: purpose of the symbols.
        chunk: position in the column; one (label, chunk) of a cipher stream serves one call, ever.

    Raises:
        IntegrityError: a symbol lies outside its alphabet.
    """
    check_symbols(column, size)
    noise: Symbols = np.empty(len(column), symbol_dtype(size))
    fill_uniform(noise, size, source, label=label, chunk=chunk)
    # column ^ ((noise ^ column) & mask) is noise where the mask is all ones.
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


def replaced_rows(length: int, mechanism: GammaDiagonal, source: ByteSource, *, chunk: int) -> NDArray[np.bool_]:
    """Return which of a chunk's rows are replaced: those with a 64-bit word u < r64.

    Args:
        length: rows of the chunk, at most CHUNK.
        source: of the words; u is drawn past its first byte on a tie only.
        chunk: position in the table; one chunk of a cipher stream serves one table, once.
    """
    leading, trailing = divmod(mechanism.replacement, 2**56)
    if leading == 256:
        return np.ones(length, np.bool_)
    first = np.empty(length, np.uint8)
    source.fill(first.data, label=_LEADING, chunk=chunk)
    replaced: NDArray[np.bool_] = first < np.uint8(leading)
    ties = np.flatnonzero(first == np.uint8(leading))
    rest = np.empty(ties.size, "<u8")
    source.fill(rest.view(np.uint8).data, label=_TRAILING, chunk=chunk)
    replaced[ties] = rest >> np.uint64(8) < np.uint64(trailing)
    return replaced


def invert(histogram: NDArray[np.int64], mechanism: NoiseLaw) -> NDArray[np.float64]:
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
