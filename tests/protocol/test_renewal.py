"""Certificates that are renewed and revoked while a study runs."""

import os
import signal
import socket
import ssl
import sys
from pathlib import Path

import pytest

from tests.protocol.village import FREE
from tests.protocol.wire import connection
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, RELAY, ROSA, World, launcher, made_world
from tests.worlds.loops import blocking
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.errors import DeniedError
from veiltab.common.rpc.channel import call
from veiltab.common.rpc.parties.identity import Party, Role, party_of_certificate
from veiltab.deploy.pki.certificates import issue_party
from veiltab.v1 import server_release_pb2, server_release_pb2_grpc

LAUNCHER = Path(__file__).with_name("ending_launcher.py")
MOMENTS = (
    "hangup:before",
    "hangup:after",
    "veiltab.common.command.running:_renewed:after",
    "veiltab.common.rpc.server:PartyServer.stop",
    "veiltab.common.rpc.server:PartyServer.stop:after",
    "veiltab.common.process.signals:PartySignals.__exit__",
    "signal:signal",
    "signal:set_wakeup_fd",
    "veiltab.common.process.signals:PartySignals.__exit__:after",
    "veiltab.common.storage.files:OwnedFolder.release",
    "gc:collect",
    "veiltab.common.process.signals:PartySignals.__enter__",
    "veiltab.common.process.signals:PartySignals.__enter__:after",
    "veiltab.common.rpc.server:PartyServer.start:after",
)
"""Moments of a restart, in order, from the hangup until the party serves again."""


@pytest.fixture(name="world")
def world_with_its_server(tmp_path: Path) -> World:
    world = made_world(tmp_path / "study")
    world.local.launcher = launcher(PACE)
    return world


@blocking
async def asked(world: World, who: tuple[Role, str]) -> str:
    """Return what the server says to a researcher who asks for a release that is not there."""
    async with connection(world, who, CLOUD) as channel:
        stub = server_release_pb2_grpc.ReleaseServiceStub(channel)
        peer = Party(study=world.local.study.id, role=CLOUD[0], name=CLOUD[1])
        try:
            await call(stub.GetRelease, server_release_pb2.GetReleaseRequest(release_id="0" * 32), peer=peer)
        except Exception as error:  # noqa: BLE001 - its words are looked at
            return str(error)
    return ""


def serial_shown(world: World) -> int | None:
    """Return the serial number of the certificate that the server shows; None while it shows none."""
    host, _, port = world.local.endpoint(*CLOUD).rpartition(":")
    folder = world.local.identity_folder(*ROSA)
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "rosa.pem", folder / "rosa.key")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
    except OSError:
        return None
    assert shown is not None
    return party_of_certificate(ssl.DER_cert_to_PEM_cert(shown).encode()).serial


def wait_for(world: World, who: tuple[Role, str], words: str) -> None:
    """Wait until a party has logged some words."""
    world.wait_until(lambda: words in world.log(who), 60)


def test_a_party_takes_over_its_renewed_certificate_and_goes_on(world: World) -> None:
    with world.local as local:
        pid = local.start(*CLOUD)
        local.wait_for(*CLOUD)
        before = serial_shown(world)
        party = Party(study=local.study.id, role=CLOUD[0], name=CLOUD[1])
        issue_party(local.study, local.folder / "pki", party)
        os.kill(pid, signal.SIGHUP)
        world.wait_until(lambda: serial_shown(world) not in {before, None}, 60)
        assert "no such release" in asked(world, ROSA)
        # The process is the same, and a certificate that cannot be loaded does not stop it.
        (local.identity_folder(*CLOUD) / "cloud.pem").write_text("nonsense", "utf-8")
        os.kill(pid, signal.SIGHUP)
        wait_for(world, CLOUD, "does not begin again")
        assert "no such release" in asked(world, ROSA)


@pytest.mark.parametrize("relayed", [(), ("alice", "bob")])
def test_a_hangup_takes_the_policy_and_keeps_the_table_and_the_study(tmp_path: Path, relayed: tuple[str, ...]) -> None:
    """Files are edited under every party; the releases that follow are of the rows and the study that they read."""
    world = made_world(tmp_path / "study", through_relay=relayed)
    parties = [*([RELAY] if relayed else []), CLOUD, ROSA, ALICE, BOB]

    with world.local as local, world.client() as client:
        world.start(*parties)
        policy = local.policies["alice"]
        policy.write_text('[[rule]]\ndecision = "perhaps"\n', "utf-8")
        local._running[ALICE].send_signal(signal.SIGHUP)
        wait_for(world, ALICE, f"does not begin again: {policy}")
        for path in (*local.tables.values(), local.study_path):
            path.write_text("nothing", "utf-8")
        for rules in (2, 3):
            policy.write_text(APPROVE_ALL * rules, "utf-8")
            for who in parties:
                local._running[who].send_signal(signal.SIGHUP)
                world.wait_until(lambda: world.log(who).count(" serves ") == rules, 60)  # noqa: B023 - called here
            wait_for(world, ALICE, f"policy: {policy}, rules: {rules}")
            client.request(FREE, epsilon="0.1", label=world.label()).wait(60)
        policy.write_text('[[rule]]\ndecision = "deny"\n', "utf-8")
        local._running[ALICE].send_signal(signal.SIGHUP)
        world.wait_until(lambda: world.log(ALICE).count(" serves ") == 4, 60)
        with pytest.raises(DeniedError):
            client.request(FREE, epsilon="0.1", label=world.label()).wait(60)


@pytest.mark.parametrize(
    "moment", [pytest.param(moment, marks=[pytest.mark.long] * (place % 3 > 0)) for place, moment in enumerate(MOMENTS)]
)
def test_an_end_wins_at_every_moment_of_a_restart(moment: str, world: World) -> None:
    with world.local as local:
        pid = local.start(*CLOUD, launcher=(sys.executable, str(LAUNCHER), moment))
        if not moment.startswith("hangup:"):
            local.wait_for(*CLOUD)
            os.kill(pid, signal.SIGHUP)
        # In order, or at once by the signal; never with an error.
        assert world.ended(CLOUD, 20)
        assert local.wait_for_end(*CLOUD) in {0, -signal.SIGTERM}
        assert world.log(CLOUD).count("the moment has come") == 1
