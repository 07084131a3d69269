"""`veiltab lab reproduce`: the papers' figures and numbers, computed anew."""

from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from veiltab.common.command.cli import emit, note
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError
from veiltab.common.process.cores import cores
from veiltab.common.tasks.engine import Engine
from veiltab.common.tasks.engine_options import EngineOptions, dask_engine, dask_identity_option
from veiltab.common.tasks.pool import Pool
from veiltab.papers.command import PapersCommand

if TYPE_CHECKING:
    from veiltab.papers.reproduction import Reproduction

ADULT_FILES = ("adult.data", "adult.test")


@click.command(
    cls=PapersCommand,
    epilog="Example: veiltab lab reproduce lin --out pictures --quick\n"
    "\nNAME is lin (PRAM on a secret sample), biswas (sampled local reports), hu (accuracy gains of a sample),"
    " must (multistage sampling), smith (secrecy of the sample), or all.",
)
@click.argument("name")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for pictures, tables and points.")
@click.option("--trials", type=int, help="Runs a point; by default the paper's own number.")
@click.option("--quick", is_flag=True, help="Coarser grids and fewer runs.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all random draws.")
@click.option("--jobs", type=int, help="Processes; by default one a core.")
@click.option(
    "--dask",
    metavar="SCHEDULER",
    help="HOST:PORT or tls://HOST:PORT of a Dask scheduler that computes instead. Needs the extra dask.",
)
@dask_identity_option
@click.option(
    "--adult",
    type=click.Path(path_type=Path),
    help="Folder with adult.data and adult.test of the UCI repository; what needs them is left out without it.",
)
def reproduce(
    name: str,
    out: Path,
    trials: int | None,
    quick: bool,
    seed: int,
    jobs: int | None,
    dask: str | None,
    dask_identity: Path | None,
    adult: Path | None,
) -> None:
    """Compute the figures and numbers of a paper again, and say which printed numbers agree with ours.

    The same command resumes an interrupted run: computed points are kept in the folder.
    """
    from veiltab.papers.experiment import Settings
    from veiltab.papers.registry import ALL, load, names_of
    from veiltab.papers.reproduction import POINTS, write
    from veiltab.papers.reproduction import reproduce as replay

    start = monotonic()
    names = names_of(name)
    settings = Settings(trials=trials, quick=quick, seed=seed, adult=_adult(adult))
    with closing(_engine(jobs, EngineOptions(dask=dask, dask_identity=dask_identity))) as engine:
        experiments = [load(one) for one in names]
        _check_writable(out, POINTS)
        reproduction = replay(experiments, settings, out, engine)
    note("drawing pictures")
    paths = write(reproduction, out, page=name == ALL)
    seconds = round(monotonic() - start, 1)
    data = {"name": name, "figures": [str(path) for path in paths], **reproduction.as_dict(), "seconds": seconds}
    emit(data, _text(reproduction, out))


def _adult(folder: Path | None) -> Path | None:
    for file in ADULT_FILES if folder is not None else ():
        if not (Path(str(folder)) / file).is_file():
            raise NotFoundError(
                f"there is no file {file} in this folder",
                where=str(folder),
                remedy="Give --adult a folder with both files of the UCI repository's data set Adult, or leave it out.",
            )
    return folder


def _engine(jobs: int | None, options: EngineOptions) -> Engine:
    if jobs is not None and jobs < 1:
        raise InvalidInputError(f"there must be at least 1 process, not {jobs}", where="--jobs")
    if options.dask is None:
        return Pool(jobs or cores())
    if jobs is not None:
        raise InvalidInputError("the cluster has its own workers", where="--jobs", remedy="Leave --jobs or --dask out.")
    return dask_engine(options.dask, options.dask_identity)


def _check_writable(out: Path, points: str) -> None:
    """Make the folder and check that a file can be written, before any computation; refuse one of something else."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()) and not (out / points).exists():
            remedy = "Give --out a new folder, or that of an earlier run."
            raise ConflictError("this folder is not empty, and no earlier run wrote it", where=str(out), remedy=remedy)
        probe = out / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InvalidInputError(
            f"nothing can be written here ({error.strerror})", where=str(out), remedy="Give --out another folder."
        ) from None


def _text(reproduction: "Reproduction", out: Path) -> str:
    from veiltab.papers.page import count_verdicts

    lines = []
    for name, (title, findings) in reproduction.findings.items():
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(findings.comparisons).items())
        lines.append(f"{name}: {title}")
        lines.append(f"  {len(findings.figures)} figures; of {len(findings.comparisons)} numbers: {verdicts}")
        for one in findings.comparisons:
            if not one.agrees:
                ours = "not computed" if one.ours is None else f"{one.ours:.6g}"
                lines.append(
                    f"  {one.what} ({one.source}): printed {one.printed:.6g}, ours {ours}: {one.verdict}. {one.note}"
                )
    return "\n".join([*lines, f"Written to {out}"])
