"""Certificates of all oracles against every table of a few nodes, in exact fractions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb, factorial, log
from typing import Any

import numpy as np
import pytest

from veiltab.common.collection.oracles import ORACLE_NAMES, Oracle, oracle_for, oracle_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.blanket import Blanket
from veiltab.common.privacy.pricing.attained import _attained, _losses
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.researcher.collection.shuffling import certificate_of

RATIOS = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(3)]
"""e^epsilon."""


@dataclass(frozen=True)
class Case:
    """An oracle with all its reports, and the probability of each under each value.

    Args:
        oracle: what runs.
        reports: all that it sends; of OLH with all hash functions.
        chance: P(report | value).
    """

    oracle: Oracle
    reports: Sequence[object]
    chance: Callable[[Any, int], Fraction]


def subsets(size: int, w: int, p: Fraction) -> Case:
    oracle = oracle_of("ss", size, {"w": w, "p64": int(p * 2**64)})
    own = oracle.p

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - a subset
        held = value in report
        return own / comb(size - 1, w - 1) if held else (1 - own) / comb(size - 1, w)

    return Case(oracle, list(combinations(range(size), w)), chance)


def bits(size: int, q: Fraction) -> Case:
    oracle = oracle_of("oue", size, {"q64": int(q * 2**64)})

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - bits
        result = Fraction(1)
        for place, bit in enumerate(report):
            one = oracle.p if place == value else oracle.q
            result *= one if bit else 1 - one
        return result

    return Case(oracle, list(product((0, 1), repeat=size)), chance)


def hashed(size: int, g: int, r: Fraction) -> Case:
    oracle = oracle_of("olh", size, {"g": g, "replacement": int(r * 2**64)})
    hashes = list(product(range(g), repeat=size))

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - (hash function, symbol)
        function, symbol = report
        other = (1 - oracle.p) / (g - 1)
        return (oracle.p if function[value] == symbol else other) / len(hashes)

    return Case(oracle, [(function, symbol) for function in hashes for symbol in range(g)], chance)


CASES = {
    "ss 1 of 3": subsets(3, 1, Fraction(4, 5)),
    "ss 2 of 4": subsets(4, 2, Fraction(7, 10)),
    "ss 2 of 5": subsets(5, 2, Fraction(3, 4)),
    "oue of 2": bits(2, Fraction(1, 10)),
    "oue of 3": bits(3, Fraction(1, 5)),
    "olh 2 to 2": hashed(2, 2, Fraction(1, 3)),
    "olh 3 to 2": hashed(3, 2, Fraction(1, 2)),
}


def law(case: Case, values: Sequence[int], m: int) -> dict[tuple[int, ...], Fraction]:
    """Law of the reports of m of the nodes in random order: of their multiset."""
    groups = list(combinations(values, m))
    result: dict[tuple[int, ...], Fraction] = {}
    for group in groups:
        so_far = {(): Fraction(1, len(groups))}
        for value in group:
            longer: dict[tuple[int, ...], Fraction] = {}
            for seen, chance in so_far.items():
                for number, report in enumerate(case.reports):
                    key = tuple(sorted((*seen, number)))
                    longer[key] = longer.get(key, Fraction(0)) + chance * case.chance(report, value)
            so_far = longer  # type: ignore[assignment]
        for seen, chance in so_far.items():
            result[seen] = result.get(seen, Fraction(0)) + chance
    return result


def formula(n: int, m: int, gamma: Fraction, blanket: Blanket, e: Fraction) -> Fraction:
    """The bound of Theorem A for reports with two levels, term by term."""
    w, a, total = Fraction(m, n), gamma - 1, Fraction(0)
    chances = (blanket.apart, blanket.apart, blanket.both, blanket.neither)
    rest = 1 - sum(chances)
    for counts in product(range(m + 1), repeat=4):
        others = m - sum(counts)
        if others < 0:
            continue
        first, second, both, _ = counts
        gain = w * a * (first + both - e * (second + both)) - (e - 1) * (w * sum(counts) + (1 - w) * m)
        if gain > 0:
            ways = factorial(m) // factorial(others)
            for count, chance in zip(counts, chances, strict=True):
                ways //= factorial(count)
                gain *= chance**count
            total += ways * gain * rest**others
    return total / m


def settings() -> Iterator[tuple[str, int, int]]:
    for name, case in CASES.items():
        for n, m in ((1, 1), (2, 1), (2, 2), (3, 2), (3, 3)):
            if len(case.reports) ** m <= 3000:
                yield name, n, m


def test_reports_have_two_levels_of_likelihood_and_the_blanket_that_is_stated() -> None:
    for case in CASES.values():
        oracle, blanket = case.oracle, case.oracle.blanket
        least = {number: min(case.chance(one, x) for x in (0, 1)) for number, one in enumerate(case.reports)}
        for x in (0, 1):
            chances = [case.chance(one, x) for one in case.reports]
            assert sum(chances) == 1
            levels = {chance / low for chance, low in zip(chances, least.values(), strict=True)}
            assert levels <= {Fraction(1), oracle.gamma}
        higher = [case.chance(one, 0) > case.chance(one, 1) for one in case.reports]
        assert sum(low for low, up in zip(least.values(), higher, strict=True) if up) == blanket.apart


@pytest.mark.parametrize(("name", "n", "m"), list(settings()))
def test_no_enumerated_adversary_learns_more_than_the_certificate_says(name: str, n: int, m: int) -> None:
    """1,110 settings in all: others' values, both directions, and ratios."""
    case = CASES[name]
    certificate = certificate_of(case.oracle, n, m)
    stated = {e: certificate.delta(log(e)) for e in RATIOS}
    for e in RATIOS:
        exact = formula(n, m, case.oracle.gamma, case.oracle.blanket, e)
        assert float(exact) <= stated[e] * (1 + 1e-12) + 1e-15
    for others in combinations_with_replacement(range(min(case.oracle.size, 3)), n - 1):
        laws = [law(case, (x, *others), m) for x in (0, 1)]
        for first, second in (laws, laws[::-1]):
            for e in RATIOS:
                exact = sum((max(p - e * second.get(seen, 0), Fraction(0)) for seen, p in first.items()), Fraction(0))
                assert exact <= formula(n, m, case.oracle.gamma, case.oracle.blanket, e)


