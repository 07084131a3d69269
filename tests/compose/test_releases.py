"""Releases through the containers: the right answer, also when a party is killed or out of reach in the middle."""

import time
from collections.abc import Mapping

from tests.compose.marks import COMPOSE, Remark
from tests.compose.releases import ask, compared_with_truth
from tests.compose.stack import Stack, until

pytestmark = COMPOSE


def test_a_release_gives_the_right_answer(stack: Stack, remark: Remark) -> None:
    remark(compared_with_truth(stack, ask(stack, "first", wait=True)))


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


def _wait_until(stack: Stack, label: str, states: Mapping[str, str]) -> None:
    """Return once a release has a state at each of some parties."""

    def others() -> str:
        known = stack.researcher("status", "--release", label)["parties"]
        seen = {party: known.get(party, {}).get("state", "unknown") for party in states}
        return "" if seen == dict(states) else f"{seen}"

    until(others, within=60)
