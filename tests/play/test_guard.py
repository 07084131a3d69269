"""Parties end with the process that began them, even if it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BEGIN = """
import subprocess, sys, time
from pathlib import Path
from veiltab.play.local.processes import LocalStudy
party = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
LocalStudy(folder=Path(), tables={})._end_with_this_process(party.pid)
print(party.pid, flush=True)
time.sleep(600)
"""


def state(pid: int) -> str:
    """Return the state of a process as the system names it, or nothing if it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no process descriptors")
def test_a_demonstration_that_is_killed_leaves_no_party() -> None:
    with subprocess.Popen([sys.executable, "-c", BEGIN], stdout=subprocess.PIPE, text=True) as demonstration:
        assert demonstration.stdout is not None
        party = int(demonstration.stdout.readline())
        assert state(party) not in {"", "Z"}
        demonstration.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while state(party) not in {"", "Z"} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert state(party) in {"", "Z"}
