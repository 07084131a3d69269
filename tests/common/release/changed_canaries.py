"""Every count of the tests of a server's noise, row by row and symbol by symbol, from what a test is said to count."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod

import numpy as np

from veiltab.common.core.numbers.counts import CountLaw
from veiltab.common.release.receipts import noise_tests as tested
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import CanaryOrders, law_of
from veiltab.common.release.table_spec import Column

Counted = dict[tuple[str, str], tuple[tuple[int, Fraction | int], int]]
"""Family and name -> (n and p of a binomial law, or places and marks of that of runs), and the count."""


@dataclass(frozen=True, slots=True)
class NoiseTest:
    """One count, and its law where the server is honest."""

    family: Family
    of: str
    law: CountLaw
    count: int


def one_by_one(tests: Mapping[Family, tested.Counted]) -> list[NoiseTest]:
    each = ((family, of, *one) for family, counted in tests.items() for of, one in counted.items())
    return [NoiseTest(family, of, law_of(family, numbers), count) for family, of, count, numbers in each]


def noise_tests(changes: CanaryChanges, orders: CanaryOrders, replacement: Fraction) -> list[NoiseTest]:
    return one_by_one(tested.noise_tests(changes, orders, replacement))


def columns_of(sizes: Sequence[int], owners: str = "alice") -> tuple[Column, ...]:
    """Columns a, b, ...; of one owner, or of one each."""
    names = owners.split()
    return tuple(
        Column(attribute="abcdefgh"[place], owner=names[place % len(names)], size=size)
        for place, size in enumerate(sizes)
    )


def changes_of(sizes: Sequence[int], changed: Sequence["Changed"], owners: str = "alice") -> CanaryChanges:
    """The same rows, as the product has them."""
    return CanaryChanges(
        columns=columns_of(sizes, owners),
        numbers=np.array([one.number for one in changed], np.int64),
        offsets=tuple(np.array([one.offsets[a] for one in changed], np.int64) for a in range(len(sizes))),
        symbols=tuple(np.array([one.sent[a] for one in changed], np.int64) for a in range(len(sizes))),
        is_listed=np.array([one.is_listed for one in changed], np.bool_),
    )


@dataclass(frozen=True, slots=True)
class Changed:
    """One changed canary.

    Args:
        number: by order of places.
        offsets: published - sent, of each column.
        sent: of each column.
        is_listed: whether every owner knows it.
    """

    number: int
    offsets: tuple[int, ...]
    sent: tuple[int, ...]
    is_listed: bool = True


def counted(sizes: Sequence[int], changed: Sequence[Changed], orders: CanaryOrders, replacement: Fraction) -> Counted:
    places, cells = orders.places.tolist(), prod(sizes)
    found: Counted = {
        ("amount", "all columns"): ((len(places), replacement * Fraction(cells - 1, cells)), len(changed))
    }
    for part in (_of_vectors, _of_arcs, _of_cells):
        found |= {(family, name): (law, count) for family, name, law, count in part(sizes, changed)}
    found |= _of_places(changed, places, orders.rows, replacement * Fraction(cells - 1, cells))
    return found | _of_orders(changed, places, cells)


Line = tuple[str, str, tuple[int, Fraction | int], int]


def _names(sizes: Sequence[int]) -> str:
    return "abcdefgh"[: len(sizes)]


def _share(sizes: Sequence[int], holds: Callable[[tuple[int, ...]], bool]) -> Fraction:
    """The share of the changed offset vectors of which something holds, one vector after the other."""
    vectors = [one for one in product(*map(range, sizes)) if any(one)]
    return Fraction(sum(map(holds, vectors)), len(vectors))


def _of_vectors(sizes: Sequence[int], changed: Sequence[Changed]) -> Iterator[Line]:
    groups = [(a,) for a in range(len(sizes))] if len(sizes) > 1 else []
    for group in (*groups, *combinations(range(len(sizes)), 2)):

        def holds(vector: tuple[int, ...], group: tuple[int, ...] = group) -> bool:
            return all(vector[a] for a in group)

        law = (len(changed), _share(sizes, holds))
        family = "pair" if len(group) == 2 else "column"
        yield family, ", ".join(_names(sizes)[a] for a in group), law, sum(holds(one.offsets) for one in changed)


def _of_arcs(sizes: Sequence[int], changed: Sequence[Changed]) -> Iterator[Line]:
    for a, size in enumerate(sizes):
        rows = [one for one in changed if one.offsets[a]]
        symbols = {
            "offsets": ([one.offsets[a] for one in rows], range(1, size)),
            "sent": ([one.sent[a] for one in rows], range(size)),
            "published": ([(one.sent[a] + one.offsets[a]) % size for one in rows], range(size)),
        }
        for what, (values, possible) in symbols.items():
            if size == 2 and what == "offsets":
                continue  # It is always 1.
            for multiplier, phase in product(range(1, min(size // 2, 512) + 1), sorted({0, size // 4})):
                inside = {u for u in possible if 2 * ((multiplier * u + phase) % size) < size}
                law = (len(rows), Fraction(len(inside), len(possible)))
                name = f"{what} of {_names(sizes)[a]}, times {multiplier} plus {phase}"
                yield "arcs", name, law, sum(u in inside for u in values)


def _of_cells(sizes: Sequence[int], changed: Sequence[Changed]) -> Iterator[Line]:
    """What was seen before."""
    names = _names(sizes)
    published = [tuple((x + d) % k for x, d, k in zip(one.sent, one.offsets, sizes, strict=True)) for one in changed]
    kinds: dict[str, tuple[list[tuple[int, ...]], int]] = {}
    for a, size in enumerate(sizes):
        rows = [one for one in changed if one.offsets[a]]
        if size > 2:
            kinds[f"offsets of {names[a]}"] = [(one.offsets[a],) for one in rows], size - 1
        kinds[f"offsets of {names[a]} by sent symbol"] = (
            [(one.sent[a], one.offsets[a]) for one in rows],
            size * (size - 1),
        )
    for a, b in combinations(range(len(sizes)), 2):
        both = [place for place, one in enumerate(changed) if one.offsets[a] and one.offsets[b]]
        kinds[f"offsets of {names[a]}, {names[b]}"] = (
            [(changed[place].offsets[a], changed[place].offsets[b]) for place in both],
            (sizes[a] - 1) * (sizes[b] - 1),
        )
        kinds[f"published {names[a]}, {names[b]}"] = (
            [(published[place][a], published[place][b]) for place in both],
            sizes[a] * sizes[b],
        )
    kinds["offsets of all columns"] = [one.offsets for one in changed], prod(sizes) - 1
    listed = [vector for vector, one in zip(published, changed, strict=True) if one.is_listed]
    kinds["published, all columns"] = listed, prod(sizes)
    for name, (values, cells) in kinds.items():
        before, after = set(values[: len(values) // 2]), values[len(values) // 2 :]
        yield "seen before", name, (len(after), Fraction(len(before), max(cells, 1))), sum(v in before for v in after)


def _of_places(changed: Sequence[Changed], places: Sequence[int], rows: int, some: Fraction) -> Counted:
    classes = {
        f"block {block + 1} of {blocks}": [rows * block <= place * blocks < rows * (block + 1) for place in places]
        for blocks in (2, 4, 8, 16)
        for block in range(blocks)
    }
    for modulus in (2, 4):
        for residue in range(modulus):
            classes[f"place mod {modulus} = {residue}"] = [place % modulus == residue for place in places]
    for quarter in range(4):
        name = f"quarter {quarter + 1} of every 65536 places"
        classes[name] = [place % 65536 // 16384 == quarter for place in places]
    return {
        ("places", name): ((sum(within), some), sum(within[one.number] for one in changed))
        for name, within in classes.items()
    }


def _of_orders(changed: Sequence[Changed], places: Sequence[int], cells: int) -> Counted:
    keys = {"place": [(place, 0) for place in places]}
    for modulus in (2**6, 2**8, 2**10, 2**12, 2**14, 2**16):
        keys[f"place mod {modulus}, then place"] = [(place % modulus, place) for place in places]
    found: Counted = {}
    vectors = {one.number: one.offsets for one in changed}
    for name, key in keys.items():
        order = sorted(range(len(places)), key=key.__getitem__)
        flags = [False, *(number in vectors for number in order)]
        runs = sum(flag and not before for before, flag in pairwise(flags))
        found["runs", name] = (len(places), len(changed)), runs
        if cells > 2:
            again = sum(
                one == other for one, other in pairwise(vectors[number] for number in order if number in vectors)
            )
            found["repeats", name] = (max(len(changed) - 1, 0), Fraction(1, cells - 1)), again
    return found
