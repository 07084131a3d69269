"""A tally or a design that exists is valid; what is impossible is refused by name."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.conftest import refuses
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.papers.biswas.krr_design import krr_design
from veiltab.researcher.frequency.tally import Tally

FACTS: dict[str, Any] = {
    "counts": np.array([[3, 1, 0], [0, 2, 5]]),
    "reports": np.array([4, 7]),
    "populations": (10, 7),
    "rates": (Fraction(1, 2), Fraction(1)),
    "p": Fraction(1, 2),
    "q": Fraction(1, 10),
}


def tally(**changes: Any) -> Tally:  # noqa: ANN401 - some are wrong on purpose
    return Tally(**(FACTS | changes))


def test_what_is_derived() -> None:
    found = tally()
    assert found.labels == ("1", "2", "3")
    assert found.strata == ("1", "2")
    assert found.values == 3
    assert found.design.population == 17
    assert found.design.mean_rate == Fraction(12, 17)
    assert not found.design.one_rate
    assert tally(rates=(Fraction(1, 3), Fraction(1, 3))).design.one_rate


def test_counts_cannot_be_changed_afterwards() -> None:
    counts = np.array([[3, 1, 0], [0, 2, 5]])
    found = tally(counts=counts)
    counts[0, 0] = 4
    assert found.counts[0, 0] == 3
    with pytest.raises(ValueError, match="read-only"):
        found.counts[0, 0] = 4


def test_supports_of_an_oracle_need_not_add_up_to_the_reports() -> None:
    assert tally(counts=np.array([[4, 4, 4], [0, 0, 0]])).counts.sum() == 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"populations": (3, 7)}, "stratum 1: 4 reports came from a population of 3 nodes"),
        ({"populations": (10, 6), "strata": ("young", "old")}, "stratum old: 7 reports came from a population of 6"),
        ({"populations": (0, 7)}, "a stratum has"),
        ({"populations": (10,)}, "one population and one rate"),
        ({"populations": (), "rates": ()}, "one population and one rate"),
        ({"rates": (Fraction(0), Fraction(1))}, "stratum 1: a rate must be above 0"),
        ({"rates": (Fraction(1), Fraction(3, 2))}, "stratum 2: a rate must be above 0"),
        ({"p": Fraction(1, 10)}, "p = q"),
        ({"p": Fraction(1, 20)}, "0 <= q < p <= 1"),
        ({"p": Fraction(11, 10)}, "0 <= q < p <= 1"),
        ({"q": Fraction(-1, 10)}, "0 <= q < p <= 1"),
        ({"counts": np.array([3, 1, 0])}, "do not have the shape"),
        ({"counts": np.zeros((2, 0), np.int64)}, "do not have the shape"),
        ({"counts": np.zeros((3, 3), np.int64)}, "do not have the shape"),
        ({"counts": np.zeros((2, 3))}, "a count, or a number of reports, is not a whole number"),
        ({"reports": np.array([4])}, "one number of reports each"),
        ({"labels": ("a", "b")}, "one label"),
        ({"strata": ("a",)}, "one name"),
    ],
)
def test_impossible_tallies_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tally(**changes)


@pytest.mark.parametrize("row", [[5, 0, 0], [-1, 0, 0]])
def test_counts_outside_the_reports_are_damage(row: list[int]) -> None:
    with refuses(IntegrityError, where="stratum 1"):
        tally(counts=np.array([row, [0, 2, 5]]))


def test_p_and_q_of_randomised_response_are_those_that_run() -> None:
    mechanism = GammaDiagonal(cells=5, replacement=3 * 2**61)
    design = krr_design([4], [Fraction(1)], mechanism)
    assert (design.p, design.q) == (Fraction(5, 8) + Fraction(3, 40), Fraction(3, 40))
    assert design.p / design.q == mechanism.gamma
    with pytest.raises(InvalidInputError, match="larger epsilon"):
        krr_design([4], [Fraction(1)], GammaDiagonal(cells=5, replacement=2**64))
