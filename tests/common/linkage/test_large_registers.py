"""What the default ladder finds in registers of 200,000 rows, who is linked wrongly, what a spoke estimates of it."""

import pytest

from tests.common.linkage.linked_registers import Linked, linked
from veiltab.play.registers.people import made_registers

ROWS = 200_000

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=[0, 5])
def one(request: pytest.FixtureRequest) -> Linked:
    return linked(made_registers(ROWS, "a"), deletions=request.param)


def test_most_people_are_linked_and_hardly_anybody_wrongly(one: Linked) -> None:
    recall, precision = one.found()
    assert recall >= (0.975 if len(one.run) == 17 else 0.968)
    assert precision >= 0.9995


def test_estimates_are_close(one: Linked) -> None:
    wrong, estimate = one.estimated
    recall, precision = one.found()
    assert abs(wrong.precision.value - precision) < 0.0002
    assert abs(estimate.value - recall) < 0.01
