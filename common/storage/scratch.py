"""Scratch space on disk for what a computation needs a while and memory cannot hold: it ends with its process.

The file has no name, so nothing finds it, and neither a kill nor a crash leaves it behind. All of it is encrypted under
a key that only this process's memory holds: what the disk keeps of it afterwards says nothing. What other processes
read lies in a run's files; see veiltab.common.storage.run_files.
"""

import os
import secrets
import tempfile
import weakref
from pathlib import Path

from veiltab.common.storage.files import named_in_errors
from veiltab.common.storage.sealed import SealedFile


class Scratch(SealedFile):
    """A file without a name, under a key of its own.

    Args:
        folder: on whose disk it lies; None for the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        folder = Path(tempfile.gettempdir()) if folder is None else folder
        with named_in_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".scratch-", dir=folder)
            Path(name).unlink()
        # Gives the space back when nothing refers to this object any more.
        weakref.finalize(self, os.close, descriptor)
        super().__init__(descriptor, folder, key=secrets.token_bytes(32))
