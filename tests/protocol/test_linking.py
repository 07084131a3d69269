"""Registers without a common number, linked between real processes: a release counts the people whom the rule links."""

import csv
import json
from pathlib import Path
from typing import Any, cast

import pytest

from tests.protocol.chance import agreement
from tests.protocol.linked_registers import ASKED, RULE, Linked, linked_world
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, launcher
from tests.worlds.studies import FIELDS
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Role

SURE = 1e-6  # level at which an answer is wrong


def tokens_of(world: Linked) -> bytes:
    """Return the tokens of the rows, which are the same at every curator."""
    seen = set()
    for name in world.local.tables:
        (folder,) = (world.local.state_folder(Role.CURATOR, name) / "alignments").iterdir()
        seen.add((folder / "tokens.bin").read_bytes())
    (one,) = seen
    return one


def check_release(world: Linked) -> None:
    with world.client() as client:
        asked = client.request(ASKED, epsilon="4", label=world.label())
        asked.wait(120)
        assert agreement(asked.estimate(), world.truth()) > SURE
    links = world.links()
    assert len(links) > 0.92 * len(world.people.ids)
    assert len(tokens_of(world)) == 16 * len(world.rows["alice"])


@pytest.mark.parametrize("alignment", [pytest.param("tokens", marks=pytest.mark.long), "oblivious"])
def test_two_registers_are_linked_and_released(tmp_path: Path, alignment: str) -> None:
    world = linked_world(tmp_path, alignment, more="placebo = true\n")
    with world.local:
        world.local.start_all()
        check_release(world)
        check_reports(world, tmp_path)
        check_samples(world, tmp_path)
        check_what_clerks_counted(world, tmp_path)
        logs = world.logs()
    assert world.mentions(logs) == []


def check_reports(world: Linked, folder: Path) -> None:
    """Each curator sees what it knows of the linkage, as text, as JSON and as a picture; a wrong place is refused."""
    links = len(world.links())
    said = world.curator_command("linkage", "bob", "--picture", str(folder / "ladder.svg")).data
    assert said["role"] == "spoke"
    assert said["links"] == links == sum(one["linked"] for one in said["passes"])
    assert [one["key"] for one in said["passes"]] == [step.name for step in RULE.ladder]
    assert said["precision_estimated"]["value"] > 0.99
    assert said["placebo_rows"] == len(world.rows["bob"])
    assert 0.9 < said["recall_estimated"]["value"] <= 1
    assert [one["category"] for one in said["match_rates"]["income"]] == ["low", "middle", "high"]
    assert sum(one["linked"] for one in said["match_rates"]["income"]) == links
    picture = (folder / "ladder.svg").read_text("utf-8")
    assert picture.startswith("<svg xmlns=")
    assert "given:3 family:3 birth postcode" in picture
    hub = world.curator_command("linkage", "alice").data
    assert (hub["role"], hub["links"], hub["precision_estimated"]) == ("hub", None, None)
    assert all(one["linked"] is None for one in hub["passes"])
    state = world.local.state_folder(Role.CURATOR, "alice")
    text = world.command(*("curator", "linkage", world.local.study_path, "--state", state), as_json=False).text
    assert f"This is the hub; its table has {len(world.rows['alice']):,} rows." in text
    check_wrong_links(world, folder / "links.json")
    nowhere = world.curator_command("linkage", "bob", "--picture", str(folder / "none" / "ladder.svg"))
    assert nowhere.code == InvalidInputError.exit_code
    assert "there is no such folder" in nowhere.errors


def check_wrong_links(world: Linked, path: Path) -> None:
    """A spoke writes three numbers for a researcher, whose estimate takes them; the hub knows none."""
    assert world.curator_command("linkage", "bob", "--for-researcher", str(path)).code == 0
    said = json.loads(path.read_text("utf-8"))
    assert said.keys() == {"bob"}
    assert said["bob"].keys() == {"lambda", "lambda_chance", "sd"}
    with world.client() as client:
        (release,) = client.releases()
    rosa = ("--identity", world.local.folder / "pki" / "researcher-rosa", "--release", release.release_id)
    links = ("--linkage-error", path)
    plain, undone = (
        world.command("researcher", "estimate", world.local.study_path, *rosa, *more) for more in ((), links)
    )
    assert [one["low"] for one in undone.data["rows"]] != [one["low"] for one in plain.data["rows"]]
    assert "of the links with bob a share of" in str(undone.data)
    hub = world.curator_command("linkage", "alice", "--for-researcher", str(path.with_name("hub.json")))
    assert (hub.code, path.with_name("hub.json").exists()) == (InvalidInputError.exit_code, False)
    assert "Ask each spoke for its file." in hub.errors


def check_samples(world: Linked, folder: Path) -> None:
    """The spoke draws linked people, and both write them in one order, each as its own table has them; no attribute."""
    links, written = world.links(), {}
    for name, asked in (("bob", "60"), ("alice", str(folder / "sample-bob.csv"))):
        path = folder / f"sample-{name}.csv"
        said = world.curator_command("linkage", name, "--sample", asked, "--to", str(path))
        assert (said.code, said.data["sample"]) == (0, {"links": 60, "file": str(path)})
        assert path.stat().st_mode & 0o777 == 0o600
        with path.open(encoding="utf-8", newline="") as file:
            written[name] = list(csv.reader(file))
    assert written["alice"][0] == written["bob"][0] == ["pair", *FIELDS]
    pairs = [(world.rows["alice"][mine], world.rows["bob"][theirs]) for mine, theirs in links.items()]
    both = list(zip(written["alice"][1:], written["bob"][1:], strict=True))
    assert [mine[0] for mine, _ in both] == [theirs[0] for _, theirs in both]
    people = [cast("Any", (tuple(mine[1:]), tuple(theirs[1:]))) for mine, theirs in both]
    assert len({*people} & {*pairs}) == 60
    assert sorted(people, key=pairs.index) != people, "the sample is in the order of the table"
    check_refused_samples(world, folder, len(links))


