from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.planning.workload_questions import WorkloadQuestion, answer_workload

PAIRS = WorkloadQuestion(
    tables=((2, 3), (2, 4), (3, 4), (2, 3, 4)), population=40_000, epsilon=Decimal(1), delta=Decimal("1e-6")
)


def typical(question: WorkloadQuestion, **changes: Any) -> float:  # noqa: ANN401 - any field
    asked = replace(question, pair_error=None, **changes)
    return asked.typical(asked.errors())


def test_the_error_of_a_typical_pair_leaves_larger_tables_out() -> None:
    found = answer_workload(PAIRS)
    assert found.feasible
    assert found.pair_error == sorted(found.errors[:3])[1]
    assert found.errors[3] > found.pair_error


@pytest.mark.parametrize(("part", "feasible"), [(0.9999, False), (1, True), (1.0001, True)])
def test_where_nothing_is_open_it_is_said_whether_the_error_is_reached(part: float, feasible: bool) -> None:  # noqa: FBT001 - a parameter
    found = answer_workload(replace(PAIRS, pair_error=part * typical(PAIRS)))
    assert found.feasible is feasible


@pytest.mark.parametrize("repeats", [0, 2])
@pytest.mark.parametrize(
    ("asked", "before"), [("epsilon", Decimal("0.999")), ("population", 39_900), ("delta", Decimal("9.9e-7"))]
)
def test_an_answer_reaches_the_error_and_the_number_before_it_does_not(
    asked: str, before: Decimal | int, repeats: int
) -> None:
    whole = replace(PAIRS, repeats=repeats)
    aim = 1.0001 * typical(whole) / 0.995
    open_one: dict[str, Any] = {asked: None}
    found = answer_workload(replace(whole, pair_error=aim, **open_one))
    assert found.feasible
    assert found.question == replace(whole, pair_error=aim)
    assert found.pair_error <= 0.995 * aim < typical(whole, **{asked: before})


@pytest.mark.parametrize("asked", ["epsilon", "population", "delta"])
def test_what_cannot_be_reached_is_said_with_the_closest(asked: str) -> None:
    open_one: dict[str, Any] = {asked: None}
    found = answer_workload(replace(PAIRS, pair_error=1e-9, **open_one))
    closest = {"epsilon": Decimal(20), "population": 10**9, "delta": Decimal("2.4e-5")}
    assert (found.feasible, getattr(found.question, asked)) == (False, closest[asked])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": None}, "all but one"),
        ({"epsilon": None, "delta": None, "pair_error": 0.1}, "all but one"),
        ({"epsilon": None, "pair_error": 1.0}, "between 0 and 1"),
        ({"epsilon": Decimal("1e-12"), "delta": Decimal("1e-12")}, "leave no price"),
        ({"sample": 50_000}, "1 to n"),
    ],
)
def test_questions_without_an_answer_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        answer_workload(replace(PAIRS, **changes))
