"""Symbols modulo the size of an alphabet: exactly uniform ones, their sum and difference, and pads over a column."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.errors import IntegrityError, InvalidInputError

CHUNK = 2**18
"""Rows that are worked on at once: their buffers stay in the cache. Part of the format: it places the pads."""

MAX_LABEL = 2**24
"""Labels of uniform symbols lie below; the byte above them counts the rounds of rejection."""

_Words = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


def fill_uniform(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Overwrite `out` with independent, exactly uniform symbols 0..size-1.

    symbol = floor(w / L), L = floor(2^b / size), for a b-bit word w; w is rejected when the symbol is not below size.
    Round 0 draws a word for each symbol from (label, chunk); round j draws one for each that round j-1 rejected, from
    (label + j 2^24, chunk): no two rounds share a block of the source.

    Args:
        out: contiguous symbols of symbol_dtype(size), at most CHUNK of them.
        size: number of categories, 1..65536.
        label: purpose, 0 <= label < MAX_LABEL.
        chunk: position in the column; one (label, chunk) of a cipher stream serves one call, ever.

    Raises:
        InvalidInputError: a label, type or length out of range.
        IntegrityError: the source is stuck on rejected words.
    """
    fill_parts(out, size, [source], label=label, chunk=chunk)


def fill_parts(out: Symbols, size: int, sources: Sequence[ByteSource], *, label: int, chunk: int) -> None:
    """Fill equal parts of `out`, one a source, each as `fill_uniform` does by itself."""
    if not 0 <= label < MAX_LABEL:
        raise InvalidInputError(f"uniform symbols have a label below {MAX_LABEL}, not {label}")
    if out.dtype != symbol_dtype(size) or out.size > CHUNK:
        raise InvalidInputError(f"{out.size} symbols of type {out.dtype} do not fit a chunk of {size} categories")
    width = out.size // max(1, len(sources))
    rejected = _draw(out, size, [(source, width) for source in sources], label, chunk)
    for turn in range(1, 256):
        if rejected.size == 0:
            return
        again = np.empty(rejected.size, out.dtype)
        parts, counts = np.unique(rejected // width, return_counts=True)
        shares = [(sources[part], count) for part, count in zip(parts.tolist(), counts.tolist(), strict=True)]
        missed = _draw(again, size, shares, label + turn * MAX_LABEL, chunk)
        out[rejected] = again
        rejected = rejected[missed]
    raise IntegrityError("the source of randomness gave rejected words only", remedy="Do not use this machine's output")


def _draw(
    out: Symbols, size: int, shares: Sequence[tuple[ByteSource, int]], label: int, chunk: int
) -> NDArray[np.intp]:
    """Map one word to each symbol, so many from each source; return the places whose word was rejected."""
    if size == 1:
        out[:] = 0
        return np.empty(0, np.intp)
    dtype, span = word_type(size)
    words: _Words = out if dtype == out.dtype else np.empty(out.size, dtype)
    data, start = words.view(np.uint8).data, 0
    for source, count in shares:
        end = start + count * dtype.itemsize
        source.fill(data[start:end], label=label, chunk=chunk)
        start = end
    np.floor_divide(words, dtype.type(span // size), out=words)
    if words is not out:
        np.copyto(out, words, casting="unsafe")
    # Most chunks of most alphabets reject nothing, and a maximum costs a tenth of a search.
    if span % size == 0 or words.max(initial=0) < size:
        return np.empty(0, np.intp)
    return np.flatnonzero(words >= dtype.type(size))


@cache
def word_type(size: int) -> tuple[np.dtype[np.unsignedinteger], int]:
    """Return the narrowest word type that rejects at most one word in 64, and its number of values."""
    bits = next(bits for bits in (8, 16, 32) if (2**bits % size) * 64 <= 2**bits)
    return np.dtype(f"<u{bits // 8}"), 2**bits


def add(a: Symbols, b: Symbols, size: int, out: Symbols) -> None:
    """Write (a + b) mod size to `out`, without overflow; all three have symbol_dtype(size), and out may be a or b."""
    span = 256 if out.dtype == np.uint8 else 65536
    if size == span:
        np.add(a, b, out=out)
    elif 2 * size <= span:
        # Below size, subtracting it wraps to something larger: the minimum is the residue.
        np.add(a, b, out=out)
        np.minimum(out, out - out.dtype.type(size), out=out)
    else:
        excess = (a >= out.dtype.type(size) - b) * out.dtype.type(size)
        np.add(a, b, out=out)
        np.subtract(out, excess, out=out)


def subtract(a: Symbols, b: Symbols, size: int, out: Symbols) -> None:
    """Write (a - b) mod size to `out`, without overflow; all three have symbol_dtype(size), and out may be a or b."""
    span = 256 if out.dtype == np.uint8 else 65536
    if size == span:
        np.subtract(a, b, out=out)
    elif 2 * size <= span:
        # A negative difference has wrapped above size: adding size wraps it back, which makes it the minimum.
        np.subtract(a, b, out=out)
        np.minimum(out, out + out.dtype.type(size), out=out)
    else:
        borrow = (a < b) * out.dtype.type(size)
        np.subtract(a, b, out=out)
        np.add(out, borrow, out=out)


def add_holders(parts: Sequence[Symbols], size: int) -> Symbols:
    """Return the column of several holders: s_1 + (s_2 + 1) + .. + (s_H + 1) mod size.

    The last symbol is "absent", -1 mod size: it adds nothing, so where one holder has a value, that is the sum.
    """
    if len(parts) == 1:
        return parts[0]
    total = np.full(len(parts[0]), len(parts) - 1, np.uint32)
    for part in parts:
        total += part
    summed: Symbols = np.empty_like(parts[0])
    summed[:] = total % np.uint32(size)
    return summed


def row_slices(rows: int, chunks: slice = slice(None)) -> Iterator[slice]:
    """Cut `rows` rows into chunks of CHUNK, of which the last may be shorter; yield those of some numbers, or all."""
    return (slice(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK)[chunks])


def check_symbols(column: Symbols, size: int) -> None:
    """Raise IntegrityError unless the column has symbol_dtype(size) and all its symbols are below size."""
    if column.dtype != symbol_dtype(size):
        raise IntegrityError(f"symbols of {size} categories have type {symbol_dtype(size)}, not {column.dtype}")
    if column.max(initial=0) >= size:
        outside = np.count_nonzero(column >= size)
        raise IntegrityError(f"{outside} of {len(column)} symbols lie outside an alphabet of {size} categories")
