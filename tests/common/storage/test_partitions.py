"""Partitions: every part has the records whose leading bits lie there, and no others."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veiltab.common.storage import partitions
from veiltab.common.storage.partitions import PARTITION_BITS, Partitions, bits_for, leading_bits
from veiltab.common.storage.scratch import Scratch


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 40), max_size=6),
    batch=st.integers(1, 60),
    part=st.integers(1, 60),
    section=st.integers(1, 200),
    seed=st.integers(0, 2**32),
)
def test_parts_together_are_a_stable_sort_by_the_leading_bits(
    sizes: list[int], batch: int, part: int, section: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "BATCH", batch)
        patch.setattr(partitions, "PART", part)
        patch.setattr(partitions, "SECTION", 19 * section)
        records = Partitions(Scratch(None))
        leads, wide = np.empty(0, np.uint16), np.empty((0, 2), np.uint64)
        for size in sizes:
            lead = rng.integers(0, 1 << PARTITION_BITS, size, dtype=np.uint16)
            words = rng.integers(0, 2**64, (size, 2), dtype=np.uint64)
            records.append(lead, [words, lead, words[:, 0].astype(np.uint8)])
            leads, wide = np.concatenate([leads, lead]), np.concatenate([wide, words])
        parts = list(records.parts())
    assert sum(len(one[1]) for one in parts) == sum(sizes)
    assert all(len(one[1]) for one in parts)
    ends = [(int(one[1].min()), int(one[1].max())) for one in parts]
    assert all(before[1] < after[0] for before, after in pairwise(ends))
    order = np.argsort(leads, kind="stable")
    wholes: list[NDArray[np.generic]] = [wide[order], leads[order], wide[order][:, 0].astype(np.uint8)]
    for place, whole in enumerate(wholes):
        sorted_parts = [one[place][np.argsort(one[1], kind="stable")] for one in parts]
        assert np.array_equal(np.concatenate([whole[:0], *sorted_parts]), whole)


def test_more_records_than_20_bits_number_keep_their_order() -> None:
    leads = np.random.default_rng(5).integers(0, 1 << PARTITION_BITS, 2**20 + 1, dtype=np.uint16)
    records = Partitions(Scratch(None), joins=False)
    records.append(leads, [np.arange(len(leads))])
    assert np.array_equal(np.concatenate([one for (one,) in records.parts()]), np.argsort(leads, kind="stable"))


def test_leading_bits_are_those_of_most_weight() -> None:
    assert leading_bits(np.array([0xABCD << 48, 1 << 52, 1], np.uint64)).tolist() == [0xABC, 1, 0]


def test_parts_are_small_however_many_records_there_are() -> None:
    records, rng = Partitions(Scratch(None)), np.random.default_rng(3)
    rows = 3 * partitions.PART
    for _ in range(10):
        records.append(rng.integers(0, 1 << PARTITION_BITS, rows // 10, dtype=np.uint16), [np.zeros(rows // 10)])
    lengths = [len(one) for (one,) in records.parts()]
    assert len(lengths) in {3, 4}
    assert max(lengths) < 1.1 * partitions.PART


@pytest.mark.parametrize("bits", [1, 5, 12])
def test_partitions_stay_apart_where_records_lost_what_tells_them_apart(bits: int) -> None:
    records, rng = Partitions(Scratch(None), bits=bits, joins=False), np.random.default_rng(bits)
    words = rng.integers(0, 2**64, 3 << bits, dtype=np.uint64)
    for some in np.split(words, 3):
        records.append(leading_bits(some, bits), [some])
    parts = [leading_bits(one.view(np.uint64), bits) for (one,) in records.parts()]
    assert [set(part.tolist()) for part in parts] == [{bit} for bit in sorted(set(leading_bits(words, bits).tolist()))]
    assert sum(map(len, parts)) == len(words)


@pytest.mark.parametrize("records", [0, 1, 2**17 - 1, 2**17, 10**6, 10**8, 2**29 - 1, 2**29, 10**9])
def test_partitions_of_so_many_bits_fit_the_cache(records: int) -> None:
    bits = bits_for(records)
    assert records / 2**bits <= partitions.PART or bits == PARTITION_BITS
    assert bits == 1 or records / 2 ** (bits - 1) >= partitions.PART
    assert partitions.section_records(records, 200) * 200 <= partitions.SECTION
    assert partitions.section_records(records, 9) in {max(partitions.BATCH, records // 32), partitions.SECTION // 9}


def test_what_waits_in_memory_is_written_when_it_is_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "BATCH", 100)
    records, lead = Partitions(Scratch(None)), np.arange(33, dtype=np.uint16)
    for waiting in (33, 66, 99, 0, 33):
        records.append(lead, [lead])
        assert sum(len(leads) for leads, *_ in records._waiting) == records._waiting_rows == waiting


def test_the_largest_partition_counts_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "BATCH", 4)
    records = Partitions(Scratch(None))
    for lead in ([7, 7, 7, 9], [7, 9]):
        records.append(np.array(lead, np.uint16), [np.zeros(len(lead))])
    assert records.largest == 4
