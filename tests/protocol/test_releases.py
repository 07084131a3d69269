"""A release from the request to the estimate, in all its variants, with the truth beside it."""

import json
import os
import signal
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from tests.protocol.chance import agreement, confirmed
from tests.protocol.village import FREE, Rules
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World, launcher, made_world
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.rpc.parties.identity import Role

N, CANARIES = 1500, 600
KEPT = {"certificate", "histogram.bin"}
RELEASES = 5
CURATORS = {"rpc": 4.0, "write": 31.0, "fsync": 4.5, "call": 11_900.0}
WORK = {
    ALICE: CURATORS,
    BOB: CURATORS,
    CLOUD: {"rpc": 8.4, "write": 6.3, "fsync": 10.0, "call": 6_240.0},
    ROSA: {"rpc": 4.5, "write": 10.5, "fsync": 5.5, "call": 9_850.0},
}
"""Most RPCs, changes of its database, fsyncs and calls of a party in a small release: some 5% above what it takes."""


def forgotten(world: World, release_id: str, pad: Pad) -> bool:
    """Whether the curators hold nothing of a release that is over but the one-time pads, which are keys."""
    for curator in ("alice", "bob"):
        folder = world.local.state_folder(Role.CURATOR, curator) / "releases" / release_id
        own = sorted(f"{name}.pad" for name in FREE if world.local.study.owner_of(name) == curator)
        with world.store(curator) as store:
            coin = store.coins.coin_value(f"release/{release_id}")
        files = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        if coin is not None or files != (own if pad is Pad.OTP else []):
            return False
    return not world.leftovers()


@pytest.mark.parametrize("sampling", list(Sampling))
@pytest.mark.parametrize("pad", list(Pad))
def test_two_curators_release_the_table_they_share(village: World, sampling: Sampling, pad: Pad) -> None:
    """Rows of data are estimated, canaries test the server, and the desk keeps counts alone."""
    before = village.charges("alice")
    truth = village.people.counts(FREE)
    desk = village.local.state_folder(*ROSA) / "releases"

    def release() -> float:
        with village.client() as client:
            asked = client.request(
                FREE,
                epsilon="4",
                sampling=sampling,
                pad=pad,
                noise_split="0.5",
                canaries=CANARIES,
                label=village.label(),
            )
            status, estimate = asked.wait(40), asked.estimate()
            spec = status.description().table(0)
            assert (spec.population, spec.sample, spec.canaries, spec.cells) == (N, N, CANARIES, 36)
            assert (spec.sampling, spec.pad, status.granted) == (sampling, pad, FREE)
            assert spec.curator_replacement > 0
            by_server = sampling is Sampling.SERVER
            canaries = spec.sample - estimate.design.sample if by_server else CANARIES
            assert (0 < canaries < CANARIES) or not by_server
            assert [receipt.curator for receipt in status.receipts] == ["alice", "bob", ""]
            for receipt in status.receipts:
                assert (receipt.passed, receipt.canaries) == (True, canaries)
                assert receipt.receipt is not None
                assert is_right(receipt.receipt, spec)
            assert village.charges("alice")[-1] == village.charges("bob")[-1] == asked.id
            village.wait_until(lambda: forgotten(village, asked.id, pad))
            village.wait_until(lambda: {one.name for one in (desk / asked.id).iterdir()} == KEPT)
            return agreement(estimate, truth)

    assert not confirmed(release)
    assert len(village.charges("alice")) - len(before) in {1, 2}


def test_the_plan_is_the_planner_s_and_the_sample_what_was_asked_for(village: World) -> None:
    names = ("region", "smoker")
    truth = village.people.counts(names)

    def release(epsilon: str, sample: int | None, sampling: Sampling = Sampling.SEED) -> float:
        with village.client() as client:
            asked = client.request(names, epsilon=epsilon, sample=sample, sampling=sampling, label=village.label())
            spec = asked.wait(30).description().table(0)
            plan = plan_release(population=N, cells=6, epsilon=Decimal(epsilon), sample=sample)
            assert (spec.sample, spec.server_replacement) == (plan.sample, plan.mechanism.server_replacement)
            assert guaranteed_epsilon(spec) <= Decimal(epsilon)
            assert len(village.published(asked.id)["region"]) == spec.published_rows
            by_server = sampling is Sampling.SERVER
            assert spec.published_rows == (spec.sample if by_server else spec.sample + spec.canaries)
            assert spec.canaries > 0
            return agreement(asked.estimate(), truth)

    assert not confirmed(lambda: release("3", 700))
    assert not confirmed(lambda: release("3", 800, Sampling.SERVER))
    assert plan_release(population=N, cells=6, epsilon=Decimal(1)).sample < N
    assert not confirmed(lambda: release("1", None))


@pytest.mark.parametrize("alignment", ["oblivious", pytest.param("tokens", marks=pytest.mark.long)])
def test_rows_are_the_hub_s_and_estimates_of_the_people_who_are_present(tmp_path: Path, alignment: str) -> None:
    """Of alice's 1550 people bob has 1500, and 50 others; bob alone knows that."""
    world = made_world(tmp_path / "study", rules=Rules(alignment=alignment, complete=False))
    truth = world.people.counts(("region", "income"))

    def release() -> float:
        with world.client() as client:
            asked = client.request(("region", "income"), epsilon="2", delta="1e-6", label=world.label())
            spec = asked.wait(30).description().table(0)
            assert (spec.population, spec.cells) == (N + 50, 3 * 4)
            estimate = asked.estimate()
            assert abs(estimate.design.people - N) < 50
            return agreement(estimate, truth)

    with world.local:
        world.local.start_all()
        assert not confirmed(release)
        with world.store("alice") as alice, world.store("bob") as bob:
            assert alice.alignments.latest_alignment() == bob.alignments.latest_alignment()
            assert bob.alignments.matched() == N


def work_so_far(world: World, pipes: dict[Who, Path]) -> dict[Who, Counter[str]]:
    """Return what each party has done so far."""
    counts = {}
    for party, pipe in pipes.items():
        os.kill(world.local._running[party].pid, signal.SIGUSR1)
        counts[party] = Counter(json.loads(pipe.read_text("utf-8")))
    return counts


def test_a_small_release_takes_no_more_work_than_is_allowed(tmp_path: Path) -> None:
    world = made_world(tmp_path / "study", rules=Rules(alignment="tokens"))
    pipes = {party: tmp_path / party[1] for party in WORK}

    def release(number: int) -> None:
        with world.client() as client:
            for _ in range(number):
                asked = client.request(FREE, epsilon="1", label=world.label())
                asked.wait(60)
                asked.certificate()

    with world.local:
        for party, pipe in pipes.items():
            os.mkfifo(pipe)
            world.local.start(*party, launcher=launcher(f"work={pipe}"))
        for party in pipes:
            world.local.wait_for(*party)
        release(1)  # every process has done all of it once
        before = work_so_far(world, pipes)
        release(RELEASES)
        taken = {party: counts - before[party] for party, counts in work_so_far(world, pipes).items()}
    for party, most in WORK.items():
        a_release = {kind: count / RELEASES for kind, count in taken[party].items()}
        assert all(a_release.get(kind, 0) <= number for kind, number in most.items()), (party, a_release)