def check_refused_samples(world: Linked, folder: Path, links: int) -> None:
    """A person's mistakes: a file that is there, more than are linked, another table, half of the options."""
    other, path, there = folder / "changed.csv", folder / "new.csv", folder / "sample-bob.csv"
    lines = world.local.tables["bob"].read_text("utf-8").splitlines(keepends=True)
    other.write_text("".join([*lines[:-1], f"x{lines[-1]}"]), "utf-8")
    config = folder / "bob.toml"
    config.write_text(f'table = "{other}"', "utf-8")
    before, to = there.read_bytes(), ("--to", str(path))
    for options, said in {
        ("--sample", "60", "--to", str(there)): "there is a file already",
        ("--sample", str(links + 1), *to): f"{links + 1:,} people are asked for, and a sample has {links:,} at most",
        (
            "--sample",
            "5",
            *to,
            "--config",
            str(config),
        ): "this is not the table that was linked, or it was changed since",
        ("--config", str(config)): "--config is for a sample",
        ("--checked", str(links + 1), "--wrong", "6"): f"{links + 1:,} pairs were compared, and {links:,} people are",
    }.items():
        refused = world.curator_command("linkage", "bob", *options)
        assert (refused.code, said in refused.errors) == (InvalidInputError.exit_code, True), refused.errors
    refused = world.curator_command("linkage", "alice", "--sample", "60", *to)
    assert (refused.code, "this is not a sample of a spoke" in refused.errors) == (InvalidInputError.exit_code, True)
    assert (there.read_bytes(), path.exists()) == (before, False)


def check_what_clerks_counted(world: Linked, folder: Path) -> None:
    """Of 200 pairs three were wrong; the exact interval of 95 % is .0031 to .0432 (Clopper and Pearson)."""
    counted, path = ("--checked", "200", "--wrong", "3"), folder / "clerks.json"
    shown = world.curator_command("linkage", "bob", *counted, "--for-researcher", str(path)).data
    said = shown["precision_by_clerks"]
    assert (said["tested"], said["wrong"], said["value"]) == (200, 3, 0.985)
    assert (said["low"], said["high"]) == (pytest.approx(1 - 0.043208, abs=1e-6), pytest.approx(1 - 0.003104, abs=1e-6))
    numbers = json.loads(path.read_text("utf-8"))["bob"]
    assert (numbers["lambda"], numbers["sd"]) == (0.015, pytest.approx((0.043208 - 0.015) / 1.959964, abs=1e-6))
    assert numbers["lambda_chance"] == min(shown["chance_estimated"], 0.015)
    # The hub shows what its clerks counted, and says nothing for a researcher.
    hub = world.curator_command("linkage", "alice", *counted)
    assert hub.data["precision_by_clerks"] == said
    state = world.local.state_folder(Role.CURATOR, "bob")
    text = world.command(
        *("curator", "linkage", world.local.study_path, "--state", state, *counted), as_json=False
    ).text
    assert "by clerks: 3 of 200 are wrong, so the precision is 0.9850 (exact interval of 95%: 0.9567 to 0.9969)" in text


KILLS = {
    "the hub before it writes its keys": (ALICE, "veiltab.curator.alignment.linking.link_hub:_write_keys:2"),
    "the hub while it checks what it is asked": (ALICE, "veiltab.curator.alignment.joining.join_hub:_rows:3"),
    "the spoke in the middle of a pass": (BOB, "veiltab.curator.alignment.joining.join_spoke:_write_columns:4:after"),
    "the spoke before it resolves": (BOB, "veiltab.curator.alignment.linking.link_spoke:SpokeLinking._resolve:1"),
    "the hub before it erases its secret": (ALICE, "veiltab.curator.records.join_sessions:JoinSessions.finish:1"),
}
QUICK = "the spoke in the middle of a pass"


def check_kill(world: Linked, who: Who, point: str) -> None:
    """A curator kills itself at a point of the linkage; started again, it goes on, and the same rows are linked."""
    pace = "pause=0.2"
    world.local.launcher = launcher(pace)
    with world.local:
        world.local.start(*who, launcher=launcher(pace, point))
        world.start(*({ALICE, BOB} - {who}), CLOUD, ROSA)
        world.wait_for_kill(who)
        world.start(who)
        check_release(world)


@pytest.mark.long
def test_a_spoke_that_is_killed_in_a_pass_links_the_same(tmp_path: Path) -> None:
    check_kill(linked_world(tmp_path, "oblivious", common=120), *KILLS[QUICK])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in KILLS if name != QUICK])
def test_a_curator_that_is_killed_anywhere_links_the_same(tmp_path: Path, name: str) -> None:
    check_kill(linked_world(tmp_path, "oblivious"), *KILLS[name])


@pytest.mark.long
def test_three_registers_are_linked_in_a_star(tmp_path: Path) -> None:
    world = linked_world(tmp_path, "oblivious", curators=3)
    with world.local:
        world.local.start_all()
        world.wait_until(lambda: _are_aligned(world), 90)
    assert len(tokens_of(world)) == 16 * len(world.rows["alice"])
    for spoke in ("bob", "carol"):
        with world.store(spoke) as store:
            assert store.alignments.matched() == len(world.links(spoke))


def _are_aligned(world: Linked) -> bool:
    for name in world.local.tables:
        with world.store(name) as store:
            if store.alignments.latest_alignment() is None:
                return False
    return True
