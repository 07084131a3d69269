"""The tests of a server's noise beside slow counts, and their laws beside all that an honest server can do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.common.release.changed_canaries import (
    Changed,
    NoiseTest,
    changes_of,
    counted,
    noise_tests,
    one_by_one,
)
from veiltab.common.core.numbers.counts import Binomial, CountLaw, Runs
from veiltab.common.release.receipts import noise_tests as tested
from veiltab.common.release.receipts.canary_changes import CanaryChanges, joined
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import CanaryOrders, levels, members, surprises
from veiltab.common.release.receipts.testing import _loudest

R = Fraction(3, 7)
PLACES = (1, 4, 5, 11)
ROWS = 16


def orders_of(places: Iterable[int], rows: int) -> CanaryOrders:
    return CanaryOrders(places=np.array(sorted(places), np.int64), rows=rows)


def vectors(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*map(range, sizes)))


def offset_vectors(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return [one for one in vectors(sizes) if any(one)]


def probability(law: CountLaw, count: int) -> Fraction:
    """As the formula says."""
    match law:
        case Binomial(n, hits, unit):
            return comb(n, count) * Fraction(hits**count * (unit - hits) ** (n - count), unit**n)
        case Runs(c, k):
            return Fraction(comb(k - 1, count - 1) * comb(c - k + 1, count), comb(c, k)) if k else Fraction(count == 0)
        case _:
            raise TypeError


Weighted = Iterator[tuple[Fraction | int, Iterable[NoiseTest]]]


def check_laws(outcomes: Weighted) -> set[tuple[Family, str]]:
    """Check that each count has the law that its test states, given that it states this law; return which there are."""
    found: dict[tuple[Family, str, CountLaw], dict[int, Fraction | int]] = defaultdict(lambda: defaultdict(int))
    for weight, tests in outcomes:
        for test in tests:
            found[test.family, test.of, test.law][test.count] += weight
    for (family, of, law), counts in found.items():
        total = sum(counts.values())
        for count in range(law.least, law.most + 1):
            assert counts.get(count, 0) == total * probability(law, count), (family, of, law, count)
        assert set(counts) <= set(range(law.least, law.most + 1))
    return {(family, of) for family, of, _ in found}


def of_values(changes: CanaryChanges) -> list[NoiseTest]:
    columns, pairs = (tested._of_columns(changes, number) for number in (1, 2))
    arcs, seen = tested._of_arcs(changes), tested._of_values(changes)
    return one_by_one({Family.COLUMN: columns, Family.PAIR: pairs, Family.ARCS: arcs, Family.SEEN: seen})


def values(sizes: Sequence[int], k: int, owners: str = "alice") -> Weighted:
    """Yield the tests of columns and values of all offsets and all symbols that were sent, for k changed canaries."""
    for offsets in product(offset_vectors(sizes), repeat=k):
        for sent in product(vectors(sizes), repeat=k):
            rows = [Changed(number, *both) for number, both in enumerate(zip(offsets, sent, strict=True))]
            yield 1, of_values(changes_of(sizes, rows, owners))


SMALL = [
    *(((2, 3), k) for k in range(3)),
    pytest.param((2, 3), 3, marks=pytest.mark.long),
    *(((2, 2), k) for k in range(4)),
    *(((3,), k) for k in range(5)),
    *(((2,), k) for k in range(5)),
    *(((5,), k) for k in range(3)),
    *(((8,), k) for k in range(2)),
    *(((4, 3), k) for k in range(2)),
    *(((2, 3, 2), k) for k in range(2)),
    pytest.param((2, 2), 4, marks=pytest.mark.long),
    pytest.param((8,), 2, marks=pytest.mark.long),
    pytest.param((5,), 3, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("sizes", "k"), SMALL)
def test_columns_pairs_arcs_and_what_was_seen_before_have_their_laws(sizes: tuple[int, ...], k: int) -> None:
    found = check_laws(values(sizes, k))
    assert {family for family, _ in found} == {
        family for family in (Family.COLUMN, Family.PAIR, Family.ARCS, Family.SEEN) if members(sizes)[family]
    }


def subsets(c: int) -> Iterator[tuple[int, ...]]:
    return (chosen for k in range(c + 1) for chosen in combinations(range(c), k))


def test_amount_places_runs_and_repeats_have_their_laws() -> None:
    sizes, orders, some = (2, 3), orders_of(PLACES, ROWS), R * Fraction(5, 6)

    def outcomes() -> Weighted:
        for chosen in subsets(len(PLACES)):
            weight = some ** len(chosen) * (1 - some) ** (len(PLACES) - len(chosen))
            for offsets in product(offset_vectors(sizes), repeat=len(chosen)):
                rows = [Changed(number, one, (0, 0)) for number, one in zip(chosen, offsets, strict=True)]
                changes = changes_of(sizes, rows)
                places = tested._of_places(changes, orders, some)
                tests = one_by_one({Family.PLACES: places, **tested._of_orders(changes, orders)})
                yield weight / 5 ** len(chosen), tests
            yield weight, noise_tests(changes, orders, R)[:1]

    found = check_laws(outcomes())
    assert {family: sum(one is family for one, _ in found) for family in Family} == members(sizes) | {
        Family.COLUMN: 0,
        Family.PAIR: 0,
        Family.ARCS: 0,
        Family.SEEN: 0,
    }


@pytest.mark.parametrize("places", [(0, 1, 2, 3, 4), (0, 63, 64, 65, 128, 130), (2, 70, 257, 300, 16384, 65536, 65600)])
def test_runs_have_their_law_in_every_order(places: tuple[int, ...]) -> None:
    orders = orders_of(places, 65_700)
    rows = ([Changed(number, (1,), (0,)) for number in chosen] for chosen in subsets(len(places)))
    check_laws((Fraction(1), one_by_one(tested._of_orders(changes_of((2,), one), orders))) for one in rows)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 25, 30, 64, 97, 100, 1500])
def test_the_share_of_every_arc_is_counted_symbol_by_symbol(size: int) -> None:
    arcs = tested._arcs(size)
    assert len(set(arcs)) == len(arcs) == min(size // 2, 512) * len({0, size // 4})
    for is_offset in (True, False):
        counts = tested._arc_counts(np.arange(is_offset, size), size)
        # All symbols once: the count is the expected one.
        shares = [Fraction(*share) for share in tested._arc_shares(size, is_offset=is_offset)]
        assert shares == [Fraction(count, size - is_offset) for count in counts]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_all_counts_are_those_of_a_slow_calculation(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=4))
    rows = data.draw(st.sampled_from([40, 300, 70_000]))
    places = sorted(data.draw(st.sets(st.integers(0, rows - 1), min_size=1, max_size=40)))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(places) - 1), max_size=30)))
    vector = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    changed = [
        Changed(number, data.draw(vector.filter(any)), data.draw(vector), data.draw(st.booleans())) for number in chosen
    ]
    orders = orders_of(places, rows)
    found = tested.noise_tests(changes_of(sizes, changed), orders, R)
    assert {
        (family.value, of): ((trials, Fraction(*rest)), count)
        for family, tests in found.items()
        for of, (count, (trials, *rest)) in tests.items()
    } == counted(sizes, changed, orders, R)


SIZES = [
    *((2,), (3,), (4,), (5,), (2, 2), (3, 8), (2, 12), (3, 2, 4), (4, 6, 2), (2, 2, 2, 2), (100, 100), (1500,)),
    *((65_536, 2), (1, 5), (1, 1, 2), (1,), (1, 1)),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("k", [0, 1, 9])
def test_there_are_as_many_tests_as_the_level_is_divided_by(sizes: tuple[int, ...], k: int) -> None:
    generator = np.random.default_rng(k)
    changed = [
        Changed(number, tuple(size - 1 for size in sizes), tuple(generator.integers(0, sizes).tolist()))
        for number in range(k if prod(sizes) > 1 else 0)
    ]
    found = tested.noise_tests(changes_of(sizes, changed), orders_of(range(10), 20), R)
    assert {family: len(found.get(family, {})) for family in Family} == members(sizes)
    assert all(one.law.least <= one.count <= one.law.most for one in one_by_one(found))


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (3, 8), (4, 6, 2), (1, 5)], ids=str)
def test_the_levels_of_all_tests_are_no_more_than_the_level(sizes: tuple[int, ...]) -> None:
    level = Decimal("5e-10")
    for family, number in members(sizes).items():
        if number:
            below, above = levels(family, sizes, level)
            assert abs(number * (below + above) / level - family.share) < Decimal("1e-20")
            assert below == (0 if family in {Family.SEEN, Family.REPEATS} else above)
    assert sum(family.share for family in Family) == 1
    assert [str(family.share) for family in Family] == ["0.50", "0.20", "0.05", "0.08", "0.05", "0.08", "0.02", "0.02"]
    assert tested.JOINT_LEVEL + tested.OWN_LEVEL + tested.SAMPLED_LEVEL == tested.FALSE_ALARM == Decimal("1e-9")
    assert level == tested.JOINT_LEVEL


def own(changes: CanaryChanges, owner: str) -> CanaryChanges:
    return changes.of([column for column in changes.columns if column.owner == owner])


def test_what_owners_list_apart_has_its_laws_together() -> None:
    sizes, owners = (2, 3), "alice bob"

    def outcomes() -> Weighted:
        for offsets in product(offset_vectors(sizes), repeat=2):
            for sent in product(vectors(sizes), repeat=2):
                rows = [Changed(number, *both) for number, both in enumerate(zip(offsets, sent, strict=True))]
                whole = changes_of(sizes, rows, owners)
                lists = {
                    one: CanaryChanges.from_bytes(own(whole, one).to_bytes(), own(whole, one).columns, 4)
                    for one in owners.split()
                }
                together = joined(lists, whole.columns)
                assert together.has_same_offsets(whole)
                assert together.is_listed.tolist() == [all(one) for one in offsets]
                yield 1, of_values(together)

    check_laws(outcomes())


@pytest.mark.parametrize("rows", [1000, 140_000])
def test_runs_of_very_many_canaries_are_those_of_few(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    generator = np.random.default_rng(rows)
    for share, changing in ((0.05, 0.9), (0.5, 0.1), (0.98, 0.5)):
        places = np.flatnonzero(generator.random(rows) < share)
        numbers = np.flatnonzero(generator.random(len(places)) < changing)
        changes = changes_of((2,), [Changed(number, (1,), (0,)) for number in numbers.tolist()])

        few = tested._of_orders(changes, CanaryOrders(places=places, rows=rows))
        monkeypatch.setattr(tested, "_FEW", 0)
        assert tested._of_orders(changes, CanaryOrders(places=places, rows=rows)) == few
        monkeypatch.undo()


def test_only_too_much_of_what_was_seen_before_is_a_surprise() -> None:
    for count, surprise in ((0, 0), (5, 0), (10, 10)):
        tests: tested.Counted = {"": (count, (10, 1, 2))}
        assert surprises(Family.SEEN, tests) == {"": surprise}
        assert (surprises(Family.ARCS, tests)[""] > 0) == (count != 5)


def test_a_refused_count_is_louder_than_an_accepted_one_that_surprises_more() -> None:
    tests: tested.Counted = {"rare": (1, (1, 1, 10_000)), "least": (620, (1000, 1, 2)), "most": (650, (1000, 1, 2))}
    assert surprises(Family.SEEN, tests)["rare"] > 9000
    assert _loudest(Family.SEEN, tests, 1000, (Decimal(0), Decimal("1e-12"))) == "most"
