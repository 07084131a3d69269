import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import refuses
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.papers import point as points
from veiltab.papers import version
from veiltab.papers.experiment import Plain, Task
from veiltab.papers.point import Point, canonical


def draw(arguments: Plain, generator: np.random.Generator) -> Plain:
    return {"drawn": generator.integers(2**62, size=2), "kind": type(arguments["pair"]).__name__}


def point(key: str = "a", *, experiment: str = "lin", seed: int = 1, **arguments: Any) -> Point:  # noqa: ANN401 - of any kind
    task = Task(key=key, function=draw, arguments={"pair": (1, 2), **arguments})
    return Point(experiment=experiment, task=task, seed=seed)


def test_a_result_is_the_same_text_every_time_and_arguments_are_what_text_makes_of_them() -> None:
    first = point().perform()
    assert first == point().perform()
    assert json.loads(first)["kind"] == "list"


def test_seed_experiment_and_key_decide_the_stream_and_nothing_else() -> None:
    others = [point(seed=2), point("b"), point(experiment="hu"), point(seed=-1)]
    drawn = [json.loads(one.perform())["drawn"] for one in (point(), *others)]
    assert len({tuple(numbers) for numbers in drawn}) == len(drawn)
    assert json.loads(point(more=3).perform())["drawn"] == drawn[0]


def test_everything_that_a_result_depends_on_is_in_its_identity() -> None:
    others = [point(), point(seed=2), point("b"), point(experiment="hu"), point(more=3)]
    assert len({one.identity for one in others}) == len(others)
    assert point().version in point().identity


def test_a_function_that_no_other_process_finds_is_refused() -> None:
    def inner(_: Plain, __: np.random.Generator) -> Plain:
        return {}

    functions: list[Callable[[Plain, np.random.Generator], Plain]] = [inner, lambda _, __: {}]
    for function in functions:
        with refuses(InvalidInputError, where="lin/a"):
            Point(experiment="lin", task=Task(key="a", function=function, arguments={}), seed=1)


def test_a_worker_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = point()
    monkeypatch.setattr(points, "code_version", lambda _: "other")
    with refuses(ConflictError, where="lin/a"):
        asked.perform()


def test_floats_keep_every_digit_and_arrays_become_lists() -> None:
    data = {"x": np.float64(0.1) + 0.2, "y": np.arange(2), "z": [1e-300, float("inf")]}
    assert canonical(data) == '{"x":0.30000000000000004,"y":[0,1],"z":[1e-300,Infinity]}'
    with pytest.raises(TypeError, match="plain data"):
        canonical({"x": Path()})


def test_a_version_follows_imports_and_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "veiltab" / "common"
    folder.mkdir(parents=True)
    deep, used = folder / "deep.py", folder / "used.py"
    used.write_text("def f():\n    from veiltab.common import deep\n")
    deep.write_text("x = 1\n")
    start = tmp_path / "start.py"
    start.write_text("from veiltab.common.used import f\nimport os\n")
    monkeypatch.setattr(version, "_ROOT", tmp_path)
    monkeypatch.setitem(sys.modules, "start", type("Module", (), {"__file__": str(start)})())

    def now() -> str:
        version.code_version.cache_clear()
        return version.code_version("start")

    first = now()
    assert first == now()
    deep.write_text("x = 2\n")
    second = now()
    (folder / "aside.py").write_text("x = 1\n")
    assert now() == second != first
    monkeypatch.setattr(version, "version", lambda _: "0")
    assert now() != second
    version.code_version.cache_clear()
