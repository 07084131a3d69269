"""A study of registers without a common number: people with a known truth, written down with errors."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.curator.linking.registers import FIELDS as KINDS
from tests.curator.linking.registers import Person, identity, people, wanted_links, with_errors
from tests.protocol.village import CATEGORIES, RESEARCHERS, SERVER, People, Rules, study_file
from tests.protocol.world import World
from tests.worlds.studies import APPROVE_ALL, FIELDS
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.study.file import study_from_bytes
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.local.processes import LocalStudy, free_ports

OWNERS = {"region": "alice", "income": "bob", "employed": "carol"}
ASKED = ("region", "income")
IDENTITY = """
[identity]
fields = ["given", "family", "birth", "sex", "postcode"]
deletions = 2
"""
RULE = identity(keys=default_ladder(dict(KINDS), 2))


@dataclass(kw_only=True)
class Linked(World):
    """Registers as processes.

    Args:
        rows: curator -> its rows.
        symbols: curator -> symbols of its attribute.
    """

    rows: Mapping[str, Sequence[Person]] = field(default_factory=dict)
    symbols: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def links(self, spoke: str = "bob") -> dict[int, int]:
        """Return the links of the rule: rows of the hub and of a spoke."""
        return wanted_links(RULE, self.rows["alice"], self.rows[spoke])

    def truth(self) -> NDArray[np.int64]:
        """Return the counts of alice's and bob's attributes over linked rows."""
        links = self.links()
        pairs = [self.symbols[name][list(rows)] for name, rows in (("alice", links.keys()), ("bob", links.values()))]
        shape = tuple(len(CATEGORIES[name]) for name in ASKED)
        cells = np.ravel_multi_index(pairs, shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64)


def linked_world(folder: Path, alignment: str, curators: int = 2, common: int = 220, more: str = "") -> Linked:
    """Make registers of the same people, whom each but the hub writes down with errors, and of others.

    `more` are lines of the study's table [identity].
    """
    owners = dict(list(OWNERS.items())[:curators])
    shared, rows, symbols, tables = people(common, 1), {}, {}, {}
    tables_folder = folder / "tables"
    tables_folder.mkdir(parents=True)
    for seed, (attribute, curator) in enumerate(owners.items(), 2):
        chance = np.random.default_rng(seed)
        written = shared if curator == "alice" else with_errors(shared, seed)
        own = [*written, *people(common // 4, 10 + seed)]
        order = chance.permutation(len(own))
        rows[curator] = [own[place] for place in order]
        # Attributes depend on the person, so that a wrong link shows.
        base = np.array([sum(map(ord, one[2])) for one in [*shared, *own[common:]]])[order]
        symbols[curator] = (base + chance.choice(2, len(own), p=[0.8, 0.2])) % len(CATEGORIES[attribute])
        tables[curator] = _written(tables_folder / f"{curator}.csv", rows[curator], attribute, symbols[curator])
    names = [*tables, SERVER, *RESEARCHERS]
    endpoints = {name: f"localhost:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
    text = study_file(owners, endpoints, Rules(alignment=alignment))
    columns = ", ".join(f'{one} = "{one}"' for one in FIELDS)
    text = text.replace('id_columns = ["id"]', f"identity = {{ {columns} }}").replace("\ncomplete = true", "")
    (folder / "study.toml").write_text(text + IDENTITY + more, "utf-8")
    init_pki(study_from_bytes((folder / "study.toml").read_bytes(), "study.toml"), folder / "pki")
    policies = {}
    for name in tables:
        policies[name] = folder / f"policy-{name}.toml"
        policies[name].write_text("others_share = 1\n\n" + APPROVE_ALL, "utf-8")
    known = People(ids=tuple(one[1] for one in shared), symbols={})
    made = Linked(local=LocalStudy(folder=folder, tables=tables, policies=policies), people=known)
    made.rows, made.symbols = rows, symbols
    return made


def _written(path: Path, rows: Sequence[Person], attribute: str, symbols: NDArray[np.int64]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FIELDS, attribute])
        writer.writerows(
            (*row, CATEGORIES[attribute][symbol]) for row, symbol in zip(rows, symbols.tolist(), strict=True)
        )
    return path
