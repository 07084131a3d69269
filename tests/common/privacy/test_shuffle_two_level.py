"""Certificates of all oracles against every table of a few nodes, in exact fractions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import comb, log
from typing import Any

import numpy as np
import pytest

from tests.conftest import refuses
from veiltab.common.collection.oracles import Oracle, oracle_for, oracle_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.privacy.shuffle_two_level import Blanket, CrowdCertificate, _largest
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
        holds: whether a report supports a value.
    """

    oracle: Oracle
    reports: Sequence[object]
    chance: Callable[[Any, int], Fraction]
    holds: Callable[[Any, int], bool]


def subsets(size: int, w: int, p: Fraction) -> Case:
    oracle = oracle_of("ss", size, {"w": w, "p64": int(p * 2**64)})
    own = oracle.p

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - a subset
        held = value in report
        return own / comb(size - 1, w - 1) if held else (1 - own) / comb(size - 1, w)

    return Case(oracle, list(combinations(range(size), w)), chance, lambda report, value: value in report)


def bits(size: int, q: Fraction) -> Case:
    oracle = oracle_of("oue", size, {"q64": int(q * 2**64)})

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - bits
        result = Fraction(1)
        for place, bit in enumerate(report):
            one = oracle.p if place == value else oracle.q
            result *= one if bit else 1 - one
        return result

    return Case(oracle, list(product((0, 1), repeat=size)), chance, lambda report, value: bool(report[value]))


def hashed(size: int, g: int, r: Fraction) -> Case:
    oracle = oracle_of("olh", size, {"g": g, "replacement": int(r * 2**64)})
    hashes = list(product(range(g), repeat=size))

    def chance(report: Any, value: int) -> Fraction:  # noqa: ANN401 - hash function and symbol
        function, symbol = report
        other = (1 - oracle.p) / (g - 1)
        return (oracle.p if function[value] == symbol else other) / len(hashes)

    reports = [(function, symbol) for function in hashes for symbol in range(g)]
    return Case(oracle, reports, chance, lambda report, value: report[0][value] == report[1])


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


def formula(n: int, m: int, blanket: Blanket, e: Fraction) -> Fraction:
    """The bound of Theorem B, term by term: every place of the first report of the blanket, all values of others."""
    w, beta = Fraction(m, n), blanket.probability
    alone = beta * (blanket.one - blanket.two) * max(blanket.gamma - e, Fraction(0))
    total = (1 - beta) ** (m - 1) * w * alone
    for g in range(1, m):
        worst = max(
            mean_excess(values, blanket, e, (1 / w - 1) * (e - 1))
            for values in combinations_with_replacement(range(len(next(iter(blanket.supports)))), m - g)
        )
        total += beta * (1 - beta) ** (g - 1) * w * worst
    return total


def mean_excess(values: Sequence[int], blanket: Blanket, e: Fraction, target: Fraction) -> Fraction:
    """E (mean of Z less the target)_+ where the reports are those of some values."""
    sums = {Fraction(0): Fraction(1)}
    for value in values:
        longer: dict[Fraction, Fraction] = {}
        for so_far, chance in sums.items():
            for z, more in terms(value, blanket, e):
                longer[so_far + z] = longer.get(so_far + z, Fraction(0)) + chance * more
        sums = longer
    return sum((max(z / len(values) - target, Fraction(0)) * chance for z, chance in sums.items()), Fraction(0))


