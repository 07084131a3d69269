"""Where a curator's passes over its rows are performed: what performs their tasks, and where these leave files."""

from dataclasses import dataclass

from veiltab.common.storage.run_files import RunFiles
from veiltab.common.tasks.engine import Engine, InProcess

SMALL = 2**22
"""Rows of a table whose passes take less time here than it takes other processes to begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
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
        return self.engine if rows >= SMALL else InProcess()
