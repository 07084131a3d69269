"""The calibrated gamma keeps its bounds and wastes next to nothing of them."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import log1p

import pytest

from tests.conftest import refuses
from veiltab.common.core.numbers.rounding import ln_above
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.calibration import calibrate
from veiltab.common.privacy.shuffle import OrderCertificate
from veiltab.common.privacy.threshold_search import largest_allowed
from veiltab.common.schemes import scheme_of

POPULATION, SAMPLE, CELLS = 1000, 800, 6
EPSILON, DELTA = Decimal("0.5"), Decimal("1e-5")


def calibrated(delta: Decimal = DELTA, cap: Decimal | None = None) -> Fraction:
    mechanism = calibrate(
        population=POPULATION, sample=SAMPLE, cells=CELLS, epsilon=EPSILON, delta=delta, max_local_epsilon=cap
    )
    return mechanism.gamma


def delta_of(gamma: Fraction) -> float:
    return OrderCertificate(population=POPULATION, sample=SAMPLE, cells=CELLS, gamma=gamma).delta(float(EPSILON))


def test_the_largest_gamma_is_found() -> None:
    gamma = calibrated()
    assert gamma > scheme_of("wor", population=POPULATION, sample=SAMPLE).gamma_for(EPSILON)
    assert delta_of(gamma) <= DELTA < delta_of(1 + (gamma - 1) * (1 + Fraction(1, 10**5)))


@pytest.mark.parametrize("guess", [0.5, 4.0])
def test_a_root_takes_few_steps(guess: float) -> None:
    tried: list[float] = []

    def excess(x: float) -> float:
        tried.append(x)
        return x**3 - 20

    found = largest_allowed(0.0, guess, 10.0, excess)
    assert found in tried
    assert -1e-5 <= found**3 - 20 <= 0
    assert len(tried) <= 12


def test_where_no_point_is_allowed_the_lowest_is_the_answer() -> None:
    assert largest_allowed(2.0, 5.0, 10.0, lambda _: 1.0) == 2.0


def test_a_gamma_that_rounding_took_too_far_is_lowered_until_it_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    right = calibrated() - 1

    def too_much(low: float, guess: float, top: float, excess: Callable[[float], float]) -> float:
        return largest_allowed(low, guess, top, excess) + log1p(1e-5)

    monkeypatch.setattr("veiltab.common.privacy.calibration.largest_allowed", too_much)
    lowered = calibrated()
    assert delta_of(lowered) <= DELTA
    assert right * (1 - Fraction(3, 10**6)) <= lowered - 1 <= right * (1 + Fraction(3, 10**6))


@pytest.mark.parametrize("cap", ["0.2", "2"])
def test_a_cap_on_the_local_epsilon_is_kept_and_used(cap: str) -> None:
    # The first cap lies below the pure gamma, the second between it and the certified one.
    gamma = calibrated(cap=Decimal(cap))
    assert Decimal(cap) * (1 - Decimal("1e-6")) <= ln_above(gamma) <= Decimal(cap)


def test_a_cap_that_does_not_bind_changes_nothing() -> None:
    assert calibrated(cap=Decimal(50)) == calibrated()


@pytest.mark.parametrize("delta", ["0", "1", "-0.1"])
def test_deltas_that_mean_nothing_are_refused(delta: str) -> None:
    with refuses(InvalidInputError, where="delta"):
        calibrated(delta=Decimal(delta))
