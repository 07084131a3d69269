"""The Adult study for two or three curators: its study file, its tables and the truth behind them.

The tables are made from the published counts of the 24 cells: 45,222 people whom every curator holds, and some more
whom one curator holds alone.
"""

import csv
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.study.toml_text import toml_text
from veiltab.play.studies.registers import write_registers
from veiltab.play.studies.templates import place_parties, set_budget

_FOLDER = Path(__file__).parent / "adult"

TWO_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "alice", "salary": "bob"}
"""Attribute -> owner, in study order, with two curators."""

THREE_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "carol", "salary": "bob"}
"""Attribute -> owner, in study order, with three curators."""

EXTRA_PEOPLE: Mapping[str, int] = {"alice": 1200, "bob": 900, "carol": 600}
"""People whom one curator holds alone."""


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
        curators: 2 (alice, bob) or 3 (alice, bob, carol).
        endpoints: party name -> host:port, where it differs from the study file in the package.
        epsilon: budget of each curator (nats), if it differs.
        delta: delta of that budget, if it is to have one.
        minimum_population: fewest common respondents of a release, if it differs.
        release: defaults of a release (sampling, pad), where they differ.
    """
    study = tomllib.loads((_FOLDER / "study.toml").read_text("utf-8"), parse_float=Decimal)
    if curators == 3:
        study["curator"].append({**study["curator"][1], "name": "carol", "endpoint": "localhost:7403"})
    owners = assignment(curators)
    for attribute in study["attribute"]:
        attribute["owner"] = owners[attribute["name"]]
    place_parties(study, endpoints or {})
    set_budget(study, epsilon, delta)
    if minimum_population is not None:
        study["study"]["minimum_population"] = minimum_population
    study["release"].update(release or {})
    return toml_text(study).encode()


def assignment(curators: int) -> Mapping[str, str]:
    """Return attribute -> owner for 2 or 3 curators."""
    return {2: TWO_CURATORS, 3: THREE_CURATORS}[curators]


def truth() -> NDArray[np.int64]:
    """Return the true counts of the people whom all curators hold: int64, shape (24,), in C order of the study."""
    return np.array([int(row["count"]) for row in _cells()], np.int64)


def write_tables(folder: Path, owners: Mapping[str, str] = TWO_CURATORS) -> dict[str, Path]:
    """Write one CSV file a curator, `<curator>.csv`, with an id column and the attributes it owns.

    Args:
        folder: an existing folder.
        owners: attribute -> owner.

    Returns:
        Curator -> its file.
    """
    cells = _cells()
    common = [cell for cell in cells for _ in range(int(cell["count"]))]
    return write_registers(folder, owners, common, cells, EXTRA_PEOPLE)


def _cells() -> list[dict[str, str]]:
    """Read the published counts, one row a cell in C order."""
    with (_FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
