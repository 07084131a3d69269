"""The Adult study for two or three curators: its study file, its tables and the truth behind them.

The tables are made from the published counts of the 24 cells: 45,222 people whom every curator holds, and some more
whom one curator holds alone. Each curator's rows have an order of their own, and the last curator spells ids
carelessly, which normalisation corrects. The tables are the same every time; nothing here is secret.
"""

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.deploy.toml_text import toml_text

_FOLDER = Path(__file__).parent / "adult"

TWO_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "alice", "salary": "bob"}
"""Attribute -> owner, in study order, with two curators."""

THREE_CURATORS: Mapping[str, str] = {"education": "alice", "marital": "bob", "sex": "carol", "salary": "bob"}
"""Attribute -> owner, in study order, with three curators."""

EXTRA_PEOPLE: Mapping[str, int] = {"alice": 1200, "bob": 900, "carol": 600}
"""People whom one curator holds alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Person:
    """One respondent: an id and a category an attribute."""

    id: str
    values: Mapping[str, str]


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
    for party in (study["server"], *study["curator"], *study["researcher"]):
        party["endpoint"] = (endpoints or {}).get(party["name"], party["endpoint"])
    if epsilon is not None:
        study["budget"]["epsilon"] = epsilon
    if delta is not None:
        study["budget"]["delta"] = delta
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
    names = sorted(set(owners.values()))
    common = list(_people())
    paths = {name: folder / f"{name}.csv" for name in names}
    for place, name in enumerate(names):
        people = sorted([*common, *_extra_people(place, name)], key=lambda person: _shuffle_key(name, person))
        columns = [attribute for attribute, owner in owners.items() if owner == name]
        with paths[name].open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *columns])
            careless = name == names[-1]
            writer.writerows([_spelling(p.id, careless=careless), *(p.values[c] for c in columns)] for p in people)
    return paths


def _cells() -> list[dict[str, str]]:
    """Read the published counts, one row a cell in C order."""
    with (_FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _person_id(number: int) -> str:
    """Return an id that is unrelated to the cell: a permutation of 0..9999999."""
    return f"P-{(number * 7_368_787 + 1_234_567) % 10_000_000:07d}"


def _people() -> Iterator[_Person]:
    """Return the people whom all curators hold."""
    number = 0
    for cell in _cells():
        for _ in range(int(cell["count"])):
            yield _Person(id=_person_id(number), values=cell)
            number += 1


def _extra_people(place: int, curator: str) -> Iterator[_Person]:
    """Return the people whom one curator holds alone; the cells take turns."""
    cells = _cells()
    for number in range(EXTRA_PEOPLE[curator]):
        yield _Person(id=_person_id(1_000_000 * (place + 1) + number), values=cells[number * 7 % len(cells)])


def _shuffle_key(curator: str, person: _Person) -> bytes:
    """Return a sort key that gives each curator a fixed order of its own."""
    return blake2b(person.id.encode(), digest_size=8, key=curator.encode()).digest()


def _spelling(person_id: str, *, careless: bool) -> str:
    """Return a spelling of an id; a careless curator misspells three in four."""
    spellings = (person_id, person_id.lower(), f" {person_id}", f"{person_id.lower()}  ")
    return spellings[int(person_id[-2:]) % 4 if careless else 0]
