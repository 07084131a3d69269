from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.common.core.sources import Scripted
from veiltab.common.collection.oracles import draws
from veiltab.common.collection.oracles.draws import draw_distinct, draw_events
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import IntegrityError, InvalidInputError

STREAM = CipherStream(bytes([5]) * 32)


@pytest.mark.parametrize("units", [0, 1, 2**56, 2**63, 2**63 + 12345, UNIT - 1])
def test_an_event_happens_exactly_when_its_word_is_below(units: int) -> None:
    words = [word for word in (0, units - 1, units, units + 1, UNIT - 1) if 0 <= word < UNIT]
    source = Scripted({3: np.array(words, "<u8").view(np.uint8)})
    happened = draw_events(len(words), units, source, label=3)
    assert happened.tolist() == [word < units for word in words]


def test_distinct_values_are_uniform_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of 3 draws of 3 values: every first batch, and every second one where the first repeats itself.
    monkeypatch.setattr(draws, "_likely_enough", lambda *_: 3)
    batches = [np.array(batch, np.uint8) * np.uint8(85) for batch in product(range(3), repeat=3)]
    drawn = Counter(
        tuple(draw_distinct(3, 2, Scripted({0: first, 1: second}), label=0).tolist())
        for first, second in product(batches, batches)
        if max(len(set(first.tolist())), len(set(second.tolist()))) > 1
    )
    assert set(drawn) == set(permutations(range(3), 2))
    assert len(set(drawn.values())) == 1


@pytest.mark.parametrize(
    ("batches", "drawn"),
    [([[3, 3, 0]], [3, 0]), ([[2, 2, 2], [0, 2, 0]], [0, 2]), ([[1, 1, 1], [3, 3, 3], [2, 1, 3]], [2, 1])],
)
def test_values_keep_the_order_in_which_they_first_came(
    batches: list[list[int]], drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_likely_enough", lambda *_: 3)
    scripts = {label: np.array(batch, np.uint8) * np.uint8(64) for label, batch in enumerate(batches, 7)}
    assert draw_distinct(4, 2, Scripted(scripts), label=7).tolist() == drawn


@given(st.integers(1, 65536), st.data())
def test_distinct_values_are_distinct(size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, min((size + 1) // 2, 3000)))
    drawn = draw_distinct(size, count, STREAM, label=0)
    assert drawn.shape == (count,)
    assert drawn.dtype == np.int64
    assert len(set(drawn.tolist())) == count
    assert drawn.min() >= 0
    assert drawn.max() < size


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 1), (255, 128), (256, 128), (257, 129), (65535, 32768)])
def test_half_of_the_values_can_be_drawn(size: int, count: int) -> None:
    assert draw_distinct(size, count, STREAM, label=0).shape == (count,)


@pytest.mark.parametrize(("size", "count"), [(3, 3), (3, 0), (1, 2), (256, 129)])
def test_more_values_than_half_cannot_be_drawn(size: int, count: int) -> None:
    with pytest.raises(InvalidInputError, match=f"cannot draw {count} distinct values of {size}"):
        draw_distinct(size, count, STREAM, label=0)


def test_a_stuck_source_is_found_out() -> None:
    stuck = Scripted({label: np.zeros(99, np.uint8) for label in range(256)})
    with pytest.raises(IntegrityError, match="repeats only"):
        draw_distinct(4, 2, stuck, label=0)
