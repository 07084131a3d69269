from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from veiltab.papers.experiment import Plain, Task
from veiltab.papers.point import Point
from veiltab.papers.store import Store


def nothing(_: Plain, __: np.random.Generator) -> Plain:
    return {}


def point(key: str = "a", *, seed: int = 1, runs: int = 10) -> Point:
    return Point(experiment="lin", task=Task(key=key, function=nothing, arguments={"runs": runs}), seed=seed)


def kept(folder: Path) -> Path:
    (file,) = folder.rglob("*.point")
    return file


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "points")
    assert store.load(point()) is None
    store.keep(point(), '{"x":[0.1]}')
    assert store.load(point()) == {"x": [0.1]}
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"]


def test_another_question_has_another_answer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(point(), '{"x":1}')
    assert [store.load(other) for other in (point("b"), point(seed=2), point(runs=11))] == [None] * 3
    store.keep(point(runs=11), '{"x":2}')
    assert [store.load(point()), store.load(point(runs=11))] == [{"x": 1}, {"x": 2}]


def test_another_version_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    store, old, new = Store(tmp_path), point(), point()
    object.__setattr__(old, "version", "old")
    store.keep(old, '{"x":1}')
    assert store.load(new) is None
    store.keep(new, '{"x":2}')
    assert (store.load(new), store.load(old)) == ({"x": 2}, None)
    kept(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b'"x":1', b'"x":2'),
        lambda content: content[:-10],
        lambda _: b"",
        lambda _: b"\xff\xfe",
    ],
)
def test_a_damaged_answer_is_as_good_as_none(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    store = Store(tmp_path)
    store.keep(point(), '{"x":1}')
    file = kept(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert store.load(point()) is None
    store.keep(point(), '{"x":1}')
    assert store.load(point()) == {"x": 1}
