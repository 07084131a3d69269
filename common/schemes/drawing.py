"""Drawing the rows of a release under any sampling scheme, in a secret order, from one secret key.

Everything comes from AES and ChaCha20 under keys derived from it, so every curator draws the same rows, on any machine.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.coin import derive
from veiltab.common.core.randomness import MAX_FILL, CipherStream
from veiltab.common.core.sampling import sample_by_priority, sample_indices
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes.schemes import MustOW, MustWO, MustWW, Scheme, WithReplacement

Rows = NDArray[np.int64]
_WORDS = MAX_FILL // 8


def draw_rows(scheme: Scheme, tokens: NDArray[np.uint8], key: bytes) -> Rows:
    """Return the rows of a sample, in the order in which they are released.

    Args:
        scheme: how to sample; population must be the number of tokens. A Poisson sample has the size that
            `poisson_size` gave it, and is then one without replacement.
        tokens: (n, 16), one a respondent, the same order everywhere.
        key: 32 secret bytes, for this release alone.

    Returns:
        (m,) row numbers; a respondent drawn several times comes several times. The order is exchangeable: every
        arrangement of the same rows is equally likely.
    """
    if isinstance(scheme, WithReplacement):
        return uniform_indices(scheme.population, scheme.sample, derive(key, "draws"))
    if isinstance(scheme, MustOW):
        first = sample_by_priority(tokens, scheme.stage, derive(key, "stage one"))
        return first[uniform_indices(scheme.stage, scheme.sample, derive(key, "stage two"))]
    if isinstance(scheme, MustWO):
        first = uniform_indices(scheme.population, scheme.stage, derive(key, "stage one"))
        return first[sample_indices(scheme.stage, scheme.sample, derive(key, "stage two"))]
    if isinstance(scheme, MustWW):
        first = uniform_indices(scheme.population, scheme.stage, derive(key, "stage one"))
        return first[uniform_indices(scheme.stage, scheme.sample, derive(key, "stage two"))]
    return sample_by_priority(tokens, scheme.sample, key)


def uniform_indices(n: int, count: int, key: bytes) -> Rows:
    """Return independent, exactly uniform numbers 0..n-1 from a ChaCha20 stream under a key of its own.

    A 64-bit word w gives floor(w / floor(2^64/n)); the few words that would give n or more are passed over.
    """
    if n == 1:
        return np.zeros(count, np.int64)
    stream, width = CipherStream(key), 2**64 // n
    found: list[NDArray[np.int64]] = []
    have = chunk = 0
    while have < count:
        words = np.empty(min(_WORDS, count - have + 16), "<u8")
        stream.fill(words.view(np.uint8), label=0, chunk=chunk)
        numbers = words // np.uint64(width)
        kept = numbers[numbers < np.uint64(n)].astype(np.int64)[: count - have]
        found.append(kept)
        have += len(kept)
        chunk += 1
    return np.concatenate(found)


def poisson_size(n: int, expected: int, coin: bytes) -> int:
    """Return the size of a Poisson sample in which everyone of n takes part with probability p = expected/n.

    The size is Bin(n, p): how many of n 64-bit words lie below p 2^64, rounded down. Given its size, a Poisson sample
    is uniform without replacement; so the size may be public before the sample is drawn.

    Args:
        n: respondents.
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
        stream.fill(words.view(np.uint8), label=0, chunk=chunk)
        size += int(np.count_nonzero(words < threshold))
    if size == 0:
        raise InvalidInputError("the Poisson sample came out empty", where="sample size", remedy="Ask again.")
    return size
