"""A process that ends the parties of a demonstration when the demonstration has ended, even if it was killed.

It reads their process ids from its standard input, which closes with the demonstration; run it as a file. A process
descriptor stands for one process alone, though its number serves another one later.
"""

import os
import signal
import sys
from contextlib import suppress

if __name__ == "__main__":
    parties = []
    for line in sys.stdin:
        with suppress(ProcessLookupError):  # it has ended already
            parties.append(os.pidfd_open(int(line)))
    for party in parties:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(party, signal.SIGTERM)
