"""The command line, `veiltab` or `python -m veiltab`.

Until a command begins, an interrupt ends the process as SIGTERM does (`veiltab.common.process.signals`): what is
imported then can lose KeyboardInterrupt. A process that ignores interrupts goes on to do so.
"""

import gc
import os
import signal

# A start makes up to 150,000 objects that live to the end: no look for garbage among them.
if gc.isenabled():
    gc.set_threshold(200_000)

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# What gRPC's C code writes by itself would stand amid lines of JSON; every failed call is told by ours.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# More threads of linear algebra would take a processor each while they wait, and their sums depend on their number.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Arrow then takes the memory that malloc keeps (veiltab.common.process.memory), and no fresh memory of its own.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

from veiltab.deploy.cli import main

if __name__ == "__main__":
    main()
