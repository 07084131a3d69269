"""What every engine promises, shown on the one that is easiest to read."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.common.tasks.samples import Square
from veiltab.common.errors import UnavailableError
from veiltab.common.tasks.engine import InProcess, Results, in_order


def test_each_result_comes_with_the_number_of_its_task() -> None:
    assert list(InProcess().perform(Square(base=base) for base in (5, 2, 7))) == [(0, 25), (1, 4), (2, 49)]


def test_a_task_is_taken_when_its_turn_comes() -> None:
    taken = 0

    def tasks() -> Iterator[Square]:
        nonlocal taken
        for base in range(100_000):
            taken += 1
            yield Square(base=base)

    results = in_order(InProcess().perform(tasks()))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert taken == 3


@given(st.permutations(range(8)))
def test_results_come_into_the_order_of_their_tasks(order: list[int]) -> None:
    def ready() -> Results[str]:
        yield from ((number, str(number)) for number in order)

    assert list(in_order(ready())) == list("01234567")


def test_closing_the_ordered_results_closes_the_engines() -> None:
    ended = False

    def ready() -> Results[int]:
        nonlocal ended
        try:
            yield 0, 0
            yield 1, 1
        finally:
            ended = True

    of_engine = ready()  # kept, or it would be closed when nobody has it
    results = in_order(of_engine)
    next(results)
    results.close()
    assert ended


def test_an_error_of_a_task_comes_after_the_results_before_it() -> None:
    @dataclass(frozen=True)
    class Failing:
        number: int

        def perform(self) -> int:
            return 1 // (2 - self.number)

    results = in_order(InProcess().perform(Failing(number) for number in range(4)))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_engine_that_is_closed_goes_no_further() -> None:
    engine = InProcess()
    results = engine.perform(Square(base=base) for base in range(5))
    assert next(results) == (0, 0)
    engine.close()
    with pytest.raises(UnavailableError, match="ended in the middle"):
        next(results)
