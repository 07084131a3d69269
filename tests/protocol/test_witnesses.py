"""What curators hold of one another's ledgers: a chain that is written anew, and signed, is found from another's
evidence."""

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.curator.audit.rewriting import write_anew
from tests.protocol.world import ALICE, BOB, Answer, World, made_world
from veiltab.common.rpc.parties.identity import Role


def exported(world: World, name: str, out: Path) -> Path:
    identity = world.local.identity_folder(Role.CURATOR, name)
    made = world.curator_command("evidence", name, "--identity", str(identity), "--out", str(out))
    assert made.code == 0, made.errors
    return out


def verified(world: World, file: Path, *beside: Path) -> Answer:
    authority = world.local.identity_folder(*BOB) / "ca.pem"
    others = [word for path in beside for word in ("--beside", path)]
    return world.command("verify", file, "--authority", authority, *others)


def line(answer: Answer, about: str) -> Any:  # noqa: ANN401 - JSON
    (found,) = (one for one in answer.data["findings"] if one["what"].startswith(about))
    return found


def test_a_ledger_that_is_written_anew_is_found_from_another_curators_evidence(tmp_path: Path) -> None:
    world = made_world(tmp_path / "study")
    with world.local:
        world.local.start_all()
        for attributes in (("region", "income"), ("smoker", "employed")):
            asked = world.ask(attributes, "--label", world.label(), epsilon="1")
            assert asked.code == 0, asked.errors
            with world.client() as client:
                client.release(asked.data["release"]["id"]).wait(60)
    honest, bob = (exported(world, name, tmp_path / f"{name}.zip") for name in ("alice", "bob"))
    fits = verified(world, honest, bob)
    assert fits.code == 0, fits.data
    assert line(fits, "checkpoints")["detail"].startswith("2 of ledgers of 1 curators")
    for who in ("alice", "bob"):
        assert (
            "2 ledgers that the curator signed, of up to 2 entries, are in it"
            in line(fits, f"ledger of veiltab://village/curator/{who} beside")["detail"]
        )
    with zipfile.ZipFile(bob) as archive:
        notes = [json.loads(one)["note"] for one in archive.read("witnessed.jsonl").splitlines()]
    assert [one.splitlines()[:2] for one in notes] == [
        ["village.veiltab/curator/alice/ledger", str(length)] for length in (1, 2)
    ]

    database = world.local.state_folder(*ALICE) / "curator.sqlite"
    write_anew(database, lambda number, facts: facts | ({"researcher": "rita"} if number == 2 else {}))
    anew = exported(world, "alice", tmp_path / "anew.zip")
    alone = verified(world, anew)
    assert alone.code == 0, alone.data  # it fits itself, and is signed
    found = verified(world, anew, bob)
    assert found.code == 5
    failed = line(found, "ledger of veiltab://village/curator/alice beside")
    assert not failed["holds"]
    assert "of entries 2 to 2 one differs at least" in failed["detail"]
    assert [one["what"] for one in found.data["findings"] if one["holds"] is False] == [failed["what"]]
