"""A desk counts rows of data alone, repeats the curators' tests, and keeps nothing but counts, over real processes."""

import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from tests.protocol.chance import agreement, confirmed
from tests.protocol.village import FREE
from tests.protocol.world import BOB, CLOUD, ROSA, Who, World
from veiltab.common.errors import FailedReleaseError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.testing import is_right

N, CANARIES = 1500, 600


def patched(source: str) -> tuple[str, ...]:
    """Return how to start `veiltab` after some source was run."""
    return (sys.executable, "-c", dedent(source) + "\nfrom veiltab.deploy.cli import main\nmain()\n")


OTHER_ANSWER = patched(
    """
    from veiltab.server.release.releases import Releases

    sent = Releases.short_columns_of

    def other_columns(self, session):
        return {name: data[::-1] if name == "income" else data for name, data in sent(self, session).items()}

    Releases.short_columns_of = other_columns
    """
)
OTHER_STREAM = patched(
    """
    from veiltab.server.release.releases import Releases

    served = Releases.published_column

    def other_column(self, release_id, attribute, researcher):
        path, total = served(self, release_id, attribute, researcher)
        if attribute != "income":
            return path, total
        other = path.parents[1] / "other"
        other.write_bytes(path.read_bytes()[::-1])
        return other, total

    Releases.published_column = other_column
    Releases.short_columns_of = lambda self, session: {}
    """
)
SAID_OF_THE_SERVER = "server cloud: the server served another column of income to this desk than to curator alice"
OTHER_KEY = patched(
    """
    from dataclasses import replace
    from veiltab.curator.release.rpc_answers import Answers

    said = Answers.receipt
    Answers.receipt = lambda self, *asked: replace(said(self, *asked), canary_key=bytes(32))
    """
)


RESTATED = """
    from dataclasses import replace
    from veiltab.common.release.receipts.canary_changes import CanaryChanges, ChangesCollector
    from veiltab.curator.release.rpc_answers import Answers

    def turned(changes):
        "Return the opposite offsets, and sent symbols that give with them what was published."
        both = [
            (-d % column.size, (x + 2 * d) % column.size)
            for column, d, x in zip(changes.columns, changes.offsets, changes.sent)
        ]
        offsets, sent = zip(*both)
        return replace(changes, offsets=offsets, sent=sent)

    def other_symbols(changes):
        sent = tuple((x + 1) % column.size for column, x in zip(changes.columns, changes.sent))
        return replace(changes, sent=sent)

    seen, said = ChangesCollector.changes, Answers.changes_of_canaries

    def turned_for_others(self, release_id, owner):
        spec = self.parts.store.releases.release(release_id).planned_spec
        own = spec.columns_of(self.parts.name)
        changes = CanaryChanges.from_bytes(said(self, release_id, owner), own, spec.canaries)
        return turned(changes).to_bytes()
"""
LIARS = {
    "other offsets": (
        "ChangesCollector.changes = lambda self: turned(seen(self))",
        "curator bob stated other changes of canaries than this desk decrypts",
    ),
    "other symbols": (
        "ChangesCollector.changes = lambda self: other_symbols(seen(self))",
        "curator bob stated changes of canaries that do not give what the server published",
    ),
    "two lists": (
        "Answers.changes_of_canaries = turned_for_others",
        "curators alice and bob state different lists of the changed canaries in bob's columns",
    ),
    "no list": (
        "Answers.changes_of_canaries = lambda *_: b'none'",
        "curator bob: its list of changed canaries is not one of this release",
    ),
}
"""What bob does who states other changes of canaries than he sees, and how he is named."""


def kept(world: World, release_id: str) -> list[str]:
    """Return the names of what a desk has of a release."""
    folder: Path = world.local.state_folder(*ROSA) / "releases" / release_id
    return sorted(path.name for path in folder.glob("*"))


