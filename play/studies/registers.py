"""Tables of several curators about the same people, made for a demonstration.

Each curator's rows have an order of their own, some people are in the table of one spoke alone, and the last curator
spells ids carelessly, which normalisation corrects. The tables are the same every time; nothing here is secret.
"""

import csv
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Domain
from veiltab.common.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Person:
    """One respondent: an id and a raw value an attribute."""

    id: str
    values: Mapping[str, str]


def write_registers(
    folder: Path,
    owners: Mapping[str, str],
    common: Sequence[Mapping[str, str]],
    others: Sequence[Mapping[str, str]],
    alone: Mapping[str, int],
) -> dict[str, Path]:
    """Write one CSV file a curator, `<curator>.csv`, with an id column and the attributes it owns.

    Args:
        owners: attribute -> owner; its order is that of the columns.
        common: attribute -> raw value, for each person whom every curator holds.
        others: the same for people whom one curator holds alone; they take turns.
        alone: spoke -> how many people it holds alone; the hub holds nobody alone.

    Returns:
        Curator -> its file.
    """
    names = sorted(set(owners.values()))
    everybody = [_Person(id=_person_id(number), values=values) for number, values in enumerate(common)]
    paths = {name: folder / f"{name}.csv" for name in names}
    for place, name in enumerate(names):
        extra = _people_of_one(place, others, alone.get(name, 0))
        people = sorted([*everybody, *extra], key=lambda person: _shuffle_key(name, person))
        columns = [attribute for attribute, owner in owners.items() if owner == name]
        with paths[name].open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *columns])
            careless = name == names[-1]
            writer.writerows([_spelling(p.id, careless=careless), *(p.values[c] for c in columns)] for p in people)
    return paths


def among_present(domain: Domain, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of the cells of a domain in which nobody is absent, in C order."""
    slices = tuple(slice(attribute.size - attribute.has_absent) for attribute in domain.attributes)
    return counts.reshape(domain.shape)[slices].reshape(-1)


def _person_id(number: int) -> str:
    """Return an id that is unrelated to the values: a permutation of 0..9999999."""
    return f"P-{(number * 7_368_787 + 1_234_567) % 10_000_000:07d}"


def _people_of_one(place: int, others: Sequence[Mapping[str, str]], count: int) -> list[_Person]:
    """Return the people whom the curator at a place holds alone."""
    return [
        _Person(id=_person_id(1_000_000 * (place + 1) + number), values=others[number * 7 % len(others)])
        for number in range(count)
    ]


def _shuffle_key(curator: str, person: _Person) -> bytes:
    """Return a sort key that gives each curator a fixed order of its own."""
    return blake2b(person.id.encode(), digest_size=8, key=curator.encode()).digest()


def _spelling(person_id: str, *, careless: bool) -> str:
    """Return a spelling of an id; a careless curator misspells three in four."""
    spellings = (person_id, person_id.lower(), f" {person_id}", f"{person_id.lower()}  ")
    return spellings[int(person_id[-2:]) % 4 if careless else 0]
