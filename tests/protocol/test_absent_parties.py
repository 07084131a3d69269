"""Parties that are away: the command says who, and the same command goes on with the same release."""

import signal
from functools import partial

import pytest

from tests.protocol.chance import agreement
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, Who, World

NAMES = ("region", "income")
SURE = 1e-6  # level at which an answer is wrong
LONG = partial(pytest.param, marks=pytest.mark.long)


@pytest.mark.parametrize("who", [LONG(ALICE), LONG(BOB), CLOUD])
def test_the_same_command_continues_once_the_party_is_back(mortal: World, who: Who) -> None:
    options = ("--wait", "--label", mortal.label())
    mortal.local.kill(*who)
    releases = set()

    def is_told_who_is_away() -> bool:
        away = mortal.ask(NAMES, *options, "--timeout", "1")
        assert (away.code, away.data["error"]["reason"]) == (4, "UNAVAILABLE")
        assert "The release goes on; run the same command again" in away.errors
        releases.add(away.data["error"]["where"].removeprefix("release "))
        return f"{who[0].value} {who[1]}: no connection" in away.errors

    # Others must have decided before anybody asks the server, which may take longer than the first command waits.
    mortal.wait_until(is_told_who_is_away)
    (release_id,) = releases
    assert release_id not in mortal.charges("alice") + mortal.charges("bob"), "nothing is spent while a party is away"
    mortal.start(who)
    back = mortal.ask(NAMES, *options, "--timeout", "30")
    assert back.code == 0, back.errors
    assert (back.data["release"]["id"], back.data["continued"]) == (release_id, True)
    assert mortal.charges("alice").count(release_id) == mortal.charges("bob").count(release_id) == 1


@pytest.mark.parametrize("who", [ALICE, *map(LONG, (BOB, CLOUD, ROSA))])
def test_a_party_that_is_stopped_in_order_at_any_time_loses_nothing(mortal: World, who: Who) -> None:
    label = mortal.label()
    with mortal.client() as client:
        release = client.request(NAMES, epsilon="4", label=label)
    mortal.local.kill(*who, number=signal.SIGTERM)
    mortal.start(who)
    with mortal.client() as client:
        again = client.request(NAMES, epsilon="4", label=label)
        assert (again.id, again.continued) == (release.id, True)
        again.wait(40)
        assert agreement(again.estimate(), mortal.people.counts(NAMES)) > SURE
    assert mortal.charges("alice").count(release.id) == mortal.charges("bob").count(release.id) == 1
