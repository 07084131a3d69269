"""A study made from a user's tables, for a demonstration: one curator a table, categories as they occur.

A real study lists its categories beforehand, and which curators are complete: taken from the data, both reveal
something of them.
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.naming import attribute_name
from veiltab.common.study.toml_text import toml_text
from veiltab.curator.formats.columns.named_columns import NamedColumns, read_header
from veiltab.curator.formats.opening import open_table
from veiltab.play.studies.adult_tables import NAMES

_MOST_CATEGORIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTables:
    """A user's tables, and their study.

    Args:
        id_column: the column that all tables share.
        categories: attribute -> its categories, in order of the tables and their columns.
        owners: attribute -> curator.
        paths: curator -> table; the first is the hub.
        lacking: curators whose tables lack somebody of the hub's.
    """

    id_column: str
    categories: dict[str, tuple[str, ...]]
    owners: dict[str, str]
    paths: dict[str, Path]
    lacking: frozenset[str]

    def truth(self) -> NDArray[np.int64]:
        """Return the counts of the cells of the hub's people, in C order of the attributes of the study."""
        whole, *others = (_read(path) for path in self.paths.values())
        for table in others:
            whole = whole.join(table, self.id_column)
        cells, index = 1, np.zeros(whole.num_rows, np.int64)
        for name, values in self.categories.items():
            symbols = pc.fill_null(pc.index_in(whole[name], pa.array(values)), len(values))
            size = len(values) + (self.owners[name] in self.lacking)
            cells, index = cells * size, index * size + symbols.to_numpy().astype(np.int64)
        counts: NDArray[np.int64] = np.bincount(index, minlength=cells).astype(np.int64)
        return counts


def own_tables(files: Sequence[Path]) -> OwnTables:
    """Read two or more tables that have one column in common, the id.

    Raises:
        InvalidInputError: a table cannot be read, they share no column or several, or a column has too many different
            values.
    """
    if not 2 <= len(files) <= len(NAMES):
        raise InvalidInputError(f"{len(files)} tables were given, not 2 to {len(NAMES)}", where="--table")
    tables = {name: _read(path) for name, path in zip(NAMES, files, strict=False)}
    common = set.intersection(*(set(table.column_names) for table in tables.values()))
    if len(common) != 1:
        raise InvalidInputError(
            "the tables must share exactly one column, the id", where="--table", remedy=f"They share: {sorted(common)}."
        )
    (id_column,) = common
    categories: dict[str, tuple[str, ...]] = {}
    owners: dict[str, str] = {}
    for name, table in tables.items():
        for column in table.column_names:
            if column == id_column:
                continue
            if column in categories:
                raise InvalidInputError(f"two tables have a column {column!r}", where="--table")
            categories[column] = _categories(table[column], column)
            owners[column] = name
    if not categories:
        raise InvalidInputError("the tables have no column but the id", where="--table")
    people = next(iter(tables.values()))[id_column]
    lacking = frozenset(
        name for name, table in tables.items() if not pc.all(pc.is_in(people, table[id_column])).as_py()
    )
    paths = dict(zip(NAMES, files, strict=False))
    return OwnTables(id_column=id_column, categories=categories, owners=owners, paths=paths, lacking=lacking)


def _categories(column: pa.ChunkedArray, name: str) -> tuple[str, ...]:
    values = tuple(sorted(pc.unique(column).to_pylist()))
    if not 2 <= len(values) <= _MOST_CATEGORIES or "" in values:
        raise InvalidInputError(
            f"column {name!r} has {len(values)} different values, or empty ones",
            where="--table",
            remedy=f"The demonstration takes 2 to {_MOST_CATEGORIES}; a study file recodes, bins and drops.",
        )
    return values


def _read(path: Path) -> pa.Table:
    source = open_table(path)
    names = list(read_header(source))
    batches = [batch.coded for batch in NamedColumns(source, (), names).batches()]
    columns = {
        name: pa.chunked_array([batch[name].dictionary_decode() for batch in batches], pa.string()) for name in names
    }
    return pa.table({name: pc.utf8_trim_whitespace(pc.fill_null(column, "")) for name, column in columns.items()})


def study_text(tables: OwnTables, endpoints: dict[str, str], budget: str, delta: str | None = None) -> str:
    """Return the study file of a user's tables."""
    limits = {"epsilon": budget} if delta is None else {"epsilon": budget, "delta": delta}
    hub = next(iter(tables.paths))
    return toml_text(
        {
            "study": {
                "id": "demo",
                "title": "Your tables",
                "hub": hub,
                "minimum_population": 2,
                "maximum_cells": 4194304,
            },
            "budget": {name: Decimal(limit) for name, limit in limits.items()},
            "server": {"name": "cloud", "endpoint": endpoints["cloud"]},
            "curator": [
                {"name": name, "endpoint": endpoints[name], "id_columns": [tables.id_column], "normalise": ["strip"]}
                | ({} if name == hub or name in tables.lacking else {"complete": True})
                for name in tables.paths
            ],
            "researcher": [{"name": name, "endpoint": endpoints[name]} for name in ("rosa", "rita")],
            "attribute": [
                {
                    "name": attribute_name(column),
                    "owner": tables.owners[column],
                    "column": column,
                    "categories": list(values),
                    "missing_values": [],
                }
                for column, values in tables.categories.items()
            ],
        }
    )


def first_rows(path: Path) -> list[str]:
    """Return the first rows of a table, as text."""
    source = open_table(path)
    names = list(read_header(source))
    batch = next(NamedColumns(source, (), names).batches())
    return [",".join(batch.coded[name][row].as_py() or "" for name in names) for row in range(min(3, batch.rows))]
