"""Computes points, which are tasks; known results are not computed again.

Wherever a point is computed its result is the same: its generator is its own, and it runs on one thread of linear
algebra, whose sums would otherwise depend on the number of cores.
"""

from collections.abc import Sequence
from contextlib import closing

from veiltab.common.errors import UnavailableError
from veiltab.common.tasks.engine import Engine
from veiltab.papers.experiment import Plain
from veiltab.papers.point import Point
from veiltab.papers.progress import reporting
from veiltab.papers.store import Store

TAKE_UP = "Run the same command again: computed points are kept."


def compute(points: Sequence[Point], store: Store, engine: Engine) -> dict[str, Plain]:
    """Return the result of every point under its name; keep new results as they arrive.

    Args:
        points: what to compute, each once.
        store: where results are kept.

    Raises:
        UnavailableError: what should perform them is not there, or ended several times over a point.
    """
    on_disk = {str(point): store.load(point) for point in points}
    missing = [point for point in points if on_disk[str(point)] is None]
    try:
        with reporting(len(points), len(points) - len(missing)) as advance, closing(engine.perform(missing)) as results:
            for number, text in results:
                store.keep(missing[number], text)
                advance()
    except UnavailableError as error:
        raise UnavailableError(error.problem, where=error.where, remedy=f"{error.remedy} {TAKE_UP}") from None
    known_results = {name: result for name, result in on_disk.items() if result is not None}
    # Read even new results back from disk: a resumed run sees the same bytes as an uninterrupted one.
    return known_results | {str(point): _reload(store, point) for point in missing}


def _reload(store: Store, point: Point) -> Plain:
    result = store.load(point)
    if result is None:
        raise UnavailableError("a point that was just kept cannot be read back", where=str(point), remedy=TAKE_UP)
    return result
