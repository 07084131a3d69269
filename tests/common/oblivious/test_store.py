"""Slots and stores: sizes, equations, and who is left out."""

import numpy as np
import pytest

from tests.common.oblivious.plain import KEY, people, stream, uniform
from veiltab.common.core.randomness import MAX_FILL
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.code import Bits
from veiltab.common.oblivious.extension import EXTRA_ROWS
from veiltab.common.oblivious.function import digests
from veiltab.common.oblivious.store import fill, slots, slots_for

M = 12_288


def sums(words: Bits, of: Bits) -> Bits:
    first, second, third = (slots(of, len(words) - EXTRA_ROWS) + EXTRA_ROWS).T
    total: Bits = words[first] ^ words[second] ^ words[third]
    return total


@pytest.mark.parametrize(
    ("ids", "m"), [(0, 98_304), (75_618, 98_304), (75_619, 110_592), (10**6, 1_302_528), (10**8, 130_007_040)]
)
def test_a_store_has_slots_for_three_tenths_more_in_steps(ids: int, m: int) -> None:
    assert slots_for(ids) == m
    assert m >= 1.3 * ids


def test_slots_are_the_words_of_the_digest_one_in_each_third() -> None:
    of = digests(people(0, 500), KEY)
    for each, row in zip(of, slots(of, M), strict=True):
        words = [int.from_bytes(each[place : place + 8].tobytes(), "little") for place in (24, 32, 40)]
        assert row.tolist() == [i * 4096 + word % 4096 for i, word in enumerate(words)]


@pytest.mark.parametrize("m", [0, -M, M - 1, M + 4096, 2**20])
def test_a_number_of_slots_that_no_store_has_is_refused(m: int) -> None:
    with pytest.raises(IntegrityError, match=f"cannot have {m} slots"):
        slots(uniform(1, 64), m)


@pytest.mark.parametrize("ids", [0, 1, 2, 5000, 9400])
def test_the_slots_of_each_id_add_up_to_its_code_digest(ids: int) -> None:
    of = digests(people(0, ids), KEY)
    words, left_out = fill(of, M, stream(3))
    assert words.shape == (EXTRA_ROWS + M, 9)
    assert not left_out.any()
    assert np.array_equal(sums(words, of), of[:, :9])
    others = digests(people(ids, 2 * ids), KEY)
    assert not (sums(words, others) == others[:, :9]).all(axis=1).any()
    assert not np.array_equal(sums(words ^ np.uint8(1), of), of[:, :9]) or not ids


def test_rows_that_no_id_decides_are_those_of_the_source() -> None:
    plain, _ = fill(np.empty((0, 64), np.uint8), M, stream(3))
    words, _ = fill(digests(people(0, 1000), KEY), M, stream(3))
    assert np.count_nonzero((words != plain).any(axis=1)) == 1000
    assert np.array_equal(words[:EXTRA_ROWS], plain[:EXTRA_ROWS])
    assert not np.array_equal(fill(np.empty((0, 64), np.uint8), M, stream(4))[0], plain)


def test_a_store_longer_than_one_fill_repeats_nothing() -> None:
    words, _ = fill(np.empty((0, 64), np.uint8), 20 * M, stream(3))
    assert not np.array_equal(words.reshape(-1)[MAX_FILL:][:99], words.reshape(-1)[:99])


@pytest.mark.parametrize("core", [[(0, 0, 0)] * 2, [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]], ids=["two", "four"])
def test_ids_in_a_core_are_left_out_and_nobody_else(core: list[tuple[int, int, int]]) -> None:
    of = digests(people(0, 5000), KEY)
    there = np.arange(100, 100 + len(core))
    of[there, 24:48] = np.array(core, "<u8").view(np.uint8)
    words, left_out = fill(of, M, stream(3))
    assert np.flatnonzero(left_out).tolist() == there.tolist()
    assert np.array_equal(sums(words, of[~left_out]), of[~left_out, :9])
    _, left_out = fill(np.delete(of, 100, axis=0), M, stream(3))
    assert not left_out.any()


def test_ids_that_come_twice_are_left_out() -> None:
    of = digests([*people(0, 1000), *people(500, 510)], KEY)
    words, left_out = fill(of, M, stream(3))
    assert np.flatnonzero(left_out).tolist() == [*range(500, 510), *range(1000, 1010)]
    assert np.array_equal(sums(words, of[~left_out]), of[~left_out, :9])
