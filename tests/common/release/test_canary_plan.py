"""How many canaries are planned, to the unit, and that so many show what they are planned for, by exact sums."""

import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import comb, prod

import pytest

from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.receipts.canary_plan import (
    canaries_for_half,
    canaries_for_half_a_column,
    changed_for_half_a_column,
    planned_canaries,
    shown_share,
)

Sizes = tuple[int, ...]

JOINT = Fraction(5, 10**10)
AMOUNT, COLUMN = Fraction(1, 2), Fraction(1, 5)
"""Shares of the false alarm; of each half lies below."""


def server_of(population: int, sizes: Sizes, epsilon: str, delta: str) -> GammaDiagonal:
    return plan_release(
        population=population, cells=prod(sizes), epsilon=Decimal(epsilon), delta=Decimal(delta)
    ).mechanism.server


TABLE = [
    # population, sizes, epsilon, delta; changed for half a column; for half of all, for half a column, planned
    ((45_222, (3, 8), "0.5", "1e-6"), 211, (8_594, 10_021, 10_021)),
    ((45_222, (2, 12), "0.5", "1e-6"), 353, (8_594, 17_827, 17_827)),
    ((45_222, (3, 2, 4), "0.5", "1e-6"), 359, (8_594, 14_731, 14_731)),
    ((45_222, (3, 8), "0.1", "1e-6"), 211, (911, 1_256, 1_256)),
    ((300, (2, 2), "1", "1e-4"), 331, (3_185, 5_912, 1_024)),
    ((300, (4, 6), "1", "1e-4"), 163, (843, 887, 1_024)),
    ((10**6, (8, 10), "0.5", "1e-7"), 101, (41_177, 22_254, 41_177)),
    ((10**8, (4, 4), "1", "1e-9"), 165, (50_124_311, 43_294_168, 50_124_311)),
]


@pytest.mark.parametrize(("release", "changed", "canaries"), TABLE, ids=[str(row[0]) for row in TABLE])
def test_the_plan_is_that_of_the_table(
    release: tuple[int, Sizes, str, str], changed: int, canaries: tuple[int, int, int]
) -> None:
    population, sizes, *_ = release
    server = server_of(*release)
    for order in permutations(sizes):
        assert changed_for_half_a_column(tuple(sorted(order))) == changed
        found = canaries_for_half(server, order), canaries_for_half_a_column(server, order)
        assert (*found, planned_canaries(server, order, population)) == canaries


@cache
def below(n: int, p: Fraction, count: int) -> Fraction:
    """P(Bin(n, p) <= count), term by term, as whole numbers."""
    hits, all_ = p.numerator, p.denominator
    misses = all_ - hits
    total = sum(comb(n, j) * hits**j * misses ** (count - j) for j in range(count + 1))
    return Fraction(total * misses ** (n - count), all_**n) if n >= count else Fraction(1)


@cache
def fewest(n: int, p: Fraction, level: Fraction) -> int:
    """The least count that is accepted."""
    count, term, tail = 0, (1 - p) ** n, (1 - p) ** n
    while tail <= level:
        count += 1
        term *= p / (1 - p) * Fraction(n - count + 1, count)
        tail += term
    return count


def shows_raw_half(size: int, cells: int, columns: int, changed: int) -> bool:
    """Whether so many changed canaries show a column that is raw in half of the rows."""
    some, own, raw = 1 - Fraction(1, cells), 1 - Fraction(1, size), 1 - Fraction(size, cells)
    low = fewest(changed, own / some, COLUMN * JOINT / columns / 2)
    return low > 0 and below(changed, own / (some + raw), low - 1) >= Fraction(9995, 10_000)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(3, 8), (4, 6), (8, 10), (4, 4), (2, 2), (2, 12), (2, 3, 4), (2, 100)], ids=str)
def test_so_many_changed_canaries_show_it_and_forty_more_do(sizes: Sizes) -> None:
    needed = changed_for_half_a_column(sizes)

    def all_show(changed: int) -> bool:
        return all(shows_raw_half(size, prod(sizes), len(sizes), changed) for size in sizes)

    assert all(all_show(changed) for changed in range(needed, needed + 40))
    # Before, no forty in a row do.
    in_a_row = 0
    for changed in range(1, needed):
        in_a_row = in_a_row + 1 if all_show(changed) else 0
        assert in_a_row < 40
    assert in_a_row == 0


