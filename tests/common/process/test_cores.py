"""How many cores a process may use, in a container too."""

import os
from pathlib import Path

import pytest

from veiltab.common.process import cores as module
from veiltab.common.process.cores import cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of control groups of a machine with eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(module, "_OWN_GROUP", tmp_path / "own")
    (tmp_path / "cgroup/system.slice/veiltab.service").mkdir(parents=True)
    return tmp_path / "cgroup"


@pytest.mark.parametrize(
    ("quota", "count"),
    [("max 100000", 8), ("", 8), (None, 8), ("350000 100000", 4), ("320000 100000", 3), ("10000 100000", 1)],
)
@pytest.mark.parametrize("own", [None, "0::/\n", "4:memory:/x\n0::/\n", "4:memory:/x\n"])
def test_a_container_may_have_fewer_cores_than_its_machine(
    groups: Path, quota: str | None, count: int, own: str | None
) -> None:
    if quota is not None:
        (groups / "cpu.max").write_text(quota)
    if own is not None:
        (groups.parent / "own").write_text(own)
    assert cores() == count


@pytest.mark.parametrize(
    ("outer", "inner", "count"),
    [("max 100000", "200000 100000", 2), ("300000 100000", "max 100000", 3), ("300000 100000", "600000 100000", 3)],
)
def test_the_least_limit_of_the_groups_around_a_process_counts(
    groups: Path, outer: str, inner: str, count: int
) -> None:
    (groups.parent / "own").write_text("0::/system.slice/veiltab.service\n")
    (groups / "system.slice/cpu.max").write_text(outer)
    (groups / "system.slice/veiltab.service/cpu.max").write_text(inner)
    assert cores() == count


@pytest.mark.parametrize("own", ["0::/../elsewhere\n", "0::/docker/0a1b\n"])
def test_a_group_that_is_not_to_be_seen_from_here_does_not_count(groups: Path, own: str) -> None:
    (groups.parent / "own").write_text(own)
    (groups / "cpu.max").write_text("200000 100000")
    assert cores() == 2


def test_a_quota_leaves_no_more_than_the_process_is_bound_to(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5}, raising=False)
    (groups / "cpu.max").write_text("400000 100000")
    assert cores() == 1
