"""The same points on a Dask cluster; the package `distributed` is an optional extra."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.extras import importing
from veiltab.papers.point import Point
from veiltab.papers.running import TAKE_UP, Perform, Results

WAIT = 20
"""Seconds to wait for the scheduler, and then for a first worker."""

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


def on_dask(address: str, *, wait: float = WAIT) -> Perform:
    """Return a function that computes points on the workers of a Dask scheduler.

    Args:
        address: HOST:PORT of the scheduler. Every worker needs the same veiltab, numpy and scipy, and one thread of
            linear algebra, which `dask worker` sets by default.
        wait: seconds to wait for the scheduler, and then for a first worker.

    Raises:
        InvalidInputError: not an address, or the package `distributed` is not installed.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match.group(1)) < 2**16:
        raise InvalidInputError(f"{address!r} is not HOST:PORT", where="--dask", remedy="Such as localhost:8786.")
    _distributed()

    def perform(points: Sequence[Point]) -> Results:
        if not points:
            return
        with _client(address, wait) as client:
            waiting = {client.submit(point.perform, pure=False): point for point in points}
            for done in _distributed().as_completed(waiting):
                yield waiting[done], _result(done, address)

    return perform


def _distributed() -> Any:  # noqa: ANN401 - an optional package
    with importing("dask", "a Dask cluster", where="--dask"):
        import distributed  # noqa: PLC0415 - an optional package
    return distributed


@contextmanager
def _client(address: str, wait: float) -> Iterator[Any]:
    """Connect, and check that the scheduler has a worker."""
    try:
        client = _distributed().Client(address, timeout=wait)
    except (OSError, TimeoutError):
        raise UnavailableError(
            "no Dask scheduler answers", where=address, remedy="Start one with: dask scheduler --port PORT"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=wait)
        except TimeoutError:
            raise UnavailableError(
                "the Dask scheduler has no worker", where=address, remedy=f"Start one with: dask worker {address}"
            ) from None
        yield client


def _result(done: Any, address: str) -> str:  # noqa: ANN401 - a future of an optional package
    if done.status in {"cancelled", "lost"}:
        raise UnavailableError("the Dask scheduler was lost", where=address, remedy=TAKE_UP)
    return str(done.result())
