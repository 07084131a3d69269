"""Draws microdata in the background, one file after the other, and keeps the last until the console ends."""

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError, VeiltabError
from veiltab.common.storage.temporary import TemporaryFolder
from veiltab.common.study.file import Study
from veiltab.common.web.document import write_page
from veiltab.researcher.client.release import Release
from veiltab.researcher.console.downloads import file_name
from veiltab.researcher.microdata.files import Chunk, provenance_path, write_rows
from veiltab.researcher.microdata.synthesis import DEFAULT_REPLICATES, Microdata
from veiltab.researcher.report.microdata_page import render
from veiltab.researcher.report.presentation import card_of, microdata_report
from veiltab.researcher.status.release_status import Status

MOST_ROWS = 10_000_000
"""More are for `veiltab researcher synthesise`."""

MOST_WEIGHTED = 1_000_000
"""Rows with replicate weights."""

MOST_REPORTED = 1_000_000
"""Rows that a report is about: they are in memory together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody wants drawn.

    Args:
        attributes: of the rows.
        rows: how many.
        replicates: whether replicate weights go with them.
        seed: None for a random one.
        study: whose page about the file is written beside it; None for no page.

    Raises:
        InvalidInputError: more than a console draws, or nothing.
    """

    status: Status
    attributes: tuple[str, ...]
    rows: int
    replicates: bool
    seed: str | None
    suffix: str
    study: Study | None = None

    def __post_init__(self) -> None:
        most = MOST_WEIGHTED if self.replicates else MOST_ROWS
        if not 1 <= self.rows <= most:
            raise InvalidInputError(
                f"a file {'with' if self.replicates else 'without'} replicate weights has 1 to {most:,} rows here,"
                f" not {self.rows:,}",
                where="rows",
                remedy="`veiltab researcher synthesise` draws larger files.",
            )
        if self.study is not None and (self.rows > MOST_REPORTED or len(self.attributes) < 2):
            raise InvalidInputError(
                f"a report was asked for of one column, or of more than {MOST_REPORTED:,} rows",
                where="report",
                remedy="Draw without it.",
            )


class _StoppedError(Exception):
    """The work was stopped."""


@dataclass(kw_only=True)
class Job:
    """One order, as far as it has come.

    Args:
        part: done so far, from 0 to 1.
        doing: what is done now, in words.
        files: name -> file, once they are all there.
        seed: of the rows, once it is known.
        failure: why it ended without files.
    """

    order: Order
    part: float = 0.0
    doing: str = "The tables are read."
    files: dict[str, Path] = field(default_factory=dict)
    seed: str = ""
    failure: VeiltabError | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody stopped it."""
        return self.stop.is_set()

    @property
    def is_done(self) -> bool:
        """Whether nothing more comes of it."""
        return self.done.is_set()


class Writer:
    """Writes microdata, one order at a time; the files of an order stay until the next one."""

    def __init__(self) -> None:
        self._folder = TemporaryFolder()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.job: Job | None = None

    def start(self, release: Release, order: Order) -> Job:
        """Begin an order.

        Raises:
            ConflictError: another one is under way.
        """
        with self._lock:
            if self.job is not None and not self.job.is_done:
                raise ConflictError(
                    "microdata are being drawn already", where="microdata", remedy="Wait for them, or stop them."
                )
            self.job = job = Job(order=order)
            folder = self._folder.path / "files"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            self._thread = threading.Thread(target=self._work, args=(release, job, folder), daemon=True)
            self._thread.start()
        return job

    def stop(self) -> None:
        """Stop what is under way, at its next part."""
        if self.job is not None:
            self.job.stop.set()

    def file(self, name: str) -> Path:
        """Return a file that was written.

        Raises:
            NotFoundError: there is none of this name.
        """
        files = {} if self.job is None else self.job.files
        if name not in files:
            raise NotFoundError("there is no such file any more", where="microdata", remedy="Draw it again.")
        return files[name]

    def close(self) -> None:
        """Stop, and delete the files."""
        self.stop()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._folder.delete()

    def _work(self, release: Release, job: Job, folder: Path) -> None:
        try:
            job.files = _written(release, job, folder)
        except _StoppedError:
            shutil.rmtree(folder, ignore_errors=True)
        except VeiltabError as error:
            job.failure = error
        except Exception as error:  # noqa: BLE001 - a page says it, and no thread prints values
            job.failure = VeiltabError(f"the drawing failed ({type(error).__name__})", where="microdata")
        finally:
            job.done.set()


def _written(release: Release, job: Job, folder: Path) -> dict[str, Path]:
    order = job.order
    _move(job, 0.02, "A model is fitted.")
    microdata = release.synthesise(
        rows=order.rows,
        replicates=DEFAULT_REPLICATES if order.replicates else 0,
        seed=order.seed,
        attributes=order.attributes,
        progress=lambda done, whole: _move(
            job, 0.5 * done / whole, f"The release was played again: {done} of {whole}."
        ),
    )
    weights = microdata.weights(
        lambda done, whole: _move(job, 0.5 + 0.2 * done / whole, f"Weights are made: {done} of {whole}.")
    )
    job.seed = microdata.provenance.seed
    path = folder / file_name(order.status, "microdata", suffix=order.suffix)
    facts = microdata.provenance.facts(microdata.domain)
    write_rows(path, microdata.domain, _counted(microdata, job), facts, weights)
    files = {path.name: path}
    if order.suffix == ".csv":
        files[provenance_path(path).name] = provenance_path(path)
    if order.study is not None:
        _move(job, 0.95, "The report is written.")
        path = folder / file_name(order.status, "microdata-report", suffix=".html")
        write_page(render(microdata_report(order.study, microdata, card_of(order.status))), path)
        files[path.name] = path
    _move(job, 1.0, "Ready.")
    return files


def _counted(microdata: Microdata, job: Job) -> Iterator[Chunk]:
    """Yield the rows, and say how far they have come."""
    done = 0
    for rows, numbers in microdata.file_chunks():
        _move(job, 0.7 + 0.2 * done / microdata.provenance.rows, "Rows are drawn.")
        yield rows, numbers
        done += len(rows)


def _move(job: Job, part: float, doing: str) -> None:
    """Say how far a job has come, unless it was stopped."""
    if job.is_stopped:
        raise _StoppedError
    job.part, job.doing = part, doing
