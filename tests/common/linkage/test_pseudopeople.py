"""How many people of pseudopeople's sample are linked: a made census with registers of social security and of taxes.

The package (BSD) has a sample of a made population and makes errors in it as they occur in such registers: `pip install
pseudopeople==1.3.1` into any folder on PYTHONPATH. Several rows of one person in a register are reduced to the first.
"""

import csv
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.common.linkage.linked_registers import Linked, linked_tables
from tests.common.linkage.table_guesses import most_found
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import FieldKind, default_ladder, ladder_of

Tables = Mapping[str, Sequence[Mapping[str, str]]]

MAKE = """
import sys
import pseudopeople
for name in ("decennial_census", "social_security", "taxes_w2_and_1099", "taxes_1040"):
    made = getattr(pseudopeople, "generate_" + name)(year=2020, seed=1)
    made.drop_duplicates("simulant_id").to_csv(sys.argv[1] + "/" + name + ".csv", index=False)
"""
USUAL = {name: FieldKind(name) for name in ("given", "family", "birth", "sex")}
NAMES = {"given": "first_name", "family": "last_name"}
WITH_MIDDLE_NAME = (
    *default_ladder(USUAL, 2),
    "given family middle:1 birth:year birth:month",
    "given family middle:1 birth:year birth:day",
    "given family middle:1 birth:month birth:day",
    "family middle:1 birth sex",
)
WITHOUT_BIRTH = (
    "given family middle house street",
    "given family middle street",
    "given family house street",
    "given~ family middle street",
    "family~ given middle street",
    "street~ given family middle",
    "given~ family house street",
    "family~ given house street",
)
"""Tax registers have no date of birth, and the sample has one postcode."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("pseudopeople") is None, reason="the population is in the package pseudopeople"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("pseudopeople")
    subprocess.run([sys.executable, "-c", MAKE, folder], check=True, capture_output=True)
    return {path.stem: read(path) for path in folder.iterdir()}


def read(path: Path) -> Sequence[Mapping[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def to_social_security(tables: Tables, ladder: Sequence[str]) -> Linked:
    """The hub is social security: it writes dates as YYYYMMDD, and middle names in full."""
    both = tables["social_security"], tables["decennial_census"]
    columns = {**NAMES, "birth": "date_of_birth", "sex": "sex"}
    return link(both, ladder, [{**columns, "middle": "middle_name"}, {**columns, "middle": "middle_initial"}])


def to_census(tables: Tables, taxes: str) -> Linked:
    """The hub is the census."""
    home = {**NAMES, "middle": "middle_initial", "house": "street_number", "street": "street_name"}
    mail = {name: f"mailing_address_{column}" if "street" in column else column for name, column in home.items()}
    return link((tables["decennial_census"], tables[taxes]), WITHOUT_BIRTH, [home, mail])


def link(
    both: tuple[Sequence[Mapping[str, str]], ...], ladder: Sequence[str], columns: Sequence[Mapping[str, str]]
) -> Linked:
    kinds = [(name, USUAL.get(name, FieldKind.TEXT)) for name in columns[0]]
    return linked_tables(
        IdentityRule(fields=tuple(kinds), hub="hub", ladder=ladder_of(ladder)),
        [
            [[one[column] for one in rows] for column in named.values()]
            for rows, named in zip(both, columns, strict=True)
        ],
        [[int(one["simulant_id"].removeprefix("0_")) for one in rows] for rows in both],
        ("ymd", "mdy"),
    )


@pytest.mark.parametrize(("deletions", "least"), [(0, 0.83), (2, 0.835)])
def test_default_ladder_without_postcode(tables: Tables, deletions: int, least: float) -> None:
    recall, precision = to_social_security(tables, default_ladder(USUAL, deletions)).found()
    assert least <= recall < 0.85
    assert precision >= 0.9995


def test_middle_names_find_people_with_wrong_dates(tables: Tables) -> None:
    one = to_social_security(tables, WITH_MIDDLE_NAME)
    recall, precision = one.found()
    assert 0.88 <= recall < 0.89
    assert precision >= 0.9995
    worst = {step.name: most_found(step.name, one.hub, {}) for step in one.run if not step.deletion}
    assert len(worst) == 9
    assert max(worst.values()) < 0.015, worst
    assert most_found("given middle:1 birth sex", one.hub, {}) > 0.015


@pytest.mark.parametrize(("taxes", "least"), [("taxes_w2_and_1099", 0.78), ("taxes_1040", 0.77)])
def test_names_and_addresses_find_tax_payers_without_dates(tables: Tables, taxes: str, least: float) -> None:
    one = to_census(tables, taxes)
    recall, precision = one.found()
    assert least <= recall < 0.80
    assert precision >= 0.999
    worst = {step.name: most_found(step.name, one.hub, {}) for step in one.run}
    assert len(worst) == 8
    assert max(worst.values()) < 0.015, worst
    assert most_found("given family street", one.hub, {}) > 0.015
