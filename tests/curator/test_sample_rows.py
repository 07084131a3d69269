"""Samples drawn through scratch space: the same rows in the same order as all of them at once."""

import hashlib
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from veiltab.common.core.symbols import CHUNK
from veiltab.common.schemes.registry import SCHEMES, has_stage, scheme_class, scheme_of
from veiltab.common.schemes.scheme import Scheme
from veiltab.common.storage import partitions
from veiltab.curator.columns import sample_rows
from veiltab.curator.columns.sample_rows import SampledColumn, SampleRows, are_different, gathering_on, grouping_on

KEY = bytes(range(32))

# SHA-256 over the rows of everybody and of every fourteenth, by all schemes, as they were before they went to disk.
KNOWN = {
    10**4: "598bb3be1eb41d5175b47d4768ddccacf510b41925579f98bb348a03ec959a15",
    10**5: "4273947e7d6432ca92d7196be23848f18a039d91d116c4d86c784b65273df745",
    10**6: "8acb2e4db652de73f7bca2cba2769663b330fc3735f7408ad60394c3ec09be39",
}


def tokens_of(n: int) -> NDArray[np.uint8]:
    return np.frombuffer(np.random.default_rng(n).bytes(16 * n), np.uint8).reshape(n, 16)


def scheme(name: str, n: int, m: int, stage: int | None = None) -> Scheme:
    return scheme_of(name, population=n, sample=m, stage=(stage or n) if has_stage(scheme_class(name)) else None)


def rows_of(drawn: Scheme, folder: Path) -> SampleRows:
    tokens = tokens_of(drawn.population)
    return SampleRows(drawn.draw_pieces(tokens, KEY, grouping_on(folder), gathering_on(folder)), folder)


def small_parts(monkeypatch: pytest.MonkeyPatch, batch: int, part: int) -> None:
    """Let little be in memory at once."""
    monkeypatch.setattr(partitions, "BATCH", batch)
    for place in (partitions, sample_rows):
        monkeypatch.setattr(place, "PART", part)
    monkeypatch.setattr(sample_rows, "MOST_HELD", part)


@pytest.mark.parametrize(
    "n", [10**4, pytest.param(10**5, marks=pytest.mark.long), pytest.param(10**6, marks=pytest.mark.long)]
)
def test_the_order_is_the_one_that_it_always_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    small_parts(monkeypatch, n // 5, n // 20)
    digest = hashlib.sha256()
    for name in SCHEMES:
        for m in (n, n // 14):
            digest.update(rows_of(scheme(name, n, m), tmp_path)[:].astype("<i8").data)
    assert digest.hexdigest() == KNOWN[n]


def test_rows_of_a_group_are_told_apart_by_the_bits_after_those_that_group_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PART", 1)
    leads = np.random.default_rng(5).permutation(2**16).astype(np.uint64)
    # The leading 12 bits are 0 to 15, then come 20 zeros, then 12 bits that differ.
    early = (leads >> np.uint64(12)) << np.uint64(52) | (leads & np.uint64(4095)) << np.uint64(20)
    groups = list(
        grouping_on(tmp_path)(
            10**9, [(early[:100].copy(), np.arange(100)), (early[100:].copy(), np.arange(100, 2**16))]
        )
    )
    halves = [words >> np.uint64(32) for words in groups]
    assert [len(set(half.tolist())) for half in halves] == [4096] * 16
    assert [int(row) for words in groups for row in np.sort(words) & np.uint64(2**32 - 1)] == np.argsort(leads).tolist()


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize(("n", "m"), [(3000, 3000), (3000, 2999), (3000, 200), (3000, 1), (1, 1)])
def test_pieces_are_the_whole_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, n: int, m: int) -> None:
    small_parts(monkeypatch, 500, 100)
    one = scheme(name, n, m)
    rows = rows_of(one, tmp_path)
    assert len(rows) == m
    assert rows[:].tolist() == one.draw(tokens_of(n), KEY).tolist()
    assert not list(tmp_path.iterdir())


TWO_STAGES = [
    (name, n, b, m)
    for n, b, m in [
        (3000, 3000, 9000),
        (3000, 200, 200),
        (500, 9000, 40),
        (500, 9000, 9000),
        (7, 5000, 3),
        (9, 101, 99),
    ]
    for name in SCHEMES
    if (b <= n or name != "must.ow") and (m <= b or name != "must.wo") and has_stage(scheme_class(name))
]


@pytest.mark.parametrize(("name", "n", "b", "m"), TWO_STAGES)
def test_two_stages_are_the_same_on_disk_and_in_memory(  # noqa: PLR0913, PLR0917 - the sizes
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, n: int, b: int, m: int
) -> None:
    small_parts(monkeypatch, 500, 100)
    one = scheme(name, n, m, stage=b)
    assert rows_of(one, tmp_path)[:].tolist() == one.draw(tokens_of(n), KEY).tolist()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", [1, 100, 4096])
@pytest.mark.parametrize(("length", "count"), [(1, 5), (5000, 1), (5000, 40), (4097, 4097), (300, 9000)])
def test_what_is_gathered_is_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, count: int, part: int
) -> None:
    small_parts(monkeypatch, 700, part)
    monkeypatch.setattr(sample_rows, "MOST_HELD", 0)
    chance = np.random.default_rng(length + count)
    rows, places = chance.integers(0, 2**62, length), chance.integers(0, length, count)
    if count:
        places[-1] = length - 1
    cut = [slice(start, start + 333) for start in range(0, max(length, count), 333)]
    found = gathering_on(tmp_path)((rows[one] for one in cut), length, (places[one] for one in cut), count)
    assert [row for piece in found for row in piece.tolist()] == rows[places].tolist()


