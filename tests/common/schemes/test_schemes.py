"""Sampling schemes against enumeration of every draw, and their guarantees against the exact law of small releases."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb, exp, expm1, log, log1p

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.common.privacy.enumeration import output_law
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.amplification import base_epsilon
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.schemes import SCHEMES, Scheme, scheme_of

Sample = tuple[int, ...]


def draws(scheme: Scheme) -> Iterator[tuple[Sample, Fraction]]:
    """Every sample as a sorted tuple of row numbers, with its probability."""
    n, m = scheme.population, scheme.sample
    if scheme.name == "wor":
        for rows in combinations(range(n), m):
            yield rows, Fraction(1, comb(n, m))
    elif scheme.name == "wr":
        yield from with_replacement(tuple(range(n)), m)
    else:
        b = getattr(scheme, "stage", 0)
        first = (
            [(rows, Fraction(1, comb(n, b))) for rows in combinations(range(n), b)]
            if scheme.name == "must.ow"
            else list(with_replacement(tuple(range(n)), b))
        )
        for rows, p in first:
            if scheme.name == "must.wo":
                for chosen in combinations(range(b), m):
                    yield tuple(sorted(rows[i] for i in chosen)), p / comb(b, m)
            else:
                for chosen, q in with_replacement(rows, m):
                    yield chosen, p * q


def with_replacement(rows: Sample, m: int) -> Iterator[tuple[Sample, Fraction]]:
    """Every multiset of m draws from some rows (which may repeat), with its probability."""
    for chosen in combinations_with_replacement(range(len(rows)), m):
        ways = mpmath.factorial(m)
        for count in Counter(chosen).values():
            ways /= mpmath.factorial(count)
        yield tuple(sorted(rows[i] for i in chosen)), Fraction(int(ways), len(rows) ** m)


CASES = [
    ("wor", 4, 2, None),
    ("wor", 3, 3, None),
    ("wr", 3, 2, None),
    ("wr", 2, 3, None),
    ("must.ow", 4, 3, 2),
    ("must.ow", 3, 2, 3),
    ("must.wo", 3, 2, 3),
    ("must.ww", 3, 2, 2),
    ("must.ww", 2, 3, 2),
]


def test_every_scheme_is_enumerated() -> None:
    assert {name for name, *_ in CASES} | {"poisson"} == set(SCHEMES)
    # Given its size, a Poisson sample is one without replacement.
    poisson, wor = (scheme_of(name, population=9, sample=4) for name in ("poisson", "wor"))
    assert poisson.pure_epsilon(Fraction(7)) == wor.pure_epsilon(Fraction(7))
    tokens = np.random.default_rng(1).integers(0, 256, (9, 16), np.uint8)
    assert poisson.draw(tokens, bytes(32)).tolist() == wor.draw(tokens, bytes(32)).tolist()


@pytest.mark.parametrize(("name", "n", "m", "b"), CASES)
def test_multiplicities_and_variance_are_those_of_every_draw(name: str, n: int, m: int, b: int | None) -> None:
    scheme = scheme_of(name, population=n, sample=m, stage=b)
    law: dict[int, Fraction] = defaultdict(Fraction)
    square = Fraction(0)
    for sample, p in draws(scheme):
        law[sample.count(0)] += p
        square += p * Fraction(sample.count(0), m) ** 2
    found = scheme.multiplicities()
    assert [float(law[j]) for j in range(len(found))] == pytest.approx(found.tolist(), abs=1e-14)
    assert scheme.eta == pytest.approx(float(1 - law[0]), rel=1e-13)
    assert scheme.pool == {"wr": 1, "must.wo": 1, "must.ow": (b or 0) / n}.get(name, scheme.eta)
    # One respondent's share T = 1/n: Var = v (1/n)(1 - 1/n).
    variance = square - Fraction(1, n) ** 2
    assert scheme.variance_factor * (1 / n) * (1 - 1 / n) == pytest.approx(float(variance), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "m", "b", "factor"),
    [
        ("wor", 1, None, Fraction(0)),
        ("poisson", 1, None, Fraction(0)),
        ("wr", 3, None, Fraction(1, 3)),
        ("must.ow", 3, 1, Fraction(1, 3)),
        ("must.wo", 3, 5, Fraction(1, 3)),
        ("must.ww", 3, 5, Fraction(1, 5) + Fraction(4, 15)),
    ],
)
def test_a_population_of_one_has_a_variance_factor(name: str, m: int, b: int | None, factor: Fraction) -> None:
    assert scheme_of(name, population=1, sample=m, stage=b).variance_factor == factor


def release_law(table: Sample, scheme: Scheme, cells: int, gamma: Fraction) -> dict[Sample, Fraction]:
    """The law of the histogram that a researcher sees."""
    total: dict[Sample, Fraction] = {}
    for sample, p in draws(scheme):
        for counts, weight in output_law(tuple(sorted(table[row] for row in sample)), cells, gamma).items():
            total[counts] = total.get(counts, Fraction(0)) + p * weight
    return total


TIGHT = {"wor", "wr", "must.wo", "must.ow"}


@pytest.mark.parametrize(("name", "n", "m", "b"), CASES)
@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("gamma", [Fraction(2), Fraction(6)])
def test_no_neighbouring_pair_does_worse_than_claimed(  # noqa: PLR0913, PLR0917 - one argument a size
    name: str, n: int, m: int, b: int | None, cells: int, gamma: Fraction
) -> None:
    scheme = scheme_of(name, population=n, sample=m, stage=b)
    release = ReleaseDescription(scheme=scheme, cells=cells, gamma=gamma)
    worst = 1.0
    for rest in combinations_with_replacement(range(cells), n - 1):
        laws = [release_law((x, *rest), scheme, cells, gamma) for x in range(cells)]
        for one, other in product(laws, laws):
            worst = max(worst, *(float(one[h] / other[h]) for h in one))
            for e in (Fraction(1), Fraction(4, 3), Fraction(2)):
                exact = float(sum((max(one[h] - e * other[h], Fraction(0)) for h in one), Fraction(0)))
                assert exact <= release.delta(log(e)) * (1 + 1e-12) + 1e-17
    assert log(worst) <= float(release.pure_epsilon) + 1e-15
    if name in TIGHT:
        assert float(release.pure_epsilon) <= log(worst) + 1e-6


def test_two_draws_never_lose_more_than_every_row_by_itself() -> None:
    scheme, gamma = scheme_of("must.ww", population=4, sample=5, stage=6), Fraction(100)
    assert float(scheme.pure_epsilon(gamma)) == pytest.approx(5 * log(100))
    # What every row loses by itself is what some epsilons are planned with.
    planned = scheme.gamma_for(Decimal(20))
    assert float(planned) == pytest.approx(exp(4))
    assert scheme.pure_epsilon(planned) <= 20
    small = scheme_of("must.ww", population=3, sample=2, stage=2)
    laws = [release_law((x, 1, 1), small, 2, gamma) for x in range(2)]
    worst = max(one[h] / other[h] for one, other in product(laws, laws) for h in one)
    assert log(worst) <= float(small.pure_epsilon(gamma)) == pytest.approx(2 * log(100))


@given(st.floats(0.001, 20), st.integers(2, 1000), st.integers(1, 1000))
def test_the_base_epsilon_reaches_its_target(target: float, n: int, m: int) -> None:
    scheme = scheme_of("wor", population=n, sample=min(n, m))
    base = base_epsilon(scheme, target)
    assert log1p(scheme.eta * expm1(base)) <= target * (1 + 1e-12)
    assert base >= target * (1 - 1e-12)


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("wor", {"population": 10, "sample": 11}, "1 to n = 10"),
        ("wor", {"population": 10, "sample": 5, "stage": 5}, "a first stage was given for a scheme of one stage"),
        ("must.ow", {"population": 10, "sample": 5}, "first stage"),
        ("must.ow", {"population": 10, "sample": 5, "stage": 11}, "without replacement"),
        ("must.wo", {"population": 10, "sample": 5, "stage": 4}, "without replacement"),
        ("must.ww", {"population": 10, "sample": 5, "stage": 0}, "at least 1"),
        ("srs", {"population": 10, "sample": 5}, "not known"),
        ("wr", {"population": 0, "sample": 5}, "at least 1"),
        ("must.ww", {"population": 10, "sample": 5, "stage": 10**400}, f"at most {2**62}"),
    ],
)
def test_sizes_that_a_scheme_forbids_are_refused(name: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        scheme_of(name, **sizes)


def test_multiplicities_sum_to_one_at_large_sizes() -> None:
    for name in SCHEMES:
        scheme = scheme_of(name, population=10**6, sample=10**5, stage=2 * 10**5 if "." in name else None)
        assert np.sum(scheme.multiplicities()) == pytest.approx(1, abs=1e-12)
