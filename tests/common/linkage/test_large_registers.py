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


def test_most_wrong_links_are_twins_and_the_hub_foresees_them(one: Linked) -> None:
    links, people, others = one.links(), one.registers.hub_people, one.registers.spoke_people
    wrong = [(int(people[hub]), int(others[spoke])) for hub, spoke in links.items() if people[hub] != others[spoke]]
    assert 10 <= len(wrong) <= 2 * sum(int(one.registers.twins[person]) == other for person, other in wrong)
    foreseen = one.estimated[0].by_self_match
    assert len(wrong) / 2 <= foreseen <= 2 * len(wrong)
