"""Freed memory is kept: temporary arrays of a piece cost page faults once, not every time."""

import ctypes
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from veiltab.common.process.memory import keep_freed_memory
if {keep}:
    keep_freed_memory()
for turn in range(51):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [np.ones(2**20, np.uint8) for _ in range(8)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keep: bool) -> int:
    run = subprocess.run([sys.executable, "-c", FAULTS.format(keep=keep)], check=True, capture_output=True, text=True)
    return int(run.stdout)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="malloc is not glibc's")
def test_temporary_arrays_do_not_fault_again() -> None:
    without, kept = faults(keep=False), faults(keep=True)
    assert without > 10_000  # 50 turns, 8 MiB, 4 KiB a page: about 100,000
    assert kept < without / 10
