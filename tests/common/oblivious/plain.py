"""The code and the sums of a join by Python's integers, and a leg of a join with fixed coins."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veiltab.common.core.randomness import CipherStream
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import COLUMNS, Bits
from veiltab.common.oblivious.extension import EXTRA_ROWS, KeyStreams, columns, hub_columns, own_columns
from veiltab.common.oblivious.function import digests, values
from veiltab.common.oblivious.store import fill

SESSION, KEY = bytes(range(100, 132)), bytes(range(32))


def stream(number: int) -> CipherStream:
    return CipherStream(number.to_bytes(32, "big"))


def uniform(*shape: int, seed: int = 0) -> Bits:
    made = np.empty(shape, np.uint8)
    stream(seed).fill(made.reshape(-1).data, label=99, chunk=0)
    return made


def product(one: int, other: int) -> int:
    """Multiply polynomials over GF(2)."""
    total = 0
    for place in range(other.bit_length()):
        total ^= (other >> place & 1) * (one << place)
    return total


@cache
def generator() -> int:
    """Multiply the minimal polynomials of a, a^2, .., a^170 in GF(2^9)."""
    powers = [1]
    while len(powers) < 511:
        powers.append(powers[-1] << 1 ^ (powers[-1] >> 8) * 0b1000010001)
    logs = {power: place for place, power in enumerate(powers)}
    total, rest = 1, set(range(1, 171))
    while rest:
        power = min(rest)
        roots = {power * 2**i % 511 for i in range(9)}
        minimal = [1]
        for root in roots:
            scaled = [powers[(logs[one] + root) % 511] if one else 0 for one in minimal]
            minimal = [above ^ below for above, below in zip([0, *minimal], [*scaled, 0], strict=True)]
        total = product(total, sum(one << place for place, one in enumerate(minimal)))
        rest -= roots
    return total


def code_word(word: bytes) -> bytes:
    """Encode nine bytes."""
    total = product(generator(), int.from_bytes(word, "little"))
    return (total | (total.bit_count() & 1) << 511).to_bytes(64, "little")


def ghash(challenge: bytes, column: bytes) -> bytes:
    """Return the sum of a column: h^2 is the coefficient of its last block, as a block with the length follows."""
    h = Cipher(algorithms.AES(challenge), modes.ECB()).encryptor().update(bytes(16))  # noqa: S305 - a single block
    total = 0
    for start in range(0, len(column), 16):
        total = _times(total ^ int.from_bytes(column[start : start + 16], "big"), int.from_bytes(h, "big"))
    return _times(total, int.from_bytes(h, "big")).to_bytes(16, "big")


def _times(one: int, other: int) -> int:
    """Multiply in GF(2^128) as NIST SP 800-38D, section 6.3, does: the first bit is the coefficient of 1."""
    total = 0
    for place in range(127, -1, -1):
        total ^= one * (other >> place & 1)
        one = one >> 1 ^ (one & 1) * (0xE1 << 120)
    return total


@dataclass(frozen=True, kw_only=True)
class Leg:
    """A hub and a spoke with fixed coins, whose base transfers a test made up.

    Args:
        ids: of the spoke.
        m: slots of its store.
        coins: another number makes another leg.
    """

    ids: tuple[bytes, ...]
    m: int = 12_288
    coins: int = 0

    @property
    def choices(self) -> Bits:
        return uniform(64, seed=self.coins + 1)

    @property
    def seeds(self) -> Bits:
        return uniform(COLUMNS, 2, 16, seed=self.coins + 2)

    @property
    def hub_seeds(self) -> Bits:
        return self.seeds[np.arange(COLUMNS), np.unpackbits(self.choices, bitorder="little")]

    @property
    def streams(self) -> tuple[KeyStreams, KeyStreams]:
        return KeyStreams(self.seeds[:, 0]), KeyStreams(self.seeds[:, 1])

    @property
    def words(self) -> Bits:
        return fill(digests(self.ids, KEY), self.m, stream(self.coins))[0]

    @property
    def left_out(self) -> int:
        return int(fill(digests(self.ids, KEY), self.m, stream(self.coins))[1].sum())

    def sent(self) -> Bits:
        first, second = self.streams
        return columns(first, second, self.words)

    def hub_rows(self, sent: Bits | None = None) -> Bits:
        received = self.sent() if sent is None else sent
        return transposed(hub_columns(KeyStreams(self.hub_seeds), self.choices, received))

    def own_rows(self) -> Bits:
        return transposed(own_columns(self.streams[0], EXTRA_ROWS + self.m))

    def hub_values(self, ids: Iterable[bytes], sent: Bits | None = None) -> list[bytes]:
        return as_list(values(self.hub_rows(sent), digests(ids, KEY), SESSION, self.choices))

    def own_values(self, ids: Iterable[bytes]) -> list[bytes]:
        return as_list(values(self.own_rows(), digests(ids, KEY), SESSION))


def as_list(rows: Bits) -> list[bytes]:
    return [row.tobytes() for row in rows]


def people(start: int, stop: int) -> tuple[bytes, ...]:
    return tuple(b"person %d" % number for number in range(start, stop))