@pytest.mark.parametrize("sampling", list(Sampling))
@pytest.mark.parametrize("pad", [Pad.CHACHA20, pytest.param(Pad.OTP, marks=pytest.mark.long)])
def test_rows_of_data_are_estimated_and_canaries_test_the_server(village: World, sampling: Sampling, pad: Pad) -> None:
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
            status = asked.wait(40)
            spec, estimate = status.description().table(0), asked.estimate()
            assert (spec.population, spec.sample, spec.canaries) == (N, N, CANARIES)
            assert spec.curator_replacement > 0
            by_server = sampling is Sampling.SERVER
            canaries = spec.sample - estimate.design.sample if by_server else CANARIES
            assert (0 < canaries < CANARIES) or not by_server
            assert [receipt.curator for receipt in status.receipts] == ["alice", "bob", ""]
            for receipt in status.receipts:
                assert receipt.passed
                assert receipt.canaries == canaries
                assert receipt.receipt is not None
                assert is_right(receipt.receipt, spec)
            village.wait_until(lambda: kept(village, asked.id) == ["certificate", "histogram.bin"])
            truth = village.people.counts(FREE)
            return agreement(estimate, truth)

    assert not confirmed(release)


def test_commands_choose_the_noise_and_show_the_receipts(village: World) -> None:
    rare = [word for one in ("noise-split=0.25", "canaries=300", "max-pair-epsilon=90") for word in ("--advanced", one)]
    options = (*rare, "--label", village.label())
    asked = village.ask(("region", "smoker"), *options, "--wait").data
    assert asked["release"]["state"] == "ready"
    alice, *_, desk = asked["receipts"]
    assert (alice["curator"], alice["tested_by"], alice["canaries"], alice["passed"]) == (
        "alice",
        "curator alice",
        300,
        True,
    )
    assert (desk["curator"], desk["tested_by"]) == ("", "curators and desk")
    assert np.isclose(desk["sd"] ** 2, desk["expected"] * (1 - desk["expected"] / 300), rtol=1e-3)
    words = ("researcher", "status", village.local.study_path, "--identity")
    shown = village.command(
        *words, village.local.identity_folder(*ROSA), "--release", asked["release"]["id"], as_json=False
    )
    assert f"test by curator alice: of 300 canaries {alice['changed']} changed in alice's columns" in shown.text
    assert f"test by curators and desk: of 300 canaries {desk['changed']} changed in all columns together" in shown.text


@pytest.mark.parametrize(
    ("who", "how", "words"),
    [
        (CLOUD, OTHER_ANSWER, SAID_OF_THE_SERVER),
        pytest.param(CLOUD, OTHER_STREAM, SAID_OF_THE_SERVER, marks=pytest.mark.long),
        pytest.param(BOB, OTHER_KEY, "curators alice and bob state different canary keys", marks=pytest.mark.long),
    ],
    ids=["server", "server that streams", "curator"],
)
@pytest.mark.parametrize("sampling", [Sampling.SEED, pytest.param(Sampling.SERVER, marks=pytest.mark.long)])
def test_parties_that_contradict_one_another_end_a_release(
    mortal: World, who: Who, how: tuple[str, ...], words: str, sampling: Sampling
) -> None:
    mortal.restart(who, how=how)
    try:
        with mortal.client() as client:
            asked = client.request(
                FREE, epsilon="4", canaries=CANARIES, noise_split="0.5", sampling=sampling, label=mortal.label()
            )
            with pytest.raises(FailedReleaseError, match=words):
                asked.wait(40)
            with pytest.raises(FailedReleaseError, match=words):
                asked.estimate()
        mortal.wait_until(lambda: not kept(mortal, asked.id))
    finally:
        mortal.restart(who)


@pytest.mark.parametrize(
    "lie", [lie if lie == "no list" else pytest.param(lie, marks=pytest.mark.long) for lie in LIARS]
)
def test_a_curator_that_states_other_changes_of_canaries_is_named(mortal: World, lie: str) -> None:
    source, words = LIARS[lie]
    mortal.restart(BOB, how=patched(f"{dedent(RESTATED)}\n{source}"))
    try:
        with mortal.client() as client:
            asked = client.request(FREE, epsilon="4", canaries=CANARIES, noise_split="0.5", label=mortal.label())
            with pytest.raises(FailedReleaseError, match=words):
                asked.wait(40)
        mortal.wait_until(lambda: not kept(mortal, asked.id))
        if lie == "no list":
            mortal.wait_for_state("alice", asked.id, "failed")
            mortal.wait_until_keys_are_erased("alice", asked.id)
    finally:
        mortal.restart(BOB)
