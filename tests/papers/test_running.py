"""What is computed once is not computed again, and who computes it changes nothing."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from veiltab.common.errors import UnavailableError
from veiltab.common.tasks import engine as tasks_engine
from veiltab.common.tasks.engine import InProcess, Result, Results
from veiltab.papers.experiment import Plain, Task
from veiltab.papers.point import Point
from veiltab.papers.progress import Lines
from veiltab.papers.running import compute
from veiltab.papers.store import Store

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
    whole = compute(points(), Store(tmp_path / "whole"), InProcess())
    CALLS.clear()
    BREAK_AT.append(3)
    with pytest.raises(KeyboardInterrupt):
        compute(points(), Store(tmp_path / "part"), InProcess())
    assert CALLS == [0, 1, 2]
    BREAK_AT.clear()
    assert compute(points(), Store(tmp_path / "part"), InProcess()) == whole
    assert CALLS == [0, 1, 2, 3, 4]
    assert compute(points(), Store(tmp_path / "part"), InProcess()) == whole
    assert CALLS == [0, 1, 2, 3, 4]


def test_a_disk_that_forgets_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "keep", lambda *_: None)
    with pytest.raises(UnavailableError, match="cannot be read back"):
        compute(points(1), Store(tmp_path), InProcess())


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


def test_what_ends_a_run_says_that_points_are_kept(tmp_path: Path) -> None:
    class Lost(InProcess):
        def perform(self, tasks: Iterable[tasks_engine.Task[Result]]) -> Results[Result]:
            yield from super().perform([*tasks][:2])
            raise UnavailableError("the cluster was lost", where="here", remedy="Start it.")

    with pytest.raises(UnavailableError, match="here: the cluster was lost") as caught:
        compute(points(), Store(tmp_path), Lost())
    assert caught.value.remedy.startswith("Start it. ")
    assert "computed points are kept" in caught.value.remedy
    assert CALLS == [0, 1]
    compute(points(), Store(tmp_path), InProcess())
    assert CALLS == [0, 1, 2, 3, 4]
