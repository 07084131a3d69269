import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.common.tasks.cluster import wait_for
from tests.common.tasks.samples import Death, Failure, Myself, Refusal, Sleep, Square, Turn, Unwritable, Variable
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.tasks import processes
from veiltab.common.tasks.crew import AHEAD
from veiltab.common.tasks.engine import InProcess, Task, in_order
from veiltab.common.tasks.pool import Pool

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pool() -> Iterator[Pool]:
    with closing(Pool(2)) as pool:
        yield pool


def test_the_results_are_those_of_one_process(pool: Pool) -> None:
    def tasks() -> Iterator[Square]:
        return (Square(base=base) for base in range(100))

    assert list(in_order(pool.perform(tasks()))) == list(in_order(InProcess().perform(tasks())))


def test_other_processes_perform_the_tasks_as_many_as_there_are_workers(pool: Pool, tmp_path: Path) -> None:
    tasks = [Turn(folder=tmp_path, number=number, together=2) for number in range(6)]
    workers = set(in_order(pool.perform(tasks)))
    assert len(workers) == 2
    assert os.getpid() not in workers
    assert set(in_order(pool.perform(tasks))) <= workers  # the same ones, which were idle


def test_a_slow_task_holds_up_those_far_behind_it(tmp_path: Path) -> None:
    taken = 0

    def tasks() -> Iterator[Task[int]]:
        nonlocal taken
        yield Turn(folder=tmp_path, number=0, together=2)
        for base in range(100_000):
            taken += 1
            yield Square(base=base)

    ahead = 3 * AHEAD - 1
    with closing(Pool(3)) as pool:
        results = pool.perform(tasks())
        before = [next(results)[0] for _ in range(ahead)]
        (tmp_path / "second").touch()
        slow, _ = next(results)
        results.close()
    assert (sorted(before), slow, taken) == (list(range(1, ahead + 1)), 0, ahead)


def test_a_refusal_is_raised_here_as_it_was_there(pool: Pool) -> None:
    with pytest.raises(InvalidInputError) as caught:
        list(pool.perform([Refusal()]))
    assert str(caught.value) == "--nothing: there is nothing to do. Do something."


