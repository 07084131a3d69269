import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.papers import smith
from veiltab.papers.cluster import on_dask
from veiltab.papers.experiment import Task
from veiltab.papers.lin.points import error
from veiltab.papers.point import Point
from veiltab.papers.running import compute, serially
from veiltab.papers.store import Store

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
DASK = (sys.executable, "-m", "dask")


def points(count: int = 6) -> list[Point]:
    arguments = [{"rate": (i + 1) / 10, "epsilon": 1.0, "runs": 1000} for i in range(count)]
    tasks = [Task(key=f"rate={a['rate']}", function=smith.simulated, arguments=a) for a in arguments]
    return [Point(experiment="smith", task=task, seed=1) for task in tasks]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", "localhost:x", "localhost:0", "a:70000", "a:1:2"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="HOST:PORT") as caught:
        on_dask(address)
    assert caught.value.where == "--dask"


@pytest.mark.parametrize("address", ["localhost:8786", "10.0.0.1:1", "[::1]:8786", "tcp://a.example.org:8786"])
def test_what_is_an_address_is_not(address: str) -> None:
    on_dask(address)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInputError, match="distributed") as caught:
        on_dask("localhost:8786")
    assert "'veiltab[dask]'" in caught.value.remedy


@contextmanager
def running(*command: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen([*DASK, *command], cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start a scheduler and wait until somebody listens."""
    address = f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    with running(
        "scheduler", "--host", host, "--port", port, "--no-dashboard", "--scheduler-file", str(folder / "s")
    ) as process:
        for _ in range(600):
            if (folder / "s").exists():
                break
            time.sleep(0.1)
        yield address, process


@contextmanager
def worker(address: str, folder: Path) -> Iterator[None]:
    command = ("worker", address, "--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", str(folder))
    with running(*command):
        yield


@pytest.mark.long
def test_two_workers_compute_what_one_process_computes(tmp_path: Path) -> None:
    here = compute(points(), Store(tmp_path / "here"), serially)
    with scheduler(tmp_path) as (address, _), worker(address, tmp_path / "1"), worker(address, tmp_path / "2"):
        there = compute(points(), Store(tmp_path / "there"), on_dask(address, wait=60))
    assert there == here
    again = compute(points(), Store(tmp_path / "there"), on_dask(address))
    assert again == here  # nothing is left to compute, so nobody is asked


@pytest.mark.long
def test_a_task_that_fails_there_fails_here(tmp_path: Path) -> None:
    task = Task(key="bad", function=smith.simulated, arguments={"rate": 0.5})
    bad = Point(experiment="smith", task=task, seed=1)
    with (
        scheduler(tmp_path) as (address, _),
        worker(address, tmp_path / "1"),
        pytest.raises(KeyError) as caught,
    ):
        compute([bad], Store(tmp_path / "points"), on_dask(address, wait=60))
    assert "while computing smith/bad" in caught.value.__notes__


@pytest.mark.long
def test_a_scheduler_that_does_not_answer_or_has_no_worker_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no Dask scheduler answers"):
        compute(points(), Store(tmp_path / "points"), on_dask(f"127.0.0.1:{free_port()}", wait=1))
    with scheduler(tmp_path) as (address, _), pytest.raises(UnavailableError, match="has no worker"):
        compute(points(), Store(tmp_path / "points"), on_dask(address, wait=3))


@pytest.mark.long
def test_a_scheduler_that_is_lost_is_said(tmp_path: Path) -> None:
    arguments = {"counts": [1000] * 24, "epsilon": "1", "delta": None, "sample": 1000, "runs": 20_000}
    tasks = [Task(key=str(i), function=error, arguments=arguments) for i in range(30)]
    slow = [Point(experiment="lin", task=task, seed=1) for task in tasks]
    with scheduler(tmp_path) as (address, process), worker(address, tmp_path / "1"):
        results = on_dask(address, wait=60)(slow)
        next(results)
        process.kill()
        with pytest.raises(UnavailableError, match="lost"):
            list(results)
