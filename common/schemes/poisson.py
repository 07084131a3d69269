"""Poisson sampling, and the size of such a sample."""

from fractions import Fraction
from typing import ClassVar

import numpy as np

from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.scheme import Relation, SizeLaw
from veiltab.common.schemes.simple_random import SimpleRandom

_WORDS = MAX_FILL // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(SimpleRandom):
    """Every respondent independently with probability p = m/n. Given its size, the sample is one without replacement.

    A release describes it by the size that `poisson_size` gave it.
    """

    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "Poisson"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    size_law: ClassVar[SizeLaw] = SizeLaw.BINOMIAL


def poisson_size(n: int, expected: int, coin: bytes) -> int:
    """Return the size of a Poisson sample that contains each of n respondents with probability p = expected/n.

    The size is Bin(n, p): how many of n 64-bit words lie below p 2^64, rounded down. Given its size, a Poisson sample
    is uniform without replacement; so the size may be public before the sample is drawn.

    Args:
        expected: 1 to n.
        coin: 32 public bytes, fresh for each release.

    Raises:
        InvalidInputError: the expected size is out of range, or nobody was drawn.
    """
    if not 1 <= expected <= n:
        raise InvalidInputError(f"a Poisson sample expects 1 to n = {n} rows, not {expected}", where="sample size")
    if expected == n:
        return n
    threshold = np.uint64(int(Fraction(expected, n) * 2**64))
    stream, size = CipherStream(coin), 0
    for chunk, start in enumerate(range(0, n, _WORDS)):
        words = np.empty(min(_WORDS, n - start), "<u8")
        stream.fill(words.view(np.uint8).data, label=0, chunk=chunk)
        size += int(np.count_nonzero(words < threshold))
    if size == 0:
        raise InvalidInputError("the Poisson sample came out empty", where="sample size", remedy="Ask again.")
    return size
