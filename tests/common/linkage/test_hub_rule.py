"""One row of a spoke changes one link, whatever the tables are: by enumeration, against the product's own resolver."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from tests.common.linkage.small_links import Row, hub_links
from veiltab.common.linkage.hub_rule import accept
from veiltab.play.linkage.open_rule import candidates, first_candidates, resolve

Rule = Callable[[Sequence[Row], Sequence[Row]], dict[int, int]]


def alphabet(*sizes: int, missing: bool) -> list[Row]:
    return list(product(*([*range(size), *([None] if missing else [])] for size in sizes)))


def tables(rows: Sequence[Row], most: int) -> Iterator[tuple[Row, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(rows, size)


def rows_changed(one: set[tuple[int, Any]], other: set[tuple[int, Any]]) -> int:
    """In how many rows two linked tables differ: a row of the hub with another partner is one row that differs."""
    before, after = dict(one), dict(other)
    return sum(before.get(row) != after.get(row) for row in before.keys() | after.keys())


def most_changed(rule: Rule, rows: Sequence[Row], most_spoke: int, most_hub: int) -> tuple[int, int]:
    """Return the most rows of the linked table that one inserted row, and one changed row, of a spoke change.

    A link is the hub's row and the values of the spoke's: of rows with equal values no rule here links one.
    """
    order = {row: place for place, row in enumerate(rows)}
    spokes = {spoke: place for place, spoke in enumerate(tables(rows, most_spoke + 1))}

    def place_of(spoke: Sequence[Row]) -> int:
        return spokes[tuple(sorted(spoke, key=order.__getitem__))]

    small = [(place, spoke) for spoke, place in spokes.items() if len(spoke) <= most_spoke]
    more = {(place, place_of((*spoke, row))) for place, spoke in small for row in rows}
    others = {
        (place, other)
        for place, spoke in small
        for n in range(len(spoke))
        for row in rows
        if (other := place_of((*spoke[:n], row, *spoke[n + 1 :]))) > place
    }
    most = [0, 0]
    for hub in tables(rows, most_hub):
        found = [{(hub_row, spoke[row]) for row, hub_row in rule(spoke, hub).items()} for spoke in spokes]
        for kind, pairs in enumerate((more, others)):
            unequal = (rows_changed(found[i], found[j]) for i, j in pairs if found[i] != found[j])
            most[kind] = max(most[kind], max(unequal, default=0))
    return most[0], most[1]


def test_one_row_of_a_spoke_changes_one_link_and_its_identifiers_two() -> None:
    assert most_changed(hub_links, alphabet(2, 2, missing=False), 3, 4) == (1, 2)
    assert most_changed(hub_links, alphabet(1, 1, missing=True), 4, 4) == (1, 2)


def test_of_three_passes_too() -> None:
    assert most_changed(hub_links, alphabet(1, 1, 1, missing=True), 2, 2) == (1, 2)


def test_a_spoke_accepts_by_the_rule_whatever_its_rows_propose() -> None:
    """So that what is enumerated here holds for the resolver of the product, which sees no other row of the hub."""
    for rows in product([None, *product((1, 2, 3), (0, 1, 2))], repeat=4):
        passes = np.array([0 if one is None else one[0] for one in rows], np.uint8)
        numbers = np.array([-1 if one is None else one[1] for one in rows])
        linked, (ties, tied) = accept(passes, numbers)
        links = resolve(rows)
        assert dict(zip(numbers[linked].tolist(), linked.tolist(), strict=True)) == links
        proposed = {one[1]: min(other[0] for other in rows if other and other[1] == one[1]) for one in rows if one}
        earliest = [one[1] for one in rows if one and one[0] == proposed[one[1]] and one[1] not in links]
        assert (ties, tied) == (len(earliest), len(set(earliest)))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_one_row_of_a_spoke_changes_one_link_in_all_small_tables() -> None:
    assert most_changed(hub_links, alphabet(2, 2, missing=True), 4, 4) == (1, 2)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_of_three_passes_in_all_small_tables() -> None:
    assert most_changed(hub_links, alphabet(2, 2, 2, missing=False), 3, 4) == (1, 2)


def test_the_earliest_pass_wins_and_a_tie_links_nobody() -> None:
    assert resolve([(2, 7), (1, 7), None, (3, 7)]) == {7: 1}
    assert resolve([(1, 7), (1, 7), (2, 7), (2, 8)]) == {8: 3}
    assert resolve([(1, 7), (1, 7), (1, 7)]) == {}
    assert resolve([(2, 7), (2, 7), (1, 7)]) == {7: 2}


def test_a_candidate_is_the_only_row_of_the_whole_hub() -> None:
    assert candidates([(b"a",), (b"b",), (b"b",), ()], [(b"a",), (b"b",), (b"c",), ()]) == [0, None, None, None]


def test_variants_of_two_rows_leave_no_candidate() -> None:
    hub = [(b"an", b"ann"), (b"an", b"ano"), (b"bob", b"bo")]
    spoke = [(b"ann",), (b"an",), (b"bo", b"ob", b"bob"), (b"ann", b"bob")]
    assert candidates(hub, spoke) == [0, None, 2, None]


def test_rows_with_a_candidate_enter_no_later_pass() -> None:
    hub = [((0,), (1,)), ((5,), (1,))]
    keys = [[tuple(bytes([n, *value]) for value in [row[n]]) for row in hub] for n in range(2)]
    spoke = [(b"\x00\x00",)], [(b"\x01\x01",)]
    assert first_candidates([(1, keys[0], spoke[0]), (2, keys[1], spoke[1])], 1) == [(1, 0)]


def test_the_order_of_rows_does_not_count() -> None:
    chance = np.random.default_rng(7)
    rows = alphabet(3, 3, 3, missing=True)
    for _ in range(50):
        spoke, hub = ([rows[place] for place in chance.integers(len(rows), size=12)] for _ in range(2))
        places, hub_places = (chance.permutation(12).tolist() for _ in range(2))
        shuffled = hub_links([spoke[place] for place in places], [hub[place] for place in hub_places])
        assert {places[row]: hub_places[hub_row] for row, hub_row in shuffled.items()} == hub_links(spoke, hub)
