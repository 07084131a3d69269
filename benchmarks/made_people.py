"""People unlike Adult's, made: few attributes with strong dependences of three, and many attributes of a tree."""

from decimal import Decimal

import numpy as np

from veiltab.common.study.file import Study, study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.researcher.model.row_drawing import Rows

PEOPLE = 44_000

DENSE = (2, 3, 2, 4, 2, 3, 6, 2)
"""Sizes of eight attributes with two hidden causes; the last is the parity of two others, but for a tenth."""

WIDE = tuple(2 + number % 5 for number in range(30))
"""Sizes of thirty attributes, each with two parents among the five before it."""


def dense(seed: int) -> tuple[Study, Rows]:
    """Return a study and its people."""
    rng, law = np.random.default_rng(seed), np.random.default_rng(0)
    causes = rng.integers(0, 3, (PEOPLE, 2))
    columns = [_drawn(rng, law.dirichlet(np.full(size, 0.5), (3, 3))[causes[:, 0], causes[:, 1]]) for size in DENSE]
    flipped = rng.random(PEOPLE) < 0.1
    columns[-1] = (columns[0] + columns[2] + flipped) % 2
    return _study(DENSE), np.stack(columns, axis=1)


def wide(seed: int) -> tuple[Study, Rows]:
    """Return a study and its people."""
    rng, law = np.random.default_rng(seed), np.random.default_rng(1)
    columns: list[np.ndarray] = []
    for number, size in enumerate(WIDE):
        if number < 2:
            columns.append(rng.integers(0, size, PEOPLE))
            continue
        one, two = number - 1, int(law.integers(max(0, number - 5), number - 1))
        laws = law.dirichlet(np.full(size, 0.7), (WIDE[one], WIDE[two]))
        columns.append(_drawn(rng, laws[columns[one], columns[two]]))
    return _study(WIDE), np.stack(columns, axis=1)


def _drawn(rng: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    """Return one symbol a person, by the person's chances of shape (people, size)."""
    symbols: np.ndarray = (rng.random(len(chances))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    return symbols.clip(0, chances.shape[1] - 1)


def _study(sizes: tuple[int, ...]) -> Study:
    text = {
        "study": {
            "id": "made",
            "title": "made people",
            "hub": "alice",
            "minimum_population": 100,
            "maximum_tables": 500,
        },
        "budget": {"epsilon": 10, "delta": Decimal("1e-5")},
        "server": {"name": "cloud", "endpoint": "localhost:1"},
        "curator": [
            {"name": "alice", "endpoint": "localhost:2", "id_columns": ["id"]},
            {"name": "bob", "endpoint": "localhost:3", "id_columns": ["id"], "complete": True},
        ],
        "researcher": [{"name": "rosa", "endpoint": "localhost:4"}],
        "attribute": [
            {"name": f"a{place}", "owner": ("alice", "bob")[place % 2], "categories": [str(one) for one in range(size)]}
            for place, size in enumerate(sizes)
        ],
    }
    return study_from_bytes(toml_text(text).encode(), "made")
