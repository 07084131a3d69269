"""Dummy tables are what a curator of the study could hold, and their truth is that of the people whom all have."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tests.curator.made_rows import ids_in
from tests.play.joined import joined
from tests.play.rehearsed_study import STUDY
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.coding.coding import Coding
from veiltab.common.study.file import Study, load_study, study_from_bytes
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.table.table_reading import load_table
from veiltab.play.studies.dummy_tables import MOST_PEOPLE, dummy_tables, raw_values
from veiltab.play.studies.linked_tables import STUDY_FILE

WAGES = study_from_bytes(STUDY, "study.toml")


def test_every_curator_can_use_its_table_as_it_is(tmp_path: Path) -> None:
    for study in (WAGES, load_study(STUDY_FILE)):
        paths = dummy_tables(study, 700).write(tmp_path)
        assert sorted(paths) == [curator.name for curator in study.curators]
        for name, path in paths.items():
            assert inspect_table(path, study, name).ok
            assert path.name == f"dummy-{name}.csv"


COMPLETE = study_from_bytes(STUDY.replace(b'org:7402"', b'org:7402"\ncomplete = true'), "study.toml")
"""The same study, in which everybody of alice is in the table of bob."""


@pytest.mark.parametrize("study", [WAGES, COMPLETE], ids=["absent", "complete"])
def test_the_truth_is_that_of_the_people_of_the_hub_whom_all_have(tmp_path: Path, study: Study) -> None:
    made = dummy_tables(study, 700)
    tables = {name: load_table(path, study, name) for name, path in made.write(tmp_path).items()}
    alice, bob = (set(ids_in(tables[name].respondents)) for name in ("alice", "bob"))
    assert len(alice) == len(made.respondents) < 771
    assert (not alice - bob, not tables["bob"].rows_dropped) == (study is COMPLETE,) * 2
    three = [place for place, rule in enumerate(study.attributes) if rule.name in {"wage", "school", "age"}]
    cells = np.ravel_multi_index(tuple(joined(study, tables)[:, three].T), (3, 4, 3))
    assert made.truth(["wage", "school", "age"]).tolist() == np.bincount(cells, minlength=36).tolist()
    assert made.truth(["school"]).sum() == len(alice)


def test_every_category_occurs_and_attributes_of_two_curators_depend_on_each_other() -> None:
    made = dummy_tables(WAGES, 2000)
    for rule in WAGES.attributes:
        assert (made.truth([rule.name]) > 0).all(), rule.name
    pair = made.truth(["age", "wage"]).reshape(4, 3)[:3]
    independent = np.outer(pair.sum(axis=1), pair.sum(axis=0)) / pair.sum()
    # Under independence this is a chi-squared variable of 4 degrees of freedom: above 60 once in 10^11 studies.
    assert ((pair - independent) ** 2 / independent).sum() > 60


def test_missing_values_follow_the_rule_of_each_attribute() -> None:
    made = dummy_tables(WAGES, 2000)
    assert set(made.values["alice", "school"]) == {"none", "some", "HS", "BA, or more", "", "NA", "?"}
    assert "" in made.values["bob", "wage"]
    assert set(made.values["bob", "children"]) == {"0", "1", "2", "3"}
    ages = made.values["alice", "Age in years"][: len(made.symbols)]
    counted = [raw for raw, symbols in zip(ages, made.symbols, strict=True) if (symbols >= 0).all()]
    assert made.truth(["is-old"])[2] == sum(raw in {"", "NA", "?"} for raw in counted) > 0


def test_two_attributes_of_one_column_take_values_that_both_know() -> None:
    fine = Coding(categories=("a", "b", "c"), recode=(("A", "a"),))
    coarse = Coding(categories=("x",), recode=(("a", "x"), ("b", "x")))
    assert raw_values([fine, coarse]) == [("a",), ("b",)]


def test_bins_are_drawn_at_their_edges_and_in_their_middle() -> None:
    bins = Coding(categories=("low", "high"), bins=(Decimal(0), Decimal(1), Decimal(4)), missing_values=())
    assert raw_values([bins]) == [("0", "0.5"), ("1", "4", "2.5")]


def test_the_tables_are_the_same_every_time_and_others_in_another_study(tmp_path: Path) -> None:
    first, again = dummy_tables(WAGES, 100), dummy_tables(WAGES, 100)
    other = dummy_tables(replace(WAGES, id="other"), 100)
    assert first.values == again.values != other.values
    (tmp_path / "again").mkdir()
    written, rewritten = first.write(tmp_path), again.write(tmp_path / "again")
    assert [path.read_bytes() for path in written.values()] == [path.read_bytes() for path in rewritten.values()]


@pytest.mark.parametrize("people", [0, MOST_PEOPLE + 1])
def test_a_population_that_cannot_be_is_refused(people: int) -> None:
    with pytest.raises(InvalidInputError, match="dummy people are not 1 to 1,000,000"):
        dummy_tables(WAGES, people)


def test_too_few_people_for_a_release_are_refused_with_a_number_that_is_enough() -> None:
    study = replace(WAGES, minimum_population=500)
    with pytest.raises(InvalidInputError, match=r"a release counts at least 500\. Give 635 or more") as refused:
        dummy_tables(study, 450)
    assert "--population: of 450 dummy people " in str(refused.value)
    assert len(dummy_tables(study, 635).respondents) >= 500


def test_a_column_that_is_an_id_and_an_attribute_is_refused() -> None:
    study = study_from_bytes(STUDY.replace(b'"person", "number"', b'"person", "wage"'), "study.toml")
    with pytest.raises(InvalidInputError, match="attribute wage: column 'wage' of bob is an id and an attribute"):
        dummy_tables(study, 100)


def test_a_person_is_at_one_of_the_curators_that_hold_an_attribute_together(tmp_path: Path) -> None:
    bob, wage = WAGES.curator("bob"), next(rule for rule in WAGES.attributes if rule.name == "wage")
    carol = replace(bob, name="carol", endpoint="localhost:7403")
    others = tuple(rule for rule in WAGES.attributes if rule is not wage)
    curators = (*WAGES.curators, carol)
    study = replace(WAGES, curators=curators, attributes=(*others, replace(wage, others=("carol",))))
    made = dummy_tables(study, 700)
    tables = {name: load_table(path, study, name) for name, path in made.write(tmp_path).items()}
    hub, north, south = (set(ids_in(tables[name].respondents)) for name in ("alice", "bob", "carol"))
    assert not north & south
    assert 600 < len(hub & (north | south)) < 700
    assert made.truth(["wage"]).sum() == len(hub & (north | south))
