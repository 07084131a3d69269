"""Rows in the order of their blocks, against Python's sort of the bytes themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veiltab.common.core import block_order
from veiltab.common.core.block_order import leading, ordered_rows, write_words

# Few different bytes at the places that decide: blocks that begin alike, and equal ones, come often.
BLOCK = st.tuples(*[st.sampled_from(b"\x00\x01\xff")] * 2).map(
    lambda pair: bytes([0, 0, 9, pair[0]]) * 3 + bytes(3) + bytes([pair[1]])
)
ANY_BLOCK = st.binary(min_size=16, max_size=16) | BLOCK


def rows_in_order(blocks: NDArray[np.uint8]) -> list[int]:
    words = np.empty(len(blocks), np.uint64)
    write_words(leading(blocks), np.arange(len(blocks)), words)
    return [int(row) for row in ordered_rows(words, blocks.__getitem__)]


@given(blocks=st.lists(ANY_BLOCK, max_size=40), limit=st.sampled_from([0, 2**20]))
def test_the_order_is_that_of_the_bytes(blocks: list[bytes], limit: int) -> None:
    array = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_order, "_RADIX", limit)
        assert rows_in_order(array) == sorted(range(len(blocks)), key=blocks.__getitem__)


@pytest.mark.long
def test_more_rows_than_the_radix_sort_takes() -> None:
    blocks = np.random.default_rng(3).integers(0, 256, (2**20 + 1, 16), dtype=np.uint8)
    blocks[:, :2] = 0  # sixteen rows a word: nearly every row is tied
    order = rows_in_order(blocks)
    assert sorted(order) == list(range(len(blocks)))
    parts = blocks[order].view(">u8")
    later = (parts[1:, 0] > parts[:-1, 0]) | ((parts[1:, 0] == parts[:-1, 0]) & (parts[1:, 1] > parts[:-1, 1]))
    assert later.all()


def test_words_of_some_rows_order_those_rows() -> None:
    blocks = np.random.default_rng(4).integers(0, 256, (50, 16), dtype=np.uint8)
    some = np.array([3, 7, 20, 49])
    words = np.empty(len(some), np.uint64)
    write_words(leading(blocks[some]), some, words)
    assert ordered_rows(words, blocks.__getitem__).tolist() == sorted(some.tolist(), key=lambda row: bytes(blocks[row]))
