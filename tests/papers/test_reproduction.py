"""From experiments to files: what is written, and that two runs write the same."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.tasks.engine import InProcess
from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings, Task
from veiltab.papers.reproduction import Reproduction, reproduce, write


def walk(arguments: Plain, generator: np.random.Generator) -> Plain:
    return {"y": np.cumsum(generator.normal(size=arguments["steps"]))}


class Walk:
    title = "Somebody: A walk"

    def __init__(self, name: str = "walk", *, keys: tuple[str, ...] = ("a", "b"), figure: str = "walk-1") -> None:
        self.name, self._keys, self._figure = name, keys, figure

    def tasks(self, settings: Settings) -> Sequence[Task]:
        return [Task(key=key, function=walk, arguments={"steps": settings.runs(20, 5)}) for key in self._keys]

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        del settings
        curves = [Curve(label=key, x=tuple(range(len(one["y"]))), y=tuple(one["y"])) for key, one in results.items()]
        panel = Panel(title="p", x_label="steps", y_label="place", curves=tuple(curves))
        figure = Figure(name=self._figure, title="Figure 1", panels=(panel,), caption="c")
        comparison = Comparison(what="start", source="page 1", printed=0, ours=curves[0].y[0], tolerance=10)
        return Findings(figures=(figure,), comparisons=(comparison,))


def run(out: Path, *, seed: int = 1, quick: bool = True) -> Reproduction:
    return reproduce([Walk()], Settings(seed=seed, quick=quick), out, InProcess())


def test_everything_is_written(tmp_path: Path) -> None:
    paths = write(run(tmp_path), tmp_path, page=True)
    assert [path.name for path in paths] == ["walk-1.svg", "walk-1.png", "index.html"]
    assert all(path.stat().st_size > 100 for path in paths)
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert list(summary) == ["settings", "titles", "series", "comparisons"]
    assert summary["settings"] == {"trials": None, "quick": True, "seed": 1, "adult": False}
    assert list(summary["series"]) == ["walk-1/p/a", "walk-1/p/b"]
    assert (tmp_path / "walk-1.csv").read_text("utf-8").count("\n") == 1 + 2 * 5


def test_two_runs_write_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("1", 1), ("2", 1), ("3", 2)):
        out = tmp_path / name
        write(run(out, seed=seed), out, page=True)
    names = ["walk-1.svg", "walk-1.png", "walk-1.csv", "summary.json", "index.html"]
    contents = [[(tmp_path / folder / name).read_bytes() for name in names] for folder in ("1", "2", "3")]
    assert contents[0] == contents[1]
    assert all(a != b for a, b in zip(contents[0], contents[2], strict=True))


def test_names_that_meet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="two tasks") as caught:
        reproduce([Walk(keys=("a", "a"))], Settings(), tmp_path, InProcess())
    assert caught.value.where == "walk/a"
    with pytest.raises(InvalidInputError, match="two figures"):
        reproduce([Walk("one"), Walk("two")], Settings(quick=True), tmp_path, InProcess())
    found = reproduce([Walk("one"), Walk("two", figure="walk-2")], Settings(quick=True), tmp_path, InProcess())
    assert list(found.findings) == ["one", "two"]
