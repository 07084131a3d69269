"""How long a small release takes at its researcher, and how many run in a second: python -m benchmarks.latency.

The parties are those of benchmarks.release, each a process of its own under mutual TLS. A release is of all four
attributes and of the planner's sample. First some run one after the other, then some are asked for at once. CPU is user
and system time of all parties and of the client. Compare it, and not seconds, where other work runs on the machine.
"""

import statistics
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.made_tables import write_tables
from benchmarks.parties import Parties, Usage

TARGETS = ("at most 0.08 s each", "at least 40 a second on 2 cores")


@click.command()
@click.option("--rows", default=100_000, show_default=True, help="Common respondents.")
@click.option("--one-by-one", "single", default=20, show_default=True, help="Releases one after the other.")
@click.option("--at-once", "many", default=30, show_default=True, help="Releases at once.")
def main(rows: int, single: int, many: int) -> None:
    """Measure small releases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = write_tables(folder, rows, "parquet")
        with Parties(folder / "parties", tables, budget=single + many + 1) as parties:
            parties.load()
            parties.align()
            parties.small_releases(1, at_once=False)  # every process has done all of it once
            walls, alone = parties.small_releases(single, at_once=False)
            _, together = parties.small_releases(many, at_once=True)
            idle = parties.idle()
    table = Table(title=f"small releases of {rows:,} respondents", title_justify="left")
    for heading in ("", "wall", "target", "CPU a release", "of which"):
        table.add_column(heading)
    seconds = f"median {statistics.median(walls):.3f} s, best {min(walls):.3f} s"
    table.add_row(f"{single} one by one", seconds, TARGETS[0], *_cpu(alone, single))
    table.add_row(f"{many} at once", f"{many / together.wall:.1f} a second", TARGETS[1], *_cpu(together, many))
    table.add_row("idle", "", "nothing", f"{sum(idle.values()):.3f} of a core", "")
    Console(width=160).print(table)


def _cpu(spent: Usage, releases: int) -> tuple[str, str]:
    shares = ", ".join(f"{name} {1000 * seconds / releases:.0f}" for name, seconds in spent.cpu.items())
    return f"{1000 * spent.total / releases:.0f} ms", shares


if __name__ == "__main__":
    main()
