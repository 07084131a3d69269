"""A party that does not come to its end is ended."""

import signal
import subprocess
import sys

import pytest

PARTY = """
import asyncio
import time
from veiltab.common.process import signals

signals.LONGEST_END = 1

async def main():
    stopped = asyncio.Event()
    with signals.PartySignals(stop=stopped.set, may_restart=lambda: True):
        print("ready", flush=True)
        {work}

asyncio.run(main())
"""
WORK = {
    "a loop that computes": "while True: pass",
    "a thread that does not end": "asyncio.get_running_loop().run_in_executor(None, time.sleep, 1000)\n"
    "        await stopped.wait()",
    "work that takes no cancellation": "while True: await asyncio.sleep(0.01)",
}


@pytest.mark.parametrize(
    ("work", "code"), [*((work, -signal.SIGALRM) for work in WORK.values()), ("await stopped.wait()", 0)]
)
def test_the_kernel_ends_what_does_not_end_in_time(work: str, code: int) -> None:
    script = PARTY.format(work=work)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as party:
        assert party.stdout is not None
        assert party.stdout.readline() == "ready\n"
        party.send_signal(signal.SIGTERM)
        assert party.wait(60) == code
