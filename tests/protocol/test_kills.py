"""Parties that are killed at named points and started again: the same release goes on, once."""

import asyncio
import json
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.protocol.chance import agreement
from tests.protocol.village import FREE, Rules
from tests.protocol.wire import Published, connection
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, Who, World, launcher, made_world
from veiltab.common.errors import UnavailableError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState

TESTS = "veiltab.curator.records.server_tests:ServerTests"
SURE = 1e-6  # level at which an answer is wrong


@dataclass(frozen=True, kw_only=True)
class Kill:
    """Who is killed and where, whether the release is published by then, and what it is."""

    who: Who
    point: str
    published: bool = False
    sampling: Sampling = Sampling.SEED
    pad: Pad = Pad.CHACHA20
    sample: int | None = None


QUICK = {
    "server, uploading": Kill(who=CLOUD, point="veiltab.server.release.upload:ColumnUpload.write:2"),
    "server, having sampled": Kill(
        who=CLOUD,
        point="veiltab.server.release.perturbation:_write_columns:1:after",
        sampling=Sampling.SERVER,
        sample=900,
    ),
    "server, after the rename": Kill(who=CLOUD, point="veiltab.server.records.store:ServerStore.publish:1"),
    "server, published": Kill(
        who=CLOUD, point="veiltab.server.records.store:ServerStore.publish:1:after", published=True
    ),
    "curator, charged": Kill(who=ALICE, point="veiltab.curator.budget.ledger:Ledger.charge:1:after"),
    "curator, encrypting": Kill(who=BOB, point="veiltab.curator.columns.encryption:ColumnEncryption._write:2"),
    "curator, testing": Kill(
        who=ALICE, point="veiltab.curator.records.server_tests:ServerTests.record_publication:1:after"
    ),
    "curator, between its tests": Kill(
        who=ALICE, point=f"{TESTS}.set_receipt:1:after", sampling=Sampling.SERVER, sample=900
    ),
    "curator, testing together": Kill(
        who=BOB, point="veiltab.curator.records.server_tests:ServerTests.set_joint_receipt:1"
    ),
    "curator, uploading": Kill(who=BOB, point="veiltab.common.rpc.chunks:chunk_of:3"),
    "researcher, fetching": Kill(who=ROSA, point="veiltab.common.rpc.peer:verify:3"),
}

IN_EVERY_RUN = {"curator, encrypting", "researcher, fetching"}
"""Those of them that are no long tests."""

