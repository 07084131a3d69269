"""How many canaries a release has: as many as show a server that leaves out half of its noise, or that of a column.

The tests are those of `noise_tests`. What is planned follows from public sizes, by exact binomial laws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import prod

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.core.numbers.counts import Binomial, accepted, is_lower_tail_within, is_upper_tail_within
from veiltab.common.release.receipts.families import Family
from veiltab.common.release.receipts.noise_tests import JOINT_LEVEL
from veiltab.common.release.table_spec import TableSpec

POWER = Decimal("0.999")
"""Probability with which the planned canaries show what they are planned for."""

LEAST_CAP = 1024
"""Canaries that a release has at the least, however few its rows are."""

_HALF_POWER = 1 - (1 - POWER) / 2
_IN_A_ROW = 40
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _RawHalf:
    """A server that leaves a column raw in half of the rows that it replaces.

    Args:
        honest: share of the changed rows in which the column of an honest server changes.
        shown: the same of this server.
        raw: what a row that leaves the column raw adds to the changed rows, in units of r.
    """

    honest: Fraction
    shown: Fraction
    raw: Fraction


@lru_cache(maxsize=256)
def planned_canaries(server: GammaDiagonal, sizes: tuple[int, ...], rows: int) -> int:
    """Return how many canaries a release has.

    Args:
        server: what the server is to run.
        sizes: alphabet sizes of all columns.
        rows: data rows of the release; more canaries than these, and than 1,024, are not planned.

    Returns:
        c, at least 1,024, the same on every machine.
    """
    most = max(LEAST_CAP, rows)
    return min(most, max(LEAST_CAP, canaries_for_half(server, sizes), canaries_for_half_a_column(server, sizes)))


def canaries_for_half(server: GammaDiagonal, sizes: Sequence[int]) -> int:
    """Return so many canaries that half of the noise is found missing with probability .999."""
    changes = _changes(server, sizes)
    return _first(lambda canaries: _shows(canaries, changes, _HALF))


def canaries_for_half_a_column(server: GammaDiagonal, sizes: Sequence[int]) -> int:
    """Return so many canaries that any column raw in half of the rows is found with probability .999; 0 of one column.

    So many changed canaries show it with .9995, and so many canaries have these changed with .9995.
    """
    needed = changed_for_half_a_column(tuple(sorted(sizes)))
    replacement, changes = 1 - server.retention, _changes(server, sizes)

    def canaries_for(raw: Fraction) -> int:
        changed = (changes + replacement * raw) / 2
        return _first(lambda canaries: is_lower_tail_within(Binomial(canaries, changed), needed - 1, 1 - _HALF_POWER))

    return max((canaries_for(lie.raw) for lie in _raw_halves(sizes)), default=0)


@lru_cache(maxsize=1024)
def changed_for_half_a_column(sizes: tuple[int, ...]) -> int:
    """Return how many changed canaries show with probability .9995 that a column is raw in half of the rows.

    It is the least number from which on forty in a row do; 0 of one column.
    """
    level = Family.COLUMN.share * JOINT_LEVEL / len(sizes) / 2
    return max((_changed_for(lie, level) for lie in _raw_halves(sizes)), default=0)


def _raw_halves(sizes: Sequence[int]) -> Iterator[_RawHalf]:
    cells = prod(sizes)
    some = 1 - Fraction(1, cells)
    for size in set(sizes):
        raw = 1 - Fraction(size, cells)
        if size > 1 and raw:
            own = 1 - Fraction(1, size)
            yield _RawHalf(honest=own / some, shown=own / (some + raw), raw=raw)


def _changed_for(lie: _RawHalf, level: Decimal) -> int:
    def fails(changed: int) -> bool:
        fewest, _ = accepted(Binomial(changed, lie.honest), level, Decimal(0))
        return not is_upper_tail_within(Binomial(changed, lie.shown), fewest, 1 - _HALF_POWER)

    # The power rises in teeth of a few changes each.
    changed = end = max(1, _first(lambda number: not fails(number)) - 4 * _IN_A_ROW)
    while end < changed + _IN_A_ROW:
        end += 1
        if fails(end - 1):
            changed = end
    return changed


def shown_share(server: GammaDiagonal, sizes: Sequence[int], canaries: int) -> Fraction:
    """Return the largest share of the noise, in thousandths, at which it is found with .999 that some is missing.

    0 where not even a server without any noise is found.
    """
    changes = _changes(server, sizes)
    if not _shows(canaries, changes, Fraction(0)):
        return Fraction(0)
    missed = _first(lambda share: not _shows(canaries, changes, Fraction(min(share, 1000), 1000)))
    return Fraction(missed - 1, 1000)


def shown_by_canaries(spec: TableSpec) -> Fraction:
    """Return the largest share of its noise at which a server is found with probability .999; see `shown_share`."""
    tested = spec.canaries * spec.published_rows // spec.uploaded_rows
    return shown_share(spec.server_mechanism, [column.size for column in spec.columns], tested)


def _changes(server: GammaDiagonal, sizes: Sequence[int]) -> Fraction:
    return (1 - server.retention) * (1 - Fraction(1, prod(sizes)))


def _shows(canaries: int, changes: Fraction, share: Fraction) -> bool:
    """Whether so many canaries show that only a share of the noise was added."""
    level = Family.AMOUNT.share * JOINT_LEVEL / 2
    fewest, _ = accepted(Binomial(canaries, changes), level, Decimal(0))
    return is_upper_tail_within(Binomial(canaries, changes * share), fewest, 1 - POWER)


def _first(holds: Callable[[int], bool]) -> int:
    """Return a number for which it holds and did not for the one before, by doubling and bisection."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