@pytest.mark.parametrize("part", [1, 100, 4096])
def test_rows_are_told_to_be_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    small_parts(monkeypatch, 700, part)
    n = 5000
    for rows in (np.arange(n), np.arange(n)[::-7], np.array([n - 1]), np.array([0])):
        assert are_different([rows], n, tmp_path)
    whole = np.random.default_rng(1).permutation(n)
    assert are_different([whole[:999], whole[999:]], n, tmp_path)
    for bad in (np.array([3, 3]), np.array([n]), np.array([-1]), np.array([2**63 - 1]), np.zeros(n, np.int64)):
        assert not are_different([bad], n, tmp_path)
    for place in (0, 999, n - 1):
        twice = whole.copy()
        twice[place] = whole[place - 1]
        assert not are_different([twice[:999], twice[999:]], n, tmp_path)


def test_equal_rows_are_noticed_before_they_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions.Partitions, "parts", Mock(side_effect=AssertionError("read back")))
    assert not are_different([np.full(2**18, 7)] * 4, 2**20, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", SCHEMES)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, name: str) -> None:
    peaks = []
    for n in (2**22, 2**23):
        one = scheme(name, n, n)
        tokens = np.memmap(tmp_path / "tokens", np.uint8, "w+", shape=(n, 16))
        for start in range(0, n, 2**20):
            tokens[start : start + 2**20] = np.random.default_rng(start).integers(0, 256, (2**20, 16), np.uint8)
        tracemalloc.start()
        rows = SampleRows(one.draw_pieces(tokens, KEY, grouping_on(tmp_path), gathering_on(tmp_path)), tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(rows) == n
    assert peaks[1] - peaks[0] < 2**22, "less than a byte a row"


def test_rows_are_read_in_any_slice(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1).integers(0, 2**40, 2 * CHUNK + 77)
    rows = SampleRows([drawn[:5], drawn[5:CHUNK], drawn[CHUNK:]], tmp_path)
    assert len(rows) == len(drawn)
    for part in (slice(0, 3), slice(1, 8), slice(CHUNK - 3, CHUNK + 3), slice(2 * CHUNK, len(drawn)), slice(None)):
        assert np.array_equal(rows[part], drawn[part])


def test_a_column_is_gathered_where_it_is_read(tmp_path: Path) -> None:
    column = np.arange(100, dtype="<u2") + np.uint16(1000)
    sampled = SampledColumn(column, SampleRows([np.array([7, 7, 99, 0])], tmp_path))
    assert len(sampled) == 4
    assert sampled[1:4].tolist() == [1007, 1099, 1000]
    assert sampled[0:4].dtype == np.dtype("<u2")
