"""What running parties tell of a release: one trace over all of them, metrics, status, and no secret anywhere."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.common.observe.collector import Collector, Span, collecting
from tests.common.observe.test_metrics import figures
from tests.protocol.test_secrets import Canaries, found, secrets_under_way
from tests.protocol.village import FREE
from tests.protocol.wire import connection
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, launcher, made_world
from veiltab.common.observe.tracing import root_of
from veiltab.common.release.modes import Pad, Sampling
from veiltab.play.local.processes import free_ports
from veiltab.v1.curator_peer_pb2 import HelloRequest
from veiltab.v1.curator_peer_pb2_grpc import CuratorPeerServiceStub

pytestmark = pytest.mark.long

WHO = (ALICE, BOB, CLOUD, ROSA)
LAUNCHER = Path(__file__).with_name("observed_launcher.py")
CURATORS = ("curator alice", "curator bob")


@dataclass(frozen=True, kw_only=True)
class Told:
    """All that the parties told.

    Args:
        world: the study.
        release: the release that is ready.
        held: a release that waits for a person.
        canaries: the secrets of `release` while it was under way.
        early: what Alice said of herself while the server was away.
        statuses: party -> what it says at the end, as JSON.
        metrics: party -> what it serves at the end.
        refusals: how many the server that serves its metrics had logged just before, and just after.
        collector: what the parties sent their spans to.
    """

    world: World
    release: str
    held: str
    canaries: Canaries
    early: dict[str, Any]
    statuses: dict[Who, dict[str, Any]]
    metrics: dict[Who, str]
    refusals: tuple[int, int]
    collector: Collector


def status(world: World, who: Who, *options: str) -> str:
    """Ask a party what it does, by a process of its own."""
    folder = world.local.identity_folder(*who)
    words = ["status", str(world.local.study_path), "--identity", str(folder), *options]
    done = subprocess.run(
        [sys.executable, "-m", "veiltab", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text: str = answer.read().decode()
    return text


def refusals(world: World) -> int:
    """Return how often the server refused a call since it was started the second time."""
    return world.log(CLOUD).partition("metrics at http://")[2].count(" refused to veiltab://")


async def refused_as_no_curator(world: World, who: Who) -> None:
    """Ask a curator what it answers other curators alone."""
    async with connection(world, ROSA, who) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED"):
            await CuratorPeerServiceStub(channel).Hello(HelloRequest(), timeout=20)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("told")
    ports = dict(zip(WHO, free_ports(len(WHO)), strict=True))
    world = made_world(folder / "study")
    world.local.launcher = (sys.executable, str(LAUNCHER), str(folder))
    with collecting() as collector, world.local:
        places = {name: port for (_, name), port in ports.items()} | {"collector": collector.endpoint}
        (folder / "ports.json").write_text(json.dumps(places))
        world.start(ALICE, BOB, ROSA)
        # The server dies at the first upload: the curators hold every secret of the release then.
        world.start(CLOUD, how=launcher("veiltab.server.release.receiving:ColumnUpload:1,verbose"))
        with world.client() as client:
            release = client.request(FREE, epsilon="4", sampling=Sampling.SEED, pad=Pad.CHACHA20, label=world.label())
        world.wait_for_kill(CLOUD)
        world.wait_for_state("alice", release.id, "uploading")
        world.wait_for_state("bob", release.id, "uploading")
        canaries = secrets_under_way(world, release.id)
        world.wait_until(lambda: "server cloud" in status(world, ALICE))
        early = json.loads(status(world, ALICE, "--json"))
        world.start(CLOUD)
        with world.client() as client:
            client.release(release.id).wait(40)
            held = client.request(("region", "health"), epsilon="1", label=world.label())
        for curator in (ALICE, BOB):
            asyncio.run(refused_as_no_curator(world, curator))
        world.wait_for_state("alice", held.id, "approved")
        world.wait_until(lambda: "a person decides" in status(world, BOB))
        world.wait_until(lambda: has_ended(collector.spans(), release.id))
        before = refusals(world)
        metrics = {who: scraped(port) for who, port in ports.items()}
        yield Told(
            world=world,
            release=release.id,
            held=held.id,
            canaries=canaries,
            early=early,
            statuses={who: json.loads(status(world, who, "--json")) for who in WHO},
            metrics=metrics,
            refusals=(before, refusals(world)),
            collector=collector,
        )


@pytest.fixture(scope="module")
def spans(told: Told) -> tuple[Span, ...]:
    """The spans of the release, of all parties."""
    return tuple(span for span in told.collector.spans() if span.trace == told.release)


def has_ended(spans: tuple[Span, ...], release: str) -> bool:
    """Return whether the last steps of a release at every party are there."""
    ends = Counter((span.name, span.party) for span in spans if span.trace == release)
    return (
        ends["release", "researcher rosa"] == 1
        and ends["send column", "server cloud"] == len(FREE)
        and all(ends["give key", party] == 2 and ends["state perturbing", party] == 1 for party in CURATORS)
    )


def of(spans: tuple[Span, ...], name: str, party: str = "") -> list[Span]:
    """Return the spans of a step, of one party or of all."""
    chosen = [span for span in spans if span.name == name and party in {"", span.party}]
    assert chosen, f"{name} of {party or 'anyone'}"
    return chosen


def check_order(spans: tuple[Span, ...], *steps: tuple[str, str]) -> None:
    """See that each step, of a party, begins after the one before it ended."""
    for before, after in pairwise(steps):
        ended, begins = max(s.end for s in of(spans, *before)), min(s.start for s in of(spans, *after))
        # Ends are read off the wall clock, durations off a steadier one.
        assert begins >= ended - 5_000_000, (before, after)


# Traces


def test_a_release_is_one_trace_over_four_parties(told: Told, spans: tuple[Span, ...]) -> None:
    assert {span.party for span in spans} == {*CURATORS, "server cloud", "researcher rosa"}
    (root,) = of(spans, "release")
    assert (root.party, root.span, root.parent) == ("researcher rosa", root_of(told.release), "")
    assert {span.parent for span in spans if span is not root} == {root.span}
    assert len({span.span for span in spans}) == len(spans)
    assert root.facts["outcome"] == "ready"
    # Nobody who waits for the result waits for the certificate.
    own = [span for span in spans if span.party == "researcher rosa" and span.name != "certify"]
    assert [span for span in own if span.start < root.start or span.end > root.end + 5_000_000] == []


def test_every_step_is_there_once_a_column(told: Told, spans: tuple[Span, ...]) -> None:
    for party in CURATORS:
        for name in ("plan", "announce", "charge", "toss", "draw", "upload"):
            assert len(of(spans, name, party)) == 1, (name, party)
        own = {a for a in FREE if told.world.local.study.owner_of(a) == party.partition(" ")[2]}
        for name in ("encrypt", "give key"):
            assert {span.facts["attribute"] for span in of(spans, name, party)} == own
        assert [span.facts["bytes"] for span in of(spans, "give key", party)] == [32, 32]
        states = [span.name for span in spans if span.party == party and span.name.startswith("state ")]
        assert states == [
            f"state {s}" for s in ("requested", "approved", "planned", "charged", "uploading", "perturbing")
        ]
    for name in ("perturb", "publish"):
        assert len(of(spans, name, "server cloud")) == 1
    for name, party in (("send column", "server cloud"), ("fetch column", "researcher rosa")):
        assert {span.facts["attribute"] for span in of(spans, name, party)} == set(FREE)
    sizes = {span.facts["attribute"]: span.facts["bytes"] for span in of(spans, "fetch column")}
    assert {span.facts["attribute"]: span.facts["bytes"] for span in of(spans, "encrypt")} == sizes
    assert {span.facts["attribute"] for span in of(spans, "fetch key")} == set(FREE)
    assert len(of(spans, "count", "researcher rosa")) == 1


def test_steps_are_in_the_order_of_the_protocol(spans: tuple[Span, ...]) -> None:
    for party in CURATORS:
        check_order(spans, *((name, party) for name in ("plan", "announce", "charge", "toss", "draw", "encrypt")))
    # Everyone has charged before anyone knows the seed; everything is here before anything is perturbed.
    check_order(spans, ("charge", ""), ("draw", ""), ("encrypt", ""), ("perturb", ""), ("publish", ""))
    check_order(spans, ("take column", ""), ("perturb", ""), ("publish", ""), ("fetch column", ""))
    check_order(spans, ("fetch column", ""), ("fetch key", ""), ("count", ""))


# Metrics


def test_every_party_serves_its_metrics(told: Told) -> None:
    for who, text in told.metrics.items():
        found = figures(text)
        assert found["veiltab_releases", "ready"] == 1, who
        assert found["veiltab_certificate_end_seconds",] > 1.7e9
        assert found["process_resident_memory_bytes",] > 1e7
        assert any(key[0] == "veiltab_party" and who[1] in key for key in found)
        assert any(key[0] == "veiltab_step_seconds_count" for key in found)
        assert any(key[0] == "veiltab_refused_rpcs_total" for key in found) or who in {CLOUD, ROSA}
        assert told.release not in text
        assert not any(attribute in text for attribute in FREE)


def test_metrics_have_sane_values(told: Told, spans: tuple[Span, ...]) -> None:
    alice, bob, cloud, rosa = (figures(told.metrics[who]) for who in WHO)
    for curator in (alice, bob):
        assert curator["veiltab_budget_epsilon", "respondents", "village"] == 1000
        assert curator["veiltab_step_seconds_count", "done", "encrypt"] == 2
        assert curator["veiltab_bytes_total", "encrypt"] == curator["veiltab_bytes_total", "upload"] > 0
        assert curator["veiltab_bytes_total", "give key"] == 64
        assert curator["veiltab_state_seconds_count", "charged"] == 1
    # Bob looks his people up among the hub's, and she fetches nothing.
    assert bob["veiltab_bytes_total", "fetch tokens"] == 16 * 1500
    assert ("veiltab_bytes_total", "fetch tokens") not in alice
    # Alice has nothing planned of the request that Bob holds, so nothing is kept for it.
    assert 995 < alice["veiltab_budget_left_epsilon", "respondents", "village"] < 1000
    assert bob["veiltab_queue_depth", "held requests"] == bob["veiltab_releases", "requested"] == 1
    assert alice["veiltab_queue_depth", "held requests"] == 0
    assert alice["veiltab_queue_depth", "releases"] == alice["veiltab_releases", "approved"] == 1
    assert cloud["veiltab_step_seconds_count", "done", "perturb"] == 1
    assert cloud["veiltab_queue_depth", "perturbations"] == 0
    assert cloud["veiltab_bytes_total", "take column"] == cloud["veiltab_bytes_total", "send column"] > 0
    (root,) = of(spans, "release")
    assert rosa["veiltab_step_seconds_count", "ready", "release"] == 1
    assert rosa["veiltab_step_seconds_sum", "ready", "release"] == pytest.approx(root.seconds, abs=1e-3)
    refused = sum(value for key, value in cloud.items() if key[0] == "veiltab_refused_rpcs_total")
    assert told.refusals[0] <= refused <= told.refusals[1]


# Status


def test_a_party_says_what_it_waits_for(told: Told) -> None:
    (early,) = [work for work in told.early["work"] if work["kind"] == "release"]
    assert (early["id"], early["state"]) == (told.release, "uploading")
    assert "server cloud" in early["waiting_for"]
    bob = next(work for work in told.statuses[BOB]["work"] if work["id"] == told.held)
    assert bob["state"] == "requested"
    assert "a person decides about health" in bob["waiting_for"]
    alice = next(work for work in told.statuses[ALICE]["work"] if work["id"] == told.held)
    assert (alice["state"], "curator bob" in alice["waiting_for"]) == ("approved", True)
    rosa = next(work for work in told.statuses[ROSA]["work"] if work["id"] == told.held)
    assert rosa["waiting_for"].count("curator bob: a person decides about health") == 1
    assert "curator bob: curator bob" not in rosa["waiting_for"]


# Logs and secrets


def test_logs_are_json_and_calls_have_ids(told: Told) -> None:
    for who in WHO:
        log = told.world.log(who)
        assert log.endswith("\n")
        notes = ("metrics at ", "policy: ", "reading ", "table: ", f"{who[0].value} {who[1]} ")
        lines = [line for line in log.splitlines() if not line.startswith(notes)]
        parsed = [json.loads(line) for line in lines]
        assert any(f"{who[0].value} {who[1]} serves on port" in line for line in log.splitlines())
        refused = [line for line in parsed if "refused to" in line["message"]]
        assert all(len(line["request"]) == 16 and line["reason"] and line["rpc"] for line in refused)
        assert len({line["request"] for line in refused}) == len(refused)
    taken = [line for line in told.world.log(CLOUD).splitlines() if '"take column"' in line]
    assert len(taken) == len(FREE)
    assert all(json.loads(line)["request"] for line in taken)


def test_nothing_that_is_told_holds_a_secret(told: Told) -> None:
    canaries = told.canaries
    said = {
        **{f"log of {who}": told.world.log(who).encode() for who in WHO},
        **{f"metrics of {who}": text.encode() for who, text in told.metrics.items()},
        "spans": b"".join(told.collector.messages),
        **{f"status of {who}": json.dumps(status).encode() for who, status in told.statuses.items()},
        "early status": json.dumps(told.early).encode(),
    }
    assert all(said.values())
    every = (canaries.ids, canaries.tokens, canaries.seeds, canaries.keys, canaries.ciphertext, canaries.plaintext)
    assert all(every)
    assert found(said, *every) == []
    assert [name for name, data in said.items() if told.world.mentions(data.decode(errors="replace"))] == []
    assert found({"a line": next(iter(canaries.keys.values())).hex().encode()}, canaries.keys), "it would be found"
