"""Rows with missing values: who counts in n, and who is told how many were left out."""

import csv
from pathlib import Path

import pytest

from tests.protocol.village import Rules
from tests.protocol.world import World, made_world
from veiltab.common.rpc.parties.identity import Role

pytestmark = pytest.mark.long
NAMES = ("region", "income")


def with_missing_values(world: World, rows: int) -> World:
    """Let Bob's table miss the income of some common respondents, and their employment too."""
    path = world.local.tables["bob"]
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    common = [line for line in lines if line[0] in world.people.ids]
    for line in common[:rows]:
        line[header.index("income")] = line[header.index("employed")] = "?"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    return world


@pytest.mark.parametrize(("left_out", "stated"), [("local", {}), ("stated", {"alice": 0, "bob": 7})])
def test_a_result_says_how_many_rows_were_left_out_if_the_study_does(
    tmp_path: Path, left_out: str, stated: dict[str, int]
) -> None:
    world = with_missing_values(made_world(tmp_path / "study", people=300, rules=Rules(left_out=left_out)), 7)
    with world.local:
        world.local.start_all()
        with world.client() as client:
            release = client.request(NAMES, epsilon="3", label="wages")
            status = release.wait(60)
            assert status.spec is not None
            assert status.spec.population == 293
            assert dict(status.left_out) == stated
            said = "Rows left out for a missing value: 0 at alice and 7 at bob."
            assert (said in release.respondents()) == bool(stated)
        own = world.local.identity_folder(Role.CURATOR, "bob")
        seen = world.command("status", world.local.study_path, "--identity", own)
        assert "7 of 350 rows left out, which miss income (7), employed (7)" in seen.text