LONG = [
    *(
        Kill(who=CLOUD, point=f"{point}{when}")
        for when in ("", ":after")
        for point in (
            "veiltab.server.release.releases:Releases.open_release:1",
            "veiltab.server.release.releases:Releases.open_release:2",
            "veiltab.server.release.receiving:ColumnUpload:1",
            "veiltab.server.release.receiving:ColumnUpload:4",
            "veiltab.server.release.upload:ColumnUpload.write:1",
            "veiltab.server.release.upload:ColumnUpload.finish:1",
            "veiltab.server.records.store:ServerStore.complete_columns:1",
            "veiltab.server.records.store:ServerStore.complete_columns:2",
        )
    ),
    Kill(who=CLOUD, point="veiltab.server.release.perturbation:_write_columns:1"),
    Kill(who=CLOUD, point="veiltab.server.release.perturbation:_write_columns:1:after"),
    Kill(who=CLOUD, point="veiltab.server.release.perturbation:perturb_chunk:1:after"),
    Kill(who=CLOUD, point="veiltab.server.release.releases:Releases._perturb:1:after", published=True),
    Kill(who=CLOUD, point="veiltab.common.rpc.chunks:chunk_of:2", published=True),
    *(
        Kill(who=who, point=f"{point}{when}")
        for who in (ALICE, BOB)
        for when in ("", ":after")
        for point in (
            "veiltab.curator.records.releases:Releases.add:1",
            "veiltab.curator.records.decided:Decisions.decide:1",
            "veiltab.curator.budget.ledger:Ledger.reserve:1",
            "veiltab.curator.records.releases:Releases.set_planned:1",
            "veiltab.curator.budget.ledger:Ledger.charge:1",
            "veiltab.curator.records.coin_shares:CoinShares.own_share:1",
            "veiltab.curator.records.coin_shares:CoinShares.commit:1",
            "veiltab.curator.records.coin_shares:CoinShares.set_coin_value:1",
            "veiltab.curator.records.releases:Releases.set_sample_check:1",
            "veiltab.curator.columns.encryption:ColumnEncryption._write:1",
            "veiltab.curator.records.keys:Keys.spend_keys:1",
            "veiltab.curator.records.keys:Keys.spend_keys:2",
            "veiltab.common.rpc.chunks:chunk_of:1",
            "veiltab.common.rpc.chunks:chunk_of:5",
            "veiltab.curator.release.upload:ServerLink.upload:1",
            "veiltab.curator.records.keys:Keys.spend_shared_keys:1",
            "veiltab.curator.records.server_tests:ServerTests.record_publication:1",
            "veiltab.curator.records.server_tests:ServerTests.set_receipt:1",
            "veiltab.curator.release.server_check:ServerCheck.changes:1",
            f"{TESTS}.set_joint_receipt:1",
            "veiltab.curator.columns.encryption:ColumnEncryption.forget_ciphertext:1",
        )
    ),
    *(
        Kill(who=ROSA, point=f"{point}{when}")
        for when in ("", ":after")
        for point in (
            "veiltab.researcher.records.store:ResearcherStore.start:1",
            "veiltab.researcher.records.store:ResearcherStore.set_spec:1",
            "veiltab.common.rpc.peer:verify:1",
            "veiltab.common.rpc.peer:verify:9",
            "veiltab.researcher.receiving.receiving:EncryptedColumn:1",
            "veiltab.researcher.receiving.receiving:EncryptedColumn:4",
            "veiltab.researcher.receiving.decryption:tabulate:1",
            "veiltab.researcher.receiving.receiving:count_rows:1",
            "veiltab.researcher.records.store:ResearcherStore._finish:1",
            "veiltab.researcher.records.store:ResearcherStore.record_counts:1",
        )
    ),
]


CANARIES = 300

MODES = {
    "seed": (Sampling.SEED, Pad.CHACHA20),
    "indices": (Sampling.INDICES, Pad.OTP),
    "server": (Sampling.SERVER, Pad.CHACHA20),
}


def asked(world: World, label: str, kill: Kill) -> tuple[str, bool]:
    """Ask for the release of a label; return its id and whether it was under way."""
    with world.client() as client:
        release = client.request(
            FREE,
            epsilon="4",
            label=label,
            sampling=kill.sampling,
            pad=kill.pad,
            sample=kill.sample,
            noise_split="0.5",
            canaries=CANARIES,
        )
        return release.id, release.continued


def start_release(world: World, label: str, kill: Kill) -> str:
    """Ask for a release whose researcher's service may be killed before it answers."""
    try:
        return asked(world, label, kill)[0]
    except UnavailableError:
        return ""


def killed(world: World, kill: Kill) -> str:
    """Run a release during which a party is killed and started again; return its id."""
    label = world.label()
    world.restart(kill.who, how=launcher(PACE, kill.point))
    first = start_release(world, label, kill)
    world.wait_for_kill(kill.who)
    before = world.published(first) if kill.published else {}
    if kill.who != ROSA and not kill.published:
        says_whom_it_waits_for(world, first, f"{kill.who[0].value} {kill.who[1]}: ")
    world.start(kill.who)
    again, continued = asked(world, label, kill)
    assert (again, continued) == (first, True) or not first
    check(world, again)
    if kill.published:
        assert world.published(again) == before, "a publication never changes"
    return again


def says_whom_it_waits_for(world: World, release_id: str, who: str) -> None:
    """See that who waits for a release is told within seconds who is away."""
    said = ""
    with world.client() as client:
        for _ in range(60):
            with pytest.raises(UnavailableError) as waiting:
                client.release(release_id).wait(0.1)
            said = str(waiting.value)
            if who in said:
                return
    raise AssertionError(said)


