"""Tables of figures on the terminal."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def console() -> Console:
    """Return what prints: as wide as the terminal, or 120 characters into a file."""
    return Console(width=None if sys.stdout.isatty() else 120)


def figures_table(first: str, others: Sequence[str]) -> Table:
    """Return an empty table: names in the first column, figures in the others."""
    table = Table(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table
