"""A release of everybody through a relay beside one without: python -m benchmarks.relayed --rows 1000000.

The parties and tables are those of benchmarks.release, in Parquet. Bytes are what a network of the two would carry:
those of the loopback interface, less what passes it a second time behind the relay, which counts that itself. Others
that use the interface are counted too: run it by `unshare --net sh -c "ip link set lo up; ..."`, or when it is quiet.
"""

import re
import shutil
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from benchmarks.made_tables import write_tables
from benchmarks.parties import Parties
from benchmarks.printing import console, figures_table
from veiltab.common.command.cli import note
from veiltab.play.local.processes import free_ports

STAGES = ("load", "align", "release")
MOST = {"bytes": 1.02, "wall": 1.3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What the stages take one way: of the network, wall and CPU seconds, and the relay's own memory and most pairs."""

    bytes: int
    wall: dict[str, float]
    cpu: dict[str, float]
    relay_bytes: int = 0
    pairs: int = 0


def measure(folder: Path, tables: dict[str, Path], rows: int, *, relay: bool) -> Way:
    """Run the stages one way."""
    (metrics,) = free_ports(1)
    before = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    with Parties(folder, tables, rows=rows, relay=relay) as parties:
        if relay:
            parties.measure_relay(metrics)
        spent = {}
        for stage in STAGES:
            note(f"  {stage}")
            spent[stage] = parties.release(rows)[1] if stage == "release" else getattr(parties, stage)()
        sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before
        passed, pairs = _figures_of(metrics) if relay else (0, 0)
        peak = parties.peaks().get("relay", 0)
    return Way(
        bytes=sent - passed,
        wall={stage: one.wall for stage, one in spent.items()},
        cpu={stage: one.total for stage, one in spent.items()},
        relay_bytes=peak,
        pairs=pairs,
    )


def _figures_of(port: int) -> tuple[int, int]:
    """Return how many bytes the relay passed on, and how many pairs it has."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        text = page.read().decode()
    numbers = re.findall(r"^veiltab_relay_bytes_total\{.*\} (\S+)$", text, re.MULTILINE)
    pairs = re.search(r"^veiltab_relay_pairs (\S+)$", text, re.MULTILINE)
    return sum(int(float(one)) for one in numbers), int(float(pairs[1])) if pairs else 0


@click.command()
@click.option("--rows", type=click.IntRange(min=1000), default=10**6, show_default=True, help="Respondents n.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Runs each way, in turn.")
def main(rows: int, repeats: int) -> None:
    """Measure a release through a relay beside one without, and exit with 1 if it takes more than it may."""
    folder = Path(tempfile.mkdtemp(prefix="veiltab-relayed-"))
    try:
        tables = write_tables(folder, rows, "parquet")
        ways: dict[str, list[Way]] = {"direct": [], "relayed": []}
        for run in range(repeats):
            for name, found in ways.items():
                note(f"{name}, run {run + 1}")
                found.append(measure(folder / f"{name}-{run}", tables, rows, relay=name == "relayed"))
                time.sleep(1)
    finally:
        shutil.rmtree(folder)
    table = figures_table(f"n = {rows:,}, best of {repeats}", (*ways, "relayed / direct", "at most"))
    direct, relayed = ways.values()
    stages = {f"{kind}, {stage}, s": (kind, stage) for kind in ("wall", "CPU") for stage in STAGES}
    lines = {"bytes": [min(one.bytes for one in way) for way in (direct, relayed)]}
    for name, (kind, stage) in stages.items():
        lines[name] = [min(getattr(one, kind.lower())[stage] for one in way) for way in (direct, relayed)]
    walls = [min(sum(one.wall.values()) for one in way) for way in (direct, relayed)]
    for name, (one, other) in (lines | {"wall, all, s": walls}).items():
        most = MOST.get("wall" if name == "wall, all, s" else name)
        table.add_row(name, f"{one:,.2f}", f"{other:,.2f}", f"{other / one:.3f}", f"{most}" if most else "")
    console().print(table)
    peak, pairs = max(one.relay_bytes for one in relayed), max(one.pairs for one in relayed)
    console().print(f"relay: at most {peak / 2**20:.0f} MiB, {pairs} pairs at the end")


if __name__ == "__main__":
    main()
