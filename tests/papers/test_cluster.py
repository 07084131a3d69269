from pathlib import Path

import pytest

from tests.common.tasks.cluster import cluster
from veiltab.common.tasks.engine import InProcess
from veiltab.common.tasks.engine_options import dask_engine
from veiltab.papers import smith
from veiltab.papers.experiment import Task
from veiltab.papers.point import Point
from veiltab.papers.running import compute
from veiltab.papers.store import Store

pytest.importorskip("distributed")


def points(count: int = 6) -> list[Point]:
    arguments = [{"rate": (i + 1) / 10, "epsilon": 1.0, "runs": 1000} for i in range(count)]
    tasks = [Task(key=f"rate={a['rate']}", function=smith.simulated, arguments=a) for a in arguments]
    return [Point(experiment="smith", task=task, seed=1) for task in tasks]


@pytest.mark.long
@pytest.mark.parametrize("tls", [False, True])
def test_two_workers_compute_what_one_process_computes(tmp_path: Path, *, tls: bool) -> None:
    here = compute(points(), Store(tmp_path / "here"), InProcess())
    with cluster(tmp_path, workers=2, tls=tls) as running:
        there = compute(points(), Store(tmp_path / "there"), dask_engine(running.address, running.client))
    assert there == here
    again = compute(points(), Store(tmp_path / "there"), dask_engine(running.address, running.client))
    assert again == here  # nothing is left to compute, so nobody is asked
