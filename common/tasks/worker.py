"""A process of the pool: performs one task at a time, until its parent kills it or is no more.

No other signal ends it: anyone who stops a party stops the party's process, which knows what is under way. Its standard
input is open as long as its parent lives, and says nothing.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection

from veiltab.common.process.imports import do_without_large_modules
from veiltab.common.process.memory import keep_freed_memory
from veiltab.common.process.protection import forbid_memory_dumps, keep_files_private
from veiltab.common.tasks.outcome import answer


def serve_tasks(connection: "Connection[bytes, bytes]") -> None:
    """Answer each task with its outcome, until there is nobody to ask."""
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(answer(connection.recv_bytes()))


def main() -> None:
    """Serve the tasks that come over the descriptor of the command line."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    forbid_memory_dumps()
    keep_files_private()
    keep_freed_memory()
    do_without_large_modules()
    connection: Connection[bytes, bytes] = Connection(int(sys.argv[1]))
    with connection:
        serve_tasks(connection)


def _end_with_the_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()
