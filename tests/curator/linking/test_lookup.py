"""Work that is done piece by piece gives what a look at all of it at once gives."""

from pathlib import Path

import numpy as np
import pytest

from tests.curator.linking.registers import people, table_of
from tests.curator.made_rows import workplace
from veiltab.common.storage.sorted_records import Bytes, SortedRecords
from veiltab.curator.alignment.linking import linked_rows as pieces_of_rows
from veiltab.curator.alignment.linking import spoke_work
from veiltab.curator.alignment.linking.linked_rows import linked_rows
from veiltab.curator.alignment.linking.own_keys import SpokeKeys, numbered


def random(chance: np.random.Generator, count: int, width: int) -> Bytes:
    return chance.integers(0, 256, (count, width), np.uint8)


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("shared", [0, 1, 40, 90])
def test_own_values_are_found_in_pieces_of_a_table(
    tmp_path: Path, shared: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spoke_work, "_PIECE", piece)
    chance = np.random.default_rng(shared)
    own, others = random(chance, 100, 32), random(chance, 60, 32)
    own[:3, 16:] = 0  # whose mask changes nothing
    handles = random(chance, 100, 16)
    handles[:5] = 0  # the mark of many
    shown = np.concatenate([own[:shared, :16], own[:shared, 16:] ^ handles[:shared]], axis=1)
    # One of them begins as a tag of the spoke does, and is another.
    others[0, :15] = own[99, :15]
    table, values = tmp_path / "table", tmp_path / "values"
    table.write_bytes(b"".join(sorted(row.tobytes() for row in np.concatenate([shown, others]))))
    order = chance.permutation(100)
    values.write_bytes(own[order].tobytes())
    found, said = spoke_work._found_in(table, values)
    assert found.tolist() == (order < shared).tolist()
    assert np.array_equal(said[found], handles[order[found]])


def test_a_row_has_a_candidate_if_all_its_keys_that_are_found_name_it_alone(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    digests, handles = random(chance, 60, 32), random(chance, 6, 16)
    handles[0] = 0  # the mark of many
    keys_of = {row: set(chance.integers(0, 60, chance.integers(1, 5)).tolist()) for row in range(0, 400, 3)}
    named = dict(enumerate(chance.integers(-4, 6, 60).tolist()))  # below 0: the hub does not have it
    records = SortedRecords(tmp_path, 40)
    for row, own in keys_of.items():
        records.add(np.concatenate([digests[list(own)], numbered(np.full(len(own), row))], axis=1))
    keys = SpokeKeys(records, tmp_path, 8, bytes(32))
    asked = b"".join(keys.digests.read(start) for start in range(0, keys.digests.count, 8))
    numbers = {digest.tobytes(): number for number, digest in enumerate(digests)}
    answers = [named[numbers[asked[at : at + 32]]] for at in range(0, len(asked), 32)]
    rows, said = keys.candidates(np.array(answers) >= 0, handles[np.maximum(answers, 0)])
    wanted = {}
    for row, own in keys_of.items():
        found = {named[one] for one in own if named[one] >= 0}
        if len(found) == 1 and found != {0}:
            wanted[row] = handles[found.pop()].tobytes()
    assert 20 < len(wanted) < len(keys_of) - 20
    assert dict(zip(rows.tolist(), map(bytes, said), strict=True)) == wanted
    assert rows.tolist() == sorted(wanted)


def test_linked_rows_have_their_own_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_of_rows, "_PIECE", 3)
    chance, table = np.random.default_rng(4), table_of(people(20, 1), "x").respondents
    rows, handles = chance.permutation(20)[:13], random(chance, 13, 16)
    made = linked_rows(table, rows, handles.tobytes(), "agreed", workplace(tmp_path))
    lengths = np.concatenate([batch.columns["length"] for batch in table.batches()])
    got = [pair for one in made.batches() for pair in zip(one.ids.to_pylist(), one.columns["length"], strict=True)]
    order = np.argsort(rows)
    assert got == [(handles[place].tobytes().hex() + "agreed", lengths[rows[place]]) for place in order]
