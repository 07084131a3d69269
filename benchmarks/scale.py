"""Whole releases at 10^6 to 10^9 people against DuckDB's plain join: python -m benchmarks.scale --rows 1e6,1e7,1e8.

With --delta: both releases keep epsilon with a delta, so that the one of everybody has about as many canaries as rows.

With --dask: a curator's passes on a cluster against the same in one process (see benchmarks.scale_cluster).

The parties and tables are those of benchmarks.release, in Parquet: two curators with two attributes each, every party a
process of its own under mutual TLS. After one alignment follow a release with the planner's sample size and one of
everybody. The yardstick is DuckDB, which joins the same files on the id and counts the cells, in one process that sees
everything; once with all the memory it wants, once held to 1.5 GB.

CPU is user and system time of all processes of a party, the researcher's client apart. "Protected" is loading, the
alignment and the release of everybody at all parties together. What is left to do for the certificate of a release when
its estimate is there stands apart. Tables, states and scratch space lie in a folder that is deleted at the end; a size
for which its disk has no room is skipped.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from benchmarks.made_tables import write_tables
from benchmarks.parties import Parties, Usage
from benchmarks.printing import console, figures_table
from benchmarks.scale_cluster import measure as on_cluster
from benchmarks.watching import Peaks, Watch
from veiltab.common.command.cli import note
from veiltab.common.errors import VeiltabError
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.table.execution import SMALL
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, check_picture, logarithmic, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PROTECTED = ("load", "align", "release of everybody")
_UNPROTECTED = {"DuckDB": (), "DuckDB, 1.5 GB": ("--memory-limit", "1.5GB")}
_AIMS = {"DuckDB": "at most 1.5", "DuckDB, 1.5 GB": "at most 1"}

_ROWS = (10**6, 10**7, 10**8)
_CLUSTER_ROWS = (3 * 10**7,)

_DISK_A_ROW = 220
"""Bytes of tables, states and scratch space together, with a fifth to spare."""

_PEER_SECONDS_A_ROW = 2e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """What one size takes.

    Args:
        rows: common respondents n.
        sample: rows m* of the first release.
        delta: of both releases; None for a pure epsilon.
        canaries: of the release of everybody.
        tables: bytes of both tables.
        stages: stage -> time of each party.
        peaks: party -> most memory and disk.
        unprotected: way of DuckDB -> its CPU and wall seconds, and its peak of memory in bytes.
    """

    rows: int
    sample: int
    delta: str | None
    canaries: int
    tables: int
    stages: dict[str, Usage]
    peaks: dict[str, Peaks]
    unprotected: dict[str, dict[str, float]]

    @property
    def cpu(self) -> float:
        """CPU seconds of everything that is protected."""
        return sum(self.stages[stage].total for stage in _PROTECTED)

    @property
    def wall(self) -> float:
        """Wall seconds from the start of the parties to the counts of everybody."""
        return sum(self.stages[stage].wall for stage in _PROTECTED)

    @property
    def ratios(self) -> dict[str, float]:
        """CPU of everything that is protected, over that of each way of DuckDB."""
        return {name: self.cpu / figures["cpu"] for name, figures in self.unprotected.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return asdict(self) | {"cpu": self.cpu, "wall": self.wall, "ratios": self.ratios}


def measure(folder: Path, rows: int, delta: str | None = None) -> Scaled:
    """Run both sides in a new folder, which is empty afterwards.

    Args:
        folder: an empty one.
        rows: common respondents n.
        delta: to keep with epsilon; None for a pure one.
    """
    note(f"{rows:,} rows: writing the tables")
    tables = write_tables(folder, rows, "parquet")
    stages: dict[str, Usage] = {}
    with Parties(folder / "parties", tables, rows=rows, delta=delta) as parties, Watch(parties) as watch:
        note("  start and load")
        stages["load"] = parties.load()
        note(f"  align; loading took {_seconds(stages['load'])}")
        stages["align"] = parties.align()
        note(f"  release of m* rows; aligning took {_seconds(stages['align'])}")
        spec, stages["release of m*"] = parties.release(None)
        note(f"  its certificate; it took {_seconds(stages['release of m*'])}")
        stages["certificate of m*"] = _certified(parties, spec)
        note("  release of everybody")
        everybody, stages["release of everybody"] = parties.release(rows)
        note(f"  its certificate; it took {_seconds(stages['release of everybody'])}")
        stages["certificate"] = _certified(parties, everybody)
    if everybody.population != rows:
        raise AssertionError("the tables have other rows in common")
    shutil.rmtree(folder / "parties")
    unprotected = {}
    for name, options in _UNPROTECTED.items():
        note(f"  {name}")
        unprotected[name] = _joined(folder, list(tables.values()), rows, options)
    sizes = sum(path.stat().st_size for path in tables.values())
    for path in tables.values():
        path.unlink()
    return Scaled(
        rows=rows,
        sample=spec.sample,
        delta=delta,
        canaries=everybody.canaries,
        tables=sizes,
        stages=stages,
        peaks=watch.peaks,
        unprotected=unprotected,
    )


def _certified(parties: Parties, spec: TableSpec) -> Usage:
    """Wait for a certificate; without one, what was measured before it is kept."""
    try:
        return parties.certify(spec)
    except VeiltabError as error:
        note(f"  no certificate: {error}")
        return Usage()


def _seconds(usage: Usage) -> str:
    return f"{usage.total:.1f} s of CPU, {usage.wall:.1f} s in all"


def _joined(folder: Path, tables: Sequence[Path], rows: int, options: Sequence[str]) -> dict[str, float]:
    """Run DuckDB; return its figures."""
    scratch = folder / "scratch"
    command = [sys.executable, "-m", "benchmarks.plain_duckdb", *map(str, tables), "--scratch", str(scratch), *options]
    patience = 900 + rows * _PEER_SECONDS_A_ROW
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=patience)  # noqa: S603 - the program's own command
    shutil.rmtree(scratch, ignore_errors=True)
    figures: dict[str, float] = json.loads(done.stdout)
    if figures["rows"] != rows:
        raise AssertionError("DuckDB saw other tables")
    return figures


def show(scaled: Scaled) -> None:
    """Print the figures of one size."""
    out = console()
    tested = "" if scaled.delta is None else f", delta {scaled.delta}: {scaled.canaries:,} canaries among everybody"
    sizes = f"n = {scaled.rows:,}, m* = {scaled.sample:,}, tables {scaled.tables / 1e9:.2f} GB{tested}"
    out.print(f"\n[bold]{sizes}[/bold]")
    out.print(_stages(scaled), _memory(scaled), _ratios(scaled))


def _stages(scaled: Scaled) -> Table:
    table = figures_table("CPU seconds", (*scaled.stages, "protected"))
    parties = list(dict.fromkeys(name for usage in scaled.stages.values() for name in usage.cpu))
    for name in parties:
        seconds = {stage: usage.cpu.get(name, 0.0) for stage, usage in scaled.stages.items()}
        table.add_row(name, *(f"{one:.2f}" for one in (*seconds.values(), sum(seconds[s] for s in _PROTECTED))))
    table.add_row("together", *(f"{usage.total:.2f}" for usage in scaled.stages.values()), f"{scaled.cpu:.2f}")
    table.add_row("wall", *(f"{usage.wall:.2f}" for usage in scaled.stages.values()), f"{scaled.wall:.2f}")
    return table


def _memory(scaled: Scaled) -> Table:
    table = figures_table(
        "peak", ("anonymous MiB", "with its workers", "VmHWM MiB", "mapped MiB", "disk MB", "bytes a row")
    )
    for name, peaks in scaled.peaks.items():
        memory = (f"{size / 2**20:,.0f}" for size in (peaks.alone, peaks.anonymous, peaks.resident, peaks.mapped))
        table.add_row(name, *memory, f"{peaks.disk / 1e6:,.0f}", f"{peaks.disk / scaled.rows:.1f}")
    for name, figures in scaled.unprotected.items():
        table.add_row(name, "", "", f"{figures['peak'] / 2**20:,.0f}", "", "", "")
    return table


def _ratios(scaled: Scaled) -> Table:
    table = figures_table("unprotected", ("CPU seconds", "wall", "CPU of protected over it", "aim at 10^8"))
    for name, figures in scaled.unprotected.items():
        seconds = (f"{figures['cpu']:.2f}", f"{figures['wall']:.2f}")
        table.add_row(name, *seconds, f"{scaled.ratios[name]:.2f}", _AIMS[name])
    return table


def draw(all_scaled: Sequence[Scaled], path: Path) -> None:
    """Draw memory and CPU against n."""
    rows = [scaled.rows for scaled in all_scaled]
    parties = {
        "a curator": ("alice", INK, "o-"),
        "the server": ("cloud", "#3d7a4b", "s-"),
        "the researcher's service": ("rosa", "#8a949e", "^-"),
    }
    memory = {
        label: ([scaled.peaks[name].anonymous / 2**20 for scaled in all_scaled], colour, mark)
        for label, (name, colour, mark) in parties.items()
    }
    cpu = {"everything protected, all parties": ([scaled.cpu for scaled in all_scaled], INK, "o-")}
    for name, mark in zip(_UNPROTECTED, ("D-", "D--"), strict=True):
        peaks = [scaled.unprotected[name]["peak"] / 2**20 for scaled in all_scaled]
        memory[f"{name}: unprotected join"] = (peaks, ACCENT, mark)
        cpu[f"{name}: unprotected join"] = ([scaled.unprotected[name]["cpu"] for scaled in all_scaled], ACCENT, mark)

    def paint(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        _paint(left, "most memory of a party", "MiB, mapped files aside", rows, memory)
        _paint(right, "computation", "seconds of CPU", rows, cpu)

    write_picture(path, (9.6, 4.4), paint, option="--picture")


def _paint(
    axes: "Axes", title: str, unit: str, rows: Sequence[int], curves: dict[str, tuple[list[float], str, str]]
) -> None:
    for label, (values, colour, mark) in curves.items():
        axes.plot(rows, values, mark, color=colour, ms=6, label=label)
    axes.set_title(title, loc="left", fontweight="bold", color=INK)
    axes.set_xlabel("respondents n")
    axes.set_ylabel(unit)
    axes.grid(color=SOFT, lw=0.6)
    logarithmic(axes, "x", "y")
    axes.legend(frameon=False, fontsize=8.5)


@contextmanager
def _folder(where: Path) -> Iterator[Path]:
    """Make a folder, and delete it at the end, whatever ends this process but a kill."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="veiltab-scale-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _sizes(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Read sizes like 1e6,1e7."""
    del context, parameter
    if text is None:
        return ()
    try:
        sizes = tuple(int(float(part)) for part in text.split(","))
    except (ValueError, OverflowError):
        raise click.BadParameter("write numbers with commas between them, such as 1e6,1e7") from None
    if min(sizes) < 1000:
        raise click.BadParameter("take at least 1000 rows")
    return sizes


@click.command()
@click.option("--rows", callback=_sizes, help="Respondents n of each run; by default 1e6,1e7,1e8, and with --dask 3e7.")
@click.option("--delta", help="Keep epsilon with this delta, below 1 / rows.")
@click.option("--dask", is_flag=True, help="Compare a cluster, two of whose workers are killed, with one process.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=tempfile.gettempdir(),
    show_default=True,
    help="On whose disk everything lies; 22 GB for 10^8 rows.",
)
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw memory and CPU (.svg, .png).")
def main(  # noqa: PLR0913 - one argument an option
    rows: tuple[int, ...], *, delta: str | None, dask: bool, folder: Path, file: Path | None, picture: Path | None
) -> None:
    """Measure whole releases by their size, or a curator's passes on a cluster."""
    if dask and delta is not None:
        raise click.UsageError("Give --delta or --dask: a curator's passes on a cluster have no release.")
    if picture is not None:
        check_picture(picture)
    with _folder(folder) as own:
        sizes = [size for size in rows or (_CLUSTER_ROWS if dask else _ROWS) if _has_room(own, size)]
        if dask:
            _run_clusters(own, sizes, file)
        else:
            _run_releases(own, sizes, delta, file, picture)


def _has_room(folder: Path, rows: int) -> bool:
    """Say that there is no room for so many rows, if there is none."""
    free, needed = shutil.disk_usage(folder).free, rows * _DISK_A_ROW
    if free < needed:
        note(f"{rows:,} rows: skipped, since {folder} has {free / 1e9:.0f} GB free and they need {needed / 1e9:.0f}")
    return free >= needed


def _run_releases(
    folder: Path, sizes: Sequence[int], delta: str | None, file: Path | None, picture: Path | None
) -> None:
    done = list[Scaled]()
    for size in sizes:
        done.append(measure(folder, size, delta))
        show(done[-1])
        # A later size may fail; what was measured is kept.
        _write(file, [scaled.as_dict() for scaled in done])
        if picture is not None:
            draw(done, picture)


def _run_clusters(folder: Path, sizes: Sequence[int], file: Path | None) -> None:
    if min(sizes, default=SMALL) < SMALL:
        raise click.UsageError(f"Take at least {SMALL:,} rows: a curator's own process does fewer by itself.")
    done = []
    for size in sizes:
        own = folder / f"{size}"
        own.mkdir()
        found = on_cluster(own, size)
        shutil.rmtree(own)
        table = figures_table(f"{size:,} rows", ("CPU seconds", "wall", "SHA-256 of the columns in released order"))
        for name, passes in found.items():
            table.add_row(name, f"{passes.cpu:.1f}", f"{passes.wall:.1f}", passes.digest)
        console().print(table)
        done.append({"rows": size} | {name: asdict(passes) for name, passes in found.items()})
        _write(file, done)


def _write(file: Path | None, figures: Sequence[dict[str, Any]]) -> None:
    if file is not None:
        file.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
