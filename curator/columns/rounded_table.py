"""The table of one draw: its columns of numbers rounded at random, afresh for each release and table.

Rounding comes before the sample, so all copies of a row have one symbol; see docs/numbers.md for what follows.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from veiltab.common.core.domain import symbol_dtype
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass
from veiltab.common.release.table_spec import Column
from veiltab.common.study.coding.grids import rounded
from veiltab.curator.alignment.intersection import AlignedTable


@dataclass(frozen=True, slots=True)
class RoundedTable(AlignedTable):
    """An aligned table with some columns in a folder of their own, which goes with this object."""

    names: frozenset[str]
    place: TemporaryDirectory[str]

    def column_file(self, attribute: str) -> Path:
        """Return the file of an attribute."""
        if attribute in self.names:
            return Path(self.place.name, f"{attribute}.npy")
        return AlignedTable.column_file(self, attribute)


def rounded_table(table: AlignedTable, numbers: Sequence[Column], folder: Path, prefix: str) -> AlignedTable:
    """Return the table with symbols in its columns of numbers, under coins that nobody can repeat.

    Args:
        folder: on whose disk rounded columns lie, in a folder whose name begins with the prefix.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = TemporaryDirectory(dir=folder, prefix=prefix)
    result = RoundedTable(table.folder, frozenset(column.attribute for column in numbers), place)
    for column in numbers:
        positions = table.column(column.attribute)
        path = result.column_file(column.attribute)
        symbols = np.lib.format.open_memmap(path, "w+", symbol_dtype(column.size), positions.shape)
        chunks = rounded(positions, column.size, CipherStream(os.urandom(32)))
        for rows, chunk in zip(row_slices(len(positions)), chunks, strict=True):
            symbols[rows] = chunk
        symbols.flush()
    return result
