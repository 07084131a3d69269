"""Whole releases over the real services against plain pandas: python -m benchmarks.release --rows 1000000.

Two curators hold two attributes each (3 x 2 x 2 x 2 cells) of the same people, in different orders, under ids of 13
characters that the study strips, casefolds and normalises; each table has 2% more people of its own. Every party is a
process of its own, under mutual TLS. The yardstick is benchmarks.plain_pandas, one process that sees everything.

Two releases follow one alignment: one of the planner's sample size, one that samples everybody. CPU is user and system
time of all processes of a side, the researcher's client among them; memory is the most that one process had resident,
mapped files included.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.made_tables import KINDS, write_tables
from benchmarks.parties import Parties, Spent
from common.cli import note

AIM_RELEASE, AIM_ALIGNED, AIM_PEAK = 0.3, 1.0, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One release of one size beside its yardstick; CPU and wall seconds by stage, bytes by process.

    Args:
        kind: format of the tables.
        rows: common respondents n.
        sample: sampled rows m.
        ours: load (start-up and reading the tables), align, release.
        plain: load, join, release (sample, perturb, count).
        peaks: most resident memory of each party, until the release was over.
        plain_peak: that of the plain script.
    """

    kind: str
    rows: int
    sample: int
    ours: dict[str, Spent]
    plain: dict[str, Spent]
    peaks: dict[str, int]
    plain_peak: int

    @property
    def ratios(self) -> dict[str, float]:
        """Our CPU over the plain script's, by what is counted on either side."""
        ours = {stage: spent.total for stage, spent in self.ours.items()}
        plain = {stage: spent.total for stage, spent in self.plain.items()}
        loaded = plain["join"] + plain["release"]
        whole = plain["load"] + loaded
        return {
            "release / whole script": ours["release"] / whole,
            "release / script without loading": ours["release"] / loaded,
            "alignment and release / script without loading": (ours["align"] + ours["release"]) / loaded,
            "loading, alignment and release / whole script": sum(ours.values()) / whole,
        }


def measure(folder: Path, rows: int, kind: str) -> tuple[list[Run], dict[str, float]]:
    """Run both sides; return both runs, and each party's CPU share while it has nothing to do."""
    folder.mkdir(parents=True)
    note(f"{rows:,} rows, {kind}: writing the tables")
    tables = write_tables(folder, rows, kind)
    measured = []
    with Parties(folder / "parties", tables) as parties:
        note("  parties: start and load")
        load = parties.load()
        note("  parties: align")
        align = parties.align()
        for sample in (None, rows):
            note(f"  parties: release of {'the planned sample' if sample is None else 'everybody'}")
            spec, release = parties.release(sample)
            measured.append((spec, {"load": load, "align": align, "release": release}, parties.peaks()))
        note("  parties: idle")
        idle = parties.idle()
    runs = []
    for spec, ours, peaks in measured:
        note(f"  plain script, {spec.sample:,} of {spec.population:,} rows")
        plain, plain_peak = _plain(list(tables.values()), spec.sample, float(spec.mechanism.gamma), rows)
        runs.append(
            Run(
                kind=kind, rows=rows, sample=spec.sample, ours=ours, plain=plain, peaks=peaks, plain_peak=plain_peak
            )
        )
    return runs, idle


def _plain(tables: Sequence[Path], sample: int, gamma: float, rows: int) -> tuple[dict[str, Spent], int]:
    """Run the plain script; return its stages and peak."""
    command = [sys.executable, "-m", "benchmarks.plain_pandas", *map(str, tables)]
    command += ["--sample", str(sample), "--gamma", str(gamma)]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
    if result["rows"] != rows or sum(result["counts"]) != sample:
        raise AssertionError("the plain script saw another table")
    stages = {name: Spent(wall=result["wall"][name], cpu={"plain": cpu}) for name, cpu in result["cpu"].items()}
    return stages, int(result["peak"])


def show(runs: Sequence[Run], idle: dict[str, float]) -> None:
    """Print the runs of one table as tables."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    first = runs[0]
    for run in runs:
        title = f"n = {run.rows:,}, m = {run.sample:,}, {run.kind}: seconds"
        stages = Table("stage", title=title, title_justify="left")
        for heading in ("CPU", "wall", "plain CPU", "plain wall"):
            stages.add_column(heading, justify="right")
        for (stage, ours), (name, plain) in zip(run.ours.items(), run.plain.items(), strict=True):
            figures = (ours.total, ours.wall, plain.total, plain.wall)
            stages.add_row(stage if stage == name else f"{stage} (plain: {name})", *(f"{x:.2f}" for x in figures))
        console.print(stages)
        ratios = Table("CPU, ours over plain", "ratio", "aim", title_justify="left")
        aims = (AIM_RELEASE, None, AIM_ALIGNED, None)
        for (what, ratio), aim in zip(run.ratios.items(), aims, strict=True):
            ratios.add_row(what, f"{ratio:.2f}", "" if aim is None else f"at most {aim:.1f}")
        console.print(ratios)
    parties = Table("process", title=f"n = {first.rows:,}, {first.kind}: each process", title_justify="left")
    for heading in ("CPU load", "align", *(f"release {run.sample:,}" for run in runs), "peak MiB", "idle CPU"):
        parties.add_column(heading, justify="right")
    for name in first.ours["release"].cpu:
        spent = [first.ours["load"], first.ours["align"], *(run.ours["release"] for run in runs)]
        peak = f"{runs[-1].peaks[name] / 2**20:.0f}" if name in runs[-1].peaks else ""
        share = f"{idle[name]:.2%}" if name in idle else ""
        parties.add_row(name, *(f"{one.cpu.get(name, 0):.2f}" for one in spent), peak, share)
    parties.add_row("plain", *[""] * (len(runs) + 2), f"{max(run.plain_peak for run in runs) / 2**20:.0f}", "")
    console.print(parties, f"Aim: at most {AIM_PEAK // 2**20} MiB a process.\n")


@click.command()
@click.option("--rows", type=click.IntRange(min=1000), multiple=True, default=(10**6, 10**7), help="Common respondents.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, default=KINDS, help="Format of the tables.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep tables, states and logs here.")
def main(rows: tuple[int, ...], kinds: tuple[str, ...], file: Path | None, keep: Path | None) -> None:
    """Measure whole releases."""
    folder = keep or Path(tempfile.mkdtemp(prefix="veiltab-bench-"))
    figures: list[dict[str, Any]] = []
    try:
        for size in rows:
            for kind in kinds:
                runs, idle = measure(folder / f"{kind}-{size}", size, kind)
                show(runs, idle)
                figures += [asdict(run) | {"ratios": run.ratios, "idle": idle} for run in runs]
    finally:
        if keep is None:
            shutil.rmtree(folder)
    if file is not None:
        file.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
