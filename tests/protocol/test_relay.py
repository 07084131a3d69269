"""A study whose curators and desk open no port: a relay passes their connections on."""

import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.protocol.test_linked_release import THREE
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, made_world
from veiltab.common.rpc.parties.identity import Role
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.local.processes import free_endpoints
from veiltab.play.studies.templates import relayed
from veiltab.researcher.client.release import Release

RELAY: Who = (Role.RELAY, "relay")
PARTIES = (RELAY, ALICE, BOB, CLOUD, ROSA)


def relayed_world(folder: Path) -> World:
    world = made_world(folder / "plain")
    source = relayed(world.local.study_path.read_bytes(), free_endpoints(["relay"])["relay"])
    world.local.folder = folder
    world.local.study_path.write_bytes(source)
    init_pki(study_from_bytes(source, "study.toml"), folder / "pki")
    return world


def asked(world: World) -> Release:
    with world.client() as client:
        return client.request(THREE, workload="linked", epsilon=4, delta="1e-6", canaries=20, label=world.label())


def ports(pid: int) -> set[int]:
    """Return the TCP ports at which a process and its children listen, as the kernel lists them."""
    parent = psutil.Process(pid)
    connections = [one for each in (parent, *parent.children(recursive=True)) for one in each.net_connections("tcp")]
    return {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}


def check_ready(world: World, release_id: str) -> None:
    with world.client() as client:
        assert client.release(release_id).wait(200).state.value == "ready"
    assert [world.charges(curator).count(release_id) for curator in ("alice", "bob")] == [1, 1]


def test_a_linked_release_of_parties_that_listen_at_no_port(tmp_path: Path) -> None:
    world = relayed_world(tmp_path)
    with world.local:
        pids = {who: world.local.start(*who) for who in PARTIES}
        for who in PARTIES:
            world.local.wait_for(*who)
        check_ready(world, asked(world).id)
        assert {who for who, pid in pids.items() if ports(pid)} == {RELAY, CLOUD}
        own = ("--identity", world.local.identity_folder(*ALICE))
        stands = world.command("status", world.local.study_path, *own)
        (work,) = [one for one in stands.data["work"] if one["kind"] == "relay"]
        assert work["state"] == "parked"


@pytest.mark.long
def test_a_relay_that_restarts_again_and_again_loses_and_charges_nothing(tmp_path: Path) -> None:
    world = relayed_world(tmp_path)
    with world.local:
        world.start(*PARTIES)
        release = asked(world).id
        for restart in range(50):
            world.local.kill(*RELAY, (signal.SIGKILL, signal.SIGTERM)[restart % 2])
            world.start(RELAY)
            time.sleep(0.4)
        check_ready(world, release)
