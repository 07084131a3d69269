"""What is computed once is not computed again, and who computes it changes nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from veiltab.common.errors import UnavailableError
from veiltab.papers import running, smith
from veiltab.papers.experiment import Plain, Task
from veiltab.papers.point import Point
from veiltab.papers.progress import Lines
from veiltab.papers.running import compute, in_processes, serially
from veiltab.papers.store import Store

ROOT = Path(__file__).parents[2]
CALLS: list[int] = []
BREAK_AT: list[int] = []


def counted(arguments: Plain, generator: np.random.Generator) -> Plain:
    if arguments["i"] in BREAK_AT:
        raise KeyboardInterrupt
    CALLS.append(arguments["i"])
    return {"i": arguments["i"], "drawn": float(generator.random())}


def points(count: int = 5) -> list[Point]:
    tasks = [Task(key=f"i={i}", function=counted, arguments={"i": i}) for i in range(count)]
    return [Point(experiment="lin", task=task, seed=1) for task in tasks]


@pytest.fixture(autouse=True)
def fresh() -> None:
    CALLS.clear()
    BREAK_AT.clear()


def test_an_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    whole = compute(points(), Store(tmp_path / "whole"), serially)
    CALLS.clear()
    BREAK_AT.append(3)
    with pytest.raises(KeyboardInterrupt):
        compute(points(), Store(tmp_path / "part"), serially)
    assert CALLS == [0, 1, 2]
    BREAK_AT.clear()
    assert compute(points(), Store(tmp_path / "part"), serially) == whole
    assert CALLS == [0, 1, 2, 3, 4]
    assert compute(points(), Store(tmp_path / "part"), serially) == whole
    assert CALLS == [0, 1, 2, 3, 4]


def test_a_damaged_point_alone_is_computed_anew(tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = compute(points(), store, serially)
    CALLS.clear()
    victim = store._path(points()[2])
    victim.write_bytes(victim.read_bytes()[:-4])
    assert compute(points(), store, serially) == whole
    assert CALLS == [2]


def test_a_result_is_named_by_experiment_and_key(tmp_path: Path) -> None:
    assert list(compute(points(2), Store(tmp_path), serially)) == ["lin/i=0", "lin/i=1"]
    assert compute([], Store(tmp_path), serially) == {}


def test_a_disk_that_forgets_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "keep", lambda *_: None)
    with pytest.raises(UnavailableError, match="cannot be read back"):
        compute(points(1), Store(tmp_path), serially)


def test_progress_is_said_at_the_start_now_and_then_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0.0, 1.0, 6.0, 8.0, 90.0])
    lines = Lines(6, 2, lambda: next(seconds))
    for _ in range(4):
        lines()
    assert capsys.readouterr().err.splitlines() == [
        "6 points, 2 of them kept from before",
        "4 of 6 points, about 0:06 left",
        "6 of 6 points, done",
    ]


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with running._one_thread():
        assert (os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]) == ("1", "1")
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def simulated(count: int = 6, runs: int = 1000) -> list[Point]:
    """Points that a new process can find: the functions of this file it cannot."""
    rates = [(i + 1) / 10 for i in range(count)]
    arguments = [{"rate": rate, "epsilon": 1.0, "runs": runs} for rate in rates]
    tasks = [Task(key=f"rate={a['rate']}", function=smith.simulated, arguments=a) for a in arguments]
    return [Point(experiment="smith", task=task, seed=1) for task in tasks]


@pytest.mark.long
def test_processes_compute_what_one_computes(tmp_path: Path) -> None:
    here = compute(simulated(), Store(tmp_path / "here"), serially)
    for jobs in (1, 2):
        assert compute(simulated(), Store(tmp_path / str(jobs)), in_processes(jobs)) == here


@pytest.mark.long
def test_a_refusal_crosses_processes_and_the_rest_is_kept(tmp_path: Path) -> None:
    bad = Point(experiment="smith", task=Task(key="bad", function=smith.simulated, arguments={"rate": 0.5}), seed=1)
    with pytest.raises(KeyError) as caught:
        compute([*simulated(3), bad], Store(tmp_path), in_processes(1))
    assert caught.value.__notes__ == ["while computing smith/bad"]
    store = Store(tmp_path)
    assert all(store.load(point) is not None for point in simulated(3))


SLOW = """
import os, sys, time
from collections.abc import Callable
from pathlib import Path
from veiltab.papers.experiment import Task
from veiltab.papers.point import Point
from veiltab.papers.running import compute, in_processes
from veiltab.papers.store import Store

def slow(arguments, generator):
    Path(arguments["folder"], str(os.getpid())).touch()
    time.sleep(120)

if __name__ == "__main__":
    tasks = [Task(key=str(i), function=slow, arguments={"folder": sys.argv[1]}) for i in range(4)]
    compute([Point(experiment="lin", task=task, seed=1) for task in tasks], Store(Path(sys.argv[2])), in_processes(2))
"""


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_do_not_outlive_the_command(tmp_path: Path, sent: signal.Signals) -> None:
    script, started = tmp_path / "slow.py", tmp_path / "started"
    script.write_text(SLOW)
    started.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), str(started), str(tmp_path / "points")], cwd=ROOT, stderr=subprocess.PIPE
    )
    wait_for(lambda: len(list(started.iterdir())) == 2)
    workers = [psutil.Process(int(path.name)) for path in started.iterdir()]
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not psutil.wait_procs(workers, timeout=60)[1]


@pytest.mark.long
def test_a_killed_worker_is_said(tmp_path: Path) -> None:
    script, started = tmp_path / "slow.py", tmp_path / "started"
    script.write_text(SLOW)
    started.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), str(started), str(tmp_path / "points")],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: len(list(started.iterdir())) == 2)
    psutil.Process(int(next(started.iterdir()).name)).kill()
    _, errors = process.communicate(timeout=60)
    assert "UnavailableError" in errors
    assert "computed points are kept" in errors


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within a minute")
