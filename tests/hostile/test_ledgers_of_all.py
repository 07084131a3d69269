"""Ledgers that nobody but the curators' peers, the server or a desk remembers, and ledgers that somebody invents."""

import asyncio
import shutil
import signal
from pathlib import Path

import grpc
import pytest

from tests.hostile.clients import call, code_of, connection, message
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Who, World, launcher, made_world

NAMES = ["region", "income"]
CURATORS = (ALICE, BOB)


def copied(world: World, party: Who, folder: Path) -> None:
    """Stop a party, copy its state, and start it."""
    world.local.kill(*party, signal.SIGTERM)
    shutil.copytree(world.local.state_folder(*party), folder / party[1])
    world.start(party)


def restored(world: World, folder: Path, *parties: Who) -> None:
    """Kill some parties and start them with the copies of their states."""
    for party in parties:
        world.local.kill(*party, signal.SIGKILL)
        state = world.local.state_folder(*party)
        shutil.rmtree(state)
        shutil.copytree(folder / party[1], state)
    world.start(*parties)


@pytest.mark.long
@pytest.mark.parametrize(
    ("also_restored", "who"), [(ROSA, "server cloud"), (CLOUD, "researcher rosa")], ids=["the server", "the desk"]
)
def test_all_curators_restored_from_one_night_are_noticed(tmp_path: Path, also_restored: Who, who: str) -> None:
    """One party that was not restored with them is enough; nothing more is charged."""
    world = made_world(tmp_path / "study")
    world.local.launcher = launcher(PACE)
    with world.local:
        world.start(CLOUD, *CURATORS, ROSA)
        assert world.ask(NAMES, "--wait", epsilon="1").code == 0
        for party in (*CURATORS, also_restored):
            copied(world, party, tmp_path / "night")
        later = str(world.ask(NAMES, "--wait", epsilon="1").data["release"]["id"])
        world.wait_until(lambda: certified(world, later))
        assert len(world.charges("alice")) == 2
        restored(world, tmp_path / "night", *CURATORS, also_restored)
        refused = world.ask(NAMES, "--wait", epsilon="1")
        assert refused.code != 0
        assert f"the ledger lacks entries that {who} has seen" in refused.errors
        assert len(world.charges("alice")) == len(world.charges("bob")) == 1
        lacking = world.curator_command("repair", "alice").data["lacking"]
        assert [(one["who"], one["entries"]) for one in lacking] == [(who, 2)]


def certified(world: World, release_id: str) -> bool:
    """Return whether the desk has the certificate of a release, with the ledgers of its curators."""
    return (world.local.state_folder(*ROSA) / "releases" / release_id / "certificate").exists()


@pytest.mark.long
def test_an_invented_ledger_costs_its_inventor_the_call_and_nobody_else(tmp_path: Path) -> None:
    """Somebody with bob's certificate shows alice a ledger that bob never had; bob starts again and goes on."""
    world = made_world(tmp_path / "study")

    async def shown(length: int, head: bytes) -> grpc.StatusCode:
        async with connection(world.local, BOB, ALICE) as channel:
            study = world.local.study.digest
            hello = message("HelloRequest", study_digest=study, ledger_length=length, ledger_head=head)
            return await code_of(call(channel, "CuratorPeerService/Hello")(hello, timeout=10))

    with world.local:
        world.start(CLOUD, *CURATORS, ROSA)
        assert world.ask(NAMES, "--wait", epsilon="1").code == 0
        for length, head in ((2**63 - 1, b"h" * 32), (2, b"h" * 32), (1, b"h" * 1_000_000), (2**63 - 1, b"h" * 10**6)):
            assert asyncio.run(shown(length, head)) is grpc.StatusCode.INVALID_ARGUMENT
        world.restart(BOB)
        assert world.ask(NAMES, "--wait", epsilon="1").code == 0
        assert len(world.charges("bob")) == 2