def terms(value: int, blanket: Blanket, e: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """The values of Z, and their probabilities, of a report of a value."""
    gamma = blanket.gamma
    for held, chance in blanket.supports.items():
        own = gamma ** held[value]
        yield (gamma ** held[0] - e * gamma ** held[1]) / own, blanket.probability * own * chance


def settings() -> Iterator[tuple[str, int, int]]:
    for name, case in CASES.items():
        for n, m in ((1, 1), (2, 1), (2, 2), (3, 2), (3, 3)):
            if len(case.reports) ** m <= 3000:
                yield name, n, m


def test_reports_have_two_levels_of_likelihood_and_the_blanket_that_is_stated() -> None:
    for case in CASES.values():
        gamma, blanket = case.oracle.gamma, case.oracle.blanket
        supports = dict.fromkeys(blanket.supports, Fraction(0))
        for report in case.reports:
            held = [case.holds(report, x) for x in range(case.oracle.size)]
            (low,) = {case.chance(report, x) / (gamma if holds else 1) for x, holds in enumerate(held)}
            supports[tuple(map(int, held[:3]))] += low / blanket.probability
        assert supports == blanket.supports
        assert sum(supports.values()) == 1


@pytest.mark.parametrize(("name", "n", "m"), list(settings()))
def test_no_enumerated_adversary_learns_more_than_the_certificate_says(name: str, n: int, m: int) -> None:
    """1,520 settings in all: others' values, both directions, and ratios."""
    case = CASES[name]
    certificate = CrowdCertificate(population=n, sample=m, blanket=case.oracle.blanket)
    pure = certificate.pure_ratio
    # At the pure ratio itself one rounding decides.
    ratios = [e for e in RATIOS if abs(e - pure) > Fraction(1, 10**9)]
    bounds = {e: formula(n, m, case.oracle.blanket, e) if e < pure else Fraction(0) for e in ratios}
    for e, exact in bounds.items():
        assert float(exact) <= certificate.delta(log(e)) * (1 + 1e-12) <= 1.4 * float(exact) + 1e-9
    for others in combinations_with_replacement(range(min(case.oracle.size, 4)), n - 1):
        laws = [law(case, (x, *others), m) for x in (0, 1)]
        for first, second in (laws, laws[::-1]):
            for e in ratios:
                exact = sum((max(p - e * second.get(seen, 0), Fraction(0)) for seen, p in first.items()), Fraction(0))
                assert exact <= bounds[e]


def gain(blanket: Blanket, n: int, m: int, others: int, epsilon: float) -> float:
    """The delta at an epsilon that an adversary attains by a test: it adds up a whole number for each report.

    All nodes but the target hold one value. The number is the likelihood ratio on a fine lattice; the test says 0 where
    the sum is above a threshold. Its error rates are exact, so no certificate can be less.
    """
    e = np.exp(epsilon)
    exact = Fraction(e)
    scores = np.array([float(z) for z, _ in terms(others, blanket, exact)])
    own, first, second = (
        np.array([float(chance) for _, chance in terms(value, blanket, exact)]) for value in (others, 0, 1)
    )
    fine = np.sqrt(own @ (scores - own @ scores) ** 2) / 40
    # Seven standard deviations each way.
    whole, size = np.round(scores / fine).astype(int), 1 << int(14 * 40 * np.sqrt(m)).bit_length()
    crowd, zero, one = (np.fft.rfft(np.bincount(whole % size, law, size)) for law in (own, first, second))
    w = m / n
    hidden = [w * crowd ** (m - 1) * target + (1 - w) * crowd**m for target in (zero, one)]
    p, q = (np.fft.irfft(spectrum, size) for spectrum in hidden)
    centre = round(m * float(own @ whole))
    order = (centre + size // 2 - np.arange(size)) % size
    return float(np.max(np.cumsum(p[order]) - e * np.cumsum(q[order])))


def check_attained(oracle: Oracle, nodes: int, reports: int, ratio: float, others: Sequence[int] = (2,)) -> None:
    """See that an adversary attains what is certified, divided by a ratio, and no more than is certified."""
    certified = certificate_of(oracle, nodes, reports).epsilon(1e-6)
    blanket = oracle.blanket
    assert max(gain(blanket, nodes, reports, other, certified) for other in others) <= 1e-6
    assert max(gain(blanket, nodes, reports, other, certified / ratio) for other in others) >= 1e-6


@pytest.mark.parametrize("name", ["oue", "olh", "ss"])
@pytest.mark.parametrize(
    ("nodes", "reports", "size", "epsilon"), [(400, 400, 20, "1"), (2000, 2000, 20, "0.5"), (10_000, 2000, 100, "2")]
)
def test_a_pair_of_tables_attains_nearly_what_is_certified(
    name: str, nodes: int, reports: int, size: int, epsilon: str
) -> None:
    oracle = oracle_for(name, size, Decimal(epsilon))
    check_attained(oracle, nodes, reports, 1.03)


@pytest.mark.parametrize(("nodes", "epsilon", "ratio"), [(1000, "0.5", 1.03), (5000, "2", 1.06), (9000, "1", 1.03)])
def test_two_values_are_certified_nearly_as_they_are_attained(nodes: int, epsilon: str, ratio: float) -> None:
    oracle = oracle_for("krr", 2, Decimal(epsilon))
    check_attained(oracle, nodes, nodes, ratio, others=(0, 1))
    certified = certificate_of(oracle, nodes, nodes).epsilon(1e-6)
    assert certified < 0.95 * OrderCertificate(population=nodes, sample=nodes, cells=2, gamma=oracle.gamma).epsilon(
        1e-6
    )


def test_the_largest_law_is_larger_in_convex_order_than_all() -> None:
    laws = np.random.default_rng(3).dirichlet(np.full(41, 0.3), size=5)
    # Each with the same mean: a law and its mirror image.
    laws = (laws + laws[:, ::-1]) / 2
    points = np.arange(41)
    excess = np.maximum(points - points[:, None], 0)
    largest = _largest(laws.copy())
    assert (excess @ largest >= (excess @ laws.T).max(axis=1) * (1 - 1e-12)).all()
    assert excess @ largest == pytest.approx((excess @ laws.T).max(axis=1), abs=1e-9)


def test_k_ary_randomised_response_and_subsets_of_one_value_have_the_exact_certificate() -> None:
    for oracle in (oracle_for("krr", 10, Decimal(2)), oracle_of("ss", 10, {"w": 1, "p64": 2**63})):
        own = OrderCertificate(population=400, sample=100, cells=10, gamma=oracle.gamma)
        assert certificate_of(oracle, 400, 100) == own
        crowd = CrowdCertificate(population=400, sample=100, blanket=oracle.blanket)
        assert own.delta(0.1) <= crowd.delta(0.1)


def test_what_cannot_be_is_refused() -> None:
    fair = Fraction(1, 2)
    with refuses(InvalidInputError, where="blanket"):
        Blanket(gamma=Fraction(1), one=fair, two=Fraction(0), three=Fraction(0))
    with refuses(InvalidInputError, where="blanket"):
        Blanket(gamma=Fraction(2), one=fair, two=fair, three=Fraction(0))
    with refuses(InvalidInputError, where="blanket"):
        Blanket(gamma=Fraction(2), one=fair, two=Fraction(0), three=Fraction(0))
    blanket = oracle_for("oue", 5, Decimal(1)).blanket
    for nodes, reports in ((10, 0), (10, 11), (2 * 10**9, 2 * 10**9)):
        with refuses(InvalidInputError, where="crowd certificate"):
            CrowdCertificate(population=nodes, sample=reports, blanket=blanket)
    with refuses(InvalidInputError, where="epsilon"):
        CrowdCertificate(population=10, sample=10, blanket=blanket).delta(-1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", ["0.000001", "1", "20"])
@pytest.mark.parametrize(("nodes", "reports"), [(1, 1), (2, 2), (41, 40), (640, 640), (10**6, 50)])
def test_at_the_edges_delta_is_a_probability_that_falls(epsilon: str, nodes: int, reports: int) -> None:
    oracle = oracle_for("oue", 3, Decimal(epsilon))
    certificate = CrowdCertificate(population=nodes, sample=reports, blanket=oracle.blanket)
    pure = log(certificate.pure_ratio)
    deltas = [certificate.delta(share * pure) for share in (0, 1e-4, 0.5, 0.999, 1.1)]
    assert all(0 <= delta <= 1 for delta in deltas)
    assert all(after <= before * (1 + 1e-5) for before, after in pairwise(deltas))
    assert deltas[-1] == 0
