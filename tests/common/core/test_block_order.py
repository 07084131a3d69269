"""Rows in the order of their blocks, against Python's sort of the bytes themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veiltab.common.core.block_order import leading, ordered_rows, renumber, shared_bits, write_words

# Few different bytes at the places that decide: blocks that begin alike, and equal ones, come often.
BLOCK = st.tuples(*[st.sampled_from(b"\x00\x01\xff")] * 2).map(
    lambda pair: bytes([0, 0, 9, pair[0]]) * 3 + bytes(3) + bytes([pair[1]])
)


def rows_in_order(blocks: NDArray[np.uint8], shared: int = 0) -> list[int]:
    words = np.empty(len(blocks), np.uint64)
    write_words(leading(blocks), np.arange(len(blocks)), words, shared=shared)
    return [int(row) for row in ordered_rows(words, blocks.__getitem__)]


@given(blocks=st.lists(st.binary(min_size=16, max_size=16) | BLOCK, max_size=40))
def test_the_order_is_that_of_the_bytes(blocks: list[bytes]) -> None:
    array = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, 16)
    assert rows_in_order(array) == sorted(range(len(blocks)), key=blocks.__getitem__)


def test_words_of_some_rows_order_those_rows() -> None:
    blocks = np.random.default_rng(4).integers(0, 256, (50, 16), dtype=np.uint8)
    some = np.array([3, 7, 20, 49])
    words = np.empty(len(some), np.uint64)
    write_words(leading(blocks[some]), some, words)
    assert ordered_rows(words, blocks.__getitem__).tolist() == sorted(some.tolist(), key=lambda row: bytes(blocks[row]))


@given(
    prefix=st.integers(0, 2**40 - 1),
    bits=st.integers(0, 40),
    tails=st.lists(st.integers(0, 2**128 - 1) | st.sampled_from([0, 2**128 - 1]), max_size=30),
)
def test_bits_that_all_blocks_share_may_be_left_out_of_words(prefix: int, bits: int, tails: list[int]) -> None:
    # Bits, of which as many are alike in all blocks.
    blocks = [((prefix >> 40 - bits) << 128 - bits | tail >> bits).to_bytes(16, "big") for tail in tails]
    array = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, 16)
    alike = next((k for k in range(32) if len({block[k // 8] >> 7 - k % 8 & 1 for block in blocks}) > 1), 32)
    assert shared_bits(leading(array)) == (alike if blocks else 0)
    for shared in {0, min(bits, 32), shared_bits(leading(array))}:
        assert rows_in_order(array, shared) == sorted(range(len(blocks)), key=blocks.__getitem__)


@pytest.mark.parametrize(("shared", "looked_up"), [(0, 4096), (12, 4096), (15, 4096), (16, 0)])
def test_blocks_are_looked_up_where_words_begin_alike_alone(shared: int, looked_up: int) -> None:
    # Blocks that differ in bits 36 to 47; a word has 32 bits.
    blocks = np.zeros((4096, 2), ">u8")
    blocks[:, 0] = np.arange(4096)[::-1] << 16
    words, asked = np.empty(4096, np.uint64), list[int]()

    def blocks_of(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        asked.extend(rows.tolist())
        return blocks.view(np.uint8)[rows]

    write_words(leading(blocks.view(np.uint8)), np.arange(4096), words, shared=shared)
    assert ordered_rows(words, blocks_of).tolist() == list(range(4095, -1, -1))
    assert len(asked) == looked_up


def test_words_get_new_numbers_and_keep_their_bits() -> None:
    rows = np.array([2**32 - 1, 5, 70_000])
    leads = np.array([2**64 - 1, 0, 0x123456789ABCDEF0], np.uint64)
    words = np.empty(3, np.uint64)
    write_words(leads, rows, words)
    assert renumber(words).tolist() == rows.tolist()
    assert words.tolist() == [(2**32 - 1) << 32, 1, 0x12345678 << 32 | 2]
