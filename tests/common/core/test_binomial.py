from math import comb, exp

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from veiltab.common.core.binomial import binomial_pmf, binomial_tail, window


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
def test_the_tail_has_ten_digits(n: int) -> None:
    for p in (0.001, 0.5, 0.97):
        for deviations in (-6, -1, 0, 1, 6):
            x = round(n * p + deviations * (n * p * (1 - p)) ** 0.5)
            assert binomial_tail(x, n, p) == pytest.approx(float(binom.sf(x - 1, n, p)), rel=1e-9)


def test_the_tail_at_the_ends() -> None:
    assert binomial_tail(0, 7, 0.3) == pytest.approx(1)
    assert binomial_tail(7, 7, 0.3) == pytest.approx(0.3**7)
    assert binomial_tail(8, 7, 0.3) == 0
    assert binomial_tail(-1, 7, 0.3) == pytest.approx(1)
    assert (binomial_tail(7, 7, 1.0), binomial_tail(1, 7, 0.0)) == (1, 0)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 40, 1000, 10**7, 10**9])
def test_a_probability_has_ten_digits(n: int) -> None:
    for p in (1e-6, 0.3, 0.5, 0.999):
        spread = (n * p * (1 - p)) ** 0.5
        x = np.unique([0, 1, 2, n - 2, n - 1, n, *(round(n * p + k * spread) for k in range(-5, 6))])
        with mpmath.workdps(40):
            exact = [
                float(mpmath.binomial(n, k) * mpmath.power(p, k) * mpmath.power(1 - mpmath.mpf(p), n - k))
                if 0 <= k <= n
                else 0.0
                for k in x.tolist()
            ]
        assert binomial_pmf(x, n, p).tolist() == pytest.approx(exact, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("n", [20, 300, 1023, 1024, 1025, 2000, 10**4, 10**6, 10**9])
def test_a_probability_errs_by_no_more_than_certificates_count_on(n: int) -> None:
    for p in (1e-8, 0.01, 0.3, 0.5, 0.9):
        low, high = window(n, p)
        x = np.unique([*np.linspace(low, high, 12).astype(np.int64), *range(14, 19), *range(198, 203)]).clip(low, high)
        with mpmath.workdps(40):
            exact = [
                mpmath.binomial(n, k) * mpmath.power(p, k) * mpmath.power(1 - mpmath.mpf(p), n - k) for k in x.tolist()
            ]
            # Which terms of a series are computed depends on what is computed at once.
            errors = [
                [float(one / true - 1) for one, true in zip(found.tolist(), exact, strict=True)]
                for found in (
                    binomial_pmf(x, n, p),
                    np.concatenate([binomial_pmf(x[i : i + 1], n, p) for i in range(len(x))]),
                )
            ]
        # See veiltab.common.privacy.shuffle.
        allowed = 5e-12 if n <= 1024 else 1e-12 + 2.0**-52 * np.abs(x - n * p)
        assert (np.abs(errors) < allowed)[:, np.array(exact, float) > exp(-75)].all()


def test_every_factorial_of_the_table_is_right() -> None:
    n = np.arange(1, 1025)
    exact = np.array([comb(k, k // 2) / 2**k for k in n.tolist()])
    assert (np.abs(binomial_pmf(n // 2, n, 0.5) / exact - 1) < 5e-12).all()


def test_a_probability_without_chance() -> None:
    x = np.arange(-1, 5)
    assert binomial_pmf(x, 3, 0.0).tolist() == [0, 1, 0, 0, 0, 0]
    assert binomial_pmf(x, 3, 1.0).tolist() == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("n", [1, 100, 10**4, 10**8, 10**9])
def test_next_to_nothing_lies_outside_a_window(n: int) -> None:
    for p in (1e-5, 0.2, 0.5, 0.9):
        for log_mass in (3.0, 20.0, 75.0):
            low, high = window(n, p, log_mass=log_mass)
            assert 0 <= low <= n * p <= high <= n
            assert binom.cdf(low - 1, n, p) + binom.sf(high, n, p) < 2 * exp(-log_mass)
            # It is not wider than the inequality asks for.
            assert high - low <= 2 * (log_mass + (2 * log_mass * n * p * (1 - p)) ** 0.5) + 2
