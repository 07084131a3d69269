"""The number of symbols of local hashing, the subset size of subset selection, and the hash itself."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.collection.oracles import OptimisedLocalHashing, SubsetSelection
from veiltab.common.collection.oracles.olh import best_g, hashes
from veiltab.common.collection.oracles.ss import best_w

gammas = st.fractions(min_value=Fraction(101, 100), max_value=30, max_denominator=1000)


def total(size: int, p: Fraction, q: Fraction) -> Fraction:
    """Return the variance of one node's contribution, summed over the values."""
    return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2


def ss_total(size: int, gamma: Fraction) -> Callable[[int], Fraction]:
    def of(w: int) -> Fraction:
        p = gamma * w / (gamma * w + size - w)
        return total(size, p, (w - p) / (size - 1))

    return of


@given(st.integers(2, 5000), gammas)
def test_g_is_the_best_of_all(size: int, gamma: Fraction) -> None:
    of = {g: total(size, gamma / (gamma + g - 1), Fraction(1, g)) for g in range(2, 60)}
    assert of[best_g(size, gamma)] == min(of.values())


@given(st.integers(2, 80), gammas)
def test_w_is_the_best_of_all(size: int, gamma: Fraction) -> None:
    of = ss_total(size, gamma)
    assert of(best_w(size, gamma)) == min(map(of, range(1, size)))


def test_g_and_w_stay_in_range_at_extreme_epsilons() -> None:
    assert OptimisedLocalHashing.from_epsilon(65536, Decimal(100)).g == 65536
    assert OptimisedLocalHashing.from_epsilon(2, Decimal("1e-12")).g == 2
    assert SubsetSelection.from_epsilon(65536, Decimal(100)).w == 1
    assert SubsetSelection.from_epsilon(65536, Decimal("1e-12")).w == 32768
    assert SubsetSelection.from_epsilon(2, Decimal("1e-12")).w == 1


def slow_hashes(seed: bytes, size: int, g: int) -> list[int]:
    """The definition, byte by byte, for g up to 4 or a power of two up to 256, or where 8-bit words do."""
    key = b"veiltab olh" + bytes(21)

    def block(turn: int, length: int) -> bytes:
        nonce = bytes(4) + (turn << 24).to_bytes(4, "little") + seed
        return Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor().update(bytes(length))

    found = [word // (256 // g) for word in block(0, size)]
    turn = 1
    while rejected := [place for place, symbol in enumerate(found) if symbol >= g]:
        for place, word in zip(rejected, block(turn, len(rejected)), strict=True):
            found[place] = word // (256 // g)
        turn += 1
    return found


@pytest.mark.parametrize("g", [2, 3, 7, 21, 36, 256])
def test_the_hash_is_what_its_definition_says(g: int) -> None:
    assert 256 % g * 64 <= 256  # so that words have 8 bits
    seeds = [bytes([number]) * 8 for number in range(3)]
    assert hashes(seeds, 2000, g).tolist() == [slow_hashes(seed, 2000, g) for seed in seeds]


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([2, 3, 21, 300, 65535]))
def test_the_hash_of_the_first_values_is_a_prefix(one: int, other: int, g: int) -> None:
    few, many = sorted((one, other))
    assert np.array_equal(hashes([bytes(8)], few, g), hashes([bytes(8)], many, g)[:, :few])


def test_the_hash_never_changes() -> None:
    # Reports of a round may be counted by another version of the code than that of their nodes.
    assert hashes([bytes(range(8))], 12, 5)[0].tolist() == [2, 3, 1, 1, 3, 0, 3, 3, 4, 4, 4, 0]
    assert hashes([bytes(range(8))], 6, 1000)[0].tolist() == [663, 351, 57, 636, 810, 90]
