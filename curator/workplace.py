"""Where a curator's passes over its rows are performed: what performs their tasks, and where these leave files."""

from dataclasses import dataclass

from veiltab.common.storage.run_files import RunFiles
from veiltab.common.tasks.engine import Engine, InProcess

SMALL = 2**20
"""Rows of a table whose passes take less time here than it takes other processes to begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What performs tasks, and the files of the run.

    Args:
        run: the files, until the process ends.
        engine: performs the tasks of tables that are not small.
    """

    run: RunFiles
    engine: Engine

    def engine_for(self, rows: int) -> Engine:
        """Return what performs the tasks of so many rows."""
        return self.engine if rows >= SMALL else InProcess()
