from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import (
    mean_squared_error,
    optimal_sample,
    paper_bound,
    paper_sample,
    plan_release,
)

N, K = 45222, 24
"""Adult: respondents and cells."""


def test_a_float_counts_as_python_shows_it() -> None:
    numbers = plan_release(
        population=1000, cells=6, epsilon=0.1, delta=1e-6, max_local_epsilon=3.3, noise_split=0.3, max_pair_epsilon=9.7
    )
    assert numbers == plan_release(
        population=1000,
        cells=6,
        epsilon=Decimal("0.1"),
        delta=Decimal("1e-6"),
        max_local_epsilon=Decimal("3.3"),
        noise_split=Decimal("0.3"),
        max_pair_epsilon=Decimal("9.7"),
    )
    assert numbers.epsilon == Decimal("0.1")


@pytest.mark.parametrize(("epsilon", "root_mse"), [("0.1", 0.1396), ("0.5", 0.0561), ("1", 0.0343)])
def test_the_paper_s_sample_size_has_the_known_error(epsilon: str, root_mse: float) -> None:
    m = paper_sample(population=N, cells=K, epsilon=Decimal(epsilon))
    plan = plan_release(population=N, cells=K, epsilon=Decimal(epsilon), sample=m)
    assert plan.root_mse() == pytest.approx(root_mse, abs=5.5e-5)
    assert plan.root_mse() < paper_bound(sample=m, cells=24, gamma=plan.gamma)


def test_the_paper_s_sample_size_is_capped_at_the_population() -> None:
    assert paper_sample(population=100, cells=2, epsilon=Decimal(5)) == 100


@pytest.mark.parametrize(
    ("n", "cells", "epsilon", "squares"),
    [(45222, 24, "1", None), (45222, 24, "0.1", Fraction(8, 100)), (1000, 6, "2", None), (50, 2, "3", Fraction(3, 4))],
)
def test_the_optimum_is_the_best_of_all_sample_sizes(
    n: int, cells: int, epsilon: str, squares: Fraction | None
) -> None:
    spread = None if squares is None else float(squares)
    best = optimal_sample(population=n, cells=cells, epsilon=Decimal(epsilon), sum_of_squares=squares)

    def error(m: int) -> float:
        plan = plan_release(population=n, cells=cells, epsilon=Decimal(epsilon), sample=m)
        return mean_squared_error(population=n, sample=m, cells=cells, gamma=plan.gamma, sum_of_squares=spread)

    # The continuous optimum rounded: no other size is better by more than the rounding.
    assert error(best) <= min(error(m) for m in range(1, n + 1, max(1, n // 500))) * (1 + 1e-4)


def test_the_optimum_under_a_cap_is_the_best_of_all_sample_sizes() -> None:
    cap = Decimal("1.5")
    best = plan_release(population=1000, cells=6, epsilon=Decimal(1), max_local_epsilon=cap, noise_split=Decimal(0))
    assert best.sample > optimal_sample(population=1000, cells=6, epsilon=Decimal(1))
    assert best.local_epsilon <= cap
    for sample in range(1, 1001):
        plan = plan_release(
            population=1000, cells=6, epsilon=Decimal(1), max_local_epsilon=cap, sample=sample, noise_split=Decimal(0)
        )
        assert plan.root_mse() >= best.root_mse() * (1 - 1e-4)


def test_the_error_without_noise_is_that_of_sampling() -> None:
    # With gamma to infinity only the hypergeometric variance remains.
    found = mean_squared_error(population=100, sample=10, cells=4, gamma=1e12, sum_of_squares=0.3)
    assert found == pytest.approx((90 / 99) * 0.7 / 10)


def test_the_error_at_a_full_sample_is_that_of_the_noise() -> None:
    found = mean_squared_error(population=100, sample=100, cells=4, gamma=3.0)
    assert found == pytest.approx(3 * (2 * 3 + 2) / 2**2 / 100)


@given(
    st.integers(1, 10**8),
    st.integers(2, 10**5),
    st.decimals(min_value="0.001", max_value=20, allow_nan=False, allow_infinity=False),
)
@example(n=1, cells=2, epsilon=Decimal("19.999999999999999115485316280739972573805"))
def test_a_plan_never_claims_more_than_was_asked(n: int, cells: int, epsilon: Decimal) -> None:
    plan = plan_release(population=n, cells=cells, epsilon=epsilon)
    assert 1 <= plan.sample <= n
    assert plan.epsilon <= epsilon
    # Rounding up one unit of 2^-64 takes a share of 1/replacement off gamma.
    assert plan.epsilon <= plan.local_epsilon + Decimal("2e-12") + Decimal(2) / plan.mechanism.server_replacement
    assert plan.root_mse() > 0


def test_the_plan_is_what_every_curator_computes() -> None:
    # Fixed numbers: a platform that computes others would stop every release at the comparison of digests.
    one_sided = plan_release(population=N, cells=K, epsilon=Decimal(1), noise_split=Decimal(0))
    assert (one_sided.sample, one_sided.mechanism.server_replacement) == (3238, 9223838448487050062)
    plan = plan_release(population=N, cells=K, epsilon=Decimal(1))
    assert plan.sample == one_sided.sample
    assert plan.mechanism.curator_replacement == 5403256055374284734
    assert plan.mechanism.server_replacement == 5403256055374284735
    assert plan.root_mse() == pytest.approx(0.0341, abs=5e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": 10, "cells": 1, "epsilon": Decimal(1)}, "one cell"),
        ({"population": 0, "cells": 4, "epsilon": Decimal(1)}, "population"),
        ({"population": 10, "cells": 4, "epsilon": Decimal(1), "sample": 11}, "the sample must be 1 to n = 10"),
        ({"population": 10, "cells": 4, "epsilon": Decimal("1e-70")}, "gamma"),
    ],
)
def test_plans_that_cannot_be_made_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plan_release(**arguments)  # type: ignore[arg-type]
