"""Requests that a person decides about."""

from typing import Any

import pytest

from tests.protocol.chance import agreement
from tests.protocol.wire import connection, fetch_key
from tests.protocol.world import ALICE, BOB, ROSA, Who, World
from tests.worlds.loops import blocking
from veiltab.common.errors import DeniedError
from veiltab.curator.progress.progress import HELD


def wait_until_held(world: World, release_id: str) -> None:
    """Wait until Bob holds a request for a person."""

    def held() -> bool:
        with world.store("bob") as store:
            return any(decision.verdict == HELD for decision in store.decisions.decisions(release_id))

    world.wait_until(held)


def listed(world: World, curator: str, release_id: str) -> dict[str, Any]:
    """Return what `veiltab curator requests` says of a release."""
    answer = world.curator_command("requests", curator)
    assert answer.code == 0, answer.errors
    (found,) = [request for request in answer.data["requests"] if request["release"] == release_id]
    return {**answer.data, **found}


@blocking
async def key_of(world: World, researcher: Who, curator: Who, release_id: str, attribute: str) -> bytes:
    """Ask a curator for a key with a researcher's certificate, and with what the server has published, if anything."""
    is_published = (world.releases_folder() / release_id / "published").exists()
    published = world.published(release_id).get(attribute) if is_published else None

    async with connection(world, researcher, curator) as channel:
        return await fetch_key(channel, release_id, attribute, published)


def test_a_held_request_shows_its_card_and_goes_on_once_a_person_approves(village: World) -> None:
    options = ("--label", village.label(), "--purpose", "who is well")
    release_id = village.ask(("region", "health"), *options).data["release"]["id"]
    wait_until_held(village, release_id)
    held = village.ask(("region", "health"), *options, "--wait", "--timeout", "5")
    assert held.code == 4
    assert "curator bob: a person decides about health. Run `veiltab curator approve` or `deny`" in held.errors
    request = listed(village, "bob", release_id)
    assert (request["own"], request["purpose"], request["state"]) == ({"health": "held"}, "who is well", "requested")
    (desk,) = (bound for bound in request["card"] if bound["coalition"] == ["desk"])
    assert (desk["other"], desk["per_row"]) == ({"epsilon": 4.0, "delta": 0.0}, False)
    assert 0 < request["root_mse"] < 0.1
    assert request["remaining"] == pytest.approx(request["budget"] - request["spent"])
    assert release_id not in village.charges("alice") + village.charges("bob")
    wrong = village.curator_command("approve", "bob", "--release", release_id, "--attribute", "employed")
    assert (wrong.code, "Held: health" in wrong.errors) == (2, True)
    assert village.curator_command("approve", "bob", "--release", "0" * 32).code == 2
    approved = village.curator_command("approve", "bob", "--release", release_id)
    assert (approved.code, approved.data["approved"]) == (0, ["health"])
    again = village.ask(("region", "health"), *options, "--wait", "--timeout", "30")
    assert (again.code, again.data["release"]["id"], again.data["continued"]) == (0, release_id, True)
    assert village.charges("alice").count(release_id) == village.charges("bob").count(release_id) == 1
    assert village.curator_command("deny", "bob", "--release", release_id, "--reason", "not agreed").code == 2
    with village.client() as client:
        assert agreement(client.release(release_id).estimate(), village.people.counts(("region", "health"))) > 1e-6


def test_a_denied_request_ends_everywhere_and_costs_nothing(village: World) -> None:
    asked = village.ask(("region", "health"), "--label", "to be denied")
    release_id = asked.data["release"]["id"]
    wait_until_held(village, release_id)
    denied = village.curator_command("deny", "bob", "--release", release_id, "--reason", "not agreed")
    assert (denied.code, denied.data["denied"]) == (0, ["health"])
    ended = village.ask(("region", "health"), "--wait", "--timeout", "20", "--label", "to be denied")
    assert (ended.code, ended.data["error"]["reason"]) == (3, "DENIED")
    assert "denied: health (by bob)" in ended.errors
    assert release_id not in village.charges("alice") + village.charges("bob")
    assert listed(village, "alice", release_id)["state"] == "denied"
    for curator, attribute in ((ALICE, "region"), (BOB, "health")):
        with pytest.raises(DeniedError):
            key_of(village, ROSA, curator, release_id, attribute)
