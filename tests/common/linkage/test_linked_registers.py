"""What the default ladders find in two made registers, and how well that is estimated without the truth."""

from dataclasses import replace
from functools import cache

import pytest

from tests.common.linkage.linked_registers import Linked, linked
from veiltab.play.registers.people import made_registers


@cache
def usual(deletions: int = 0) -> Linked:
    return linked(made_registers(8_000, "a"), deletions=deletions)


def test_twelve_keys_find_most_people_and_link_hardly_anybody_wrongly() -> None:
    links = usual().links()
    wrong = usual().wrong(links)
    assert 1 - wrong / len(links) >= 0.9995
    assert (len(links) - wrong) / usual().registers.common() >= 0.965


@pytest.mark.parametrize("seed", ["a", pytest.param("b", marks=pytest.mark.long)])
def test_precision_and_recall_are_estimated_without_the_truth(seed: str) -> None:
    one = usual() if seed == "a" else linked(made_registers(20_000, seed))
    precision, recall, true_precision, true_recall = one.estimates()
    assert abs(precision - true_precision) < 0.0005
    assert abs(recall - true_recall) < 0.02


@pytest.mark.long
def test_twins_are_most_of_the_wrong_links_and_are_foreseen() -> None:
    one = linked(made_registers(30_000, "e", overlap=0.5))
    links, people, others = one.links(), one.registers.hub_people, one.registers.spoke_people
    wrong = [(int(people[hub]), int(others[spoke])) for hub, spoke in links.items() if people[hub] != others[spoke]]
    twins = sum(int(one.registers.twins[person]) == other for person, other in wrong)
    assert len(wrong) >= 8
    assert twins >= len(wrong) / 2
    foreseen = 15_000 * (1 - len(links) / 30_000) * float(sum(d.share for d in one.decisions if d.does_run))
    assert len(wrong) / 2 <= foreseen <= 2 * len(wrong) + 5


def test_which_passes_run_is_the_hubs_alone() -> None:
    registers = made_registers(2000, "f")
    one = linked(registers)
    other = linked(replace(registers, spoke=[registers.hub[0]] * 2000))
    assert other.decisions == one.decisions
    assert len(other.links()) == 0 < len(one.links())
