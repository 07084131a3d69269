"""Releases through the containers: the right answer, also when a party is killed or out of reach in the middle."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from veiltab.common.study.file import load_study
from veiltab.deploy.compose.stack import PARTIES, Stack, require, until
from veiltab.deploy.studies.adult_tables import truth

ATTRIBUTES = "education,marital,sex,salary"
EPSILON, DELTA = "0.5", "1e-6"

LARGEST_Z = 5.8
"""No estimate is farther from the truth, in standard errors: alpha = 24 cells * 6.6e-9 = 1.6e-7 a release."""


def release(stack: Stack) -> str:
    """A release through the containers gives the right answer."""
    return right_answer(stack, ask(stack, "first", wait=True))


def curator_killed(stack: Stack) -> str:
    """A curator that is killed when it has charged goes on with the same release, charged once."""
    stack.cut("bob", "ingest")
    try:
        asked = ask(stack, "curator-killed")
        # bob cannot reach the server, so he has not charged, and no seed exists.
        until(lambda: _other_than(stack, "curator-killed", {"curator alice": "charged", "curator bob": "planned"}), 60)
        stack.kill("alice")
        stack.start("alice")
    finally:
        stack.mend("bob", "ingest")
    went_on = ask(stack, "curator-killed", wait=True)
    require(went_on["release"]["id"] == asked["release"]["id"], "it is another release")
    for name in ("alice", "bob"):
        entries = stack.curator(name, "ledger")["entries"]
        charges = sum(entry["release"] == asked["release"]["id"] for entry in entries)
        require(charges == 1, f"{name} charged it {charges} times")
    return f"charged once; {right_answer(stack, went_on)}"


def server_killed(stack: Stack) -> str:
    """A server that is killed with all columns, before they were fetched, goes on with the same release."""
    stack.cut("rosa", "results")
    try:
        asked = ask(stack, "server-killed")
        until(lambda: _other_than(stack, "server-killed", {"curator alice": "ready", "curator bob": "ready"}), 60)
        stack.kill("cloud")
        stack.start("cloud")
    finally:
        stack.mend("rosa", "results")
    went_on = ask(stack, "server-killed", wait=True)
    require(went_on["release"]["id"] == asked["release"]["id"], "it is another release")
    return right_answer(stack, went_on)


def network_cut(stack: Stack) -> str:
    """A release goes on by itself when its server was out of the curators' reach for ten seconds."""
    stack.cut("cloud", "ingest")
    try:
        asked = ask(stack, "network-cut")
        time.sleep(10)
        state = stack.researcher("status", "--release", "network-cut")["release"]["state"]
    finally:
        stack.mend("cloud", "ingest")
    require(state != "ready", "it was ready while the network was cut")
    began = time.monotonic()
    went_on = ask(stack, "network-cut", wait=True)
    require(went_on["release"]["id"] == asked["release"]["id"], "it is another release")
    return f"{right_answer(stack, went_on)}, {time.monotonic() - began:.0f} s after the network was back"


def switch_down(stack: Stack) -> str:
    """A release goes on by itself when nobody could reach a curator for ten seconds."""
    if not stack.engine.own:
        return "not tried: it needs an engine of our own"
    stack.switch("curators", "down")
    try:
        asked = ask(stack, "switch-down")
        time.sleep(10)
        state = stack.researcher("status", "--release", "switch-down")["release"]["state"]
    finally:
        stack.switch("curators", "up")
    require(state == "requested", f"it was {state} while nobody could reach a curator")
    began = time.monotonic()
    went_on = ask(stack, "switch-down", wait=True)
    require(went_on["release"]["id"] == asked["release"]["id"], "it is another release")
    return f"{right_answer(stack, went_on)}, {time.monotonic() - began:.0f} s after the network was back"


def quiet(stack: Stack) -> str:
    """After all that every party is healthy, was never restarted by the engine, and logged no incident."""
    stack.up()
    for party, service in PARTIES.items():
        found = stack.inspect(party)
        require(found["State"]["Health"]["Status"] == "healthy", f"{service} is not healthy")
        require(found["RestartCount"] == 0, f"{service} ended {found['RestartCount']} times by itself")
        require(not found["State"]["OOMKilled"], f"{service} ran out of memory")
    logged = stack.compose("logs", "--no-color").lower()
    told = [word for word in ("traceback", "incident") if word in logged]
    require(not told, f"the logs speak of {told}")
    return "healthy, no restarts, no incidents in the logs"


def orderly_end(stack: Stack) -> str:
    """Told to stop, every party ends by itself with exit code 0, and takes up its state when it starts again."""
    began = time.monotonic()
    stack.compose("stop")
    seconds = time.monotonic() - began
    codes = {party: stack.inspect(party)["State"]["ExitCode"] for party in PARTIES}
    require(set(codes.values()) == {0}, f"exit codes {codes}")
    stack.up()
    known = stack.researcher("status")["releases"]
    require({found["release"]["state"] for found in known} == {"ready"}, "releases were lost")
    return f"exit code 0 after {seconds:.1f} s; {len(known)} releases are there again"


def ask(stack: Stack, label: str, *, wait: bool = False) -> dict[str, Any]:
    """Ask for a release as rosa, or continue it."""
    patience = ("--wait", "--timeout", "150") if wait else ()
    asked = ("--attributes", ATTRIBUTES, "--epsilon", EPSILON, "--delta", DELTA, "--label", label)
    found = stack.researcher("request", *asked, *patience)
    require(not wait or found["release"]["state"] == "ready", f"it is {found['release']['state']}")
    return found


def right_answer(stack: Stack, asked: Mapping[str, Any]) -> str:
    """Compare a release's estimates with the true table."""
    cells = stack.researcher("estimate", "--release", asked["release"]["id"])["cells"]
    domain = load_study(stack.folder / "study.toml").domain(ATTRIBUTES.split(","))
    named = [dict(zip(domain.names, domain.categories_of(cell), strict=True)) for cell in range(domain.cells)]
    require([cell["cell"] for cell in cells] == named, "the cells are not those of the study")
    true = truth() / truth().sum()
    estimate, errors = (np.array([cell[name] for cell in cells]) for name in ("estimate", "se"))
    largest = float(np.max(np.abs(estimate - true) / errors))
    require(largest <= LARGEST_Z, f"an estimate is {largest:.1f} standard errors from the truth")
    # The comparison must be able to fail: neighbouring cells hold other people.
    require(float(np.max(np.abs(estimate - np.roll(true, 1)) / errors)) > LARGEST_Z, "any table would do")
    return f"error {np.linalg.norm(estimate - true):.5f}, at most {largest:.1f} standard errors"


def _other_than(stack: Stack, label: str, wanted: Mapping[str, str]) -> str:
    """Say how a release stands at some parties, unless it stands there as wanted."""
    known = stack.researcher("status", "--release", label)["parties"]
    states = {party: known.get(party, {}).get("state", "unknown") for party in wanted}
    return "" if states == dict(wanted) else f"{states}"
