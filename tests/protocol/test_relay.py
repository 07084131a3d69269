"""A study whose curators and desk open no port: a relay passes their connections on."""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.protocol import hostile_relay
from tests.protocol.hostile_relay import MODES
from tests.protocol.relays import PARTIES, asked, check_ready, proxied
from tests.protocol.test_networks import check
from tests.protocol.village import FREE
from tests.protocol.world import ALICE, BOB, CLOUD, RELAY, ROSA, World, made_world
from veiltab.common.rpc.proxy import ProxyOption
from veiltab.researcher.client.client import Client


def ports(pid: int) -> set[int]:
    """Return the TCP ports at which a process and its children listen, as the kernel lists them."""
    parent = psutil.Process(pid)
    connections = [one for each in (parent, *parent.children(recursive=True)) for one in each.net_connections("tcp")]
    return {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}


def endpoint(world: World) -> str:
    assert world.local.study.relay is not None
    return world.local.study.relay.endpoint


def standing(world: World, *options: str) -> tuple[str, str]:
    """Return how Alice says that she stands with the relay: parked or not, and why."""
    own = ("--identity", world.local.identity_folder(*ALICE))
    stands = world.command("status", world.local.study_path, *own, *options)
    (work,) = [one for one in stands.data["work"] if one["kind"] == "relay"]
    assert work["id"] == endpoint(world)
    assert work["since"] > "2020"
    return work["state"], work["waiting_for"]


def test_relayed_and_direct_curators_share_a_release_and_one_is_behind_a_proxy(tmp_path: Path) -> None:
    world = made_world(tmp_path, through_relay=("alice", "rosa"))
    local, user, door = world.local, tmp_path / "user", f"unix:{tmp_path}/door"
    user.write_text("alice:secret\n", "utf-8")
    user.chmod(0o600)
    with proxied("alice:secret") as proxy, local:
        local.launchers[ALICE] = (*local.launcher, "--proxy", proxy.url, "--proxy-user", str(user))
        world.start(RELAY)
        checked = {}
        for proxy.user in ("alice:other", "alice:secret"):
            local.options[ALICE] = ("--check",)
            local.start(*ALICE)
            code = local.wait_for_end(*ALICE)
            checked[code] = world.log(ALICE)
        assert checked.keys() == {0, 4}
        assert "[relay]: the proxy answered 407. Correct the file of --proxy-user" in checked[4]
        assert "curator alice can serve at unix:" in checked[0]
        del local.launchers[ALICE]
        (tmp_path / "alice.toml").write_text(
            f'proxy = "{proxy.url}"\nproxy_user = "user"\nlisten = "{door}"\n', "utf-8"
        )
        local.options[ALICE] = ("--config", str(tmp_path / "alice.toml"))
        pids = {who: local.start(*who) for who in PARTIES[1:]}
        for who in PARTIES:
            local.wait_for(*who)
        own = local.identity_folder(*ROSA)
        with (
            proxied("alice:secret") as other,
            Client(local.study_path, identity=own, timeout=20, proxy=ProxyOption(url=other.url, user=user)) as client,
        ):
            release = client.request(FREE, epsilon="4", label=world.label())
            assert other.asked == {endpoint(world)}
        check_ready(world, release.id)
        assert {who for who, pid in pids.items() if ports(pid)} == {BOB, CLOUD}
        assert proxy.asked == {endpoint(world), local.endpoint(*BOB), local.endpoint(*CLOUD)}
        proxy.user = "alice:other"
        world.restart(RELAY)
        refused = ("not parked", "the proxy answered 407. Correct the file of --proxy-user")
        world.wait_until(lambda: standing(world, "--endpoint", door) == refused)
        proxy.user = "alice:secret"
        world.wait_until(lambda: standing(world, "--endpoint", door) == ("parked", ""), 20)


@pytest.mark.parametrize("mode", [pytest.param(mode, marks=[pytest.mark.long] * (mode != "flip")) for mode in MODES])
def test_a_relay_that_changes_bytes_ends_pairs_and_no_release(
    tmp_path: Path, mode: str, record_property: Callable[[str, object], None]
) -> None:
    world = made_world(tmp_path, through_relay=("alice", "bob", "rosa"))
    with world.local, world.client(timeout=60) as client:
        world.start(*PARTIES)
        assert {who for who in PARTIES if ports(world.local._running[who].pid)} == {RELAY, CLOUD}
        assert standing(world) == ("parked", "")
        world.local.kill(*BOB, signal.SIGTERM)
        release = client.request(FREE, epsilon="4", label=world.label())
        world.restart(RELAY, how=(sys.executable, hostile_relay.__file__, mode))
        world.local.start(*BOB)
        world.wait_until(
            lambda: world.log(RELAY).count("a pair ended after its mischief") >= (1 if mode == "hold" else 6), 150
        )
        ended = world.log(RELAY).count("a pair ended after its mischief")
        world.restart(RELAY)
        began = time.monotonic()
        check(world, release.id)
    record_property(
        "figure", f"{mode}: {ended} pairs ended; ready {time.monotonic() - began:.1f} s after it was honest"
    )


@pytest.mark.long
def test_a_relay_that_restarts_again_and_again_loses_and_charges_nothing(tmp_path: Path) -> None:
    world = made_world(tmp_path, through_relay=("alice", "bob", "rosa"))
    with world.local:
        world.start(*PARTIES)
        release = asked(world).id
        for restart in range(50):
            world.local.kill(*RELAY, (signal.SIGKILL, signal.SIGTERM)[restart % 2])
            world.start(RELAY)
            time.sleep(0.4)
        check_ready(world, release)
