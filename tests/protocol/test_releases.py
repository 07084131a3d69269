"""A release from the request to the estimate, in all its variants, with the truth beside it."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.protocol.chance import agreement, confirmed
from tests.protocol.village import FREE, THREE
from tests.protocol.world import ALICE, ROSA, World, made_world
from veiltab.common.privacy.coalitions import Coalition
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.parties.identity import Role

N = 1500


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
    before = village.charges("alice")
    truth = village.people.counts(FREE)

    def release() -> float:
        with village.client() as client:
            asked = client.request(FREE, epsilon="4", sampling=sampling, pad=pad, label=village.label())
            spec = asked.wait(30).description().table(0)
            assert (spec.population, spec.sample, spec.cells) == (N, N, 36)
            assert (spec.sampling, spec.pad, asked.status().granted) == (sampling, pad, FREE)
            assert village.charges("alice")[-1] == village.charges("bob")[-1] == asked.id
            village.wait_until(lambda: forgotten(village, asked.id, pad))
            return agreement(asked.estimate(), truth)

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


@pytest.mark.long
def test_the_command_line_says_what_was_released(village: World, tmp_path: Path) -> None:
    asked = village.ask(
        FREE, "--wait", "--timeout", "30", "--label", "from the command line", "--purpose", "a test", alone=True
    )
    assert asked.code == 0, asked.errors
    release = asked.data["release"]
    assert (release["n"], release["m"], release["cells"], release["state"]) == (N, N, 36, "ready")
    assert release["guaranteed_epsilon"] <= 4
    assert [bound["coalition"] for bound in release["card"]] == [list(coalition.value) for coalition in Coalition]
    again = village.ask(FREE, "--wait", "--label", "from the command line", "--purpose", "a test", alone=True)
    assert (again.data["release"]["id"], again.data["continued"]) == (release["id"], True)
    assert village.charges("alice").count(release["id"]) == village.charges("bob").count(release["id"]) == 1
    common = (village.local.study_path, "--name", "rosa", "--identity", village.local.identity_folder(*ROSA))
    named = ("--release", "from the command line")
    estimate = village.command(
        "researcher", "estimate", *common, *named, "--attributes", "region", "--out", tmp_path / "e.csv", alone=True
    )
    assert estimate.code == 0, estimate.errors
    assert len(estimate.data["cells"]) == len((tmp_path / "e.csv").read_text().splitlines()) - 1 == 3
    shares = village.command(
        "researcher", "estimate", *common, *named, "--attributes", "region,income", "--given", "region", alone=True
    )
    assert shares.code == 0, shares.errors
    assert sum(row["estimate"] for row in shares.data["rows"]) == pytest.approx(3)
    refused = village.command("researcher", "estimate", *common, *named, "--model", "income ~ height", alone=True)
    assert (refused.code, refused.data["error"]["where"]) == (2, "model")
    report = village.command("researcher", "report", *common, *named, "--out", tmp_path / "r.html", alone=True)
    assert report.code == 0, report.errors
    assert "<html" in (tmp_path / "r.html").read_text().lower()


@pytest.mark.long
def test_three_curators_release_the_table_they_share(tmp_path: Path) -> None:
    world = made_world(tmp_path / "study", owners=THREE)
    truth = world.people.counts(FREE)
    with world.local:
        world.local.start_all()
        for sampling, pad in ((Sampling.SEED, Pad.CHACHA20), (Sampling.INDICES, Pad.OTP)):

            def release(sampling: Sampling = sampling, pad: Pad = pad) -> float:
                with world.client() as client:
                    asked = client.request(FREE, epsilon="4", sampling=sampling, pad=pad, label=world.label())
                    status = asked.wait(30)
                    assert status.state is ReleaseState.READY
                    assert all(asked.id in world.charges(name) for name in ("alice", "bob", "carol"))
                    return agreement(asked.estimate(), truth)

            assert not confirmed(release)
        world.wait_until(lambda: not world.leftovers())
        charged = [world.charges(name) for name in ("alice", "bob", "carol")]
        assert all(len(set(ids)) == len(ids) for ids in charged)
    with world.local:
        # Nobody holds the folder of a party that was stopped.
        world.start(ALICE)
