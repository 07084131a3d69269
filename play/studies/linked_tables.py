"""The linked census: fourteen attributes of Adult, seven a curator; its study file, its tables and the truth.

people.parquet holds all 48,842 people of the data set, whom both curators hold, with their ages, incomes and hours in
public bins; adult_extract.py makes it. Some more people are in the table of bob alone.

A bootstrap of 44,000 of its rows differs from all of them by a total variation of .0096 in the mean over the 91 pairs
of attributes, and of .0199 over the 364 triples: what another sample of the same people would differ by.
"""

import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veiltab.common.study.coding.rules import AttributeRule
from veiltab.common.study.file import load_study
from veiltab.common.study.toml_text import toml_text
from veiltab.play.studies.registers import write_registers
from veiltab.play.studies.templates import place_parties, set_budget

_FOLDER = Path(__file__).parent / "adult"

STUDY_FILE = _FOLDER / "linked.toml"
"""The study file in the package."""

ATTRIBUTION = _FOLDER / "ATTRIBUTION.md"
"""Where the rows come from, under which licence, and what was changed."""

POPULATION = 48_842
"""People whom both curators hold: all of Adult."""

EXTRA_PEOPLE: Mapping[str, int] = {"bob": 900}
"""People whom one curator holds alone; alice is the hub."""


def linked_study(
    *, endpoints: Mapping[str, str] | None = None, epsilon: Decimal | None = None, delta: Decimal | None = None
) -> bytes:
    """Return a study file for the linked census.

    Args:
        endpoints: party name -> host:port, where it differs from the study file in the package.
        epsilon: budget of each curator (nats), if it differs.
        delta: delta of that budget, if it differs.
    """
    study = tomllib.loads(STUDY_FILE.read_text("utf-8"), parse_float=Decimal)
    place_parties(study, endpoints or {})
    set_budget(study, epsilon, delta)
    return toml_text(study).encode()


def write_tables(folder: Path, size: int = POPULATION) -> dict[str, Path]:
    """Write one CSV file a curator, `<curator>.csv`, with an id column and its seven attributes.

    Args:
        size: so many people that both curators hold, the first of the data set.

    Returns:
        Curator -> its file.
    """
    owners = {rule.name: rule.owner for rule in load_study(STUDY_FILE).attributes}
    whole = rows(owners)
    return write_registers(folder, owners, whole[:size], whole, EXTRA_PEOPLE)


def rows(names: Iterable[str]) -> list[dict[str, str]]:
    """Return attribute -> raw value, for each person of the data set."""
    columns = {name: np.array(people()[name][0])[people()[name][1]].tolist() for name in names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@lru_cache(maxsize=1)
def truth() -> NDArray[np.int64]:
    """Return the symbols of the people whom both curators hold.

    Returns:
        int64, shape (48842, 14), read-only: a row a person in the order of UCI's files, a column an attribute in study
        order; category `study.attributes[j].attribute.categories[symbol]`.
    """
    every: NDArray[np.int64] = np.column_stack(symbols(load_study(STUDY_FILE).attributes))
    every.setflags(write=False)
    return every


def symbols(rules: Iterable[AttributeRule]) -> list[NDArray[np.int64]]:
    """Return the symbols of all people of the data set, an array an attribute."""
    return [
        np.array([rule.coding.code(value) for value in people()[rule.name][0]], np.int64)[people()[rule.name][1]]
        for rule in rules
    ]


@lru_cache(maxsize=1)
def people() -> dict[str, tuple[list[str], NDArray[np.int32]]]:
    """Return attribute -> its different raw values, and for each person the place of theirs among them."""
    table = pq.read_table(_FOLDER / "people.parquet").combine_chunks()
    return {
        name: (column.chunk(0).dictionary.to_pylist(), column.chunk(0).indices.to_numpy())
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
