"""Runs the command line, and sends this process SIGINT at the n-th event that Python reports to an audit hook."""

import os
import runpy
import signal
import sys

left = int(sys.argv.pop(1))
busy = False


def look(_event: str, _arguments: tuple[object, ...]) -> None:
    global left, busy  # noqa: PLW0603 - a hook has no other place
    if busy:
        return
    left -= 1
    if left == 0:
        busy = True
        os.kill(os.getpid(), signal.SIGINT)
        busy = False


# What ran before the first line of the product's is Python's own.
sys.addaudithook(look)
sys.argv[0] = "veiltab"
runpy.run_module("veiltab", run_name="__main__", alter_sys=True)
