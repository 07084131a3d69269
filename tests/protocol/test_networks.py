"""Releases over links that delay, lose and break, and that nothing passes for a while."""

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.protocol.chance import agreement
from tests.protocol.proxy import Proxy, Weather
from tests.protocol.village import FREE
from tests.protocol.world import ALICE, BOB, CLOUD, RELAY, ROSA, THROUGH_RELAY, Who, World, launcher, made_world
from veiltab.common.release.state import ReleaseState
from veiltab.play.local.processes import free_ports

pytestmark = pytest.mark.long
SURE = 1e-6  # level at which an answer is wrong
PARTIES = (*((RELAY,) if THROUGH_RELAY else ()), ALICE, BOB, CLOUD, ROSA)
ROUGH = Weather(delay=0.02, loss=0.05, cut=0.005)
RELEASES = 10
Record = Callable[[str, object], None]


@contextmanager
def behind_proxies(folder: Path, weather: Weather, seed: str) -> Iterator[tuple[World, Mapping[Who, Proxy]]]:
    """Start a study whose parties reach one another through proxies alone."""
    world = made_world(folder / "study")
    with ExitStack() as stack:
        stack.enter_context(world.local)
        proxies = {}
        for who, port in zip(PARTIES, free_ports(len(PARTIES)), strict=True):
            if who[1] in THROUGH_RELAY:
                world.local.start(*who, launcher=launcher("chunk=400"))
                continue
            relay = world.local.study.relay
            endpoint = relay.endpoint if who == RELAY and relay is not None else world.local.endpoint(*who)
            found = int(endpoint.rpartition(":")[2])
            chance = random.Random(f"{seed} {who}")  # noqa: S311 - it decides about pieces
            proxy = Proxy(found, port, weather, chance)
            proxies[who] = stack.enter_context(closing(proxy))
            points = ["chunk=400"]
            if who == RELAY:
                world.local.options[who] = ("--listen", f"127.0.0.1:{port}")
            else:
                points.append(f"listen=localhost:{port}")
            world.local.start(*who, launcher=launcher(*points))
        for who in PARTIES:
            world.local.wait_for(*who)
        yield world, proxies


def check(world: World, release_id: str) -> None:
    with world.client() as client:
        release = client.release(release_id)
        assert release.wait(120).state is ReleaseState.READY
        assert agreement(release.estimate(), world.people.counts(FREE)) > SURE
    assert [world.charges(curator).count(release_id) for curator in ("alice", "bob")] == [1, 1]


def test_releases_outlive_delay_loss_and_broken_connections(tmp_path: Path, record_property: Record) -> None:
    seed = secrets.token_hex(4)
    print(f"seed {seed}")  # noqa: T201 - which pieces were hit
    seconds = []
    with behind_proxies(tmp_path, ROUGH, seed) as (world, proxies):
        for _ in range(RELEASES):
            began = time.monotonic()
            with world.client() as client:
                release_id = client.request(FREE, epsilon="4", label=world.label()).id
            check(world, release_id)
            seconds.append(time.monotonic() - began)
        lost, cuts = (sum(getattr(proxy, name) for proxy in proxies.values()) for name in ("lost", "cuts"))
    assert min(lost, cuts) > 0
    record_property(
        "figure",
        f"{RELEASES} releases over {1000 * ROUGH.delay:g} ms links with {lost} lost packets and {cuts} broken"
        f" connections, the slowest in {max(seconds):.1f} s",
    )


@pytest.mark.parametrize("lasting", [3.0, 30.0])
@pytest.mark.parametrize("who", [ALICE, BOB, CLOUD], ids=lambda who: who[1])
def test_a_release_goes_on_when_a_partition_ends(
    tmp_path: Path, who: Who, lasting: float, record_property: Record
) -> None:
    with behind_proxies(tmp_path, Weather(delay=0.005), "0") as (world, proxies), world.client() as client:
        with proxies[RELAY if who[1] in THROUGH_RELAY else who].partition():
            release = client.request(FREE, epsilon="4", label=world.label())
            time.sleep(lasting)
            assert not release.status().state.finished
        healed = time.monotonic()
        check(world, release.id)
        seconds = time.monotonic() - healed
    record_property("figure", f"{seconds:.1f} s after a partition of {lasting:g} s from {who[1]}")
