"""What the default ladders find in two made registers, and how well that is estimated without the truth."""

from dataclasses import replace
from functools import cache

import pytest

from tests.common.linkage.linked_registers import Linked, linked
from veiltab.play.registers.people import FIELDS, ErrorRates, made_registers


@cache
def usual(deletions: int = 0) -> Linked:
    return linked(made_registers(8_000, "a"), deletions=deletions)


def test_twelve_keys_find_most_people_and_link_hardly_anybody_wrongly() -> None:
    links = usual().links()
    wrong = usual().wrong(links)
    assert 1 - wrong / len(links) >= 0.9995
    assert (len(links) - wrong) / usual().registers.common() >= 0.965


def test_deletion_passes_find_more() -> None:
    links = usual(5).links()
    wrong = usual(5).wrong(links)
    assert 1 - wrong / len(links) >= 0.9995
    assert (len(links) - wrong) / usual(5).registers.common() >= 0.972


@pytest.mark.parametrize("seed", ["a", pytest.param("b", marks=pytest.mark.long)])
def test_precision_and_recall_are_estimated_without_the_truth(seed: str) -> None:
    one = usual() if seed == "a" else linked(made_registers(20_000, seed))
    precision, recall, true_precision, true_recall = one.estimates()
    assert abs(precision - true_precision) < 0.0005
    assert abs(recall - true_recall) < 0.02


@pytest.mark.long
def test_with_double_errors_too() -> None:
    one = linked(made_registers(20_000, "c", ErrorRates().times(2)))
    precision, recall, true_precision, true_recall = one.estimates()
    assert true_precision >= 0.9995
    assert 0.88 < true_recall < 0.92
    assert abs(precision - true_precision) < 0.002
    assert abs(recall - true_recall) < 0.02


@pytest.mark.parametrize(("without", "least"), [("sex", 0.94), ("postcode", 0.88)])
def test_ladders_without_a_field(without: str, least: float) -> None:
    one = linked(made_registers(8000, "d"), [name for name in FIELDS if name != without])
    links = one.links()
    wrong = one.wrong(links)
    assert wrong / len(links) < 0.002
    assert (len(links) - wrong) / one.registers.common() > least


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


def test_one_row_of_a_spoke_changes_one_link_in_real_passes_too() -> None:
    registers = made_registers(240, "g")
    rows = registers.spoke
    before = linked(registers, deletions=5).links()
    changed = {len(rows): 0, len(rows) + 1: 0}
    for place in range(0, 240, 30):
        one, other = rows[(7 * place + 100) % 240], rows[(place + 15) % 240]
        cut = place // 30 % len(FIELDS)
        mixed = [other[field] if field < cut else one[field] for field in range(len(FIELDS))]
        row = (mixed[0], mixed[1], mixed[2], mixed[3], mixed[4])
        for others in ([*rows, row], [*rows[:place], row, *rows[place + 1 :]]):
            after = linked(replace(registers, spoke=others), deletions=5).links()
            count = sum(before.get(one) != after.get(one) for one in before.keys() | after.keys())
            changed[len(others)] = max(changed[len(others)], count)
    assert changed[241] == 1
    assert changed[240] == 2
