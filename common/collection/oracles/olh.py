"""Optimised local hashing: hash the value to few symbols with a fresh public function, then randomise the symbol."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import ClassVar, Self, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray

from veiltab.common.collection.oracles.draws import draw_word
from veiltab.common.collection.oracles.krr import respond
from veiltab.common.collection.oracles.oracle import BYTE_ROWS, Oracle, check_units, check_value, is_symbol
from veiltab.common.collection.oracles.reports import Hashed, Report
from veiltab.common.core.domain import MAX_CATEGORIES, Symbols, symbol_dtype
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.randomness import KEY_BYTES, ZEROS, ByteSource
from veiltab.common.core.symbols import CHUNK, fill_parts
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

SEED_BYTES = 8
"""Length of the seed of a hash function, in bytes: two of a million nodes draw the same one with probability 3e-8."""

_KEY = b"veiltab olh".ljust(KEY_BYTES, b"\0")

# Labels of the source; the noise of the response takes label 1.
_RESPONSE, _SEED = 0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisedLocalHashing(Oracle):
    """Hash the value to g symbols, then k-ary randomised response of the symbol; support = values with that hash.

    p = 1 - r + r/g,    q = 1/g,    epsilon = ln(1 + g (1 - r)/r),    r = replacement / 2^64

    Each report draws a fresh hash, which is public: privacy rests on the response alone, whatever the hash. That
    q = 1/g exactly takes uniform, independent hashes of all values; ChaCha20 with the seed stands for them.

    Args:
        size: number of values d, 2 to 65536.
        g: number of symbols, 2 to 65536.
        replacement: r in units of 2^-64, below 2^64.

    Raises:
        InvalidInputError: a value out of range.

    Source: Wang, Blocki, Li, Jha 2017 (OLH). The epsilon is tight.
    """

    name: ClassVar[str] = "olh"
    g: int
    replacement: int

    def _check_parameters(self) -> None:
        if not 2 <= self.g <= MAX_CATEGORIES:
            raise InvalidInputError(f"{self.g} symbols of a hash were asked for, not 2 to {MAX_CATEGORIES}", where="g")
        check_units(self.replacement, what="replacement")

    @classmethod
    def _from_ratio(cls, size: int, gamma: Fraction) -> Self:
        g = best_g(size, gamma)
        return cls(size=size, g=g, replacement=GammaDiagonal.from_gamma(g, gamma).replacement)

    @property
    def mechanism(self) -> GammaDiagonal:
        """The response to the hashed value."""
        return GammaDiagonal(cells=self.g, replacement=self.replacement)

    @property
    def gamma(self) -> Fraction:
        """Largest likelihood ratio of a report; exact."""
        return self.mechanism.gamma

    @property
    def p(self) -> Fraction:
        """Probability that the support holds the node's own value; exact."""
        return self.mechanism.retention + (1 - self.mechanism.retention) / self.g

    @property
    def q(self) -> Fraction:
        """Probability that the support holds any one other value; exact for a uniform hash."""
        return Fraction(1, self.g)

    def together(self, values: int) -> Fraction:
        """Probability that a blanket report supports two given values, or more: all hashes are its symbol."""
        return Fraction(1, self.g) ** values

    @property
    def report_bytes(self) -> int:
        """Payload of one report, in bytes: a seed and a symbol."""
        return SEED_BYTES + symbol_dtype(self.g).itemsize

    def randomise(self, value: int, source: ByteSource) -> Hashed:
        """Return the report of a node; see Oracle."""
        check_value(value, self.size)
        seed = draw_word(SEED_BYTES, source, label=_SEED).to_bytes(SEED_BYTES, "little")
        # All values are hashed, so that the time does not reveal the node's value.
        hashed = int(hashes([seed], self.size, self.g)[0, value])
        return Hashed(seed=seed, symbol=respond(hashed, self.g, self.replacement, source, label=_RESPONSE))

    def check(self, report: Report) -> Hashed:
        """Return the report if it is a seed and a symbol; see Oracle."""
        if not (isinstance(report, Hashed) and isinstance(report.seed, bytes) and len(report.seed) == SEED_BYTES):
            raise InvalidInputError(f"the report is not a symbol and a seed of {SEED_BYTES} bytes", where="report")
        if not is_symbol(report.symbol, self.g):
            raise InvalidInputError(f"the report's symbol is not one of {self.g}", where="report")
        return report

    @property
    def _rows_at_once(self) -> int:
        return max(1, min(BYTE_ROWS, CHUNK // self.size))

    def _supports(self, reports: Sequence[Report]) -> NDArray[np.uint8]:
        several = cast("Sequence[Hashed]", reports)
        symbols = np.array([[one.symbol] for one in several], symbol_dtype(self.g))
        hashed = hashes([one.seed for one in several], self.size, self.g)
        return cast("NDArray[np.uint8]", np.add.reduce(hashed == symbols, axis=0, dtype=np.uint8))


def hashes(seeds: Sequence[bytes], size: int, g: int) -> Symbols:
    """Return the hashes of the values 0..size-1 under each seed, shape (seeds, size): uniform symbols 0..g-1."""
    out: Symbols = np.empty((len(seeds), size), symbol_dtype(g))
    cipher = Cipher(algorithms.ChaCha20(_KEY, bytes(16)), mode=None).encryptor()
    fill_parts(out.reshape(-1), g, [_SeedStream(cipher, seed) for seed in seeds], label=0, chunk=0)
    return out


class _SeedStream:
    """ChaCha20 key stream with the nonce label | seed under a public key; all seeds share what the key prepares."""

    __slots__ = ("_cipher", "_seed")

    def __init__(self, cipher: CipherContext, seed: bytes) -> None:
        self._cipher, self._seed = cipher, seed

    def fill(self, out: memoryview, *, label: int, chunk: int) -> None:
        del chunk
        self._cipher.reset_nonce(bytes(4) + label.to_bytes(4, "little") + self._seed)
        self._cipher.update_into(ZEROS[: len(out)], out)


def best_g(size: int, gamma: Fraction) -> int:
    """Return the number of symbols with the least variance, summed over all values.

    With a = g - 1 the sum is a (gamma + d - 1) + gamma (1 + (d-1) gamma)/a plus a constant, whatever the distribution:
    convex, so the least is next to its real minimum. That tends to g = e^epsilon + 1 as d grows.

    Source: Wang, Blocki, Li, Jha 2017 (the limit); at finite d derived from the variance of their pure protocols.
    """
    rise, fall = gamma + size - 1, gamma * (1 + (size - 1) * gamma)
    near = isqrt(fall // rise)
    candidates = (min(max(a, 1), MAX_CATEGORIES - 1) for a in (near, near + 1))
    return 1 + min(candidates, key=lambda a: a * rise + fall / a)