def test_there_are_many_settings() -> None:
    per_setting = [comb(min(CASES[name].oracle.size, 3) + n - 2, n - 1) for name, n, _ in settings()]
    assert sum(per_setting) * 2 * len(RATIOS) >= 1000


def test_subsets_of_one_value_are_k_ary_randomised_response() -> None:
    oracle = oracle_of("ss", 10, {"w": 1, "p64": 2**63})
    own = OrderCertificate(population=400, sample=100, cells=10, gamma=oracle.gamma)
    assert oracle.blanket == own.blanket
    assert certificate_of(oracle, 400, 100).delta(0.1) == own.delta(0.1)


@pytest.mark.parametrize("name", ORACLE_NAMES)
def test_more_noise_and_more_nodes_guarantee_more(name: str) -> None:
    weak, strong = (oracle_for(name, 20, Decimal(epsilon)) for epsilon in ("1", "2"))
    assert certificate_of(weak, 1000, 1000).epsilon(1e-6) < certificate_of(strong, 1000, 1000).epsilon(1e-6)
    assert certificate_of(weak, 4000, 1000).epsilon(1e-6) < certificate_of(weak, 1000, 1000).epsilon(1e-6)
    assert certificate_of(weak, 4000, 4000).epsilon(1e-6) < certificate_of(weak, 1000, 1000).epsilon(1e-6)


@pytest.mark.parametrize("name", ["oue", "olh", "ss"])
def test_a_report_of_both_values_hides_what_it_costs(name: str) -> None:
    """Without them the certificate would state less noise among the rest, so a larger delta."""
    oracle = oracle_for(name, 20, Decimal(1))
    blanket = oracle.blanket
    assert blanket.both > 0
    whole = certificate_of(oracle, 300, 300).delta(0.2)
    less = OrderCertificate(
        population=300,
        sample=300,
        cells=20,
        gamma=oracle.gamma,
        reports=Blanket(apart=blanket.apart, both=Fraction(0), neither=blanket.neither),
    )
    assert less.delta(0.2) > whole


def test_blankets_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="supports one"):
        Blanket(apart=Fraction(0), both=Fraction(0), neither=Fraction(1, 2))
    with pytest.raises(InvalidInputError, match="more than 1"):
        Blanket(apart=Fraction(1, 2), both=Fraction(0), neither=Fraction(1, 2))


@pytest.mark.long
@pytest.mark.parametrize(
    ("nodes", "reports", "size", "epsilon", "ratio"),
    [(2000, 2000, 20, "1", 1.2), (50_000, 10_000, 100, "2", 1.08), (50_000, 50_000, 100, "3", 1.04)],
)
def test_a_pair_of_tables_attains_nearly_what_is_certified(
    nodes: int, reports: int, size: int, epsilon: str, ratio: float
) -> None:
    """All other nodes have one third value; reports count that support one of two values and not the third."""
    oue, ss, olh = (oracle_for(name, size, Decimal(epsilon)) for name in ("oue", "ss", "olh"))
    w = int(ss.parameters["w"])
    for oracle, third in ((oue, oue.q), (ss, Fraction(w - 1, size - 2)), (olh, olh.q)):
        apart = oracle.blanket.apart * (1 - third)
        own, other = (
            np.array([float(one), float(apart), float(1 - one - apart)]) for one in (oracle.gamma * apart, apart)
        )
        attained = _attained([list(_losses(nodes, reports, own, other, mirrored=False))], [1], 1e-6)
        assert attained <= certificate_of(oracle, nodes, reports).epsilon(1e-6) <= ratio * attained
