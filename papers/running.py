"""Computes points: in this process, in several, or on a Dask cluster; known results are not computed again.

Wherever a point is computed its result is the same: its generator is its own, and it runs on one thread of linear
algebra, whose sums would otherwise depend on the number of cores.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection, wait

from veiltab.common.errors import UnavailableError
from veiltab.papers.experiment import Plain
from veiltab.papers.point import Point
from veiltab.papers.progress import reporting
from veiltab.papers.store import Store

Results = Generator[tuple[Point, str], None, None]
Perform = Callable[[Sequence[Point]], Results]
"""Computes points in any order, and yields each with its result as text."""

TAKE_UP = "Run the same command again: computed points are kept."

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def compute(points: Sequence[Point], store: Store, perform: Perform) -> dict[str, Plain]:
    """Return the result of every point under its name; keep new results as they arrive.

    Args:
        points: what to compute, each once.
        store: where results are kept.
        perform: what computes the others.
    """
    known = {str(point): store.load(point) for point in points}
    missing = [point for point in points if known[str(point)] is None]
    with reporting(len(points), len(points) - len(missing)) as advance, closing(perform(missing)) as results:
        for point, text in results:
            store.keep(point, text)
            advance()
    known_results = {name: result for name, result in known.items() if result is not None}
    # Read even new results back from disk: a resumed run sees the same bytes as an uninterrupted one.
    return known_results | {str(point): _reload(store, point) for point in missing}


def _reload(store: Store, point: Point) -> Plain:
    result = store.load(point)
    if result is None:
        raise UnavailableError("a point that was just kept cannot be read back", where=str(point), remedy=TAKE_UP)
    return result


def serially(points: Sequence[Point]) -> Results:
    """Compute points here, one after the other; for a notebook or a debugger."""
    for point in points:
        yield point, point.perform()


def in_processes(jobs: int) -> Perform:
    """Return a function that computes points in new processes, at least one.

    Args:
        jobs: how many processes.
    """

    def perform(points: Sequence[Point]) -> Results:
        if not points:
            return
        with _one_thread(), _workers(min(jobs, len(points))) as pool:
            waiting: dict[Future[str], Point] = {pool.submit(point.perform): point for point in points}
            for done in as_completed(waiting):
                yield waiting[done], _result(done, waiting[done])

    return perform


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes that end with the block (at once if it fails) and never outlive this process."""
    context = multiprocessing.get_context("spawn")
    end, leash = context.Pipe(duplex=False)
    with end, leash, ProcessPoolExecutor(count, context, initializer=_tie, initargs=(end,)) as pool:
        try:
            yield pool
        except BaseException:
            leash.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _tie(end: Connection) -> None:
    """Let this worker end, without a traceback, when the other end of the leash is closed or Ctrl-C is pressed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()


def _end_with(end: Connection) -> None:
    wait([end])
    os._exit(1)


def _result(done: "Future[str]", point: Point) -> str:
    try:
        return done.result()
    except BrokenProcessPool:
        raise UnavailableError(
            "a worker process ended before its work was done, perhaps for want of memory",
            where=str(point),
            remedy=f"{TAKE_UP} With fewer --jobs less memory is needed.",
        ) from None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started meanwhile have one thread of linear algebra each."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
