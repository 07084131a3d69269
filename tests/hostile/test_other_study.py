"""A result is read with the study file that it was made under, or not at all: real processes, and files that differ."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Answer, World, made_world

RIGHT, SWAPPED = b"['low', 'middle', 'high']", b"['high', 'middle', 'low']"
REFUSAL = "has another study file; the one here lists the categories high, middle, low of income in another order"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A study whose parties all run, and one finished release of it, named first."""
    world = made_world(tmp_path_factory.mktemp("world") / "study")
    with world.local:
        world.start(ALICE, BOB, CLOUD, ROSA)
        assert world.ask(("region", "income"), "--label", "first", "--wait").code == 0
        yield world


@pytest.fixture
def swapped(world: World, tmp_path: Path) -> Path:
    """Return a study file that lists the categories of income in another order."""
    text = world.local.study_path.read_bytes()
    assert text.count(RIGHT) == 1
    path = tmp_path / "swapped.toml"
    path.write_bytes(text.replace(RIGHT, SWAPPED))
    return path


def read(world: World, study: Path, *options: str, verb: str = "estimate", as_json: bool = True) -> Answer:
    """Run a command that reads the release."""
    identity = ("--name", "rosa", "--identity", world.local.identity_folder(*ROSA))
    return world.command("researcher", verb, study, *identity, "--release", "first", *options, as_json=as_json)


@pytest.mark.long
def test_labels_of_another_order_are_refused_by_name(world: World, swapped: Path, tmp_path: Path) -> None:
    estimate = read(world, swapped)
    assert (estimate.code, "cells" in estimate.data, REFUSAL in estimate.errors) == (2, False, True)
    out = tmp_path / "report.html"
    report = read(world, swapped, "--out", str(out), verb="report")
    assert (report.code, out.exists(), REFUSAL in report.errors) == (2, False, True)
    asked = world.command(
        *("researcher", "request", swapped, "--name", "rosa", "--identity", world.local.identity_folder(*ROSA)),
        *("--attributes", "region,income", "--epsilon", "4", "--label", "second"),
    )
    assert (asked.code, REFUSAL in asked.errors) == (2, True)


@pytest.mark.long
def test_a_service_that_is_restarted_with_another_file_reads_its_old_results_with_theirs(
    world: World, swapped: Path
) -> None:
    right = world.local.study_path.read_bytes()
    before = read(world, world.local.study_path)
    assert (before.code, before.data["study_digest"]) == (0, world.local.study.digest)
    assert before.data["codebook"]["income"] == ["low", "middle", "high"]
    (kept := swapped.with_name("right.toml")).write_bytes(right)
    try:
        world.local.study_path.write_bytes(swapped.read_bytes())
        world.restart(ROSA)
        refused = read(world, swapped)
        assert (refused.code, REFUSAL in refused.errors) == (2, True)
        assert read(world, kept).data["cells"] == before.data["cells"]
        label = world.ask(("region", "income"), "--label", "first")
        assert (label.code, "asked for under another study file" in label.errors) == (5, True)
    finally:
        world.local.study_path.write_bytes(right)
        world.restart(ROSA)
    assert read(world, world.local.study_path).data["cells"] == before.data["cells"]
