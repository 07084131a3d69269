"""Whether a spreadsheet fits into memory, tried in a process of its own.

The parser makes room for the whole rectangle up to the last cell, and ends its process if there is none.
"""

import subprocess
import sys
from pathlib import Path

import python_calamine

from veiltab.common.process.protection import forbid_memory_dumps, limit_memory

MOST_CELLS = 20_000_000
"""Cells that a sheet may have, empty ones before the last row and column included."""

_MOST_BYTES = 3 << 30


def has_room(path: Path, sheet: str) -> bool:
    """Return whether the sheets of a file that would be read are small enough; True if they cannot be read at all.

    Args:
        sheet: the sheet's name; "" for all.
    """
    # The program is this interpreter, and no shell sees the name of the file.
    command = [sys.executable, "-P", "-m", __name__, str(path.absolute()), sheet]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - the program's own command


def _largest(path: str, sheet: str) -> int:
    """Return the number of cells of the largest sheet; 0 if the file cannot be read."""
    try:
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            sheets = [book.get_sheet_by_name(name) for name in book.sheet_names if sheet in {"", name}]
            return max(((one.total_height + 1) * (one.total_width + 1) for one in sheets), default=0)
    except (python_calamine.CalamineError, OSError, ValueError):
        return 0


if __name__ == "__main__":
    forbid_memory_dumps()
    limit_memory(_MOST_BYTES)
    sys.exit(_largest(*sys.argv[1:]) > MOST_CELLS)