def check(world: World, release_id: str) -> None:
    """See a release end well: the right answer, one publication, one charge each, and nothing left behind."""
    with world.client() as client:
        release = client.release(release_id)
        status = release.wait(40)
        assert (status.state, status.granted) == (ReleaseState.READY, FREE)
        assert [receipt.passed for receipt in status.receipts] == [True] * 3
        assert agreement(release.estimate(), world.people.counts(FREE)) > SURE
    kept = world.local.state_folder(*ROSA) / "releases" / release_id
    # A desk that was killed before it asked for signatures has no certificate before somebody asks for it.
    world.wait_until(lambda: {path.name for path in kept.iterdir()} - {"certificate"} == {"histogram.bin"})
    assert world.charges("alice").count(release_id) == world.charges("bob").count(release_id) == 1
    served = asyncio.run(fetched(world, release_id))
    published = world.published(release_id)
    assert served == asyncio.run(fetched(world, release_id)) == {name: published[name] for name in FREE}
    world.wait_until(lambda: not world.leftovers())
    one_ciphertext_a_key(world, release_id)


async def fetched(world: World, release_id: str) -> dict[str, bytes]:
    async with connection(world, ROSA, CLOUD) as channel:
        return {name: await Published.on(channel).column(release_id, name) for name in FREE}


def one_ciphertext_a_key(world: World, release_id: str) -> None:
    """See that what each curator says it made under a key is what the server took."""
    made: dict[str, bytes] = {}
    for curator in ("alice", "bob"):
        with world.store(curator) as store:
            rows = store.connection.execute("SELECT attribute, digest FROM pad WHERE release_id = ?", [release_id])
            made |= {row["attribute"]: bytes(row["digest"]) for row in rows}
    with world.server_store() as server:
        taken = server.connection.execute(
            "SELECT attribute, digest FROM complete_column WHERE release_id = ?", [release_id]
        )
        assert {row["attribute"]: bytes(row["digest"]) for row in taken} == made
    assert set(made) == set(FREE)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.long) for name in QUICK]
)
def test_a_party_that_is_killed_and_started_again_continues_the_release(mortal: World, name: str) -> None:
    killed(mortal, QUICK[name])


@pytest.mark.long
def test_a_curator_that_is_killed_after_its_upload_waits_for_the_other(mortal: World) -> None:
    # The server still waits for Bob's columns when she is back.
    mortal.restart(BOB, how=launcher(PACE, "veiltab.curator.columns.encryption:ColumnEncryption.encrypt:1:4"))
    killed(mortal, Kill(who=ALICE, point="veiltab.curator.records.releases:Releases.set_bytes_uploaded:1:after"))


@pytest.mark.long
@pytest.mark.parametrize("kill", LONG, ids=lambda kill: f"{kill.who[1]} {kill.point}")
@pytest.mark.parametrize("mode", list(MODES))
def test_every_named_point(mortal: World, kill: Kill, mode: str) -> None:
    sampling, pad = MODES[mode]
    killed(mortal, replace(kill, sampling=sampling, pad=pad))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("who", [ALICE, BOB, CLOUD, ROSA], ids=lambda who: who[1])
@pytest.mark.parametrize("event", ["write:{}:after", "fsync:{}", "rename:{}", "rename:{}:after"])
def test_every_durable_step_of_a_release(mortal: World, tmp_path: Path, who: Who, event: str) -> None:
    """Kill after the Nth durable change of a database, at the Nth fsync, before and after the Nth rename: every N."""
    counts = tmp_path / "counts"
    mortal.restart(who, how=launcher(PACE, f"count={counts}"))
    check(mortal, asked(mortal, mortal.label(), steps_of(who, ""))[0])
    last = json.loads(counts.read_text("utf-8")).get(event.partition(":")[0], 0)
    mortal.restart(who)
    reached = sum(killed_or_not(mortal, steps_of(who, event.format(number))) for number in range(1, last + 1))
    # What a party notes about whom it waits for depends on the others' pace, so the last few may not come.
    assert reached >= 0.8 * last


