"""Dask clusters of real processes on this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from veiltab.common.tasks.dask_worker import KEY_VARIABLE
from veiltab.common.tasks.processes import ONE_THREAD
from veiltab.deploy.pki.cluster import init_cluster
from veiltab.play.local.processes import free_ports

ROOT = Path(__file__).parents[3]
WAIT = 60
_HOST = "127.0.0.1"
_NO_PAGES = ("--no-dashboard", "--dashboard-address", f"{_HOST}:0")
Value = TypeVar("Value")
Process = subprocess.Popen[bytes]


@dataclass(kw_only=True)
class Cluster:
    """A scheduler and its workers.

    Args:
        address: of the scheduler, without a protocol.
        folder: of all files.
        client: identity of the client.
    """

    address: str
    folder: Path
    client: Path | None
    scheduler: Process
    workers: list[Process] = field(default_factory=list)


@contextmanager
def cluster(
    folder: Path, *, workers: int, tls: bool = False, tasks_key: Path | None = None, restarts: bool = False
) -> Iterator[Cluster]:
    """Run a cluster.

    Args:
        folder: for its files.
        workers: how many.
        tls: whether it speaks TLS.
        tasks_key: what its workers have instead of their own key.
        restarts: whether a worker that is killed is started again.
    """
    pki = init_cluster(folder / "pki") if tls else {}
    (port,) = free_ports(1)
    address = f"{_HOST}:{port}"
    with ExitStack() as processes:

        def start(role: str, *command: str, key: Path | None = None) -> Process:
            return processes.enter_context(_running(role, *command, *_tls(pki.get(role), role), key=key))

        file = folder / "scheduler.json"
        place = ("--host", f"tls://{_HOST}" if tls else _HOST, "--port", str(port), "--scheduler-file", str(file))
        scheduler = start("scheduler", *place, *_NO_PAGES)
        wait_for(lambda: file.exists() or None)
        key = tasks_key or (pki["worker"] / "tasks.key" if tls else None)
        where = f"tls://{address}" if tls else address
        options = (where, "--nanny" if restarts else "--no-nanny", *_NO_PAGES, "--nthreads", "1")
        yield Cluster(
            address=address,
            folder=folder,
            client=pki.get("client"),
            scheduler=scheduler,
            workers=[
                start("worker", *options, "--local-directory", str(folder / str(number)), key=key)
                for number in range(workers)
            ],
        )


def _tls(folder: Path | None, role: str) -> tuple[str, ...]:
    if folder is None:
        return ()
    files = {"--tls-ca-file": "ca.pem", "--tls-cert": f"{role}.pem", "--tls-key": f"{role}.key"}
    return tuple(word for option, file in files.items() for word in (option, str(folder / file)))


@contextmanager
def _running(*command: str, key: Path | None) -> Iterator[Process]:
    environment = {**os.environ, **ONE_THREAD}
    if key is not None:
        environment[KEY_VARIABLE] = str(key)
    nowhere = subprocess.DEVNULL
    words = (sys.executable, "-m", "dask", *command)
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere)
    try:
        yield process
    finally:
        process.kill()  # a worker whose scheduler is gone would look for it first
        process.wait(WAIT)


def wait_for(value: Callable[[], Value | None]) -> Value:
    """Return a value when it is there."""
    for _ in range(100 * WAIT):
        if (now := value()) is not None:
            return now
        time.sleep(0.01)
    raise AssertionError("it did not happen within a minute")
