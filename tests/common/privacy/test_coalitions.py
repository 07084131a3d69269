"""What coalitions face: each bound against the exact law of the coalition's whole view of small releases."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import log, prod
from typing import TypeVar

import pytest

from tests.common.privacy.precise import pairs_of
from veiltab.common.core.mechanism import UNIT, TwoSidedNoise
from veiltab.common.core.numbers.rounding import ln_above
from veiltab.common.privacy.coalitions import Coalition, TwoSidedRelease, order_epsilon
from veiltab.common.schemes import SCHEMES, scheme_of

View = TypeVar("View", bound=Hashable)
Law = dict[Hashable, int]
"""A law in whole numbers: probabilities times their sum."""

Table = tuple[int, ...]
Eighths = tuple[int, int]
"""How many eighths of the rows the curators replace, and how many the server."""

CELLS = 4
"""Two curators, a and b, with two categories each: a row is 2 a + b."""

NOISES = [(1, 1), (1, 4), (4, 1)]
RATIOS = [Fraction(1), Fraction(9, 8), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(6), Fraction(28)]


def noise_of(eighths: Eighths, cells: int = CELLS) -> TwoSidedNoise:
    curators, server = eighths
    return TwoSidedNoise(cells=cells, curator_replacement=curators * UNIT // 8, server_replacement=server * UNIT // 8)


def release_of(n: int, m: int, eighths: Eighths, *, by_server: bool = False) -> TwoSidedRelease:
    scheme = scheme_of("wor", population=n, sample=m)
    return TwoSidedRelease(scheme=scheme, noise=noise_of(eighths), is_sampled_by_server=by_server)


def randomised(row: list[int], eighths: int) -> list[int]:
    """The law of a row, after all of it was replaced by a uniform cell with a probability."""
    return [(8 - eighths) * len(row) * p + eighths * sum(row) for p in row]


def of_row(x: int) -> list[int]:
    return [2 * int(y == x) for y in range(CELLS)]


def replaced_by_curators(own: int) -> list[int]:
    """A row that the curators replaced, to curator a, who drew its own symbol."""
    return [int(y // 2 == own) for y in range(CELLS)]


def sequences(rows: list[list[int]]) -> dict[tuple[int, ...], int]:
    law: dict[tuple[int, ...], int] = {(): 1}
    for row in rows:
        law = {(*done, y): p * row[y] for done, p in law.items() for y in range(CELLS) if row[y]}
    return law


def counted(rows: list[list[int]]) -> dict[tuple[int, ...], int]:
    law: Counter[tuple[int, ...]] = Counter()
    for sequence, p in sequences(rows).items():
        law[tuple(sequence.count(y) for y in range(CELLS))] += p
    return law


def mixed(parts: Iterable[tuple[int, Mapping[View, int]]]) -> Law:
    total: Counter[Hashable] = Counter()
    for weight, law in parts:
        for view, p in law.items():
            total[view] += weight * p
    return total


def curators_coins(rows: Table, eighths: int) -> Iterator[tuple[int, tuple[int, ...], list[list[int]]]]:
    """Every outcome of what curator a knows of the curators' noise: weight, coins with own symbols, laws of rows."""
    for outcome in product((-1, 0, 1), repeat=len(rows)):
        laws = [of_row(x) if own < 0 else replaced_by_curators(own) for x, own in zip(rows, outcome, strict=True)]
        yield prod(2 * (8 - eighths) if own < 0 else eighths for own in outcome), outcome, laws


# The view of each coalition, as a law over everything that it sees.


def seen_by_desk(table: Table, m: int, eighths: Eighths) -> Law:
    rows = [randomised(randomised(of_row(x), eighths[0]), eighths[1]) for x in table]
    return mixed((1, sequences([rows[i] for i in order])) for order in permutations(range(len(table)), m))


def seen_by_desk_and_server(table: Table, m: int, eighths: Eighths) -> Law:
    """Rows with the curators' noise in secret order."""
    rows = [randomised(of_row(x), eighths[0]) for x in table]
    return mixed((1, sequences([rows[i] for i in order])) for order in permutations(range(len(table)), m))


def seen_by_desk_and_lying_server(table: Table, m: int, eighths: Eighths) -> Law:
    """The same with a canary among the rows, a server that publishes something else, and the curators' answer to it."""

    def parts() -> Iterator[tuple[int, Law]]:
        honest = seen_by_desk_and_server(table, m, eighths)
        for place, symbol in product(range(m + 1), range(CELLS)):
            view: Law = {}
            for rows, p in honest.items():
                assert isinstance(rows, tuple)
                uploaded = (*rows[:place], symbol, *rows[place:])
                published = tuple(sorted(uploaded))
                view[place, symbol, uploaded, published, published[place] == symbol] = p
            yield 1, view

    return mixed(parts())


