"""Records of one length come back in ascending order, however they came."""

from pathlib import Path

import numpy as np
import pytest

from veiltab.common.storage import sorted_records
from veiltab.common.storage.sorted_records import RecordFile, SortedRecords

WIDTH = 32


@pytest.mark.parametrize("batch", [2**17, 50])
def test_records_come_back_in_order(tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_records, "_BATCH", batch)
    records, chance = SortedRecords(tmp_path, WIDTH), np.random.default_rng(1)
    made = [chance.integers(0, 256, (count, WIDTH), np.uint8) for count in (1, 700, 0, 33)]
    made[1][:20, -3:] = 0  # a text of numpy would end there
    made[3][:5] = made[1][:5]
    for one in made:
        records.add(one)
    for _ in range(2):
        parts = list(records.parts())
        assert [row.tobytes() for part in parts for row in part] == sorted(row.tobytes() for one in made for row in one)
        # Equal beginnings are in one part.
        heads = [{row[:2].tobytes() for row in part} for part in parts]
        assert sum(map(len, heads)) == len(set().union(*heads))
    assert records.count == 734


@pytest.mark.parametrize("counts", [(), (0,), (1,), (8,), (3, 0, 4, 1), (30, 2)])
def test_kept_records_are_read_back_in_batches(tmp_path: Path, counts: tuple[int, ...]) -> None:
    chance = np.random.default_rng(3)
    parts = [chance.integers(0, 256, (count, WIDTH), np.uint8) for count in counts]
    kept = RecordFile(iter(parts), tmp_path, 8)
    wanted = b"".join(part.tobytes() for part in parts)
    assert kept.count == sum(counts)
    read = [kept.read(start) for start in range(0, kept.count, 8)]
    assert b"".join(read) == wanted
    assert {len(one) for one in read[:-1]} <= {8 * WIDTH}
