"""A server that leaves its noise out of rows, by enumeration: what independent coins cost, and what they do not cover.

Each row is by a coin of its own uniform with probability b, and otherwise what the server makes of it. Then who sees
the rows in secret order, and where each stands, faces at most Theorem A at the replacement probability b.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import log, prod
from random import Random

import pytest

from tests.common.privacy.enumeration import enumerated
from veiltab.common.privacy.shuffle import OrderCertificate

Rows = tuple[int, ...]
Made = tuple[tuple[int, ...], ...]
"""What a server makes of each cell, by place."""

RATIOS = (Fraction(1), Fraction(3, 2))


def nothing(cells: int, rows: int) -> list[Made]:
    return [(tuple(range(cells)),) * rows]


def fixed_offsets(cells: int, rows: int) -> list[Made]:
    return [tuple(tuple((cell + place) % cells for cell in range(cells)) for place in range(rows))]


def anything(cells: int, rows: int) -> list[Made]:
    """One of three ways by a coin, in each any cell of any: the rows depend on one another and on themselves."""
    chance = Random(100 * cells + rows)  # noqa: S311 - of a test
    ways = (tuple(tuple(chance.randrange(cells) for _ in range(cells)) for _ in range(rows)) for _ in range(2))
    return [*fixed_offsets(cells, rows), *ways]


def law(table: Rows, cells: int, blankets: Sequence[Fraction], ways: Sequence[Made]) -> dict[Rows, Fraction]:
    """The law of the published rows by place, of rows in uniformly random order."""
    orders = list(permutations(table))
    # b/K if a row is another cell, and 1 - b more if it is this one: in units of 1/(10 K).
    units = [(int(10 * blanket), int(10 * cells * (1 - blanket))) for blanket in blankets]
    found = {}
    for published in product(range(cells), repeat=len(table)):
        total = 0
        for order, way in product(orders, ways):
            total += prod(
                uniform + kept * (made[cell] == shown)
                for (uniform, kept), made, cell, shown in zip(units, way, order, published, strict=True)
            )
        found[published] = Fraction(total, len(orders) * len(ways) * (10 * cells) ** len(table))
    assert sum(found.values()) == 1
    return found


def attained(cells: int, blankets: Sequence[Fraction], ways: Sequence[Made]) -> dict[Fraction, Fraction]:
    """The largest delta of all neighbouring tables, by e."""
    rows = len(blankets)
    laws = {table: law(table, cells, blankets, ways) for table in combinations_with_replacement(range(cells), rows)}
    worst = dict.fromkeys(RATIOS, Fraction(0))
    for others in combinations_with_replacement(range(cells), rows - 1):
        for here, there in permutations(range(cells), 2):
            one, other = (laws[tuple(sorted((*others, cell)))] for cell in (here, there))
            for e in RATIOS:
                delta = sum((max(one[y] - e * other[y], Fraction(0)) for y in one), Fraction(0))
                worst[e] = max(worst[e], delta)
    return worst


def theorem(cells: int, rows: int, blanket: Fraction, e: Fraction) -> Fraction:
    """Theorem A at a replacement probability."""
    return enumerated(rows, rows, cells, 1 + cells * (1 - blanket) / blanket, e)


@pytest.mark.parametrize("ways", [nothing, fixed_offsets, anything], ids=lambda ways: ways.__name__)
@pytest.mark.parametrize(
    ("cells", "rows"), [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), pytest.param(3, 4, marks=pytest.mark.long)]
)
def test_what_is_left_out_by_independent_coins_costs_theorem_a_at_the_noise_that_is_left(
    ways: Callable[[int, int], list[Made]], cells: int, rows: int
) -> None:
    cases = 0
    for blanket in (Fraction(1, 10), Fraction(3, 10), Fraction(1, 2), Fraction(7, 10), Fraction(9, 10)):
        found = attained(cells, [blanket] * rows, ways(cells, rows))
        for e, delta in found.items():
            bound = theorem(cells, rows, blanket, e)
            assert delta <= bound
            gamma = 1 + cells * (1 - blanket) / blanket
            certificate = OrderCertificate(population=rows, sample=rows, cells=cells, gamma=gamma)
            assert float(delta) <= certificate.delta(log(e)) * (1 + 1e-12)
            cases += 1
    # 180 of them, over all parameters.
    assert cases == 10
