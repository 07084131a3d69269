"""The small study of these tests: people with a known truth, their tables, and the study file."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.worlds.studies import APPROVE_ALL

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "region": ("north", "south", "west"),
    "income": ("low", "middle", "high"),
    "smoker": ("yes", "no"),
    "employed": ("in-work", "out-of-work"),
    "health": ("good", "poor"),
    "faith": ("believer", "sceptic"),
}
"""Attribute -> its categories, in study order."""

TWO: Mapping[str, str] = {
    "region": "alice",
    "income": "bob",
    "smoker": "alice",
    "employed": "bob",
    "health": "bob",
    "faith": "bob",
}
"""Attribute -> owner, with two curators. Bob holds requests for health for a person, and denies faith to everyone."""

THREE: Mapping[str, str] = {**TWO, "employed": "carol"}
"""Attribute -> owner, with three curators."""

FREE = ("region", "income", "smoker", "employed")
"""The attributes that the policies approve: 36 cells."""

RESEARCHERS = ("rosa", "rita")
ANALYSTS: Mapping[str, str] = {"ana": "rosa", "ari": "rita"}
"""Analyst -> its researcher."""

SERVER = "cloud"


@dataclass(frozen=True, kw_only=True)
class People:
    """Respondents: an id each, and a symbol each an attribute."""

    ids: tuple[str, ...]
    symbols: Mapping[str, NDArray[np.int64]]

    def counts(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the true counts of the cells, in C order of some attributes in study order."""
        shape = tuple(len(CATEGORIES[name]) for name in names)
        cells = np.ravel_multi_index([self.symbols[name] for name in names], shape)
        counts: NDArray[np.int64] = np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64)
        return counts


def made_people(count: int, seed: int, prefix: str = "villager") -> People:
    """Return people whose attributes depend on one another, with ids that no other text holds."""
    rng = np.random.default_rng(seed)
    region = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    income = (region + rng.choice(3, count, p=[0.6, 0.3, 0.1])) % 3
    symbols = {"region": region, "income": income}
    for number, name in enumerate(("smoker", "employed", "health", "faith")):
        symbols[name] = (rng.random(count) < 0.25 + 0.2 * ((region + number) % 3)).astype(np.int64)
    ids = tuple(f"{prefix}-{number:06d}@hill" for number in rng.permutation(count))
    return People(ids=ids, symbols={name: values.astype(np.int64) for name, values in symbols.items()})


def write_table(path: Path, people: Sequence[People], names: Sequence[str], seed: int) -> Path:
    """Write some attributes of some people, in an order of their own."""
    rows = [
        (person, *(CATEGORIES[name][group.symbols[name][place]] for name in names))
        for group in people
        for place, person in enumerate(group.ids)
    ]
    order = np.random.default_rng(seed).permutation(len(rows))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        writer.writerows(rows[place] for place in order)
    return path


def write_tables(folder: Path, people: People, owners: Mapping[str, str], *, complete: bool = True) -> dict[str, Path]:
    """Write every curator's table: the common people, and some whom it has alone; the hub only if none is complete."""
    folder.mkdir(parents=True)
    tables = {}
    for seed, curator in enumerate(sorted(set(owners.values())), start=1):
        alone = made_people(50, seed, prefix=f"{curator}-alone")
        names = [name for name, owner in owners.items() if owner == curator]
        everybody = [people] if curator == "alice" and complete else [people, alone]
        tables[curator] = write_table(folder / f"{curator}.csv", everybody, names, seed)
    return tables


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a study file says beside its parties and attributes."""

    minimum_population: int = 50
    maximum_cells: int = 100
    budget: str = "1000"
    alignment: str = "tokens"
    left_out: str = "local"
    complete: bool = True


def study_file(owners: Mapping[str, str], endpoints: Mapping[str, str], rules: Rules) -> str:
    parts = [
        '[study]\nid = "village"\ntitle = "A village"\nhub = "alice"',
        f"minimum_population = {rules.minimum_population}\nmaximum_cells = {rules.maximum_cells}",
        f'alignment = "{rules.alignment}"\nleft_out = "{rules.left_out}"',
        f"[budget]\nepsilon = {rules.budget}",
        f'[server]\nname = "{SERVER}"\nendpoint = "{endpoints[SERVER]}"',
    ]
    parts += [
        f'[[curator]]\nname = "{name}"\nendpoint = "{endpoints[name]}"\nid_columns = ["id"]'
        + "\ncomplete = true" * (name != "alice" and rules.complete)
        for name in sorted(set(owners.values()))
    ]
    parts += [f'[[researcher]]\nname = "{name}"\nendpoint = "{endpoints[name]}"' for name in RESEARCHERS]
    parts += [f'[[analyst]]\nname = "{name}"\nresearcher = "{researcher}"' for name, researcher in ANALYSTS.items()]
    parts += [
        f'[[attribute]]\nname = "{name}"\nowner = "{owner}"\ncategories = {list(CATEGORIES[name])}'
        for name, owner in owners.items()
    ]
    return "\n\n".join(parts) + "\n"


POLICIES: Mapping[str, str] = {
    "alice": APPROVE_ALL,
    "bob": 'others_share = 1\n\n[[rule]]\nattributes = ["health"]\ndecision = "hold"\n\n'
    '[[rule]]\nattributes = ["faith"]\ndecision = "deny"\n\n' + APPROVE_ALL,
    "carol": "others_share = 1\n\n" + APPROVE_ALL,
}
