"""The tests of a server's noise on canaries: each a count whose law is exact where the server is honest.

Of c canaries, k change. k ~ Bin(c, r (1 - 1/K)), K the product of all sizes. Given k, the changed offset vectors are
independent and uniform on the K - 1 that are not zero, the k of the c are a uniform subset, and the symbols that were
sent are uniform and independent of both, since pads are. So r enters the amount and the places alone, and every other
test counts something with a binomial or hypergeometric law given k.

Whatever a server does is told from honest noise only as far as these counts show it: docs/protection.md says what they
do not.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, Listing, Places
from veiltab.common.core.numbers.counts import Binomial, CountLaw, Runs
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass, field
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.table_spec import Column

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

_SMALL = 2**12
"""Numbers below it are looked up sooner than sorted."""

_BLOCKS = (2, 4, 8, 16)
_RESIDUES = (2, 4)
_PERIOD = 2**16
_QUARTERS = 4
_STEPS = (6, 8, 10, 12, 14, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTest:
    """One count, and its law where the server is honest.

    Args:
        of: in which column, at which places, in which order.
    """

    family: Family
    of: str
    law: CountLaw
    count: int

    @property
    def surprise(self) -> float:
        """Squared distance from the mean in standard deviations; 0 on the side that speaks for the server."""
        mean, variance, unit = self.law.moments
        distance = self.count * unit - mean
        if distance == 0 or (self.family.is_one_sided and distance < 0):
            return 0.0
        return distance**2 / variance if variance else float("inf")


@dataclass(frozen=True, kw_only=True)
class CanaryOrders:
    """The places of the published canaries, and their orders.

    Args:
        places: (c,) ascending, among the rows that the curators uploaded; in memory or mapped.
        rows: uploaded rows, M.
    """

    places: NDArray[np.int64] = field(repr=False)
    rows: int

    @classmethod
    def of(cls, canaries: CanaryPlaces, sampled: Places | None, many: Listing) -> "CanaryOrders":
        """Return those of a release.

        Args:
            sampled: where the server samples: which of them are published, ascending; else None.
            many: keeps what memory should not.
        """
        return cls(places=canaries.listed(sampled, many), rows=canaries.rows)

    def classes(self, places: NDArray[np.int64]) -> dict[str, int]:
        """Return how many of some places lie in each class: blocks of rows, residues, parts of a period."""
        blocks, residues, quarters = (np.zeros(n, np.int64) for n in (_BLOCKS[-1], _RESIDUES[-1], _QUARTERS))
        for part in row_slices(len(places)):
            some = np.asarray(places[part])
            blocks += np.bincount(some * _BLOCKS[-1] // self.rows, minlength=_BLOCKS[-1])
            residues += np.bincount(some % _RESIDUES[-1], minlength=_RESIDUES[-1])
            quarters += np.bincount(some % _PERIOD * _QUARTERS // _PERIOD, minlength=_QUARTERS)
        counts = dict[str, int]()
        for number in _BLOCKS:
            sums = blocks.reshape(number, -1).sum(axis=1).tolist()
            counts |= {f"block {block} of {number}": count for block, count in enumerate(sums, 1)}
        for modulus in _RESIDUES:
            sums = residues.reshape(-1, modulus).sum(axis=0).tolist()
            counts |= {f"place mod {modulus} = {residue}": count for residue, count in enumerate(sums)}
        sums = quarters.tolist()
        return counts | {f"quarter {number} of every {_PERIOD} places": count for number, count in enumerate(sums, 1)}

    @cached_property
    def all_classes(self) -> dict[str, int]:
        """How many canaries lie in each class."""
        return self.classes(self.places)

    @cached_property
    def _sorted(self) -> dict[int, NDArray[np.int64]]:
        return {step: np.sort(self._keys(np.asarray(self.places), step)) for step in _STEPS}

    def _keys(self, places: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = ((places & (2**step - 1)) << 40) | places
        return keys

    def in_orders(self, numbers: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64], int]]:
        """Yield of each order its name, how it sorts some canaries, and how many runs they make among all.

        Args:
            numbers: (k,) of the canaries, ascending.
        """
        yield "place", np.arange(len(numbers)), _runs_of(numbers)
        places = np.asarray(self.places[numbers])
        for step in _STEPS:
            keys = self._keys(places, step)
            order = np.argsort(keys)
            if len(self.places) <= _FEW:
                runs = _runs_of(np.searchsorted(self._sorted[step], keys[order]))
            else:
                runs = len(keys) - int(np.isin(self._followers(places, 2**step), places).sum())
            yield f"place mod {2**step}, then place", order, runs

    def _followers(self, places: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
        """Return the place of the canary that follows each in the order by residue and place; -1 after the last."""
        following, open_ = np.full(len(places), -1), np.arange(len(places))
        candidates = places + modulus
        while len(open_):
            is_over = candidates >= self.rows
            candidates = np.where(is_over, candidates % modulus + 1, candidates)
            is_last = is_over & (candidates == modulus)
            open_, candidates = open_[~is_last], candidates[~is_last]
            next_places = np.searchsorted(self.places, candidates)
            is_canary = np.asarray(self.places[np.minimum(next_places, len(self.places) - 1)]) == candidates
            following[open_[is_canary]] = candidates[is_canary]
            open_, candidates = open_[~is_canary], candidates[~is_canary] + modulus
        return following


def _runs_of(ranks: NDArray[np.int64]) -> int:
    """Return the runs that ascending ranks make."""
    return int(np.count_nonzero(np.diff(ranks) != 1)) + (len(ranks) > 0)


def noise_tests(changes: CanaryChanges, orders: CanaryOrders, replacement: Fraction) -> list[NoiseTest]:
    """Return all tests of some columns.

    Args:
        orders: of the canaries that were published.
        replacement: r of the server.
    """
    sizes = [column.size for column in changes.columns]
    some = replacement * (1 - Fraction(1, prod(sizes)))
    amount = NoiseTest(family=Family.AMOUNT, of=ALL_COLUMNS, law=Binomial(len(orders.places), some), count=len(changes))
    return [
        amount,
        *_of_columns(changes),
        *_of_pairs(changes),
        *_of_arcs(changes),
        *_of_values(changes),
        *_of_places(changes, orders, some),
        *_of_orders(changes, orders),
    ]


def members(sizes: Sequence[int]) -> dict[Family, int]:
    """Return how many tests each family has, of columns of these sizes."""
    return _members(tuple(sizes))


@lru_cache(maxsize=256)
def _members(sizes: tuple[int, ...]) -> dict[Family, int]:
    wide = sum(size > 2 for size in sizes)
    pairs = len(sizes) * (len(sizes) - 1) // 2
    arcs = sum(_arcs(size) * (2 + (size > 2)) for size in sizes)
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


def _changing(changes: CanaryChanges) -> Fraction:
    """Return 1 - 1/K; 1 where K is 1 and nothing changes."""
    return 1 - Fraction(1, prod(column.size for column in changes.columns)) or Fraction(1)


def _of_columns(changes: CanaryChanges) -> Iterator[NoiseTest]:
    some = _changing(changes)
    if len(changes.columns) > 1:
        for column, offsets in zip(changes.columns, changes.offsets, strict=True):
            law = Binomial(len(changes), (1 - Fraction(1, column.size)) / some)
            yield NoiseTest(family=Family.COLUMN, of=column.attribute, law=law, count=int(np.count_nonzero(offsets)))


def _of_pairs(changes: CanaryChanges) -> Iterator[NoiseTest]:
    some = _changing(changes)
    for one, other in combinations(range(len(changes.columns)), 2):
        first, second = changes.columns[one], changes.columns[other]
        count = int(np.count_nonzero((changes.offsets[one] != 0) & (changes.offsets[other] != 0)))
        law = Binomial(len(changes), (1 - Fraction(1, first.size)) * (1 - Fraction(1, second.size)) / some)
        yield NoiseTest(family=Family.PAIR, of=f"{first.attribute}, {second.attribute}", law=law, count=count)


def _arcs(size: int) -> int:
    """Return how many arcs a column has: multipliers, at one or two phases."""
    return min(size // 2, _MOST_MULTIPLIERS) * _phases(size)


def _phases(size: int) -> int:
    return 1 if size < 4 else 2


def _of_arcs(changes: CanaryChanges) -> Iterator[NoiseTest]:
    for column, offsets, values in zip(changes.columns, changes.offsets, changes.symbols, strict=True):
        changed = offsets != 0
        published = (values + offsets) % column.size
        for what, symbols in (("offsets", offsets), ("sent", values), ("published", published)):
            if column.size > 2 or what != "offsets":
                yield from _of_symbols(column, what, symbols[changed], is_offset=what == "offsets")


def _of_symbols(column: Column, what: str, symbols: NDArray[np.int64], *, is_offset: bool) -> Iterator[NoiseTest]:
    """Yield of each multiplier s and phase h how many symbols u have (s u + h) mod K below K/2."""
    values, weights = np.unique(symbols, return_counts=True)
    multipliers = np.arange(1, min(column.size // 2, _MOST_MULTIPLIERS) + 1)
    multiplied = np.outer(multipliers, values)
    for phase in (0, column.size // 4)[: _phases(column.size)]:
        counts = ((multiplied + phase) % column.size < _half(column.size)) @ weights
        for multiplier, count in zip(multipliers.tolist(), counts.tolist(), strict=True):
            share = _arc_share(column.size, gcd(multiplier, column.size), phase, is_offset=is_offset)
            of = f"{what} of {column.attribute}, times {multiplier} plus {phase}"
            yield NoiseTest(family=Family.ARCS, of=of, law=Binomial(len(symbols), share), count=count)


def _half(size: int) -> int:
    return -(-size // 2)


@lru_cache(maxsize=4096)
def _arc_share(size: int, step: int, phase: int, *, is_offset: bool) -> Fraction:
    """Return the share of the symbols, or of the offsets, in an arc whose multiplier has this divisor in common with K.

    The multiples of the step, shifted by the phase, are hit by `step` symbols each. An offset is not 0, which the arc
    has.
    """
    within = step * len(range(phase % step, _half(size), step))
    return Fraction(within - 1, size - 1) if is_offset else Fraction(within, size)


def _of_values(changes: CanaryChanges) -> Iterator[NoiseTest]:
    columns, sizes = changes.columns, [column.size for column in changes.columns]
    pairs = list(zip(changes.offsets, changes.symbols, strict=True))
    published = [(values + offsets) % size for (offsets, values), size in zip(pairs, sizes, strict=True)]
    for column, size, (offsets, values) in zip(columns, sizes, pairs, strict=True):
        changed = offsets != 0
        if size > 2:
            yield _repeats(f"offsets of {column.attribute}", offsets[changed], size - 1)
        of = f"offsets of {column.attribute} by sent symbol"
        yield _repeats(of, values[changed] * size + offsets[changed], size * (size - 1))
    for one, other in combinations(range(len(columns)), 2):
        names, both = f"{columns[one].attribute}, {columns[other].attribute}", changes.offsets[one] != 0
        both = both & (changes.offsets[other] != 0)
        offsets = changes.offsets[one] * sizes[other] + changes.offsets[other]
        yield _repeats(f"offsets of {names}", offsets[both], (sizes[one] - 1) * (sizes[other] - 1))
        symbols = published[one] * sizes[other] + published[other]
        yield _repeats(f"published {names}", symbols[both], sizes[one] * sizes[other])
    cells = prod(sizes)
    yield _repeats("offsets of all columns", _as_cells(changes.offsets, sizes), cells - 1)
    yield _repeats("published, all columns", _as_cells(published, sizes)[changes.is_listed], cells)


def _repeats(of: str, values: NDArray[np.int64], cells: int) -> NoiseTest:
    """Return how many values of the second half are among those of the first half."""
    middle = len(values) // 2
    first, rest = values[:middle], values[middle:]
    if len(values) and values.max() < _SMALL:
        is_seen = np.bincount(first, minlength=_SMALL) > 0
        kinds, again = int(is_seen.sum()), int(is_seen[rest].sum())
    else:
        different, _ = np.unique(first, return_counts=True)  # without counts, numpy imports its masked arrays
        kinds, again = len(different), int(np.isin(rest, different).sum())
    # An attribute of one category has no offsets.
    law = Binomial(len(rest), Fraction(kinds, max(cells, 1)))
    return NoiseTest(family=Family.SEEN, of=of, law=law, count=again)


def _of_places(changes: CanaryChanges, orders: CanaryOrders, some: Fraction) -> Iterator[NoiseTest]:
    among = orders.all_classes
    for name, count in orders.classes(np.asarray(orders.places[changes.numbers])).items():
        yield NoiseTest(family=Family.PLACES, of=name, law=Binomial(among[name], some), count=count)


def _of_orders(changes: CanaryChanges, orders: CanaryOrders) -> Iterator[NoiseTest]:
    sizes = [column.size for column in changes.columns]
    cells, offsets = prod(sizes), _as_cells(changes.offsets, sizes)
    for name, order, runs in orders.in_orders(changes.numbers):
        yield NoiseTest(family=Family.RUNS, of=name, law=Runs(len(orders.places), len(changes)), count=runs)
        if cells > 2:
            again = int(np.count_nonzero(np.diff(offsets[order]) == 0))
            law = Binomial(max(len(changes) - 1, 0), Fraction(1, cells - 1))
            yield NoiseTest(family=Family.REPEATS, of=name, law=law, count=again)


def _as_cells(symbols: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return each row of symbols as one number."""
    cells = np.zeros_like(symbols[0])
    for column, size in zip(symbols, sizes, strict=True):
        cells = cells * size + column
    return cells


def levels(family: Family, sizes: Sequence[int], level: Decimal) -> tuple[Decimal, Decimal]:
    """Return the most probability below and above what one test of a family accepts."""
    part = family.share * level / members(sizes)[family]
    return (Decimal(0), part) if family.is_one_sided else (part / 2, part / 2)
