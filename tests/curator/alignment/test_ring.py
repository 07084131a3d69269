"""Who sends what to whom: small numbers of curators, looked at in full."""

import pytest

from veiltab.curator.peers.ring import FlowKind, flows

NAMES = ("alice", "bob", "carol", "dora", "emil")


def test_two_curators_exchange_a_query_and_a_set() -> None:
    assert [(f.kind.value, f.owner, f.source, f.producer, sorted(f.receivers)) for f in flows(NAMES[:2])] == [
        ("query", "alice", "alice", "alice", ["bob"]),
        ("set", "bob", "bob", "bob", []),
        ("query", "alice", "alice", "bob", ["alice"]),
        ("common", "bob", "bob", "bob", ["alice"]),
        ("respondents", "alice", "alice", "alice", ["bob"]),
    ]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_every_set_of_the_others_ends_under_the_scalars_of_all_others_alone(count: int) -> None:
    first, *others = NAMES[:count]
    for owner in NAMES[:count]:
        kind = FlowKind.QUERY if owner == first else FlowKind.SET
        stops = [flow.producer for flow in flows(NAMES[:count]) if (flow.kind, flow.owner) == (kind, owner)]
        assert stops[0] == owner
        assert sorted(stops) == sorted([first, *others] if owner == first else others)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_querier_gets_no_set_and_nobody_but_the_next_gets_a_column_on_its_way(count: int) -> None:
    first = NAMES[0]
    for flow in flows(NAMES[:count]):
        assert flow.producer not in flow.receivers
        if flow.kind is FlowKind.SET:
            assert first not in flow.receivers
        if flow.kind in {FlowKind.SET, FlowKind.QUERY} and flow.producer != _last(count, flow.kind, flow.owner):
            assert len(flow.receivers) == 1


def _last(count: int, kind: FlowKind, owner: str) -> str:
    return [flow.producer for flow in flows(NAMES[:count]) if (flow.kind, flow.owner) == (kind, owner)][-1]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_nobody_waits_for_what_waits_for_it(count: int) -> None:
    """Each curator makes its flows in this order, so each must follow the one that it is made from."""
    made: set[tuple[FlowKind, str, str]] = set()
    for flow in flows(NAMES[:count]):
        assert flow.source == flow.producer or (flow.kind, flow.owner, flow.source) in made
        made.add((flow.kind, flow.owner, flow.producer))
    assert len(made) == len(flows(NAMES[:count]))


@pytest.mark.parametrize("count", [3, 4, 5])
def test_all_others_compare_all_sets_of_the_others(count: int) -> None:
    _, *others = NAMES[:count]
    for owner in others:
        last = [flow for flow in flows(NAMES[:count]) if (flow.kind, flow.owner) == (FlowKind.SET, owner)][-1]
        assert last.receivers | {last.producer} == set(others)
        assert last.producer != owner
