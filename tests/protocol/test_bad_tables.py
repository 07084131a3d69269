"""A curator whose table or certificate is wrong: it says what and where, quotes nobody, and spends nothing."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Answer, World, made_world
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.deploy.pki.certificates import init_pki, issue_party

Change = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Nobody runs; one curator at a time tries to."""
    return made_world(tmp_path_factory.mktemp("bad") / "study", people=300)


def cell_replaced(lines: list[str]) -> list[str]:
    """Return lines of which one has a region that the study does not know."""
    cells = lines[9].split(",")
    cells[1] = "secret-land"
    return [*lines[:9], ",".join(cells), *lines[10:]]


BAD_TABLES: dict[str, tuple[Change, str]] = {
    "unknown category": (
        cell_replaced,
        "column 'region' (attribute region) holds values the study does not know, in 1 row, first in row 10.",
    ),
    "duplicate id": (
        lambda lines: [*lines, lines[1].upper(), f" {lines[2]}"],
        "2 rows repeat the id (id) of an earlier row, spelling apart",
    ),
}
"""The others are refused in the same words by tests/curator/test_table.py."""


def served(world: World, who: tuple[Role, str], *, identity: Path | None = None, table: Path | None = None) -> Answer:
    """Run `serve` for a party that must refuse to."""
    command: list[str | Path] = [who[0].value, "serve", world.local.study_path, "--name", who[1]]
    command += ["--identity", identity or world.local.identity_folder(*who)]
    command += ["--state", world.local.state_folder(*who), "--listen", "localhost:0"]
    if who[0] is Role.CURATOR:
        command += ["--table", table or world.local.tables[who[1]]]
    return world.command(*command, as_json=False)


@pytest.mark.parametrize("wrong", BAD_TABLES)
def test_a_bad_table_is_refused_with_its_place_and_without_its_values(world: World, tmp_path: Path, wrong: str) -> None:
    change, message = BAD_TABLES[wrong]
    table = tmp_path / "alice.csv"
    lines = world.local.tables["alice"].read_text("utf-8").splitlines()
    table.write_text("\n".join(change(lines)) + "\n", "utf-8")
    answer = served(world, ALICE, table=table)
    assert answer.code == 2
    reading, error = answer.errors.splitlines()
    assert reading == f"reading {table}"
    assert f"veiltab: {table}: {message}" in error
    assert not world.mentions(answer.errors)
    assert "secret-land" not in answer.errors
    assert world.spent("alice") == 0


def test_a_second_process_on_a_state_folder_is_refused(village: World) -> None:
    for who in (ALICE, CLOUD, ROSA):
        answer = served(village, who)
        assert answer.code == 5
        assert f"{village.local.state_folder(*who)}: another process" in answer.errors
        assert "already runs" in answer.errors


def issued(world: World, who: tuple[Role, str], *, born: timedelta, lifetime: timedelta) -> Path:
    """Make a certificate by the study's authority at another time; return its folder."""
    party = Party(study=world.local.study.id, role=who[0], name=who[1])
    pki = world.local.folder / "pki"
    return issue_party(world.local.study, pki, party, lifetime=lifetime, clock=lambda: datetime.now(UTC) + born)


@pytest.mark.parametrize("who", [ALICE, pytest.param(CLOUD, marks=pytest.mark.long), ROSA])
def test_a_certificate_that_is_not_valid_now_is_refused_at_the_start(
    world: World, who: tuple[Role, str], tmp_path: Path
) -> None:
    kept = shutil.copytree(world.local.identity_folder(*who), tmp_path / "kept")
    for born, message in ((timedelta(days=-9), "expired on"), (timedelta(days=9), "is valid only from")):
        folder = issued(world, who, born=born, lifetime=timedelta(days=1))
        answer = served(world, who, identity=folder)
        assert (answer.code, message in answer.errors) == (2, True), answer.errors
        assert f"own certificate: the certificate of {who[0].value} {who[1]}" in answer.errors
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def renamed(world: World, who: tuple[Role, str], name: str, folder: Path) -> Path:
    """Return a copy of a party's identity whose files have another party's name."""
    copied = folder / "theirs"
    copied.mkdir()
    for path in world.local.identity_folder(*who).iterdir():
        shutil.copy2(path, copied / path.name.replace(who[1], name))
    return copied


def test_another_party_s_certificate_is_refused_at_the_start(world: World, tmp_path: Path) -> None:
    mine, theirs = world.local.identity_folder(*ALICE), renamed(world, BOB, "alice", tmp_path)
    answer = served(world, ALICE, identity=theirs)
    assert answer.code == 2
    assert "this is the certificate of veiltab://village/curator/bob, not of veiltab://village/curator/alice" in (
        answer.errors
    )
    assert served(world, ALICE, identity=tmp_path / "nowhere").code == 2
    rogue = init_pki(world.local.study, tmp_path / "rogue")
    shutil.copy2(mine / "ca.pem", next(path for party, path in rogue.items() if party.name == "alice") / "ca.pem")
    answer = served(world, ALICE, identity=tmp_path / "rogue" / "curator-alice")
    assert (answer.code, "was not issued by the authority beside it" in answer.errors) == (2, True)
    key = theirs / "alice.key"
    shutil.copy2(mine / "alice.key", key)
    shutil.copy2(mine / "alice.pem", theirs / "alice.pem")
    key.chmod(0o644)
    assert "chmod 600" in served(world, ALICE, identity=theirs).errors
