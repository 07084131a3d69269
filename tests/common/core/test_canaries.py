"""Canaries: their places and symbols, known answers included, and that data keeps its order among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.core.canaries import canary_places, canary_symbols, is_data, places_key, with_canaries
from veiltab.common.errors import InvalidInputError

KEY = bytes(range(32))


def test_places_and_symbols_are_part_of_the_format() -> None:
    assert places_key(KEY).hex() == "43e500d4b34f811062591723c2413ab762792d0c4f82b478e747e9bac87e595d"
    assert canary_places(places_key(KEY), rows=20, canaries=6).tolist() == [2, 5, 6, 11, 12, 16]
    assert canary_symbols(KEY, "salary", 5, 8).tolist() == [2, 3, 4, 3, 1, 0, 0, 4]
    assert canary_symbols(KEY, "sex", 5, 8).tolist() != canary_symbols(KEY, "salary", 5, 8).tolist()


@given(rows=st.integers(0, 40), canaries=st.integers(0, 40), seed=st.binary(min_size=32, max_size=32))
def test_data_keeps_its_order_and_canaries_stand_at_their_places(rows: int, canaries: int, seed: bytes) -> None:
    places = canary_places(seed, rows=rows + canaries, canaries=canaries)
    column = np.arange(rows, dtype=np.uint8)
    symbols = np.full(canaries, 255, np.uint8)
    whole = with_canaries(column, places, symbols)
    assert len(set(places.tolist())) == canaries
    assert (np.diff(places) > 0).all()
    assert whole[is_data(places, len(whole))].tolist() == column.tolist()
    assert whole[places].tolist() == symbols.tolist()


def test_every_set_of_places_is_as_likely() -> None:
    drawn = [tuple(canary_places(bytes([a, b] * 16), rows=4, canaries=2)) for a in range(64) for b in range(64)]
    counts = [drawn.count(one) for one in sorted(set(drawn))]
    assert len(counts) == 6
    assert sum((count - len(drawn) / 6) ** 2 / (len(drawn) / 6) for count in counts) < 30


def test_many_places_are_found_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    few = canary_places(KEY, rows=5000, canaries=3000)
    monkeypatch.setattr("veiltab.common.core.canaries._FEW", 2999)
    assert np.array_equal(canary_places(KEY, rows=5000, canaries=3000), few)


def test_more_canaries_than_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        canary_places(KEY, rows=3, canaries=4)
