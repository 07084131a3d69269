"""Numbers from a curator's table to a mean, over processes: rounded afresh for each release."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.protocol.village import Rules
from tests.protocol.world import World, made_world
from tests.worlds.studies import attribute_text

NUMBERS = "".join(
    (
        attribute_text("hours", "bob", 'kind = "number"', "grid = [0, 80]", "step = 20", 'outside = "clip"'),
        attribute_text("hours_again", "bob", 'column = "hours"', 'kind = "number"', "grid = [0, 30, 80]"),
        attribute_text("age", "alice", 'kind = "number"', "grid = [0, 100]", "step = 25"),
        attribute_text("age_bins", "alice", 'column = "age"', "bins = [0, 30, 60, 100]"),
    )
)
WAVES = ("spring", "summer")
"""Labels of two releases of everybody, about which all tests ask."""

EPSILON = "60"
"""Hardly any noise."""

SURE = 0.99999
"""Confidence of intervals that are to hold the truth: chance misses one in many thousand runs."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Numbers beside the people's categories: hours are 20 + age / 2 + 5 for region south; some lie outside."""
    made = made_world(tmp_path_factory.mktemp("numbers"), people=900, rules=Rules(maximum_cells=500), more=NUMBERS)
    rng = np.random.default_rng(5)
    age = dict(zip(made.people.ids, rng.uniform(0, 100, 900), strict=True))
    for curator, name in (("alice", "age"), ("bob", "hours")):
        path = made.local.tables[curator]
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        for line in lines:
            own = age.get(line[0], 50.0)
            line.append(f"{own:.3f}" if name == "age" else f"{20 + own / 2:.3f}")
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[*header, name], *lines])
    made.local.start_all()
    with made.local, made.client() as client:
        for label in WAVES:
            client.request(["region", "hours", "hours_again", "age"], epsilon=EPSILON, label=label).wait(60)
        yield made


AGES = np.random.default_rng(5).uniform(0, 100, 900)


def test_means_and_models_of_a_release(world: World) -> None:
    with world.client() as client:
        release = client.release("spring")
        hours = 20 + AGES / 2
        mean = release.ask("mean of hours", confidence=SURE)
        assert mean.low[0] <= hours.mean() <= mean.high[0]
        assert abs(mean.estimate[0] - hours.mean()) < 3
        regions = release.ask("mean of hours by region", confidence=SURE)
        assert regions.names == ("north", "south", "west")
        assert regions.low[0] < hours[world.people.symbols["region"] == 0].mean() < regions.high[0]
        spread = release.ask("variance of hours", confidence=SURE)
        assert spread.low[0] <= hours.var() <= spread.high[0]
        middle = release.ask("median of hours", confidence=SURE)
        assert middle.low[0] <= np.median(hours) <= middle.high[0]
        model = release.ask("linear age ~ hours + region", confidence=SURE)
        assert model.names == ("(intercept)", "hours", "region=south", "region=west")
        assert model.low[1] <= 2 <= model.high[1]


def test_waves_are_shown_with_their_changes_and_drawn(world: World, tmp_path: Path) -> None:
    identity, picture = world.local.folder / "pki" / "researcher-rosa", tmp_path / "ages.svg"
    who = (world.local.study_path, "--identity", identity, "--confidence", str(SURE))
    asked = ("--release", "spring", "--release", "summer", "mean of age by region")
    waves = world.command("researcher", "estimate", *who, *asked, "--changes", "--picture", picture)
    assert waves.code == 0, waves.errors
    assert [row["labels"]["wave"] for row in waves.data["rows"]] == ["summer"] * 3
    assert all(row["low"] < 0 < row["high"] for row in waves.data["rows"])
    assert "change of the mean of age" in picture.read_text("utf-8")
    twice = world.command("researcher", "estimate", *who, "--release", "spring", "--release", "spring", "mean of age")
    assert (twice.code, "are the same release" in twice.errors) == (2, True)
    alone = world.command("researcher", "estimate", *who, "--release", "spring", "--changes", "mean of age")
    assert (alone.code, "Name at least two" in alone.errors) == (2, True)


def test_each_release_rounds_anew(world: World) -> None:
    with world.client() as client:
        counts = [client.release(label).measurements()[0].counts for label in WAVES]
        # Everybody is in both, and hardly a symbol changes at this epsilon: the same coins would give the same counts.
        assert np.abs(counts[0] - counts[1]).sum() > 5
    assert list(world.local.folder.rglob("rounded-*")) == []
