"""Draws the noisy tables of a release anew, from a model that stands for the true ones: a parametric bootstrap.

The respondents of a table are n times its fractions, made whole: no sampling of people is added. m of them are drawn as
the release drew, and the mechanism of the release is applied to each by the kernel that the server runs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Domain, Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT, GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import sample_indices
from veiltab.common.core.tabulation import tabulate
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.model.fitting import Model


def drawn_anew(domain: Domain, tables: Sequence[TableResult], model: Model, key: bytes) -> tuple[TableResult, ...]:
    """Return the tables of a release as they would have come if the model were the truth.

    Args:
        model: that stands for the respondents.
        key: 32 bytes; the same key draws the same tables.
    """
    return tuple(
        replace(
            table,
            counts=redrawn(
                table.with_links(model.marginal(table.names), key),
                domain.subset(table.names),
                table.design,
                derive(key, f"table {number}"),
            ),
        )
        for number, table in enumerate(tables)
    )


def redrawn(fractions: NDArray[np.float64], domain: Domain, design: ReleaseDesign, key: bytes) -> NDArray[np.int64]:
    """Return the counts of the noisy rows of one table, drawn anew.

    Args:
        fractions: of the respondents, shape (K,); none negative, and they sum to 1.
        domain: the attributes of the table.
        design: as the table was released.
        key: 32 bytes; the same key draws the same counts.

    Returns:
        Shape (K,), summing to m.
    """
    cells = np.repeat(np.arange(domain.cells), whole(fractions, design.population, key))
    if design.sample < design.population:
        cells = cells[sample_indices(design.population, design.sample, derive(key, "sample"))]
    columns = list[Symbols]()
    for symbols, size in zip(np.unravel_index(cells, domain.shape), domain.shape, strict=True):
        column: Symbols = np.empty(len(symbols), symbol_dtype(size))
        column[:] = symbols
        columns.append(column)
    mechanism = GammaDiagonal(cells=domain.cells, replacement=round((1 - design.mechanism.retention) * UNIT))
    perturb(columns, domain.shape, mechanism, CipherStream(key), columns)
    counts = np.zeros(domain.cells, np.int64)
    tabulate(columns, domain.shape, counts)
    return counts


def whole(fractions: NDArray[np.float64], rows: int, key: bytes) -> NDArray[np.int64]:
    """Return whole numbers of rows: each is its fraction of `rows` on average, and less than one row from it.

    The running total is rounded, at a place between whole numbers that the key draws: no cell is favoured.
    """
    place = int.from_bytes(derive(key, "place")[:6], "big") / 2**48
    totals = np.floor(np.cumsum(fractions / fractions.sum()) * rows + place)
    totals[-1] = rows
    counts: NDArray[np.int64] = np.diff(totals, prepend=0.0).astype(np.int64)
    return counts
