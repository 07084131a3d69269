"""Where a curator's passes over its rows are performed: what performs their tasks, and where these leave files."""

from pathlib import Path

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.storage.stored import PlainFile, StoredFile
from veiltab.common.tasks.engine import Engine, InProcess

SMALL = 2**22
"""Rows of a table whose passes take less time here than it takes other processes to begin."""

_COPIED = 2**20
"""Bytes that are copied at once, a whole number of pages: so the copy has no gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What performs tasks, and the files of the run.

    Args:
        run: the files, until the process ends.
        engine: performs the tasks of tables that are not small.
        is_remote: whether tasks see the files of the run alone, and no others of this machine.
    """

    run: RunFiles
    engine: Engine
    is_remote: bool = False

    def engine_for(self, rows: int) -> Engine:
        """Return what performs the tasks of so many rows."""
        return InProcess() if is_small(rows) else self.engine

    def for_tasks(self, path: Path, name: str) -> StoredFile:
        """Return a file of this machine as tasks see it: if they are elsewhere, a copy of this name in the run."""
        if not self.is_remote:
            return PlainFile(path=path)
        with path.open("rb") as source, self.run.writing(name) as copy:
            while data := source.read(_COPIED):
                copy.append(np.frombuffer(data, np.uint8))
        return self.run.file(name)


def is_small(rows: int) -> bool:
    """Whether passes over so many rows are done before other processes have begun."""
    return rows < SMALL
