"""Curators that accept no connection: a relay is all that they call beside the server."""

from tests.compose.marks import COMPOSE, Remark
from tests.compose.releases import ask, compared_with_truth
from tests.compose.stack import PARTIES, Stack

pytestmark = COMPOSE
CURATORS = ("alice", "bob")


def test_nothing_listens_at_curators_and_nobody_connects_to_them(relayed_stack: Stack, remark: Remark) -> None:
    stack = relayed_stack
    assert {name: stack.probe(name, "listening")["ports"] for name in CURATORS} == {"alice": [], "bob": []}
    assert stack.probe("cloud", "listening")["ports"] == [7400]
    targets = [
        f"{at}:{port}" for name in CURATORS for at in stack.addresses(name).values() for port in (443, 7401, 7402)
    ]
    tried = dict[tuple[str, str], str]()
    for party in PARTIES:
        tried |= {(party, target): outcome for target, outcome in stack.probe(party, "ports", *targets).items()}
    assert not [caller for caller, outcome in tried.items() if outcome == "open"]
    assert not [name for name in CURATORS if stack.inspect(name)["NetworkSettings"]["Ports"]]
    remark(f"{len(tried)} connections tried, none open")


def test_a_release_through_the_relay_gives_the_right_answer(relayed_stack: Stack, remark: Remark) -> None:
    remark(compared_with_truth(relayed_stack, ask(relayed_stack, "relayed", wait=True)))
