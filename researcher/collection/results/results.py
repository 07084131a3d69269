"""A round's estimates as a table: DataFrame and plain records."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veiltab.common.extras import importing
from veiltab.researcher.drawing.drawable import aligned
from veiltab.researcher.frequency.frequencies import Frequencies

if TYPE_CHECKING:
    import pandas as pd


def columns(frequencies: Frequencies) -> dict[str, NDArray[Any]]:
    """Return value, estimate, se, low, high, projected (fractions), count, count_se (nodes)."""
    return {
        "value": np.array(frequencies.labels, dtype=object),
        "estimate": frequencies.fractions,
        "se": frequencies.shares(frequencies.standard_errors),
        "low": frequencies.shares(frequencies.low),
        "high": frequencies.shares(frequencies.high),
        "projected": frequencies.shares(frequencies.projected),
        "count": frequencies.counts,
        "count_se": frequencies.standard_errors,
    }


def values_frame(frequencies: Frequencies) -> "pd.DataFrame":
    """Return the estimates, one row a value."""
    with importing("researcher", "a data frame"):
        import pandas as pd  # noqa: PLC0415 - not where the extra is missing

    return pd.DataFrame(columns(frequencies))


def values_text(frequencies: Frequencies) -> str:
    """Return the estimates as lines of aligned columns, five digits each; it needs no pandas."""
    return aligned(
        [
            [name, *(one if isinstance(one, str) else f"{one:.5g}" for one in part.tolist())]
            for name, part in columns(frequencies).items()
        ]
    )


def values_records(frequencies: Frequencies) -> list[dict[str, object]]:
    """Return the estimates, one mapping of plain numbers a value."""
    table = columns(frequencies)
    names = list(table)
    rows = zip(*(part.tolist() for part in table.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
