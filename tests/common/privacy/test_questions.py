from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.planning import FEW_ROWS, Plan, plan_release
from veiltab.common.privacy.planning.questions import PlanQuestion, answer
from veiltab.common.schemes import SCHEMES

ADULT = 45222

ONE_SIDED: dict[str, Any] = {"noise_split": Decimal(0)}
"""The planner's sample is the best one under a cap where the server adds all noise."""


@pytest.mark.parametrize(
    ("epsilon", "gamma", "root_mse"), [("0.1", 31.59, 0.0068), ("0.5", 356.78, 0.00172), ("1", 1088.8, 0.00097)]
)
def test_the_order_of_adult(epsilon: str, gamma: float, root_mse: float) -> None:
    found = plan_release(population=ADULT, cells=24, epsilon=Decimal(epsilon), delta=Decimal("1e-6"))
    assert found.sample == ADULT
    # The largest gamma that is certified; no less than the one tabulated, and hardly more.
    assert gamma <= found.gamma <= gamma * 1.001
    assert found.root_mse() == pytest.approx(root_mse, abs=5.1e-6)
    assert found.description.delta(float(epsilon)) <= 1e-6


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_keeps_its_pure_epsilon(scheme: str) -> None:
    for epsilon in ("0.05", "0.5", "2"):
        found = plan_release(
            population=1000,
            cells=6,
            epsilon=Decimal(epsilon),
            sample=120,
            scheme=scheme,
            stage=200 if "." in scheme else None,
        )
        assert found.description.pure_epsilon <= Decimal(epsilon) + Decimal("1e-12")
        assert found.description.pure_epsilon >= Decimal(epsilon) * Decimal("0.99")


