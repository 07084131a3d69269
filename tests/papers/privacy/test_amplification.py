"""What sampling makes of any mechanism, beside the papers' numbers, dp-accounting and slow integrals."""

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.schemes import scheme_of
from veiltab.papers.privacy.amplification import amplify
from veiltab.papers.privacy.profiles import Laplace


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_profiles_are_the_hockey_stick_divergences(copies: int, epsilon: float) -> None:
    with mpmath.workdps(40):
        e = mpmath.e**epsilon
        shift = mpmath.mpf(copies) * mpmath.mpf("0.4")

        def laplace(x: mpmath.mpf) -> mpmath.mpf:
            return max(mpmath.e ** (-abs(x - shift)) / 2 - e * mpmath.e ** (-abs(x)) / 2, mpmath.mpf(0))

        cut = max(min((epsilon + shift) / 2, shift), 0)
        exact = mpmath.quad(laplace, [0, cut, shift, 60]) if epsilon < shift else mpmath.mpf(0)
        assert Laplace(ratio=0.4).delta(epsilon, copies) == pytest.approx(float(exact), abs=1e-9)

        cut = shift / 2 + epsilon / shift
        exact = (mpmath.erfc((cut - shift) / mpmath.sqrt(2)) - e * mpmath.erfc(cut / mpmath.sqrt(2))) / 2
        found = Gaussian(ratio=0.4).delta(epsilon, copies)
        assert float(exact) <= found <= float(exact) + 1e-14


def test_poisson_gaussian_agrees_with_dp_accounting() -> None:
    scheme = scheme_of("poisson", population=1000, sample=100)
    one = pld.from_gaussian_mechanism(2.0, sampling_prob=0.1, value_discretization_interval=1e-4)
    for base in (0.5, 1.0, 2.0):
        found = amplify(scheme, Gaussian(ratio=0.5), base)
        assert found.delta == pytest.approx(float(one.get_delta_for_epsilon(found.epsilon)), rel=2e-3)
