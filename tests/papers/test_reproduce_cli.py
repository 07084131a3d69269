import json
from pathlib import Path

import pytest

from tests.conftest import Ran
from veiltab.common.tasks.engine import InProcess
from veiltab.deploy.cli import veiltab
from veiltab.papers import reproduce_cli


@pytest.fixture
def command(ran: Ran) -> Ran:
    return lambda *words: ran(veiltab, "lab", "reproduce", *words)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compute points in this process, and remember the jobs that were asked for."""
    asked: list[int] = []

    def in_process_instead(jobs: int) -> InProcess:
        asked.append(jobs)
        return InProcess()

    monkeypatch.setattr(reproduce_cli, "Pool", in_process_instead)
    return asked


def test_a_folder_of_something_else_is_not_written_into(command: Ran, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("mine", "utf-8")
    code, _, errors = command("lin", "--quick", "--jobs", "1", "--out", str(tmp_path))
    assert code == 5
    assert "not empty, and no earlier run wrote it" in errors
    assert (tmp_path / "summary.json").read_text("utf-8") == "mine"


def test_one_object_with_series_and_comparisons(command: Ran, here: list[int], tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    code, text, errors = command("smith", "--out", str(out), "--trials", "20000", "--jobs", "3", "--json")
    assert (code, here, text.count("\n")) == (0, [3], 1)
    data = json.loads(text)
    assert list(data) == ["name", "figures", "series", "comparisons", "seconds"]
    assert data["name"] == "smith"
    assert [Path(path).name for path in data["figures"]] == ["smith-lemma-3.svg", "smith-lemma-3.png"]
    assert all(Path(path).is_file() for path in data["figures"])
    assert all(len(one["x"]) == len(one["y"]) > 0 for one in data["series"].values())
    assert {"what", "source", "printed", "ours", "tolerance", "agrees", "verdict", "note"} == set(
        data["comparisons"][0]
    )
    assert errors.splitlines()[0] == "10 points"
    assert json.loads((out / "summary.json").read_text())["series"] == data["series"]
    assert not (out / "index.html").exists()


def test_people_read_what_does_not_agree_and_a_second_run_computes_nothing(
    command: Ran, here: list[int], tmp_path: Path
) -> None:
    args = ("smith", "--out", str(tmp_path), "--trials", "20000")
    code, first, _ = command(*args)
    assert (code, "The lemma is a bound" in first) == (0, True)
    code, again, errors = command(*args)
    assert (code, again) == (0, first)
    assert "10 points, 10 of them kept from before" in errors
    assert here[0] >= 1


@pytest.mark.parametrize(
    ("args", "where", "says"),
    [
        (("dwork",), "NAME", "Known: lin"),
        (("smith", "--jobs", "0"), "--jobs", "at least 1"),
        (("smith", "--jobs", "-3"), "--jobs", "at least 1"),
        (("smith", "--trials", "0"), "--trials", "at least 1"),
        (("smith", "--dask", "nowhere"), "--dask", "HOST:PORT"),
        (("smith", "--dask", "localhost:1", "--jobs", "2"), "--jobs", "own workers"),
        (("smith", "--dask", "tls://localhost:1"), "--dask-identity", "without an identity"),
        (("smith", "--dask-identity", "client"), "--dask-identity", "Give --dask"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    command: Ran, tmp_path: Path, args: tuple[str, ...], where: str, says: str
) -> None:
    code, text, errors = command(*args, "--out", str(tmp_path / "out"), "--json")
    refusal = json.loads(text)["error"]
    assert (code, refusal["where"]) == (2, where)
    assert says in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/none/below"])
def test_a_place_that_cannot_be_written_is_refused(command: Ran, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").touch()
    code, text, errors = command("smith", "--out", str(tmp_path / out))
    assert (code, text) == (2, "")
    assert str(tmp_path / out) in errors
    assert "--out" in errors