@pytest.mark.parametrize("release", [TABLE[3][0], TABLE[5][0]], ids=str)
def test_so_many_canaries_have_as_many_changed_ones_and_one_fewer_has_not(release: tuple[int, Sizes, str, str]) -> None:
    _, sizes, *_ = release
    server, cells = server_of(*release), prod(sizes)
    r, needed = 1 - server.retention, changed_for_half_a_column(tuple(sorted(sizes)))
    planned = canaries_for_half_a_column(server, sizes)

    def has(canaries: int) -> bool:
        laws = [r * (1 - Fraction(1, cells) + 1 - Fraction(size, cells)) / 2 for size in sizes]
        return all(below(canaries, law, needed - 1) <= Fraction(5, 10_000) for law in laws)

    assert has(planned)
    assert not has(planned - 1)


def shows(canaries: int, p: Fraction, share: Fraction) -> bool:
    low = fewest(canaries, p, AMOUNT * JOINT / 2)
    return low > 0 and below(canaries, p * share, low - 1) >= Fraction(999, 1000)


@pytest.mark.long
@pytest.mark.parametrize("release", [TABLE[3][0], TABLE[5][0]], ids=str)
def test_so_many_canaries_show_half_of_the_noise_and_one_fewer_does_not(release: tuple[int, Sizes, str, str]) -> None:
    server, sizes = server_of(*release), release[1]
    p = (1 - server.retention) * (1 - Fraction(1, prod(sizes)))
    planned = canaries_for_half(server, sizes)
    assert shows(planned, p, Fraction(1, 2))
    assert not shows(planned - 1, p, Fraction(1, 2))


SHOWN = [
    ((4, 6), UNIT // 4, 887),
    ((2, 2), UNIT // 10, 1024),
    ((2, 2), UNIT // 10, 250),
    ((2, 2), UNIT // 10, 400),
    ((5,), UNIT // 3, 1024),
    ((100, 10), UNIT, 1024),
    ((65_536, 2), UNIT - 1, 300),
    ((3, 8), UNIT // 3, 0),
]


@pytest.mark.parametrize(("sizes", "replacement", "canaries"), SHOWN, ids=str)
def test_the_share_that_is_shown_is_the_largest_in_thousandths(sizes: Sizes, replacement: int, canaries: int) -> None:
    server = GammaDiagonal(cells=prod(sizes), replacement=replacement)
    p = Fraction(replacement, UNIT) * (1 - Fraction(1, prod(sizes)))
    found = shown_share(server, sizes, canaries)
    assert not shows(canaries, p, found + Fraction(1, 1000)) if found else not shows(canaries, p, Fraction(0))
    assert found == 0 or shows(canaries, p, found)


@pytest.mark.parametrize(
    ("release", "canaries", "omitted"),
    [(TABLE[0][0], 10_021, "0.47"), (TABLE[5][0], 887, "0.49"), (TABLE[4][0], 1024, "0.78")],
)
def test_the_share_that_may_be_missing_is_that_of_the_table(
    release: tuple[int, Sizes, str, str], canaries: int, omitted: str
) -> None:
    missing = 1 - shown_share(server_of(*release), release[1], canaries)
    assert abs(Decimal(float(missing)) - Decimal(omitted)) < Decimal("0.01")


def test_of_one_column_there_is_none_beside_which_it_can_be_raw() -> None:
    for sizes in ((5,), (1, 5), (2,)):
        server = GammaDiagonal(cells=prod(sizes), replacement=UNIT // 7)
        assert changed_for_half_a_column(sizes) == canaries_for_half_a_column(server, sizes) == 0
        assert planned_canaries(server, sizes, 10**6) == max(1024, canaries_for_half(server, sizes))


@pytest.mark.parametrize("sizes", [(2,), (5,), (4, 6), (3, 2, 4), (65_536, 2)], ids=str)
@pytest.mark.parametrize("replacement", [1, 2, 5, 1000, 2**20, 2**40, UNIT - 1, UNIT])
def test_every_release_has_a_plan_and_a_share_that_is_shown(sizes: Sizes, replacement: int) -> None:
    server = GammaDiagonal(cells=prod(sizes), replacement=replacement)
    rows = 10**8
    found = planned_canaries(server, sizes, rows)
    assert found == (rows if replacement <= 2**40 else 1024)
    assert (shown_share(server, sizes, found) > 0) == (replacement > 2**40)


PROGRAM = """
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.release.receipts.canary_plan import planned_canaries, shown_share
server = GammaDiagonal(cells=360, replacement=2**58 + 12345)
print(planned_canaries(server, (3, 5, 2, 12), 10**7), shown_share(server, (3, 5, 2, 12), 5000))
"""


def test_another_process_plans_the_same() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(answers) == 1
