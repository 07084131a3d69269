"""Random numbers for drawing rows from a model: repeatable from a seed, and spread evenly within groups of rows.

The n rows of a group get u = (k + v)/n, with k a uniform permutation of 0..n-1 and v uniform on [0, 1): each u is
uniform on [0, 1), and no stretch of [0, 1) has many more or fewer of them than its share. Symbols drawn by the inverse
of a cumulative distribution from such u come in nearly the expected numbers. The permutation is new for each draw and
knows nothing of the rows but their group: given the group, what is drawn is exchangeable among its rows, so no
attribute outside the group becomes dependent on it.

Such rows are not independent of one another: formulas for a simple random sample overstate their errors.
"""

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.researcher.model.measurement import Floats

Symbols = NDArray[np.intp]

Rows = NDArray[np.integer[Any]]
"""Symbols, shape (rows, attributes)."""

_WORDS = MAX_FILL // 8
_DOMAIN = b"veiltab model rows"


class Uniforms:
    """Uniform numbers from a cipher stream, in order.

    Args:
        seed: any bytes; the same seed gives the same numbers on every machine.
    """

    def __init__(self, seed: bytes) -> None:
        self._source = CipherStream(sha256(_DOMAIN + seed).digest())
        self._chunk = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit words, shape (count,)."""
        words = np.empty(count, "<u8")
        for start in range(0, count, _WORDS):
            self._source.fill(words[start : start + _WORDS].view(np.uint8).data, label=0, chunk=self._chunk)
            self._chunk += 1
        return words

    def numbers(self, count: int) -> Floats:
        """Return uniform numbers in [0, 1), multiples of 2^-53, shape (count,)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normals(self, count: int) -> Floats:
        """Return standard normal numbers, shape (count,), by the transform of Box and Muller."""
        radius = np.sqrt(-2 * np.log1p(-self.numbers(count)))
        normals: Floats = radius * np.cos(2 * np.pi * self.numbers(count))
        return normals


def spread(groups: Symbols, uniforms: Uniforms) -> Floats:
    """Return a number in [0, 1) for each row, spread evenly over the rows of its group.

    Args:
        groups: the group of each row, shape (n,), from 0.

    Returns:
        Shape (n,), float64.
    """
    order = np.lexsort((uniforms.words(groups.size), groups))
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    members = groups[order]
    ranks = np.empty(groups.size)
    ranks[order] = np.arange(groups.size) - first[members]
    return (ranks + uniforms.numbers(groups.size)) / sizes[groups]


def draw(conditional: Floats, groups: Symbols, uniforms: Uniforms) -> Symbols:
    """Draw one symbol for each row.

    Args:
        conditional: P(symbol | group), shape (S, R); each row sums to 1.
        groups: the group of each row, shape (n,), below S.

    Returns:
        Symbols below R, shape (n,). Each has the probability that its group gives it; their numbers in a group are
        within one of the expected ones at every point of the cumulative distribution.
    """
    width = conditional.shape[1]
    ends = np.cumsum(conditional, axis=1)
    ends /= ends[:, -1:]
    keys = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    symbols: Symbols = np.searchsorted(keys, spread(groups, uniforms) + groups, side="right") - groups * width
    return symbols.clip(0, width - 1)
