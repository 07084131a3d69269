"""A round's estimates as a table: DataFrame and plain records."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.extras import importing
from veiltab.researcher.frequency.estimation import Frequencies

if TYPE_CHECKING:
    import pandas as pd


def columns(found: Frequencies, truth: NDArray[np.float64] | None = None) -> dict[str, NDArray[Any]]:
    """Return label, share, se, low, high, projected (fractions), count and count_se (nodes), and the truth if known."""
    table: dict[str, NDArray[Any]] = {
        "value": np.array(found.labels, dtype=object),
        "estimate": found.fractions,
        "se": found.shares(found.standard_errors),
        "low": found.shares(found.low),
        "high": found.shares(found.high),
        "projected": found.shares(found.projected),
        "count": found.counts,
        "count_se": found.standard_errors,
    }
    return table if truth is None else table | {"truth": found.shares(truth)}


def to_frame(found: Frequencies, truth: NDArray[np.float64] | None = None) -> "pd.DataFrame":
    """Return one row a value."""
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - an optional package

    return pd.DataFrame(columns(found, truth))


def to_records(found: Frequencies, truth: NDArray[np.float64] | None = None) -> list[dict[str, object]]:
    """Return one mapping a value, of plain numbers."""
    table = columns(found, truth)
    names = list(table)
    rows = zip(*(part.tolist() for part in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