def test_a_cap_on_the_local_epsilon_holds_and_is_used_well() -> None:
    for delta in (None, Decimal("1e-6")):
        found = plan_release(
            population=ADULT, cells=24, epsilon=Decimal(1), delta=delta, max_local_epsilon=Decimal("2.5")
        )
        assert found.local_epsilon <= Decimal("2.5") + Decimal("1e-12")
    capped = plan_release(population=ADULT, cells=24, epsilon=Decimal(1), max_local_epsilon=Decimal("2.5"), **ONE_SIDED)
    for m in (capped.sample // 2, capped.sample * 2):
        other = plan_release(
            population=ADULT, cells=24, epsilon=Decimal(1), max_local_epsilon=Decimal("2.5"), sample=m, **ONE_SIDED
        )
        assert capped.root_mse() < other.root_mse()


@pytest.mark.parametrize(("epsilon", "sample"), [("0.012", 1), ("0.0164", 2), ("0.4", 44)])
def test_of_the_two_sizes_about_the_cap_the_better_is_planned(epsilon: str, sample: int) -> None:
    def planned(size: int | None) -> Plan:
        return plan_release(
            population=1000,
            cells=24,
            epsilon=Decimal(epsilon),
            max_local_epsilon=Decimal("2.5"),
            sample=size,
            **ONE_SIDED,
        )

    assert planned(None).sample == sample
    assert planned(sample).root_mse() <= min(planned(size).root_mse() for size in range(1, sample + 5))


@pytest.mark.parametrize(
    ("n", "cells", "epsilon", "delta", "cap", "sample", "root_mse"),
    [
        (95, 2, "0.02744", "3.2e-9", "6.81", 1, 1.242),
        (45222, 2, "1e-4", "1e-15", None, 2, 0.942),
        (45222, 24, "1e-4", "1e-15", None, 1, 6.17),
    ],
)
def test_where_the_secret_sample_is_better_it_is_planned(  # noqa: PLR0913, PLR0917 - a plan
    n: int, cells: int, epsilon: str, delta: str, cap: str | None, sample: int, root_mse: float
) -> None:
    found = answer(
        PlanQuestion(
            cells=cells,
            population=n,
            epsilon=Decimal(epsilon),
            delta=Decimal(delta),
            max_local_epsilon=None if cap is None else Decimal(cap),
        )
    )
    assert found.plan.sample == sample
    assert found.root_mse == pytest.approx(root_mse, rel=2e-3)
    assert found.advice == "Here the secret sample protects more than the secret order of everyone."
    assert found.plan.description.delta(float(epsilon)) <= float(delta)


def test_advice_is_true_of_the_plan() -> None:
    question = PlanQuestion(cells=24, population=ADULT, epsilon=Decimal(1))
    assert "least expected error" in answer(question).advice
    assert "everyone is best" in answer(replace(question, delta=Decimal("1e-6"))).advice
    assert "asked for" in answer(replace(question, sample=100)).advice
    assert "everyone is best here" in answer(replace(question, epsilon=Decimal(40))).advice


def test_plans_warn_of_few_rows_and_of_a_large_delta() -> None:
    question = PlanQuestion(cells=200, population=ADULT, epsilon=Decimal(1), sample=999)
    (warning,) = answer(question).plan.warnings
    assert warning.startswith(
        f"200 cells take 1,000 sampled rows for five each, and at most 999 are sampled. {FEW_ROWS}"
    )
    assert answer(replace(question, sample=1000)).plan.warnings == ()
    assert "not below 1/n" in answer(replace(question, sample=200, delta=Decimal("1e-4"))).plan.warnings[0]


PURE = PlanQuestion(cells=24, population=45222, epsilon=Decimal(1), error=0.02)
ORDER = replace(PURE, delta=Decimal("1e-6"), error=0.0015)
SMALL = PlanQuestion(cells=4, population=400, epsilon=Decimal(2), error=0.05)


@pytest.mark.parametrize("question", [PURE, ORDER, SMALL, replace(SMALL, sample=100, error=0.2)])
def test_an_answer_reaches_the_error_and_the_number_before_it_does_not(question: PlanQuestion) -> None:
    epsilon = answer(replace(question, epsilon=None)).plan.epsilon
    assert [_reaches(question, epsilon=e) for e in (epsilon, _before(epsilon, 3))] == [True, False]
    people = answer(replace(question, population=None)).plan.population
    fewer = people - 1 if people <= 1000 else int(_before(Decimal(people), 3))
    assert [_reaches(question, population=n) for n in (people, fewer)] == [True, False]
    found = answer(replace(question, cells=None))
    if found.feasible:
        cells = found.plan.mechanism.cells
        more = cells + 1 if cells < 1000 else int(cells + 10 ** (len(str(cells)) - 3))
        assert [_reaches(question, cells=k) for k in (cells, more)] == [True, False]


def test_the_least_epsilon_is_what_looking_at_every_number_finds() -> None:
    slow = next(
        e
        for e in (Decimal(mantissa).scaleb(exponent) for exponent in (-4, -3, -2) for mantissa in range(100, 1000))
        if _reaches(SMALL, epsilon=e)
    )
    assert answer(replace(SMALL, epsilon=None)).plan.epsilon == slow


def test_the_least_delta_for_an_error() -> None:
    question = replace(ORDER, error=0.00098, delta=None, asks_delta=True)
    found = answer(question)
    delta = found.plan.delta
    assert found.feasible
    assert delta is not None
    assert found.plan.description.delta(1.0) <= float(delta)
    deltas = (delta, _before(delta, 2))
    assert [_reaches(question, asks_delta=False, delta=d) for d in deltas] == [True, False]


def test_the_least_delta_that_is_tried_is_not_called_the_least() -> None:
    found = answer(replace(ORDER, error=0.01, delta=None, asks_delta=True))
    assert found.plan.delta == Decimal("1e-12")
    assert found.advice == "Delta 1e-12 reaches this error; it is the least that is tried."


def test_an_error_beside_all_the_others_is_compared() -> None:
    error = answer(ORDER).root_mse
    reached = answer(replace(ORDER, error=1.01 * error))
    assert (reached.feasible, reached.root_mse) == (True, error)
    assert reached.advice.startswith(f"This reaches the error of {1.01 * error:g}. ")
    missed = answer(replace(ORDER, error=0.99 * error))
    assert (missed.feasible, missed.root_mse) == (False, error)
    assert missed.advice.startswith("This error cannot be reached.")


def test_no_delta_is_asked_for_where_a_pure_epsilon_is_enough() -> None:
    found = answer(replace(PURE, error=0.04, asks_delta=True))
    assert (found.feasible, found.plan.delta) == (True, None)
    assert "no delta" in found.advice


def test_a_delta_of_one_over_the_respondents_is_never_advised() -> None:
    found = answer(replace(PURE, error=1e-5, asks_delta=True))
    assert not found.feasible
    assert found.plan.delta == Decimal("2.2e-5")
    assert Decimal("2.3e-5") * ADULT > 1
    assert found.plan.warnings == ()


def test_a_search_that_is_stopped_says_so() -> None:
    class TooLongError(Exception):
        pass

    steps = iter([None, None])

    def check() -> None:
        if next(steps, steps) is steps:
            raise TooLongError

    with pytest.raises(TooLongError):
        answer(replace(PURE, epsilon=None), check)


def _reaches(question: PlanQuestion, **changes: Any) -> bool:  # noqa: ANN401 - any field
    """Whether a release with other parameters reaches the error of a question; False where it cannot be planned."""
    assert question.error is not None
    try:
        return replace(question, **changes).plan().root_mse() <= question.error
    except InvalidInputError:
        return False


def _before(value: Decimal, digits: int) -> Decimal:
    """Return the number with so many significant digits before one of them."""
    step = Decimal(1).scaleb(value.adjusted() - digits + 1)
    before = value - step
    return before if before.adjusted() == value.adjusted() else value - step / 10


def test_what_would_make_it_possible_is_true() -> None:
    found = answer(PlanQuestion(cells=24, population=ADULT, epsilon=Decimal("0.1"), error=0.02))
    assert not found.feasible
    assert "respondents" in found.advice
    assert "--delta" in found.advice
    people = int(found.advice.split("with: ")[1].split()[0])
    assert answer(PlanQuestion(cells=24, population=people, epsilon=Decimal("0.1"), error=0.02)).feasible
    capped = PlanQuestion(
        cells=24, population=ADULT, epsilon=Decimal(1), delta=Decimal("1e-6"), error=0.001, max_local_epsilon=Decimal(1)
    )
    assert "higher cap" in answer(capped).advice


def test_a_table_that_is_not_uniform_is_easier() -> None:
    flat = answer(PlanQuestion(cells=24, population=1000, epsilon=Decimal(1)))
    peaked = answer(PlanQuestion(cells=24, population=1000, epsilon=Decimal(1), sum_of_squares=Fraction(8, 10)))
    assert peaked.root_mse < flat.root_mse


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (PlanQuestion(cells=24, population=None, epsilon=None, error=0.02), "enter the population and an epsilon"),
        (PlanQuestion(cells=24, population=100, epsilon=None), "an error to aim at"),
        (PlanQuestion(cells=None, population=100, epsilon=Decimal(1)), "an error to aim at"),
        (PlanQuestion(cells=None, population=100, epsilon=None, error=0.02), "but one"),
        (PlanQuestion(cells=24, population=100, epsilon=None, error=0.02, asks_delta=True), "but one"),
        (PlanQuestion(cells=24, population=100, epsilon=Decimal(1), error=2.0), "between 0 and 1"),
        (PlanQuestion(cells=24, population=100, epsilon=Decimal(1), sample=101), "1 to n = 100"),
    ],
)
def test_questions_without_an_answer_are_refused(question: PlanQuestion, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        answer(question)
