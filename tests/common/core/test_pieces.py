import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.core.numbers.pieces import Pieces


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=8), takes=st.lists(st.integers(0, 12), max_size=12))
def test_what_is_taken_is_the_whole_cut_anew(lengths: list[int], takes: list[int]) -> None:
    whole = np.arange(sum(lengths), dtype=np.int64)
    ends = np.cumsum(lengths)
    pieces = Pieces(whole[end - length : end] for length, end in zip(lengths, ends, strict=True))
    start = 0
    for rows in takes:
        found = pieces.take(rows)
        assert found.tolist() == whole[start : start + rows].tolist()
        assert found.dtype == np.int64
        start += rows


def test_no_more_pieces_are_read_than_are_needed() -> None:
    read = iter([np.zeros(5), np.ones(5)])
    pieces = Pieces(read)
    pieces.take(5)
    assert len(next(read)) == 5


def test_without_pieces_there_is_no_type() -> None:
    with pytest.raises(ValueError, match="at least one array"):
        Pieces([]).take(1)