def test_any_other_error_is_too(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(pool.perform([Failure()]))
    assert caught.value.__notes__ == ["while dividing"]


def test_an_error_that_cannot_travel_is_named_without_what_it_says(pool: Pool) -> None:
    with pytest.raises(RuntimeError, match="OddError") as caught:
        list(pool.perform([Failure(odd=True)]))
    assert "1234" not in str(caught.value)


def test_a_result_that_cannot_travel_is_an_error(pool: Pool) -> None:
    with pytest.raises(AttributeError, match="lambda"):
        list(pool.perform([Unwritable()]))


def test_an_error_ends_the_rest_and_not_what_came_far_before_it(pool: Pool) -> None:
    before = 2 * AHEAD + 1
    taken = 0

    def tasks() -> Iterator[Task[int | None]]:
        nonlocal taken
        for taken in range(before):
            yield Square(base=taken)
        yield Refusal()
        for taken in range(before, 100_000):
            yield Square(base=taken)

    results = in_order(pool.perform(tasks()))
    assert next(results) == 0
    with pytest.raises(InvalidInputError):
        list(results)
    assert taken < before + 2 * AHEAD
    assert list(pool.perform([Square(base=4)])) == [(0, 16)]


def test_a_process_that_is_killed_changes_nothing(pool: Pool, tmp_path: Path) -> None:
    tasks: list[Task[int]] = [Death(folder=tmp_path, times=1), *(Square(base=base) for base in range(20))]
    assert list(in_order(pool.perform(tasks))) == [1, *(base * base for base in range(20))]


def test_one_that_is_killed_again_and_again_is_said(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ATTEMPTS", 2)
    with pytest.raises(UnavailableError, match="2 processes ended over the same part") as caught:
        list(pool.perform([Death(folder=tmp_path, times=2)]))
    assert "fewer processes" in caught.value.remedy
    assert len(list(tmp_path.iterdir())) == 2


def test_one_that_is_killed_while_it_is_idle_is_replaced(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ATTEMPTS", 1)  # it ended over no task
    assert list(pool.perform([Square(base=2)])) == [(0, 4)]
    (idle,) = pool._idle
    idle._process.kill()
    idle._process.wait()
    assert list(pool.perform([Square(base=3)])) == [(0, 9)]
    assert idle._process.returncode == -signal.SIGKILL
    assert idle not in pool._idle


def test_closing_ends_what_is_under_way(pool: Pool, tmp_path: Path) -> None:
    tasks: list[Task[int | None]] = [Square(base=2), Sleep(folder=tmp_path)]
    results = pool.perform(tasks)
    assert next(results) == (0, 4)
    sleeper = wait_for(lambda: next((int(path.name) for path in tmp_path.iterdir()), None))
    results.close()
    assert not psutil.pid_exists(sleeper)


def test_closing_the_pool_ends_calls_of_other_threads(tmp_path: Path) -> None:
    pool = Pool(1)
    with ThreadPoolExecutor(1) as other:
        call = other.submit(lambda: list(pool.perform([Sleep(folder=tmp_path)] * 2)))
        sleeper = wait_for(lambda: next((int(path.name) for path in tmp_path.iterdir()), None))
        pool.close()
        with pytest.raises(UnavailableError, match="ended in the middle"):
            call.result()
    assert not psutil.pid_exists(sleeper)
    with pytest.raises(UnavailableError, match="ended in the middle"):
        list(pool.perform([Square(base=2)]))
    assert not pool._idle


def test_a_call_that_was_broken_off_begins_no_task() -> None:
    crew = processes.Crew[int](1, deque())
    crew.break_off()
    with pytest.raises(UnavailableError, match="ended in the middle"):
        next(crew.perform([Square(base=2)]))
    crew.end()


def test_a_signal_to_end_is_for_the_party_and_not_for_its_pool(pool: Pool, tmp_path: Path) -> None:
    tasks: list[Task[int]] = [Turn(folder=tmp_path, number=0, together=2), Square(base=1)]
    results = pool.perform(tasks)
    assert next(results) == (1, 1)
    worker = wait_for(lambda: next((int(path.name.split()[1]) for path in tmp_path.iterdir()), None))
    assert os.getsid(worker) == worker  # no terminal reaches it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(worker, number)
    (tmp_path / "second").touch()
    assert next(results) == (0, worker)


def test_a_process_has_one_thread_of_linear_algebra_and_this_one_keeps_its_own(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert [text for _, text in pool.perform([Variable(name="OMP_NUM_THREADS")])] == ["1"]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_process_that_cannot_be_started_is_said(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(UnavailableError, match="no process can be started"):
        list(pool.perform([Square(base=2)]))


def test_a_pool_has_at_least_one_process() -> None:
    with pytest.raises(InvalidInputError, match="at least 1"):
        Pool(0)


WORK = """
import sys
from pathlib import Path
from tests.common.tasks.samples import Sleep
from veiltab.common.tasks.pool import Pool

list(Pool(2).perform([Sleep(folder=Path(sys.argv[1]))] * 4))
"""


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_do_not_outlive_their_parent(tmp_path: Path, sent: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE)
    workers = wait_for(lambda: both if len(both := [int(path.name) for path in tmp_path.iterdir()]) == 2 else None)
    running = [psutil.Process(worker) for worker in workers]
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_workers_that_are_idle_for_a_while_end(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.common.tasks.pool.IDLE", 0.1)
    ((_, worker),) = pool.perform([Myself()])
    wait_for(lambda: None if psutil.pid_exists(worker) else True)
    assert list(pool.perform([Square(base=3)])) == [(0, 9)]