def steps_of(who: Who, point: str) -> Kill:
    """Return the release with the most files."""
    return Kill(who=who, point=point, sampling=Sampling.INDICES, pad=Pad.OTP)


def killed_or_not(world: World, kill: Kill) -> bool:
    """Run a release during which a party is killed, if it gets to the point; return whether it was."""
    label = world.label()
    world.local.kill(*kill.who, number=signal.SIGTERM)
    world.local.start(*kill.who, launcher=launcher(PACE, kill.point))
    with suppress(UnavailableError):  # it may be killed before it serves
        world.local.wait_for(*kill.who)
        start_release(world, label, kill)
    died = world.ended(kill.who, within=6.0)
    if died:
        world.wait_for_kill(kill.who)
        world.start(kill.who)
    else:
        world.restart(kill.who)  # it must not be killed later, in another release
    release_id, _ = asked(world, label, kill)
    check(world, release_id)
    return died


ALIGNING = [
    *(
        f"{point}:1{when}"
        for point in (
            "veiltab.curator.table.table_rows:TableRows.append",
            "veiltab.curator.alignment.token_order:TokenOrder.write",
            "veiltab.curator.alignment.token_exchange:TokenExchange._fetch",
            "veiltab.curator.alignment.intersection:AlignedTable.write",
            "veiltab.curator.records.alignments:Alignments.set_alignment",
        )
        for when in ("", ":after")
    ),
    "rename:1",
    "rename:1:after",
    "rename:2",
    "rename:3",
    "rename:3:after",
    "rename:5",
    "rename:6",
]


@pytest.mark.long
@pytest.mark.parametrize("point", ALIGNING)
def test_a_spoke_that_is_killed_while_it_aligns_makes_the_same_files_and_leaves_no_id(
    mortal: World, point: str
) -> None:
    state = mortal.local.state_folder(*BOB)
    folder = state / "alignments"

    def files() -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    mortal.wait_until(lambda: any(folder.glob("*/tokens.bin")))
    mortal.local.kill(*BOB, number=signal.SIGTERM)
    before = files()
    shutil.rmtree(folder)
    mortal.local.start(*BOB, launcher=launcher(PACE, point))
    mortal.wait_for_kill(BOB)
    left = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert not [name for name in mortal.people.ids if name.encode() in left]
    assert not list(state.rglob(".scratch*"))
    mortal.start(BOB)
    mortal.wait_until(lambda: folder.exists() and files() == before)


SESSIONS = "veiltab.curator.records.join_sessions:JoinSessions"
JOINING = [
    (ALICE, f"{SESSIONS}.challenge:1:after"),
    (ALICE, "veiltab.curator.alignment.joining.join_hub:holds:1"),
    (ALICE, f"{SESSIONS}.finish:1"),
    (BOB, f"{SESSIONS}.asked_digest:1:after"),
    (BOB, f"{SESSIONS}.challenge:1:after"),
    (BOB, f"{SESSIONS}.finish:1:after"),
]


@pytest.mark.long
@pytest.mark.parametrize(("who", "point"), JOINING)
def test_a_session_of_a_join_goes_on_after_a_kill_between_its_record_and_what_is_sent(
    tmp_path: Path, who: Who, point: str
) -> None:
    world = made_world(tmp_path / "study", people=300, rules=Rules(alignment="oblivious"))
    with world.local:
        for party in (ALICE, BOB):
            world.local.start(*party, launcher=launcher(point) if party == who else None)
        world.wait_for_kill(who)
        world.start(who)

        def tokens(party: Who) -> list[bytes]:
            return [path.read_bytes() for path in world.local.state_folder(*party).glob("alignments/*/tokens.bin")]

        world.wait_until(lambda: tokens(ALICE) == tokens(BOB) != [], seconds=40)
        with world.store("alice") as alice, world.store("bob") as bob:
            assert alice.joins.sessions_of() == {"bob": 1}
            world.wait_until(lambda: bob.alignments.matched() == 300)
