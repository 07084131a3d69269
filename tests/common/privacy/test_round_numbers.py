from decimal import Decimal
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veiltab.common.privacy.planning.round_numbers import RoundNumbers, WholeNumbers, least_sufficient

TWO, THREE = RoundNumbers(digits=2, least=-12), RoundNumbers(digits=3, least=-6)


def test_round_numbers_are_exact_and_in_order() -> None:
    assert [THREE.at(i) for i in (0, 1, 899, 900)] == [Decimal(n) for n in ("1e-6", "1.01e-6", "9.99e-6", "1e-5")]
    numbers = [TWO.at(i) for i in range(12 * 90 + 1)]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 1


@given(st.decimals(min_value="1e-6", max_value="100", places=9))
def test_the_number_below_is_the_largest_that_is_not_above(value: Decimal) -> None:
    index = THREE.index_below(value)
    assert THREE.at(index) <= value < THREE.at(index + 1)


def test_below_the_first_there_is_none() -> None:
    assert THREE.index_below(Decimal("9.99e-7")) == -1


@given(st.integers(min_value=0, max_value=10**8))
def test_whole_numbers_are_exact_to_a_thousand_and_round_above(value: int) -> None:
    index = WholeNumbers().index_below(value)
    assert WholeNumbers().at(index) <= value < WholeNumbers().at(index + 1)
    assert value >= 1000 or WholeNumbers().at(index) == value


@given(
    values=st.lists(st.floats(min_value=-40, max_value=40) | st.just(inf), min_size=1, max_size=300),
    start=st.integers(min_value=-5, max_value=320),
    rate=st.floats(min_value=1e-4, max_value=10),
)
def test_the_search_agrees_with_looking_at_every_number(values: list[float], start: int, rate: float) -> None:
    falling = sorted(values, reverse=True)
    slow = next((index for index, value in enumerate(falling) if value <= 0), None)
    tried: list[int] = []

    def excess(index: int) -> float:
        tried.append(index)
        return falling[index]

    assert least_sufficient(excess, start=start, last=len(falling) - 1, rate=rate) == slow
    assert len(tried) == len(set(tried))


@given(values=st.lists(st.floats(min_value=-3, max_value=3), min_size=1, max_size=60), start=st.integers(0, 60))
def test_where_the_error_does_not_fall_evenly_the_answer_is_still_enough(values: list[float], start: int) -> None:
    found = least_sufficient(lambda index: values[index], start=start, last=len(values) - 1, rate=0.01)
    if found is None:
        assert values[-1] > 0
    else:
        assert values[found] <= 0
        assert found == 0 or values[found - 1] > 0


@pytest.mark.parametrize("root", [0, 1, 700, 7000, 7199])
def test_few_steps_are_enough_for_a_power_law(root: int) -> None:
    tried: list[int] = []

    def excess(index: int) -> float:
        tried.append(index)
        return 0.0024 * (root - index)

    assert least_sufficient(excess, start=5400, last=7200, rate=2.5e-3) == root
    assert len(tried) <= 8
