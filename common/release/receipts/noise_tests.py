"""The tests of a server's noise on canaries: each a count whose law is exact where the server is honest.

Of c canaries, k change. k ~ Bin(c, r (1 - 1/K)), K the product of all sizes. Given k, the changed offset vectors are
independent and uniform on the K - 1 that are not zero, the k of the c are a uniform subset, and the symbols that were
sent are uniform and independent of both, since pads are. So r enters the amount and the places alone, and every other
test counts something with a binomial or hypergeometric law given k.

Whatever a server does is told from honest noise only as far as these counts show it: docs/protection.md says what they
do not.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import combinations, groupby
from math import gcd, inf, prod
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, Listing, Places
from veiltab.common.core.numbers.counts import Binomial, CountLaw, Runs, binomial_moments, runs_moments
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass, field
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_test_kinds import Family

FALSE_ALARM = Decimal("1e-9")
"""Probability that an honest server fails the tests of a table, all of them together."""

JOINT_LEVEL = FALSE_ALARM / 2
"""That of the tests of all columns together, which every owner and the desk make on the same lists."""

OWN_LEVEL = Decimal("0.49") * FALSE_ALARM
"""That of the tests of their own columns, of all owners together."""

SAMPLED_LEVEL = FALSE_ALARM - JOINT_LEVEL - OWN_LEVEL
"""That of the number of canaries that a server which samples publishes."""

ALL_COLUMNS = "all columns"
"""What the amount is of."""

_MOST_MULTIPLIERS = 512
_FEW = 2**18
"""So many canaries are sorted sooner than the one that follows another is searched for."""

_SMALL, _NARROW = 2**12, 2**7
"""Numbers below the first are looked up sooner than sorted; of alphabets up to the second the arcs are kept."""

_BLOCKS = (2, 4, 8, 16)
_RESIDUES = (2, 4)
_PERIOD = 2**16
_QUARTERS = 4
_KINDS = (_BLOCKS[-1], _RESIDUES[-1], _QUARTERS)
_STEPS = (6, 8, 10, 12, 14, 16)

Numbers = NDArray[np.int64]

Counted = dict[str, tuple[int, tuple[int, ...]]]
"""What is counted -> the count, and its law: n, numerator and denominator of p; of runs their places and marks."""


def law_of(family: Family, numbers: tuple[int, ...]) -> CountLaw:
    """Return the law of these numbers."""
    if family is Family.RUNS:
        return Runs(*numbers)
    trials, hits, unit = numbers
    common = gcd(hits, unit)
    return Binomial(trials, hits // common, unit // common)


def surprises(family: Family, tests: Counted) -> dict[str, float]:
    """Return of each its squared distance from the mean in standard deviations; 0 if it speaks for the server.

    Whole numbers up to the division, which is rounded once: every party has the same.
    """
    moments = runs_moments if family is Family.RUNS else binomial_moments
    found, least = dict[str, float](), 0 if family.is_one_sided else -inf
    for name, (count, numbers) in tests.items():
        mean, variance, unit = moments(*numbers)
        distance = max(count * unit - mean, least)
        found[name] = distance**2 / variance if variance else distance and inf
    return found


@dataclass(frozen=True, kw_only=True)
class CanaryOrders:
    """The places of the published canaries, and their orders.

    Args:
        places: (c,) ascending, among the rows that the curators uploaded; in memory or mapped.
        rows: uploaded rows, M.
    """

    places: Numbers = field(repr=False)
    rows: int

    @classmethod
    def of(cls, canaries: CanaryPlaces, sampled: Places | None, many: Listing) -> "CanaryOrders":
        """Return those of a release.

        Args:
            sampled: where the server samples: which of them are published, ascending; else None.
            many: keeps what memory should not.
        """
        return cls(places=canaries.listed(sampled, many), rows=canaries.rows)

    def classes(self, places: Numbers) -> list[int]:
        """Return how many of some places lie in each class, in the order of the classes' names."""
        _, members = _classes()
        kinds = np.zeros(members.shape[1], np.int64)
        for part in row_slices(len(places)):
            some = np.asarray(places[part])
            quarter = some // (_PERIOD // _QUARTERS) & (_QUARTERS - 1)
            kind = some * _BLOCKS[-1] // self.rows, some & (_RESIDUES[-1] - 1), quarter
            kinds += np.bincount(np.ravel_multi_index(kind, _KINDS), minlength=len(kinds))
        return list(map(int, members @ kinds))

    @cached_property
    def all_classes(self) -> list[int]:
        """How many canaries lie in each class."""
        return self.classes(self.places)

    @cached_property
    def _all_orders(self) -> Numbers:
        return _orders_of(np.asarray(self.places))

    def in_orders(self, numbers: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
        """Return what some canaries have in each order, (orders, k), and how many runs these make, (orders,).

        Args:
            numbers: (k,) of the canaries, ascending.
            values: (k,) what each has, not below 0.
        """
        if len(self.places) <= _FEW:
            whole = np.full(len(self.places), -1)
            whole[numbers] = values
            whole = whole[self._all_orders]
            is_one = whole >= 0
            next_to = (is_one[:, 1:] & is_one[:, :-1]).sum(axis=1)
            return np.extract(is_one, whole).reshape(len(whole), len(numbers)), len(numbers) - next_to
        places = np.asarray(self.places[numbers])
        followed = (np.isin(self._followers(places, 2**step), places).sum() for step in _STEPS)
        return values[_orders_of(places)], len(numbers) - np.array([(np.diff(numbers) == 1).sum(), *followed])

    def _followers(self, places: Numbers, modulus: int) -> Numbers:
        """Return the places of the canaries that follow these in the order by residue and place; the last has none."""
        found, candidates = [places[:0]], places + modulus
        while len(candidates):
            is_over = candidates >= self.rows
            candidates = np.where(is_over, candidates % modulus + 1, candidates)
            candidates = candidates[~(is_over & (candidates == modulus))]
            next_places = np.searchsorted(self.places, candidates)
            is_canary = np.asarray(self.places[np.minimum(next_places, len(self.places) - 1)]) == candidates
            found.append(candidates[is_canary])
            candidates = candidates[~is_canary] + modulus
        return np.concatenate(found)


def _orders_of(places: Numbers) -> Numbers:
    """Return how ascending places are sorted by place, then by residue mod each 2^step and place, (orders, places)."""
    residues = places & np.array([[2**step - 1] for step in (0, *_STEPS)], np.int64)
    return residues.astype(np.uint16).argsort(axis=1, kind="stable")


@cache
def _classes() -> tuple[list[str], Numbers]:
    """Return the names of the classes of places, and which of `_KINDS` of places each has, (classes, kinds)."""
    block, residue, quarter = np.indices(_KINDS).reshape(3, -1)
    classes = {f"block {b + 1} of {n}": block * n // _BLOCKS[-1] == b for n in _BLOCKS for b in range(n)}
    classes |= {f"place mod {n} = {rest}": residue % n == rest for n in _RESIDUES for rest in range(n)}
    classes |= {f"quarter {q + 1} of every {_PERIOD} places": quarter == q for q in range(_QUARTERS)}
    return list(classes), np.array(list(classes.values()), np.int64)


def noise_tests(changes: CanaryChanges, orders: CanaryOrders, replacement: Fraction) -> dict[Family, Counted]:
    """Return all tests of some columns, of each family that has any.

    Args:
        orders: of the canaries that were published.
        replacement: r of the server.
    """
    some = replacement * (1 - Fraction(1, prod(_sizes(changes))))
    found: dict[Family, Counted] = {
        Family.AMOUNT: {ALL_COLUMNS: (len(changes), (len(orders.places), *some.as_integer_ratio()))},
        Family.COLUMN: _of_columns(changes, 1),
        Family.PAIR: _of_columns(changes, 2),
        Family.ARCS: _of_arcs(changes),
        Family.SEEN: _of_values(changes),
        Family.PLACES: _of_places(changes, orders, some),
        **_of_orders(changes, orders),
    }
    return {family: tests for family, tests in found.items() if tests}


@lru_cache(maxsize=256)
def members(sizes: tuple[int, ...]) -> dict[Family, int]:
    """Return how many tests each family has, of columns of these sizes."""
    wide = sum(size > 2 for size in sizes)
    pairs = len(sizes) * (len(sizes) - 1) // 2
    arcs = sum(len(_arcs(size)) * (2 + (size > 2)) for size in sizes)
    orders = 1 + len(_STEPS)
    return {
        Family.AMOUNT: 1,
        Family.COLUMN: len(sizes) if pairs else 0,
        Family.PAIR: pairs,
        Family.ARCS: arcs,
        Family.SEEN: wide + len(sizes) + 2 * pairs + 2,
        Family.PLACES: sum(_BLOCKS) + sum(_RESIDUES) + _QUARTERS,
        Family.RUNS: orders,
        Family.REPEATS: orders if prod(sizes) > 2 else 0,
    }


def _sizes(changes: CanaryChanges) -> tuple[int, ...]:
    return tuple([column.size for column in changes.columns])


def _published(changes: CanaryChanges) -> list[Numbers]:
    columns = zip(changes.columns, changes.offsets, changes.symbols, strict=True)
    return [(values + offsets) % column.size for column, offsets, values in columns]


def _of_columns(changes: CanaryChanges, number: int) -> Counted:
    """Return the tests of columns, or of groups of so many; of a column alone there is none."""
    names, sizes = [column.attribute for column in changes.columns], _sizes(changes)
    if len(names) == 1:
        return {}
    moved = combinations([offsets != 0 for offsets in changes.offsets], number)
    counts = (int(np.count_nonzero(one[0] & one[-1])) for one in moved)
    laws = ((len(changes), *share) for share in _moved_shares(sizes, number))
    return dict(zip(map(", ".join, combinations(names, number)), zip(counts, laws, strict=True), strict=True))


@lru_cache(maxsize=256)
def _moved_shares(sizes: tuple[int, ...], number: int) -> list[tuple[int, int]]:
    """Return the share of the changed canaries that change in all of a group of so many columns, of each group."""
    some = 1 - Fraction(1, prod(sizes)) or Fraction(1)  # of a single cell nothing changes
    each = combinations((1 - Fraction(1, size) for size in sizes), number)
    return [(prod(group) / some).as_integer_ratio() for group in each]


def _arcs(size: int) -> list[tuple[int, int]]:
    """Return the arcs of a column: multipliers, at one or two phases."""
    multipliers = range(1, min(size // 2, _MOST_MULTIPLIERS) + 1)
    return [(multiplier, phase) for phase in sorted({0, size // 4}) for multiplier in multipliers]


def _of_arcs(changes: CanaryChanges) -> Counted:
    """Return of each multiplier s and phase h how many symbols u have (s u + h) mod K below K/2."""
    counted: Counted = {}
    columns = zip(changes.columns, changes.offsets, changes.symbols, _published(changes), strict=True)
    for column, offsets, values, published in columns:
        size, rows = column.size, offsets.nonzero()[0]
        for what, symbols in (("offsets", offsets), ("sent", values), ("published", published)):
            if size > 2 or what != "offsets":
                names = [f"{what} of {column.attribute}, times {s} plus {phase}" for s, phase in _arcs(size)]
                laws = [(len(rows), *share) for share in _arc_shares(size, is_offset=what == "offsets")]
                counts = _arc_counts(symbols[rows], size)
                counted.update(zip(names, zip(counts, laws, strict=True), strict=True))
    return counted


def _arc_counts(symbols: Numbers, size: int) -> list[int]:
    """Return how many symbols lie in each arc."""
    if size <= _NARROW:
        weights, within = np.bincount(symbols, minlength=size), _narrow_arcs(size)
    else:
        values, weights = np.unique(symbols, return_counts=True)
        within = list(_within_arcs(values, size))
    return [count for some in within for count in (some @ weights).tolist()]


@lru_cache(maxsize=64)
def _narrow_arcs(size: int) -> list[NDArray[np.bool_]]:
    return list(_within_arcs(np.arange(size), size))


def _within_arcs(symbols: Numbers, size: int) -> Iterator[NDArray[np.bool_]]:
    """Yield of each phase which symbols lie in the arc of each multiplier, (multipliers, symbols)."""
    for phase, arcs in groupby(_arcs(size), itemgetter(1)):
        multiplied = np.outer([multiplier for multiplier, _ in arcs], symbols)
        yield (multiplied + phase) % size < (size + 1) // 2


@lru_cache(maxsize=64)
def _arc_shares(size: int, *, is_offset: bool) -> list[tuple[int, int]]:
    """Return the share of the symbols, or of the offsets, that lie in each arc.

    The multiples of the divisor that a multiplier has in common with K, shifted by the phase, are hit by as many
    symbols each. An offset is not 0, which the arc has.
    """
    steps = ((gcd(multiplier, size), phase) for multiplier, phase in _arcs(size))
    within = (step * len(range(phase % step, (size + 1) // 2, step)) for step, phase in steps)
    return [(count - is_offset, size - is_offset) for count in within]


def _of_values(changes: CanaryChanges) -> Counted:
    counted: Counted = {}
    sizes, published = _sizes(changes), _published(changes)
    columns = list(zip((one.attribute for one in changes.columns), sizes, changes.offsets, published, strict=True))
    for (name, size, offsets, _), values in zip(columns, changes.symbols, strict=True):
        rows = offsets.nonzero()[0]
        moves = offsets[rows]
        if size > 2:
            counted[f"offsets of {name}"] = _seen(moves, size, size - 1)
        counted[f"offsets of {name} by sent symbol"] = _seen(values[rows] * size + moves, size**2, size * (size - 1))
    for (one, first, *ours), (other, second, *theirs) in combinations(columns, 2):
        rows, most = (ours[0] * theirs[0]).nonzero()[0], first * second
        moves, symbols = (own[rows] * second + of[rows] for own, of in zip(ours, theirs, strict=True))
        counted[f"offsets of {one}, {other}"] = _seen(moves, most, (first - 1) * (second - 1))
        counted[f"published {one}, {other}"] = _seen(symbols, most, most)
    cells = prod(sizes)
    counted["offsets of all columns"] = _seen(np.ravel_multi_index(changes.offsets, sizes), cells, cells - 1)
    listed = np.ravel_multi_index(published, sizes)[changes.is_listed]
    counted["published, all columns"] = _seen(listed, cells, cells)
    return counted


def _seen(values: Numbers, most: int, cells: int) -> tuple[int, tuple[int, int, int]]:
    """Return how many values of the second half are among those of the first half, and the law of that.

    Args:
        most: values are below it.
        cells: how many different values there can be.
    """
    middle = len(values) // 2
    first, rest = values[:middle], values[middle:]
    if most <= _SMALL:
        is_seen = np.zeros(most, np.bool_)
        is_seen[first] = True
        kinds, again = int(np.count_nonzero(is_seen)), is_seen[rest]
    else:
        different, _ = np.unique(first, return_counts=True)  # without counts, numpy imports its masked arrays
        kinds, again = len(different), np.isin(rest, different)
    # An attribute of one category has no offsets.
    return int(np.count_nonzero(again)), (len(rest), kinds, max(cells, 1))


def _of_places(changes: CanaryChanges, orders: CanaryOrders, some: Fraction) -> Counted:
    counts, (names, _) = orders.classes(np.asarray(orders.places[changes.numbers])), _classes()
    hits, unit = some.as_integer_ratio()
    laws = [(among, hits, unit) for among in orders.all_classes]
    return dict(zip(names, zip(counts, laws, strict=True), strict=True))


def _of_orders(changes: CanaryChanges, orders: CanaryOrders) -> dict[Family, Counted]:
    names = ["place", *(f"place mod {2**step}, then place" for step in _STEPS)]
    cells, count = prod(_sizes(changes)), len(changes)
    offsets, runs = orders.in_orders(changes.numbers, np.ravel_multi_index(changes.offsets, _sizes(changes)))
    again = (offsets[:, 1:] == offsets[:, :-1]).sum(axis=1) if cells > 2 else ()
    law, other = (len(orders.places), count), (max(count - 1, 0), 1, cells - 1)
    return {
        Family.RUNS: {name: (int(one), law) for name, one in zip(names, runs, strict=True)},
        Family.REPEATS: {name: (int(one), other) for name, one in zip(names, again, strict=False)},
    }


@lru_cache(maxsize=1024)
def levels(family: Family, sizes: tuple[int, ...], level: Decimal) -> tuple[Decimal, Decimal]:
    """Return the most probability below and above what one test of a family accepts."""
    part = family.share * level / members(sizes)[family]
    return (Decimal(0), part) if family.is_one_sided else (part / 2, part / 2)
