"""The code: its rows and distance; and transposition."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.common.oblivious.plain import as_list, code_word, generator, uniform
from veiltab.common.oblivious.bits import transposed
from veiltab.common.oblivious.code import GENERATOR, Bits, encode, encoded_columns

WORDS = np.array([[0] * 9, [1] + [0] * 8, range(1, 10), range(247, 256)], np.uint8)


def weights(words: Bits) -> NDArray[np.uint64]:
    ones: NDArray[np.uint64] = np.bitwise_count(encode(words).view("<u8")).sum(axis=1)
    return ones


def test_the_generator_is_the_product_of_the_minimal_polynomials() -> None:
    assert generator() == GENERATOR
    assert (GENERATOR.bit_length() - 1, GENERATOR.bit_count()) == (435, 227)


def test_known_code_words() -> None:
    ends = [(word[:8].hex(), word[-8:].hex()) for word in as_list(encode(WORDS))]
    assert ends == [
        ("0000000000000000", "0000000000000000"),
        ("453e15e1a7598c8d", "0000000000000080"),
        ("45b4a69df2384c68", "9f677a5e2c435c80"),
        ("eb3c7f1757bc4322", "e59e85eb648c4886"),
    ]


def test_code_words_are_those_of_plain_integers() -> None:
    words = np.concatenate([WORDS, uniform(20, 9)])
    for made in (encode(words), transposed(encoded_columns(transposed(words)))):
        assert as_list(made) == [code_word(word) for word in as_list(words)]
    assert not set(as_list(encode(words ^ np.uint8(1)))) & {code_word(word) for word in as_list(words)}


def test_words_of_up_to_three_rows_are_far_from_zero() -> None:
    rows = np.packbits(np.eye(72, dtype=np.uint8), axis=1, bitorder="little")
    assert set(weights(rows).tolist()) == {228}
    for size in (2, 3):
        chosen = np.array(list(combinations(range(72), size)))
        assert_far(np.bitwise_xor.reduce(rows[chosen], axis=1))


def test_random_words_are_far_from_zero() -> None:
    assert_far(uniform(20_000, 9))


def assert_far(words: Bits) -> None:
    found = weights(words)
    assert found.min(initial=512) >= 172
    assert not (found % 2).any()


@pytest.mark.parametrize("shape", [(512, 16), (512, 48), (256, 64), (128, 9), (8, 1), (72, 16), (640, 3)])
def test_a_transpose_is_that_of_the_unpacked_bits(shape: tuple[int, int]) -> None:
    matrix = uniform(*shape)
    unpacked = np.unpackbits(matrix, axis=1, bitorder="little")
    assert np.array_equal(np.unpackbits(transposed(matrix), axis=1, bitorder="little"), unpacked.T)
    assert np.array_equal(transposed(transposed(matrix)), matrix)
