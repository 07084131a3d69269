"""Measures what files cost beyond the passes over few rows: new pages of memory, and sections of many files."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from veiltab.common.storage.partitions import PARTITION_BITS, Batch, leading_bits, write_batch
from veiltab.common.storage.run_files import RunFiles, run_in
from veiltab.curator.table.partition_files import Section

_PIECE = bytes(2**20)
_PIECES = 512
_ROWS = 2**19
_CUTS = 128
_REPEATS = 5
_FILE = "spread"
_FORMS = (np.empty((0, 2), "<u8"), np.empty(0, np.uint8))


def measured_page(folder: Path) -> float:
    """Return what a written byte costs where its page is new to the machine, beside one whose page is not; ns.

    Where a host lends memory as it is needed, whatever is larger than what was written before pays that.
    """
    path = folder / "pages"
    new = _written(path)
    path.unlink()
    again = min(_written(path) for _ in range(_REPEATS))
    path.unlink()
    return max(new - again, 0.0) * 1e9 / (_PIECES * len(_PIECE))


def measured_cut(folder: Path) -> float:
    """Return what it costs to open one more file for a section and to read its rows there; microseconds."""
    words = np.frombuffer(hashlib.shake_256(b"rows").digest(16 * _ROWS), "<u8").reshape(_ROWS, 2)
    with run_in(folder / "cuts") as run:
        with run.writing(_FILE) as file:
            fields = [words, np.zeros(_ROWS, np.uint8)]
            batch = write_batch(file, leading_bits(words[:, 0]), fields)
        whole, cut = (_least(lambda cuts=cuts: _read(run, batch, cuts)) for cuts in (1, _CUTS))  # type: ignore[misc]
    return max(cut - whole, 0.0) * 1e6 / _CUTS


def _written(path: Path) -> float:
    """Return the CPU time of writing a file from its beginning, seconds."""
    with path.open("wb", buffering=0) as file:
        began = time.process_time()
        for _ in range(_PIECES):
            os.write(file.fileno(), _PIECE)
        return time.process_time() - began


def _read(run: RunFiles, batch: Batch, cuts: int) -> None:
    """Read all rows as a section that has a part of each of so many files."""
    step = (1 << PARTITION_BITS) // cuts
    edges = ((first, first + step) for first in range(0, step * cuts, step))
    for _ in Section(run=run, cuts=tuple((_FILE, batch.cut(edge)) for edge in edges)).parts(_FORMS):
        pass


def _least(work: Callable[[], None]) -> float:
    seconds = []
    for _ in range(_REPEATS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)
