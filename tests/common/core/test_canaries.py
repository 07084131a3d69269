"""Canaries: their places and symbols, known answers included, and that data keeps its order among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.core.canaries import CanaryPlaces, canary_symbols, is_data, places_key, with_canaries
from veiltab.common.errors import InvalidInputError

KEY = bytes(range(32))


def test_places_and_symbols_are_part_of_the_format() -> None:
    assert places_key(KEY).hex() == "43e500d4b34f811062591723c2413ab762792d0c4f82b478e747e9bac87e595d"
    assert CanaryPlaces.of(places_key(KEY), rows=20, canaries=6).all().tolist() == [2, 5, 6, 11, 12, 16]
    assert canary_symbols(KEY, "salary", 5, 8).tolist() == [2, 3, 4, 3, 1, 0, 0, 4]
    assert canary_symbols(KEY, "sex", 5, 8).tolist() != canary_symbols(KEY, "salary", 5, 8).tolist()


@given(rows=st.integers(0, 40), canaries=st.integers(0, 40), seed=st.binary(min_size=32, max_size=32))
def test_data_keeps_its_order_and_canaries_stand_at_their_places(rows: int, canaries: int, seed: bytes) -> None:
    places = CanaryPlaces.of(seed, rows=rows + canaries, canaries=canaries).all()
    column = np.arange(rows, dtype=np.uint8)
    symbols = np.full(canaries, 255, np.uint8)
    whole = with_canaries(column, places, symbols)
    assert len(set(places.tolist())) == canaries
    assert (np.diff(places) > 0).all()
    assert whole[is_data(places, len(whole))].tolist() == column.tolist()
    assert whole[places].tolist() == symbols.tolist()


def test_every_set_of_places_is_as_likely() -> None:
    drawn = [tuple(CanaryPlaces.of(bytes([a, b] * 16), rows=4, canaries=2).all()) for a in range(64) for b in range(64)]
    counts = [drawn.count(one) for one in sorted(set(drawn))]
    assert len(counts) == 6
    assert sum((count - len(drawn) / 6) ** 2 / (len(drawn) / 6) for count in counts) < 30


@pytest.mark.parametrize(("rows", "canaries"), [(1, 1), (5000, 3000), (5000, 5000), (4096, 1), (8193, 7000), (5000, 0)])
def test_many_places_are_found_as_few_are(monkeypatch: pytest.MonkeyPatch, rows: int, canaries: int) -> None:
    for place in ("canaries", "symbols"):
        monkeypatch.setattr(f"veiltab.common.core.{place}.CHUNK", 1024)
    few = CanaryPlaces.of(KEY, rows=rows, canaries=canaries)
    monkeypatch.setattr("veiltab.common.core.canaries._FEW", 0)
    many = CanaryPlaces.of(KEY, rows=rows, canaries=canaries)
    assert len(few) == len(many) == canaries
    for start in range(0, rows, 1024):
        part = slice(start, min(start + 1024, rows))
        assert few.within(part).tolist() == many.within(part).tolist()
        assert few.before(start) == many.before(start)
    assert few.before(rows) == many.before(rows) == canaries
    assert (
        many.all().tolist() == few.all().tolist() == CanaryPlaces.of(KEY, rows=rows, canaries=canaries).all().tolist()
    )
    assert few.all().dtype == many.all().dtype == np.int64


@pytest.mark.parametrize(
    "part", [slice(None), slice(0, 0), slice(0, 1), slice(1023, 1025), slice(2048, 3000), slice(2999, None)]
)
def test_some_symbols_are_those_of_all(monkeypatch: pytest.MonkeyPatch, part: slice) -> None:
    for place in ("canaries", "symbols"):
        monkeypatch.setattr(f"veiltab.common.core.{place}.CHUNK", 1024)
    whole = canary_symbols(KEY, "salary", 5, 3000)
    assert len(whole) == 3000
    assert canary_symbols(KEY, "salary", 5, 3000, part).tolist() == whole[part].tolist()


def test_more_canaries_than_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        CanaryPlaces.of(KEY, rows=3, canaries=4)
