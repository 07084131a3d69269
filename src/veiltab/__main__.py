"""The command line, `veiltab` or `python -m veiltab`.

Until a command begins, an interrupt ends the process as SIGTERM does (`veiltab.common.process.signals`): what is
imported then can lose KeyboardInterrupt. A process that ignores interrupts goes on to do so.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from veiltab.deploy.cli import main

if __name__ == "__main__":
    main()
