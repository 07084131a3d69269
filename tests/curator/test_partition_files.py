"""Rows that tasks spread over files: a section of them, from all files, part by part."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.storage.partitions import write_batch
from veiltab.common.storage.run_files import new_run
from veiltab.curator.table.partition_files import SpreadRows

BITS = 4


def test_a_section_has_the_rows_of_all_files_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    run, rng = new_run(tmp_path), np.random.default_rng(1)
    spread, leads, rows = SpreadRows(run, "a", bits=BITS), list[NDArray[np.uint16]](), list[NDArray[np.int64]]()
    for number, count in enumerate((300, 1, 200)):
        leads.append(rng.integers(0, 1 << BITS, count, np.uint16))
        rows.append(np.arange(count) + 1000 * number)
        with run.writing(spread.file(number)) as file:
            spread.append(write_batch(file, leads[-1], [rows[-1]], bits=BITS))
    lead, row = np.concatenate(leads), np.concatenate(rows)
    assert spread.counts.tolist() == np.bincount(lead, minlength=1 << BITS).tolist()
    parts = [part for (part,) in spread.section((3, 5, 9)).parts([row[:0]])]
    for part, first, stop in zip(parts, (3, 5), (5, 9), strict=True):
        within = (lead >= first) & (lead < stop)
        assert sorted(part.tolist()) == row[within].tolist()
        for bits in range(first, stop):  # those of the same bits stay in order
            assert [one for one in part.tolist() if one in set(row[lead == bits])] == row[lead == bits].tolist()
    spread.delete()
    assert not list(run.folder.iterdir())
