"""Whole releases over the real services against plain pandas: python -m benchmarks.release --rows 1000000.

Two curators hold two attributes each (3 x 2 x 2 x 2 cells) of the same people, in different orders, under ids of 13
characters that the study strips, casefolds and normalises; each table has 2% more people of its own. Every party is a
process of its own, under mutual TLS. The yardstick is benchmarks.plain_pandas, one process that sees everything.

Two releases follow one alignment: one with the planner's sample size, one that samples everybody. CPU is user and
system time of all processes of a side, the researcher's client included in releases; loading includes the start of the
interpreters, and certificates, which plain pandas does not make, stand apart. Memory is one process's peak resident
size, mapped files included.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks.made_tables import KINDS, write_tables
from benchmarks.parties import Parties, Usage
from benchmarks.printing import console, figures_table
from veiltab.common.command.cli import note
from veiltab.common.release.table_spec import TableSpec

RATIOS = (
    ("release / whole script", "at most 0.3"),
    ("release / script without loading", ""),
    ("alignment + release / script without loading", "at most 1.0"),
    ("loading + alignment + release / whole script", ""),
)
"""The ratios, ours over plain, and their targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both sides on one pair of tables.

    Args:
        kind: format of the tables.
        rows: common respondents n.
        samples: sampled rows m of each release.
        ours: load, align, release 0, release 1.
        plain: load, join, release 0, release 1 (sample, perturb, count); medians over some runs.
        peaks: most resident memory of each party, bytes; "plain" is the script's.
        idle: CPU share of each idle party.
    """

    kind: str
    rows: int
    samples: tuple[int, ...]
    ours: dict[str, Usage]
    plain: dict[str, Usage]
    peaks: dict[str, int]
    idle: dict[str, float]

    def ratios(self, number: int) -> tuple[float, ...]:
        """Return the CPU ratios of RATIOS for one of the releases."""
        load, align, release = (self.ours[stage].total for stage in ("load", "align", f"release {number}"))
        read, *others = (self.plain[stage].total for stage in ("load", "join", f"release {number}"))
        loaded = sum(others)
        whole = read + loaded
        return release / whole, release / loaded, (align + release) / loaded, (load + align + release) / whole

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        names = [name for name, _ in RATIOS]
        return asdict(self) | {"ratios": [dict(zip(names, self.ratios(i), strict=True)) for i in range(2)]}


def measure(folder: Path, rows: int, kind: str, repeats: int) -> Comparison:
    """Run both sides; the plain script several times, because the time of its join varies."""
    folder.mkdir(parents=True)
    note(f"{rows:,} rows, {kind}: writing the tables")
    tables = write_tables(folder, rows, kind)
    ours, specs = {}, []
    with Parties(folder / "parties", tables) as parties:
        note("  parties: start and load")
        ours["load"] = parties.load()
        note("  parties: align")
        ours["align"] = parties.align()
        for number, sample in enumerate((None, rows)):
            note(f"  parties: release of {'the planned sample' if sample is None else 'everybody'}")
            spec, ours[f"release {number}"] = parties.release(sample)
            specs.append(spec)
            # Else the researcher's service would make it beside the next release.
            note(f"  parties: certificate, {parties.certify(spec).total:.2f} s of CPU")
        note("  parties: idle")
        idle, peaks = parties.idle(), parties.peaks()
    note(f"  plain script, {repeats} times")
    plain, peaks["plain"] = _plain(list(tables.values()), specs, repeats)
    samples = tuple(spec.sample for spec in specs)
    return Comparison(kind=kind, rows=rows, samples=samples, ours=ours, plain=plain, peaks=peaks, idle=idle)


def _plain(tables: Sequence[Path], specs: Sequence[TableSpec], repeats: int) -> tuple[dict[str, Usage], int]:
    """Run the plain script; return the medians of its stages, and its peak."""
    command = [sys.executable, "-m", "benchmarks.plain_pandas", *map(str, tables)]
    for spec in specs:
        command += ["--release", str(spec.sample), str(float(spec.mechanism.gamma))]
    runs = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603 - the program's own command
        for _ in range(repeats)
    ]
    if runs[0]["rows"] != specs[0].population or [sum(counts) for counts in runs[0]["counts"]] != [
        spec.sample for spec in specs
    ]:
        raise AssertionError("the plain script saw another table")
    stages = {}
    for stage in runs[0]["cpu"]:
        wall, cpu = (statistics.median(run[clock][stage] for run in runs) for clock in ("wall", "cpu"))
        stages[stage] = Usage(wall=wall, cpu={"plain": cpu})
    return stages, max(run["peak"] for run in runs)


def show(comparison: Comparison) -> None:
    """Print a comparison."""
    out = console()
    out.print(f"\n[bold]n = {comparison.rows:,} common respondents, tables in {comparison.kind}[/bold]")
    out.print(_stages(comparison), _ratios(comparison), _processes(comparison))


def _stages(comparison: Comparison) -> Table:
    names = ("load", "align (plain: join)", *(f"release of {m:,} rows" for m in comparison.samples))
    table = figures_table("seconds", ("CPU", "wall", "plain CPU", "plain wall"))
    for name, ours, plain in zip(names, comparison.ours.values(), comparison.plain.values(), strict=True):
        table.add_row(name, *(f"{figure:.2f}" for figure in (ours.total, ours.wall, plain.total, plain.wall)))
    return table


def _ratios(comparison: Comparison) -> Table:
    table = figures_table("CPU, ours over plain", (*(f"m = {m:,}" for m in comparison.samples), "aim"))
    columns = [comparison.ratios(number) for number in range(len(comparison.samples))]
    for (name, aim), *ratios in zip(RATIOS, *columns, strict=True):
        table.add_row(name, *(f"{ratio:.2f}" for ratio in ratios), aim)
    return table


def _processes(comparison: Comparison) -> Table:
    table = figures_table("CPU seconds of a process", (*comparison.ours, "idle", "peak MiB (aim: at most 1024)"))
    for name in dict.fromkeys((*comparison.ours["release 0"].cpu, *comparison.peaks)):
        stages = comparison.plain if name == "plain" else comparison.ours
        seconds = [f"{spent.cpu[name]:.2f}" if name in spent.cpu else "" for spent in stages.values()]
        share = f"{comparison.idle[name]:.1%}" if name in comparison.idle else ""
        peak = f"{comparison.peaks[name] / 2**20:.0f}" if name in comparison.peaks else ""
        table.add_row(name, *seconds, share, peak)
    return table


@click.command()
@click.option("--rows", type=click.IntRange(min=1000), multiple=True, default=(10**6, 10**7), help="Respondents n.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, default=KINDS, help="Format of the tables.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of the plain script.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep tables, states and logs here.")
def main(rows: tuple[int, ...], kinds: tuple[str, ...], repeats: int, file: Path | None, keep: Path | None) -> None:
    """Measure whole releases."""
    folder = keep or Path(tempfile.mkdtemp(prefix="veiltab-bench-"))
    figures: list[dict[str, Any]] = []
    try:
        for size in rows:
            for kind in kinds:
                comparison = measure(folder / f"{kind}-{size}", size, kind, repeats)
                show(comparison)
                figures.append(comparison.as_dict())
    finally:
        if keep is None:
            shutil.rmtree(folder)
    if file is not None:
        file.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
