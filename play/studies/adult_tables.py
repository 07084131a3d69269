"""The Adult study for two to eight curators: its study file, its tables and the truth behind them.

With two to four curators the tables are made from the published counts of the 24 cells: 45,222 people whom every
curator holds. Each further curator holds one more attribute, in two categories, of all 48,842 people of the data set.
Some more people are in the table of one curator alone, never of alice, who is the hub.
"""

import csv
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.play.studies import linked_tables
from veiltab.play.studies.registers import write_registers
from veiltab.play.studies.templates import place_parties, set_budget

_FOLDER = Path(__file__).parent / "adult"

NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")
"""Curators, as many as a demonstration starts."""

TWO_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "alice", "salary": "bob"}
"""Attribute -> owner, in study order, with two curators."""

THREE_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "carol", "salary": "bob"}
"""Attribute -> owner, in study order, with three curators."""

_BASE = tuple(TWO_CURATORS)

_FURTHER: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "age": ("under 40", ("15", "20", "25", "30", "35"), "40 and over"),
    "hours": ("up to 40", ("0", "10", "20", "30", "35", "40"), "more than 40"),
    "race": ("White", ("White",), "else"),
    "capital_gain": ("none", ("0",), "some"),
}
"""Attribute -> a category, its raw values, and the category of all others."""

EXTRA_PEOPLE: Mapping[str, int] = {"bob": 900} | dict.fromkeys(NAMES[2:], 600)
"""People whom one curator holds alone; alice is the hub."""


def adult_study(  # noqa: PLR0913 - one argument a thing that may differ
    *,
    curators: int = 2,
    endpoints: Mapping[str, str] | None = None,
    epsilon: Decimal | None = None,
    delta: Decimal | None = None,
    minimum_population: int | None = None,
    release: Mapping[str, str] | None = None,
) -> bytes:
    """Return a study file for Adult.

    Args:
        curators: 2 to 8, the first of NAMES.
        endpoints: party name -> host:port, where it differs from the study file in the package.
        epsilon: budget of each curator (nats), if it differs.
        delta: delta of that budget, if it is to have one.
        minimum_population: fewest rows of a release, if it differs.
        release: defaults of a release (sampling, pad), where they differ.
    """
    study = tomllib.loads((_FOLDER / "study.toml").read_text("utf-8"), parse_float=Decimal)
    for place, name in enumerate(NAMES[2:curators], start=7403):
        study["curator"].append({**study["curator"][1], "name": name, "endpoint": f"localhost:{place}"})
    owners = assignment(curators)
    for name in list(owners)[len(_BASE) :]:
        values, _ = linked_tables.people()[name]
        first, own, rest = _FURTHER[name]
        recode = {value: first if value in own else rest for value in values}
        study["attribute"].append({"name": name, "categories": [first, rest], "recode": recode})
    for attribute in study["attribute"]:
        attribute["owner"] = owners[attribute["name"]]
    place_parties(study, endpoints or {})
    set_budget(study, epsilon, delta)
    if minimum_population is not None:
        study["study"]["minimum_population"] = minimum_population
    study["release"].update(release or {})
    return toml_text(study).encode()


def assignment(curators: int) -> Mapping[str, str]:
    """Return attribute -> owner for 2 to 8 curators."""
    if curators <= 3:
        return {2: TWO_CURATORS, 3: THREE_CURATORS}[curators]
    return dict(zip((*_BASE, *_FURTHER), NAMES[:curators], strict=False))


def truth(curators: int = 2) -> NDArray[np.int64]:
    """Return the true counts of the people whom all curators hold: int64, one a cell in C order of the study."""
    if curators <= len(_BASE):
        return np.array([int(row["count"]) for row in _cells()], np.int64)
    rules = study_from_bytes(adult_study(curators=curators), "adult").attributes
    shape = [rule.attribute.size for rule in rules]
    cells = np.ravel_multi_index(linked_tables.symbols(rules), shape)
    return np.bincount(cells, minlength=prod(shape)).astype(np.int64)


def write_tables(folder: Path, owners: Mapping[str, str] = TWO_CURATORS) -> dict[str, Path]:
    """Write one CSV file a curator, `<curator>.csv`, with an id column and the attributes it owns.

    Args:
        owners: attribute -> owner.

    Returns:
        Curator -> its file.
    """
    if set(owners) <= set(_BASE):
        cells = _cells()
        common = [cell for cell in cells for _ in range(int(cell["count"]))]
        return write_registers(folder, owners, common, cells, EXTRA_PEOPLE)
    rows = linked_tables.rows(owners)
    return write_registers(folder, owners, rows, rows, EXTRA_PEOPLE)


def _cells() -> list[dict[str, str]]:
    """Read the published counts, one row a cell in C order."""
    with (_FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
