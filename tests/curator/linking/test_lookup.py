"""What a hub shows of its keys, and what a spoke reads of it, key by key and row by row."""

from pathlib import Path

import numpy as np
import pytest

from veiltab.common.storage.sorted_records import Bytes, RecordFile, SortedRecords
from veiltab.curator.alignment.joining.row_numbers import NOBODY
from veiltab.curator.alignment.linking import shown_keys
from veiltab.curator.alignment.linking.link_hub import hub_numbers
from veiltab.curator.alignment.linking.own_keys import SpokeKeys, numbered
from veiltab.curator.alignment.linking.shown_keys import MANY, DigestedKeys, entries, numbers_in, token_values


def random(chance: np.random.Generator, count: int, width: int) -> Bytes:
    return chance.integers(0, 256, (count, width), np.uint8)


@pytest.mark.parametrize("shared", [0, 1, 40, 90])
def test_a_spoke_reads_the_number_of_each_of_its_keys_that_is_shown(shared: int) -> None:
    chance = np.random.default_rng(shared)
    own, others = random(chance, 100, 16), random(chance, 60, 16)
    own[:3, 10:] = 0  # whose mask changes nothing
    numbers = chance.integers(0, MANY, 100)
    numbers[:5] = MANY
    others[0, :9] = own[99, :9]  # which begins as a tag of the spoke does, and is another
    twice = own[:shared].copy()
    twice[:, 10:] ^= 1
    shown = np.concatenate([entries(own[:shared], numbers[:shared]), others, twice])
    order = chance.permutation(100)
    said = numbers_in(shown, own[order])
    assert said.tolist() == np.where(order < shared, numbers[order], NOBODY).tolist()


def test_a_row_has_a_candidate_if_all_its_keys_that_are_found_name_it_alone(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    digests = random(chance, 60, 32)
    keys_of = {row: set(chance.integers(0, 60, chance.integers(1, 5)).tolist()) for row in range(0, 400, 3)}
    named = np.maximum(chance.integers(-4, 6, 60), NOBODY)  # which the hub does not have
    named[named == 0] = MANY
    records = SortedRecords(tmp_path, 40)
    for row, own in keys_of.items():
        records.add(np.concatenate([digests[list(own)], numbered(np.full(len(own), row))], axis=1))
    keys = SpokeKeys(records, tmp_path)
    asked = keys.digests.read(0)
    places = {digest.tobytes(): place for place, digest in enumerate(digests)}
    said = named[[places[asked[at : at + 32]] for at in range(0, len(asked), 32)]]
    wanted = np.full(401, NOBODY)
    for row, own in keys_of.items():
        found = {int(named[one]) for one in own} - {NOBODY}
        if len(found) == 1 and found != {MANY}:
            wanted[row] = found.pop()
    assert 20 < np.count_nonzero(wanted != NOBODY) < len(keys_of) - 20
    assert keys.candidates(said, 401).tolist() == wanted.tolist()


def test_a_spoke_asks_about_as_many_digests_whatever_its_keys_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_keys, "BATCH", 16)
    chance = np.random.default_rng(4)
    for count in (0, 1, 16, 90):
        own = random(chance, count, 32)
        keys = DigestedKeys(RecordFile(iter([own] if count else []), tmp_path, 16), bytes(32), 90)
        made = np.concatenate([*keys.pieces()])
        assert (len(keys), made.shape) == (90, (90, 64))
        assert len(np.unique(made, axis=0)) == 90
        again = np.concatenate([*keys.pieces()])
        assert np.array_equal(made[:count], again[:count])
        assert not (made[count:] == again[count:]).all(axis=1).any()


def test_values_of_passes_and_keys_differ() -> None:
    digest = bytes(range(32))
    made = {token_values(digest, bytes([key] * 32), number).tobytes() for key in (0, 1) for number in (1, 2)}
    assert len(made) == 4


def test_complete_rows_of_a_hub_have_the_first_numbers_in_an_order_of_its_own() -> None:
    complete = np.random.default_rng(5).random(500) < 0.8
    numbers = hub_numbers(bytes(32), complete)
    assert sorted(numbers.tolist()) == list(range(500))
    assert np.array_equal(numbers < np.count_nonzero(complete), complete)
    assert numbers[complete].tolist() != sorted(numbers[complete].tolist())
    assert numbers.tolist() != hub_numbers(bytes([1] * 32), complete).tolist()
