"""Every charged release that ends without a result is counted against somebody, wherever a curator stops or lies."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import request_with
from tests.curator.curators_progress import CHECKS, DEADLINE, REVIEWED, SPECS, progress, release
from tests.curator.driver_world import AWAY, ID, UNREADY, World, carried_to, driver_fixture, refuse_toss, world_fixture  # noqa: F401 - fixtures
from veiltab.common.errors import FailedReleaseError, IntegrityError, NotReadyError, UnavailableError, VeiltabError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.elimination import named_in
from veiltab.curator.progress.progress import next_step
from veiltab.curator.progress.release_record import End, Progress, Review

NOISY = {"sample": 400, "canaries": 1000}
BOB = {"curator bob": 1}
LATE = 2_000_000_001.0


def end_of(world: World) -> Mapping[str, int]:
    """Let the deadline pass; return against whom alice counts the release."""
    if not world.state().finished:
        world.step()
    world.patch.setattr("veiltab.curator.release.driver.time.time", lambda: LATE)
    world.step()
    assert world.state().unsuccessful
    assert world.ledger.chain.is_charged(ID)
    return world.store.coins.aborted()


def after_the_charge(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    carried_to(world, ReleaseState.CHARGED, request)
    world.follow()


def after_the_sample(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    """Let alice draw the sample, and bob not say that he has."""
    after_the_charge(world, request)
    assert not world.step()
    assert world.answers.progress(ID, "bob").sample_check


def after_the_upload(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    carried_to(world, ReleaseState.PERTURBING, request)


def after_the_test(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    after_the_upload(world, request)
    world.follow()
    world.step()
    assert world.answers.progress(ID, "bob").tested


def before_his_charge(world: World, request: Any) -> None:  # noqa: ANN401 - of any kind
    carried_to(world, ReleaseState.PLANNED, request)
    world.follow()
    assert world.step()
    world.bob = replace(world.bob, charged=False)


Stop = Callable[[World, Any], None]
STOPS: list[Stop] = [before_his_charge, after_the_sample, after_the_upload, after_the_test]
"""How far bob comes before he stops; the parts of the coin are below."""


@pytest.mark.parametrize("is_away", [False, True], ids=["silent", "away"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_curator_that_stops_after_any_message_is_counted(world: World, stop: Stop, *, is_away: bool) -> None:
    stop(world, request_with(**NOISY))
    world.is_bob_there = not is_away
    assert end_of(world) == BOB


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("error", [AWAY, UNREADY])
def test_a_curator_that_keeps_its_part_of_the_coin_is_counted(world: World, error: VeiltabError, *, asks: bool) -> None:
    after_the_charge(world, request_with(**NOISY))
    refuse_toss(world, error, asks=asks)
    assert end_of(world) == BOB


def test_a_curator_whose_list_stays_away_or_is_false_is_counted(world: World) -> None:
    after_the_test(world, request_with(**NOISY))
    world.follow()
    world.bob_s_refusal = NotReadyError("has not tested the server yet", where="curator bob")
    assert end_of(world) == BOB


def test_with_a_false_list_a_curator_is_counted_beside_the_server(world: World) -> None:
    after_the_test(world, request_with(**NOISY))
    world.follow()
    world.patch.setattr(world, "replaced", lambda spec: ~World.replaced(world, spec))
    assert end_of(world) == {"curator bob": 1, "server cloud": 1}


def test_a_curator_that_only_says_that_it_sent_its_columns_is_counted(world: World) -> None:
    after_the_upload(world, request_with(**NOISY))
    world.follow()
    world.refusal = NotReadyError(
        "has not published the release yet; attribute salary is missing", where="server cloud"
    )
    assert end_of(world) == BOB


Lie = Callable[[World], None]


def says(**changes: Any) -> Lie:  # noqa: ANN401 - any field
    def lie(world: World) -> None:
        world.bob = replace(world.bob, **changes)

    return lie


def ends(failure: str = "", state: ReleaseState = ReleaseState.FAILED) -> Lie:
    return says(state=state, failure=failure)


def refused(error: VeiltabError) -> Lie:
    """Let the server refuse what bob sent."""

    def lie(world: World) -> None:
        world.follow()
        world.refusal = error

    return lie


OUTSIDE = "attribute salary: 1 of 3000 symbols lie outside"
TOO_LATE = "not all columns came before the deadline: attribute salary is missing"


@pytest.mark.parametrize(
    ("stop", "lie"),
    [
        (after_the_charge, says(checkpoint=b"none")),
        (after_the_sample, says(sample_check=b"another")),
        (after_the_upload, refused(FailedReleaseError(OUTSIDE, where="server cloud"))),
        (after_the_upload, refused(FailedReleaseError(TOO_LATE, where="server cloud"))),
        (after_the_upload, refused(IntegrityError("sent the server another key of places", where="curator bob"))),
        (after_the_test, says(tested=True, publication=b"p" * 32)),
        *((stop, ends("my table changed")) for stop in STOPS[1:]),
        *((stop, ends("curator alice: she did it")) for stop in STOPS[1:]),
        *((stop, ends(f"server cloud: {OUTSIDE}")) for stop in STOPS[1:]),
        *((stop, ends(state=ReleaseState.EXPIRED)) for stop in STOPS),
    ],
)
def test_a_curator_that_lies_in_any_message_is_counted(world: World, stop: Stop, lie: Lie) -> None:
    stop(world, request_with(**NOISY))
    lie(world)
    assert end_of(world) == BOB
    assert not world.store.coins.aborted(claims=True)


@pytest.mark.parametrize("stop", STOPS[1:])
def test_who_says_that_the_server_failed_is_counted_by_itself(world: World, stop: Stop) -> None:
    stop(world, request_with(**NOISY))
    world.bob = replace(world.bob, state=ReleaseState.FAILED, failure="server cloud: it did not add the noise")
    assert not end_of(world)
    assert world.store.coins.aborted(claims=True) == BOB


@pytest.mark.parametrize(
    "refusal",
    [
        UnavailableError("no connection", where="server cloud"),
        NotReadyError("has not published the release yet", where="server cloud"),
        FailedReleaseError("attribute sex: 1 of 3000 symbols lie outside", where="server cloud"),
        IntegrityError("states another noise for this release than before", where="server cloud"),
    ],
)
def test_a_server_that_stops_or_refuses_what_is_right_is_counted(world: World, refusal: Exception) -> None:
    after_the_upload(world, request_with(**NOISY))
    world.follow()
    world.refusal = refusal
    world.patch.setattr(world.driver, "_show_work", lambda: None)  # at the deadline that it waits is not recorded yet
    assert end_of(world) == {"server cloud": 1}


def test_a_server_without_noise_is_counted_and_no_curator(world: World) -> None:
    after_the_upload(world, request_with(**NOISY))
    world.follow()
    world.noise = 0.0
    assert end_of(world) == {"server cloud": 1}


def test_nobody_is_counted_where_this_curator_was_away_itself(world: World) -> None:
    after_the_upload(world, request_with(**NOISY))
    world.curator.runs.clear()  # as in another process
    world.patch.setattr("veiltab.curator.release.driver.time.time", lambda: LATE)
    world.step()
    assert world.state() is ReleaseState.EXPIRED
    assert not world.store.coins.aborted()


def test_nobody_is_counted_where_the_step_is_one_s_own() -> None:
    stored = release(
        state=ReleaseState.UPLOADING, spec=SPECS[0], sample_check=CHECKS[0], waiting_for="this curator's disk"
    )
    own = replace(REVIEWED, is_charged=True, is_present=True)
    assert next_step(stored, own, (progress(charged=True),), DEADLINE + 1) == End(
        ReleaseState.EXPIRED, "the deadline passed; this curator's disk"
    )


def test_of_several_that_are_behind_or_ended_all_are_counted_and_those_who_follow_are_not() -> None:
    stored = release(state=ReleaseState.CHARGED, spec=SPECS[0], sample_check=CHECKS[0])
    own = replace(REVIEWED, is_charged=True, is_present=True)
    drawn = progress(charged=True, sample_check=CHECKS[0])
    bob = replace(drawn, state=ReleaseState.FAILED, failure="my table changed")
    carol = replace(bob, curator="carol", failure="curator bob: my table changed")

    def by(*peers: Progress, now: float = -1000, review: Review = own) -> frozenset[str]:
        outcome = next_step(stored, review, peers, now)
        assert isinstance(outcome, End)
        return outcome.by

    only_bob, both = frozenset({"curator bob"}), frozenset({"curator bob", "curator carol"})
    assert by(bob, carol) == only_bob
    assert by(bob, carol, review=REVIEWED) == frozenset(), "nothing was charged"
    assert by(carol) == {"curator carol"}, "who names another that has not ended it hides behind nobody"
    assert by(replace(bob, failure="curator carol: no, she"), carol) == both
    late = replace(bob, state=ReleaseState.EXPIRED)
    assert (by(late), by(late, now=DEADLINE - 1)) == (only_bob, frozenset()), "clocks may differ a little"
    waits = replace(drawn, sample_check=b"")
    assert by(waits, replace(waits, curator="carol"), now=DEADLINE + 1) == both
    server = replace(bob, failure="server cloud: attribute z: 1 of 3000 symbols lie outside")
    told = next_step(stored, own, (server, drawn), -1000)
    assert isinstance(told, End)
    assert told.by == {"curator carol"}, "the owner"
    assert told.claimed_by == {"curator bob"}, "who says so"


def test_who_is_named_is_who_refused_and_not_whom_it_speaks_of() -> None:
    stored = release(spec=SPECS[0])
    for refusal, parties in (
        ("curator bob, coin toss: carol began; curator carol: attribute z", {"curator bob"}),
        ("curator bob, curator carol: a curator changed its commitment", {"curator bob", "curator carol"}),
        ("server cloud, release 1: attribute y: lies outside; attribute z", {"curator bob", "curator carol"}),
        ("server cloud: attribute x: lies outside", {"server cloud"}),
        ("curator alice: drew another sample than before", set[str]()),
        ("this curator's disk: OSError", set[str]()),
    ):
        assert named_in(refusal, stored, "alice") == parties


def test_of_the_holders_of_a_column_the_one_is_counted_whose_part_is_missing() -> None:
    held = (replace(SPECS[0].columns[1], others=("carol", "dan")), SPECS[0].columns[0])
    stored = release(spec=replace(SPECS[0], columns=held))
    for part, party in (("y", "bob"), ("y+carol", "carol"), ("y+dan", "dan")):
        refusal = f"server cloud: has not published the release yet; attribute {part} is missing"
        assert named_in(refusal, stored, "alice") == {f"curator {party}"}


def test_a_curator_that_shows_a_ledger_from_before_the_release_is_counted(world: World) -> None:
    world.store.alignments.set_witness("bob", 3, bytes(32))
    after_the_charge(world, request_with(**NOISY))
    assert end_of(world) == BOB
    assert "shows a ledger that it had before this release" in world.stored.failure
