"""A curator whose table or certificate is wrong: it says what and where, quotes nobody, and spends nothing."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Answer, World, made_world
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.deploy.pki.certificates import init_pki, issue_party

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Nobody runs; one curator at a time tries to."""
    return made_world(tmp_path_factory.mktemp("bad") / "study", people=300)


def lines_changed(change: Callable[[list[str]], list[str]]) -> Change:
    def apply(path: Path) -> None:
        path.write_text("\n".join(change(path.read_text("utf-8").splitlines())) + "\n", "utf-8")

    return apply


def cell_replaced(row: int, column: int, value: str) -> Change:
    """Return a change of one cell; row 0 is the header."""

    def change(lines: list[str]) -> list[str]:
        cells = lines[row].split(",")
        cells[column] = value
        return [*lines[:row], ",".join(cells), *lines[row + 1 :]]

    return lines_changed(change)


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BAD_TABLES: dict[str, tuple[Change, str]] = {
    "unknown category": (
        cell_replaced(9, 1, "secret-land"),
        "column 'region' (attribute region) holds values the study does not know, in 1 row, first in row 10.",
    ),
    "unknown column": (cell_replaced(0, 2, "smokes"), "column 'smoker' is not in the header"),
    "no id column": (cell_replaced(0, 0, "number"), "column 'id' is not in the header"),
    "duplicate id": (
        lines_changed(lambda lines: [*lines, lines[1].upper(), f" {lines[2]}"]),
        "2 rows repeat the id (id) of an earlier row, spelling apart",
    ),
    "empty id": (cell_replaced(5, 0, "  "), "1 row has an empty id (id)"),
    "empty file": (lambda path: os.truncate(path, 0), "the file is empty"),
    "header alone": (lines_changed(lambda lines: lines[:1]), "the file has no rows"),
    "no text": (
        lines_changed(lambda lines: [lines[0], "\0", *lines[1:]]),
        "the file holds bytes 0, so it is no text in UTF-8",
    ),
    "ragged row": (
        lines_changed(lambda lines: [*lines[:4], lines[4] + ",more", *lines[5:]]),
        "1 row has more or fewer values than the header, first in row 5",
    ),
    "no such file": (Path.unlink, "the file cannot be read (No such file or directory)"),
    "a folder": (made_a_folder, "this is a directory"),
}


def served(world: World, who: tuple[Role, str], *, identity: Path | None = None, table: Path | None = None) -> Answer:
    """Run `serve` for a party that must refuse to."""
    command: list[str | Path] = [who[0].value, "serve", world.local.study_path, "--name", who[1]]
    command += ["--identity", identity or world.local.identity_folder(*who)]
    command += ["--state", world.local.state_folder(*who), "--listen", "localhost:0"]
    if who[0] is Role.CURATOR:
        command += ["--table", table or world.local.tables[who[1]]]
    return world.command(*command, as_json=False)


QUICKLY = {"unknown category", "duplicate id"}
"""The others are refused in the same words by tests/curator/test_table.py."""


@pytest.mark.parametrize(
    "wrong", [pytest.param(wrong, marks=[pytest.mark.long] * (wrong not in QUICKLY)) for wrong in BAD_TABLES]
)
def test_a_bad_table_is_refused_with_its_place_and_without_its_values(world: World, tmp_path: Path, wrong: str) -> None:
    change, message = BAD_TABLES[wrong]
    table = tmp_path / "alice.csv"
    shutil.copy(world.local.tables["alice"], table)
    change(table)
    answer = served(world, ALICE, table=table)
    assert answer.code == 2
    reading, error = answer.errors.splitlines()
    assert reading == f"reading {table}"
    assert f"veiltab: {table}: {message}" in error
    assert not world.mentions(answer.errors)
    assert "secret-land" not in answer.errors
    assert world.spent("alice") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="file rights do not bind root")
def test_a_table_without_rights_is_refused(world: World, tmp_path: Path) -> None:
    table = tmp_path / "alice.csv"
    shutil.copy(world.local.tables["alice"], table)
    table.chmod(0)
    answer = served(world, ALICE, table=table)
    assert (answer.code, "cannot be read (Permission denied)" in answer.errors) == (2, True)


def test_a_second_process_on_a_state_folder_is_refused(village: World) -> None:
    for who in (ALICE, CLOUD, ROSA):
        answer = served(village, who)
        assert answer.code == 5
        assert f"{village.local.state_folder(*who)}: another process" in answer.errors
        assert "already runs" in answer.errors


def test_check_shows_the_curator_its_own_unknown_values(world: World, tmp_path: Path) -> None:
    table = tmp_path / "alice.csv"
    shutil.copy(world.local.tables["alice"], table)
    cell_replaced(9, 1, "secret-land")(table)
    answer = world.command("curator", "check", world.local.study_path, "--name", "alice", "--table", table)
    assert (answer.code, answer.data["ok"], "secret-land" in answer.text) == (2, False, True)
    good = world.command(
        "curator", "check", world.local.study_path, "--name", "alice", "--table", world.local.tables["alice"]
    )
    assert (good.code, good.data["ok"], good.data["respondents"]) == (0, True, 350)


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


def test_a_role_cannot_be_played_with_another_role_s_certificate(world: World, tmp_path: Path) -> None:
    folder = renamed(world, ALICE, "rosa", tmp_path)
    status = ("researcher", "status", world.local.study_path, "--name", "rosa", "--identity", folder)
    asked = world.command(*status)
    assert asked.code == 2
    assert "veiltab://village/curator/alice, not of veiltab://village/researcher/rosa" in asked.errors
