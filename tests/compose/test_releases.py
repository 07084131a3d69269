"""Releases through the containers: the right answer, also when a party is killed or out of reach in the middle."""

import time
from collections.abc import Mapping

import pytest

from tests.compose.marks import COMPOSE, Remark
from tests.compose.releases import ask, compared_with_truth
from tests.compose.stack import Stack, until

pytestmark = COMPOSE


def test_a_release_gives_the_right_answer(stack: Stack, remark: Remark) -> None:
    remark(compared_with_truth(stack, ask(stack, "first", wait=True)))


def test_a_curator_killed_after_its_charge_continues_and_charges_once(stack: Stack, remark: Remark) -> None:
    stack.disconnect("bob", "ingest")
    try:
        asked = ask(stack, "curator-killed")
        # bob cannot reach the server, so he has not charged, and no seed exists.
        _wait_until(stack, "curator-killed", {"curator alice": "charged", "curator bob": "planned"})
        stack.kill("alice")
        stack.start("alice")
    finally:
        stack.reconnect("bob", "ingest")
    continued = ask(stack, "curator-killed", wait=True)
    assert continued["release"]["id"] == asked["release"]["id"], "it is another release"
    for name in ("alice", "bob"):
        entries = stack.curator(name, "ledger")["entries"]
        charges = sum(entry["release"] == asked["release"]["id"] for entry in entries)
        assert charges == 1, f"{name} charged it {charges} times"
    remark(f"charged once; {compared_with_truth(stack, continued)}")


def test_a_server_killed_with_all_columns_continues(stack: Stack, remark: Remark) -> None:
    stack.disconnect("rosa", "results")
    try:
        asked = ask(stack, "server-killed")
        _wait_until(stack, "server-killed", {"curator alice": "ready", "curator bob": "ready"})
        stack.kill("cloud")
        stack.start("cloud")
    finally:
        stack.reconnect("rosa", "results")
    continued = ask(stack, "server-killed", wait=True)
    assert continued["release"]["id"] == asked["release"]["id"], "it is another release"
    remark(compared_with_truth(stack, continued))


def test_a_release_survives_ten_seconds_without_the_servers_network(stack: Stack, remark: Remark) -> None:
    stack.disconnect("cloud", "ingest")
    try:
        asked = ask(stack, "network-cut")
        time.sleep(10)
        state = stack.researcher("status", "--release", "network-cut")["release"]["state"]
    finally:
        stack.reconnect("cloud", "ingest")
    assert state != "ready", "it was ready while the network was cut"
    began = time.monotonic()
    continued = ask(stack, "network-cut", wait=True)
    assert continued["release"]["id"] == asked["release"]["id"], "it is another release"
    remark(f"{compared_with_truth(stack, continued)}, {time.monotonic() - began:.0f} s after the network was back")


def test_a_release_survives_ten_seconds_without_the_curators_network(stack: Stack, remark: Remark) -> None:
    if not stack.engine.own:
        pytest.skip("only an engine of our own lets us set its bridges")
    stack.set_bridge("curators", "down")
    try:
        asked = ask(stack, "bridge-down")
        time.sleep(10)
        state = stack.researcher("status", "--release", "bridge-down")["release"]["state"]
    finally:
        stack.set_bridge("curators", "up")
    assert state == "requested", f"it was {state} while nobody could reach a curator"
    began = time.monotonic()
    continued = ask(stack, "bridge-down", wait=True)
    assert continued["release"]["id"] == asked["release"]["id"], "it is another release"
    remark(f"{compared_with_truth(stack, continued)}, {time.monotonic() - began:.0f} s after the network was back")


def _wait_until(stack: Stack, label: str, states: Mapping[str, str]) -> None:
    """Return once a release has a state at each of some parties."""

    def others() -> str:
        known = stack.researcher("status", "--release", label)["parties"]
        seen = {party: known.get(party, {}).get("state", "unknown") for party in states}
        return "" if seen == dict(states) else f"{seen}"

    until(others, within=60)
