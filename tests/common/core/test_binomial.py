import pytest
from scipy.stats import binom

from veiltab.common.core.binomial import binomial_tail


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("p", [0.001, 0.5, 0.97])
@pytest.mark.parametrize("deviations", [-6, -1, 0, 1, 6])
def test_the_tail_has_ten_digits(n: int, p: float, deviations: int) -> None:
    x = round(n * p + deviations * (n * p * (1 - p)) ** 0.5)
    assert binomial_tail(x, n, p) == pytest.approx(float(binom.sf(x - 1, n, p)), rel=1e-9)


def test_the_tail_at_the_ends() -> None:
    assert binomial_tail(0, 7, 0.3) == pytest.approx(1)
    assert binomial_tail(7, 7, 0.3) == pytest.approx(0.3**7)
    assert binomial_tail(8, 7, 0.3) == 0
    assert binomial_tail(-1, 7, 0.3) == pytest.approx(1)
    assert (binomial_tail(7, 7, 1.0), binomial_tail(1, 7, 0.0)) == (1, 0)