def seen_by_analyst_and_curator(table: Table, m: int, eighths: Eighths) -> Law:
    """Counts, the sample, the coins and the curator's own symbols."""

    def parts() -> Iterator[tuple[int, Law]]:
        for sample in combinations(range(len(table)), m):
            for weight, known, laws in curators_coins(tuple(table[i] for i in sample), eighths[0]):
                counts = counted([randomised(row, eighths[1]) for row in laws])
                yield weight, {(sample, known, seen): p for seen, p in counts.items()}

    return mixed(parts())


def seen_by_analyst_and_curator_if_the_server_samples(table: Table, m: int, eighths: Eighths) -> Law:
    """Counts of the data among the places that the server drew of everyone and a canary; the coins of everyone."""

    def parts() -> Iterator[tuple[int, Law]]:
        for weight, known, laws in curators_coins(table, eighths[0]):
            rows = [randomised(row, eighths[1]) for row in laws]
            for places in combinations(range(len(table) + 1), m):
                counts = counted([rows[i] for i in places if i < len(table)])
                # A canary takes the place of a row of data.
                whole = sum(rows[0]) ** (len(table) in places)
                yield weight * whole, {(known, seen): p for seen, p in counts.items()}

    return mixed(parts())


def seen_by_desk_and_curator(table: Table, m: int, eighths: Eighths) -> Law:
    """Rows with their persons, and the coins."""

    def parts() -> Iterator[tuple[int, Law]]:
        for sample in combinations(range(len(table)), m):
            for weight, known, laws in curators_coins(tuple(table[i] for i in sample), eighths[0]):
                seen = sequences([randomised(row, eighths[1]) for row in laws])
                yield weight, {(sample, known, each): p for each, p in seen.items()}

    return mixed(parts())


