"""The law of every report, as fractions, from the oracles' own code run on every draw that it can make."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import perm
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.common.collection.rounds import support_of
from tests.common.core.sources import Scripted
from veiltab.common.collection.oracles import (
    KaryRandomisedResponse,
    OptimisedLocalHashing,
    OptimisedUnaryEncoding,
    Oracle,
    Report,
    SubsetSelection,
    oracle_for,
    oracle_of,
)
from veiltab.common.collection.oracles.olh import hashes
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.numbers.rounding import exp_below

EPSILONS = tuple(map(Decimal, ("0.1", "0.693147180559", "1", "2.5", "4")))
SEEDS = tuple(bytes([number]) * 8 for number in range(12))

Law = dict[Report, Fraction]
Draws = dict[int, NDArray[np.uint8]]


def event(units: int, *happened: int) -> NDArray[np.uint8]:
    """Words of events: the last one for which it happens, or the first for which it does not."""
    return np.array([units - 1 if one else units for one in happened], "<u8").view(np.uint8)


def words(symbols: tuple[int, ...], size: int) -> NDArray[np.uint8]:
    """Bytes that fill_uniform maps to these symbols."""
    return np.array(symbols, np.uint8) * np.uint8(min(256 // size, 255))


def krr_draws(oracle: KaryRandomisedResponse) -> Iterator[tuple[Fraction, Draws]]:
    r = Fraction(oracle.replacement, UNIT)
    for replaced, noise in product((0, 1), range(oracle.size)):
        chance = (r if replaced else 1 - r) / oracle.size
        yield chance, {0: event(oracle.replacement, replaced), 1: words((noise,), oracle.size)}


def oue_draws(oracle: OptimisedUnaryEncoding) -> Iterator[tuple[Fraction, Draws]]:
    q = Fraction(oracle.q64, UNIT)
    for *bits, own in product((0, 1), repeat=oracle.size + 1):
        yield (
            q ** sum(bits) * (1 - q) ** (oracle.size - sum(bits)) / 2,
            {0: event(oracle.q64, *bits), 1: event(UNIT // 2, own)},
        )


def olh_draws(oracle: OptimisedLocalHashing, seed: bytes) -> Iterator[tuple[Fraction, Draws]]:
    r = Fraction(oracle.replacement, UNIT)
    for replaced, noise in product((0, 1), range(oracle.g)):
        draws = {3: np.frombuffer(seed, np.uint8), 0: event(oracle.replacement, replaced), 1: words((noise,), oracle.g)}
        yield (r if replaced else 1 - r) / oracle.g, draws


def ss_draws(oracle: SubsetSelection) -> Iterator[tuple[Fraction, Draws]]:
    p, others = Fraction(oracle.p64, UNIT), oracle.size - 1
    for own, chosen in product((0, 1), permutations(range(others), oracle.w)):
        chance = (p if own else 1 - p) / perm(others, oracle.w)
        # The sequence comes again and again in a batch: repeats, which must be passed over.
        yield chance, {0: event(oracle.p64, own), 1: words(chosen, others)}


def law_of(oracle: Oracle, value: int, draws: Iterator[tuple[Fraction, Draws]]) -> Law:
    law: Law = defaultdict(Fraction)
    for chance, scripts in draws:
        law[oracle.check(oracle.randomise(value, Scripted(scripts)))] += chance
    assert sum(law.values()) == 1
    return law


def laws_of(oracle: Oracle, draws: Callable[[], Iterator[tuple[Fraction, Draws]]]) -> list[Law]:
    return [law_of(oracle, value, draws()) for value in range(oracle.size)]


def worst_ratio(laws: list[Law]) -> Fraction:
    reports = {report for law in laws for report in law}
    assert all(law[report] > 0 for law in laws for report in reports)
    return max(max(law[report] for law in laws) / min(law[report] for law in laws) for report in reports)


def supports(oracle: Oracle, laws: list[Law]) -> list[list[Fraction]]:
    """Return P(j in support | i), for each value i and j."""
    chances = [[Fraction(0)] * oracle.size for _ in laws]
    for row, law in zip(chances, laws, strict=True):
        for report, chance in law.items():
            for value in support_of(oracle, report):
                row[value] += chance
    return chances


def assert_tight(ratio: Fraction, epsilon: Decimal) -> None:
    """Never more than epsilon, and hardly less."""
    assert ratio <= exp_below(epsilon)
    with mpmath.workdps(60):
        least = mpmath.exp(mpmath.mpf(str(epsilon)) * (1 - mpmath.mpf(10) ** -15))
        assert mpmath.mpf(ratio.numerator) / ratio.denominator >= least


def assert_support(oracle: Oracle, laws: list[Law]) -> None:
    expected = [[oracle.p if i == j else oracle.q for j in range(oracle.size)] for i in range(oracle.size)]
    assert supports(oracle, laws) == expected


def assert_blanket(oracle: Oracle, laws: list[Law]) -> None:
    """The blanket has each report by its chance where it does not support the value."""
    blanket, low = oracle.blanket, dict[frozenset[int], Fraction]()
    for report, chance in laws[0].items():
        support = frozenset(support_of(oracle, report))
        low[support] = chance / (oracle.gamma if 0 in support else 1)
    assert sum(low.values()) == blanket.probability
    for count, together in enumerate((blanket.one, blanket.two, blanket.three or 0), 1):
        found = sum(chance for support, chance in low.items() if support >= set(range(count)))
        assert found == together * blanket.probability


DRAWS: dict[str, tuple[Callable[[Any], Iterator[tuple[Fraction, Draws]]], Sequence[int]]] = {
    "krr": (krr_draws, (2, 3, 4, 5, 7)),
    "oue": (oue_draws, (2, 3, 4)),
    "ss": (ss_draws, (2, 3, 4, 5)),
}
"""Oracle -> its draws, and the sizes of which all are played."""


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "size"), [(name, size) for name, (_, sizes) in DRAWS.items() for size in sizes])
def test_reports_have_the_ratio_of_gamma_and_the_supports_of_p_and_q(name: str, size: int, epsilon: Decimal) -> None:
    oracle, draws = oracle_for(name, size, epsilon), DRAWS[name][0]
    laws = laws_of(oracle, lambda: draws(oracle))
    assert worst_ratio(laws) == oracle.gamma
    assert_tight(oracle.gamma, epsilon)
    assert_support(oracle, laws)
    assert_blanket(oracle, laws)


@pytest.mark.parametrize("epsilon", EPSILONS[:4])
@pytest.mark.parametrize("size", [2, 5])
def test_olh_whatever_the_hash(size: int, epsilon: Decimal) -> None:
    oracle = OptimisedLocalHashing.from_epsilon(size, epsilon)
    ratios = set()
    for seed in SEEDS:
        laws = laws_of(oracle, lambda seed=seed: olh_draws(oracle, seed))  # type: ignore[misc]
        hashed = hashes([seed], size, oracle.g)[0].tolist()
        ratios.add(worst_ratio(laws))
        assert worst_ratio(laws) == (1 if len(set(hashed)) == 1 else oracle.gamma)
        r = Fraction(oracle.replacement, UNIT)
        same = [[1 - r + r / oracle.g if a == b else r / oracle.g for b in hashed] for a in hashed]
        assert supports(oracle, laws) == same
    assert oracle.gamma in ratios
    assert_tight(oracle.gamma, epsilon)


@pytest.mark.parametrize(("size", "w"), [(4, 2), (5, 2), (6, 1), (6, 3)])
def test_ss_of_any_subset_size(size: int, w: int) -> None:
    oracle = SubsetSelection(size=size, w=w, p64=UNIT - UNIT // 7)
    laws = laws_of(oracle, lambda: ss_draws(oracle))
    assert worst_ratio(laws) == oracle.gamma
    assert_support(oracle, laws)


@pytest.mark.parametrize("name", ["krr", "oue", "olh", "ss"])
@pytest.mark.parametrize("size", [2, 16, 1024, 65536])
def test_gamma_is_the_largest_that_keeps_epsilon(name: str, size: int) -> None:
    epsilon = Decimal(1)
    oracle = oracle_for(name, size, epsilon)
    assert oracle.gamma <= exp_below(epsilon)
    # One unit of 2^-64 less protection would break the promise.
    (field,) = (field for field in oracle.parameters if field not in {"g", "w"})
    step = 1 if field == "p64" else -1
    nearer = oracle_of(name, size, oracle.parameters | {field: oracle.parameters[field] + step})
    assert nearer.gamma > exp_below(epsilon)
