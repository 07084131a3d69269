"""A server that adds no noise, at a request without noise of curators and tests: what each party says of it."""

from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path

from tests.protocol.test_decisions import listed
from tests.protocol.village import CATEGORIES
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.rpc.parties.identity import Role
from veiltab.play.demos.cheating_server import Cheat

BY_EPSILON = '[[rule]]\nmaximum_epsilon = 2\nmaximum_charge = 0.9\ndecision = "approve"\n'
NAMES = ("smoker", "employed")
UNUSUAL = (
    "  unusual: the server is not tested: nothing shows that it adds its noise; a usual rule asks for 'enough'",
    "  unusual: desk with server would face no protection; a usual rule allows epsilon 3",
)


def is_held(world: World, curator: str, release_id: str) -> bool:
    """Whether a curator has decided that a person decides."""
    requests = world.curator_command("requests", curator).data["requests"]
    return any(
        one["decided_by"] for request in requests if request["release"] == release_id for one in request["decisions"]
    )


def test_a_server_without_noise_gets_a_table_by_no_rule_and_no_certificate_by_a_person(tmp_path: Path) -> None:
    world = made_world(tmp_path / "study", policies=dict.fromkeys(("alice", "bob"), BY_EPSILON))
    with world.local:
        world.start(ALICE, BOB, ROSA)
        world.start(CLOUD, how=Cheat.LAZY.launcher)
        asked = ("--advanced", "noise-split=0", "--advanced", "canaries=0", "--delta", "1e-5", "--label", "attack")
        attack = str(world.ask(NAMES, *asked, epsilon="0.5").data["release"]["id"])
        for curator, attribute in (("alice", "smoker"), ("bob", "employed")):
            world.wait_until(partial(is_held, world, curator, attack))
            assert listed(world, curator, attack)["own"] == {attribute: "held"}
            assert world.charges(curator) == []
            text = world.command(
                *("curator", "requests", world.local.study_path),
                *("--state", world.local.state_folder(Role.CURATOR, curator)),
                as_json=False,
            ).text.splitlines()
            place = text.index(UNUSUAL[0])
            assert (text[place - 1].startswith(attack), text[place + 1]) == (True, UNUSUAL[1])

        for curator in ("alice", "bob"):
            approved = world.curator_command("approve", curator, "--release", attack, "--person", "Ana Diaz")
            assert approved.code == 0, approved.errors
        with world.client(timeout=60) as rosa:
            release = rosa.release(attack)
            release.wait(60)
            seen = Counter(release.rows().itertuples(index=False, name=None))
            cells, truth = product(*(CATEGORIES[name] for name in NAMES)), world.people.counts(NAMES).tolist()
            assert seen == dict(zip(cells, truth, strict=True)), "it is the exact table"
            path = tmp_path / "certificate"
            path.write_text(release.certificate(), "utf-8")
    said = world.command(
        *("verify", path, "--study", world.local.study_path),
        *("--authority", world.local.identity_folder(*ROSA) / "ca.pem"),
    )
    (untested,) = (one["detail"] for one in said.data["findings"] if not one["holds"])
    assert (said.code, untested) == (4, "the server is not tested: nothing shows that it adds its noise")
