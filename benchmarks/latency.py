"""How long a small release takes at its researcher, and how many run in a second: python -m benchmarks.latency.

The parties are those of benchmarks.release, each a process of its own under mutual TLS. A release is of all four
attributes and of the planner's sample. First some run one after the other, then some are asked for at once. CPU is user
and system time of all parties and of the client. Compare it, and not seconds, where other work runs on the machine;
`benchmarks.compare` does that with another commit.
"""

import json
import statistics
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.made_tables import write_tables
from benchmarks.parties import Parties, Usage

TARGETS = ("at most 0.08 s each", "at least 40 a second on 2 cores")
BUDGET = {"start of a party": 250, "release": 70}
"""Most CPU of each step on a quiet machine, ms."""


@click.command()
@click.option("--rows", default=100_000, show_default=True, help="Common respondents.")
@click.option("--one-by-one", "single", default=20, show_default=True, help="Releases one after the other.")
@click.option("--at-once", "many", default=30, show_default=True, help="Releases at once.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object: milliseconds of CPU, and releases a second."
)
def main(rows: int, single: int, many: int, *, as_json: bool) -> None:
    """Measure small releases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = write_tables(folder, rows, "parquet")
        with Parties(folder / "parties", tables, budget=single + many + 1) as parties:
            started = parties.load()
            parties.align()
            parties.small_releases(1, at_once=False)  # every process has done all of it once
            walls, alone = parties.small_releases(single, at_once=False)
            _, together = parties.small_releases(many, at_once=True)
            idle = parties.idle()
    if as_json:
        steps = {"start": (started, 1), "release": (alone, single), "release at once": (together, many)}
        figures = {f"{step}, ms": 1000 * spent.total / times for step, (spent, times) in steps.items()}
        for step, (spent, times) in steps.items():
            figures |= {f"{step}, {party}, ms": 1000 * seconds / times for party, seconds in spent.cpu.items()}
        print(json.dumps(figures | {"releases a second": many / together.wall}))
        return
    table = Table(title=f"small releases of {rows:,} respondents", title_justify="left")
    for heading in ("", "wall", "target", "CPU", "budget", "of which"):
        table.add_column(heading)
    table.add_row("start", "", "", *_cpu(started, 1, BUDGET["start of a party"] * len(started.cpu)))
    seconds = f"median {statistics.median(walls):.3f} s, best {min(walls):.3f} s"
    table.add_row(f"{single} one by one", seconds, TARGETS[0], *_cpu(alone, single, BUDGET["release"]))
    table.add_row(
        f"{many} at once", f"{many / together.wall:.1f} a second", TARGETS[1], *_cpu(together, many, BUDGET["release"])
    )
    table.add_row("idle", "", "nothing", f"{sum(idle.values()):.3f} of a core", "", "")
    Console(width=160).print(table)


def _cpu(spent: Usage, releases: int, budget: int) -> tuple[str, str, str]:
    shares = ", ".join(f"{name} {1000 * seconds / releases:.0f}" for name, seconds in spent.cpu.items())
    return f"{1000 * spent.total / releases:.0f} ms", f"{budget} ms", shares


if __name__ == "__main__":
    main()
