from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from common.collection.oracles import draws
from common.collection.oracles.draws import draw_distinct, draw_events, draw_symbol
from common.errors import InvalidInputError
from common.mechanism import UNIT
from common.randomness import CipherStream

ALPHA = 1e-4
STREAM = CipherStream(bytes([5]) * 32)


class Scripted:
    """A source that plays a script for each label."""

    def __init__(self, scripts: dict[int, NDArray[np.uint8]]) -> None:
        self.scripts = scripts

    def fill(self, out: NDArray[np.uint8], *, label: int, chunk: int) -> None:
        del chunk
        out[:] = self.scripts[label]


@pytest.mark.parametrize("units", [0, 1, 2**56, 2**63, 2**63 + 12345, UNIT - 1])
def test_an_event_happens_exactly_when_its_word_is_below(units: int) -> None:
    words = [word for word in (0, units - 1, units, units + 1, UNIT - 1) if 0 <= word < UNIT]
    source = Scripted({3: np.array(words, "<u8").view(np.uint8)})
    happened = draw_events(len(words), units, source, label=3, chunk=0)
    assert happened.tolist() == [word < units for word in words]


def test_distinct_values_are_uniform_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of 3 draws of 3 values: every first batch, and every second one where the first repeats itself.
    monkeypatch.setattr(draws, "_likely_enough", lambda *_: 3)
    batches = [np.array(batch, np.uint8) * np.uint8(85) for batch in product(range(3), repeat=3)]
    drawn = Counter(
        tuple(draw_distinct(3, 2, Scripted({0: first, 1: second}), label=0, chunk=0).tolist())
        for first, second in product(batches, batches)
        if len({*first.tolist(), *second.tolist()}) > 1
    )
    assert set(drawn) == set(permutations(range(3), 2))
    assert len(set(drawn.values())) == 1


def test_distinct_values_keep_the_order_in_which_they_first_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "_likely_enough", lambda *_: 4)
    scripts = {7: np.array([3, 3, 0, 3], np.uint8), 8: np.array([0, 2, 3, 1], np.uint8)}
    scripts = {label: batch * np.uint8(64) for label, batch in scripts.items()}
    assert draw_distinct(4, 4, Scripted(scripts), label=7, chunk=0).tolist() == [3, 0, 2, 1]


def test_distinct_values_of_a_real_stream_are_uniform() -> None:
    drawn = Counter(tuple(draw_distinct(4, 2, STREAM, label=0, chunk=chunk).tolist()) for chunk in range(6000))
    assert len(drawn) == 12
    assert chisquare(list(drawn.values())).pvalue > ALPHA


@given(st.integers(1, 65536), st.data())
def test_distinct_values_are_distinct(size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, min(size, 3000)))
    drawn = draw_distinct(size, count, STREAM, label=0, chunk=0)
    assert drawn.dtype == np.int64
    assert len(set(drawn.tolist())) == len(drawn) == count
    assert not count or (drawn.min() >= 0 and drawn.max() < size)


@pytest.mark.parametrize("size", [1, 256, 257, 65536])
def test_all_values_can_be_drawn(size: int) -> None:
    assert sorted(draw_distinct(size, size, STREAM, label=0, chunk=1).tolist()) == list(range(size))


def test_more_values_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(InvalidInputError, match="cannot draw 4 distinct values of 3"):
        draw_distinct(3, 4, STREAM, label=0, chunk=0)


def test_a_symbol_is_uniform() -> None:
    counts = Counter(draw_symbol(5, STREAM, label=9, chunk=chunk) for chunk in range(4000))
    assert sorted(counts) == list(range(5))
    assert chisquare(list(counts.values())).pvalue > ALPHA