def seen_by_server_and_curator(table: Table, m: int, eighths: Eighths) -> Law:
    """The curator's own column, sample, coins and symbols, and the ciphertext of column b under pads of its owner."""

    def parts() -> Iterator[tuple[int, Law]]:
        own = tuple(x // 2 for x in table)
        for sample in combinations(range(len(table)), m):
            for weight, known, laws in curators_coins(tuple(table[i] for i in sample), eighths[0]):
                for uploaded, p in sequences(laws).items():
                    for pads in product(range(2), repeat=m):
                        cipher = tuple((y % 2 + pad) % 2 for y, pad in zip(uploaded, pads, strict=True))
                        yield weight, {(own, sample, known, cipher): p}

    return mixed(parts())


def seen_by_all(table: Table, m: int, eighths: Eighths) -> Law:
    """Rows with persons before the server's noise, and the coins."""
    assert m == len(table)
    parts = curators_coins(table, eighths[0])
    return mixed((weight, {(known, each): p for each, p in sequences(laws).items()}) for weight, known, laws in parts)


def divergence(one: Law, other: Law, e: Fraction) -> Fraction:
    more = sum(max(e.denominator * p - e.numerator * other.get(view, 0), 0) for view, p in one.items())
    assert sum(one.values()) == sum(other.values())
    return Fraction(more, e.denominator * sum(one.values()))


See = Callable[[Table, int, Eighths], Law]


def neighbours(see: See, n: int, m: int, eighths: Eighths) -> list[list[Law]]:
    """The views of tables that differ in one row, a list a choice of the others."""
    return [
        [see((x, *rest), m, eighths) for x in range(CELLS)]
        for rest in combinations_with_replacement(range(CELLS), n - 1)
    ]


def worst(families: list[list[Law]], e: Fraction) -> Fraction:
    return max(divergence(one, other, e) for laws in families for one, other in permutations(laws, 2))


SEEN = [
    (Coalition.DESK, seen_by_desk, "curators"),
    (Coalition.DESK_AND_SERVER, seen_by_desk_and_server, "curators"),
    (Coalition.DESK_AND_SERVER, seen_by_desk_and_lying_server, "curators"),
    (Coalition.ANALYST_AND_CURATORS, seen_by_analyst_and_curator, "curators"),
    (Coalition.ANALYST_AND_CURATORS, seen_by_analyst_and_curator_if_the_server_samples, "server"),
]


@pytest.mark.parametrize(("coalition", "see", "sampled_by"), SEEN)
@pytest.mark.parametrize(
    ("n", "m", "eighths"), [*product((1, 2), (1,), NOISES), *product((2,), (2,), NOISES), (3, 2, NOISES[1])]
)
def test_no_view_of_a_coalition_says_more_than_its_bound(  # noqa: PLR0913, PLR0917 - a release
    coalition: Coalition, see: See, sampled_by: str, n: int, m: int, eighths: Eighths
) -> None:
    view = release_of(n, m, eighths, by_server=sampled_by == "server").seen_by(coalition)
    assert view is not None
    families = neighbours(see, n, m, eighths)
    for e in RATIOS:
        exact = worst(families, e)
        assert float(exact) <= view.delta(log(e)) * (1 + 1e-12) + 1e-18
        if ln_above(e) > view.pure_epsilon:
            assert exact == 0


@pytest.mark.parametrize("eighths", NOISES)
@pytest.mark.parametrize(
    ("coalition", "see"),
    [
        (Coalition.DESK_AND_SERVER, seen_by_desk_and_server),
        (Coalition.ANALYST_AND_CURATORS, seen_by_analyst_and_curator),
    ],
)
def test_three_rows_say_no_more_and_hardly_less(coalition: Coalition, see: See, eighths: Eighths) -> None:
    view = release_of(3, 3, eighths).seen_by(coalition)
    assert view is not None
    families = neighbours(see, 3, 3, eighths)
    for e in (Fraction(1), Fraction(9, 8), Fraction(2)):
        bound = view.delta(log(e))
        assert 0.75 * bound <= float(worst(families, e)) <= bound * (1 + 1e-12)


def test_where_the_server_samples_it_has_everyone() -> None:
    # One of two rows is released; with the desk the server holds both with the curators' noise.
    exact = float(worst(neighbours(seen_by_desk_and_server, 2, 2, (2, 2)), Fraction(2)))
    whole = release_of(2, 1, (2, 2), by_server=True).seen_by(Coalition.DESK_AND_SERVER)
    secret = release_of(2, 1, (2, 2)).seen_by(Coalition.DESK_AND_SERVER)
    assert whole is not None
    assert secret is not None
    assert secret.delta(log(2)) < exact <= whole.delta(log(2))


@pytest.mark.parametrize("eighths", NOISES)
def test_a_row_with_its_person_loses_the_ratio_of_the_servers_noise(eighths: Eighths) -> None:
    families = neighbours(seen_by_desk_and_curator, 2, 2, eighths)
    release = release_of(2, 2, eighths)
    ratio = release.noise.server.gamma
    assert worst(families, ratio) == 0
    assert worst(families, ratio * Fraction(999, 1000)) > 0
    assert release.row_epsilon == ln_above(ratio)
    assert release.seen_by(Coalition.DESK_AND_CURATORS) is None


def test_the_server_with_a_curator_learns_nothing_of_another_column() -> None:
    for other, own in product(range(CELLS), (0, 1)):
        views = [seen_by_server_and_curator((2 * own + b, other), 2, (3, 2)) for b in (0, 1)]
        assert views[0] == views[1]


def test_nothing_protects_from_desk_server_and_a_curator() -> None:
    # A row that the curators did not replace lies open: no epsilon takes delta below 1 - r_c.
    assert worst(neighbours(seen_by_all, 2, 2, (2, 7)), Fraction(10**9)) >= Fraction(6, 8)
    assert release_of(2, 2, (2, 7)).seen_by(Coalition.DESK_SERVER_AND_CURATOR) is None


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize("eighths", NOISES)
def test_the_noise_of_both_sides_is_one_mechanism(sizes: tuple[int, ...], eighths: Eighths) -> None:
    cells = list(product(*(range(size) for size in sizes)))
    retention, coin = noise_of(eighths, len(cells)).retention, Fraction(eighths[0], 8)
    for x in cells:
        # The coin is common; every curator draws its own symbol where it shows 1.
        after = [(1 - coin) * int(y == x) + coin * prod(Fraction(1, size) for size in sizes) for y in cells]
        for y, p in zip(cells, after, strict=True):
            found = (1 - Fraction(eighths[1], 8)) * p + Fraction(eighths[1], 8) / len(cells)
            assert found == retention * int(y == x) + (1 - retention) / len(cells)


@pytest.mark.parametrize("name", SCHEMES)
def test_only_simple_random_samples_have_a_bound_against_an_analyst_with_curators(name: str) -> None:
    scheme = scheme_of(name, population=30, sample=10, stage=20 if name.startswith("must") else None)
    release = TwoSidedRelease(scheme=scheme, noise=noise_of((2, 2)))
    view = release.seen_by(Coalition.ANALYST_AND_CURATORS)
    assert (view is not None) == scheme.is_simple_random
    seen = release.seen_by(Coalition.DESK_AND_SERVER)
    assert seen is not None
    assert seen.scheme == scheme
    assert (order_epsilon(seen, Decimal("1e-6")) is not None) == scheme.is_simple_random
    assert order_epsilon(replace(seen, gamma=Fraction(1)), Decimal("1e-6")) is None


def test_curators_who_add_no_noise_do_not_protect_from_the_desk_with_the_server() -> None:
    release = release_of(9, 9, (0, 2))
    assert release.seen_by(Coalition.DESK_AND_SERVER) is None
    assert pairs_of(release, Decimal("1e-6"))[Coalition.DESK_AND_SERVER] is None
