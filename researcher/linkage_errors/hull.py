"""One question put to tables whose wrong links were undone: the hull of the answers, and whether links limit them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.linkage_errors.derived import DerivedEstimate
from veiltab.researcher.linkage_errors.inversion import Floats

TableT = TypeVar("TableT", bound=Table)

WIDE = 2.0
"""How many times as wide as by noise alone an interval is where links limit the answer."""


def hull_of(analyse: Callable[[Sequence[Table]], Analysis], tables: Sequence[Table]) -> Analysis:
    """Return the hull of the answers at both ends of the shares of wrong links.

    Args:
        analyse: answers the question of tables that have one share each.
        tables: of the question, perhaps corrected.

    Returns:
        The answer at the whole shares; its intervals hold those at both ends, and none is said that is not said at
        both. A remark says where links and not noise limit the answer.
    """
    ends = [table.ends if isinstance(table, DerivedEstimate) else (table,) for table in tables]
    count = max(map(len, ends))
    answers = [analyse([some[min(place, len(some) - 1)] for some in ends]) for place in range(count)]
    first = answers[0]
    low = np.min([one.low for one in answers], axis=0)
    high = np.max([one.high for one in answers], axis=0)
    plain = analyse([uncorrected(table) for table in tables])
    remarks = (remark for one in answers for remark in one.remarks)
    return replace(
        first,
        estimate=np.where(np.isnan(low) & first.is_measured, np.nan, first.estimate),
        low=low,
        high=high,
        remarks=tuple(dict.fromkeys((*remarks, *limited(high - low, plain.high - plain.low)))),
    )


def limited(widths: Floats, plain: Floats) -> tuple[str, ...]:
    """Return a sentence where some intervals are more than WIDE times as wide as those that count no wrong links.

    Args:
        widths: of the intervals, shape (r,).
        plain: of those of the same rows without wrong links, shape (r,).
    """
    with np.errstate(invalid="ignore"):
        wide = int(((widths > WIDE * plain) & np.isfinite(widths)).sum())
    if not wide:
        return ()
    rows = "the interval is" if len(widths) == 1 else f"{wide} of {len(widths):,} intervals are"
    return (f"Links, not noise, limit the answer: {rows} more than twice as wide as noise alone makes them.",)


def uncorrected(table: TableT) -> TableT | TableEstimate:
    """Return a table as it was measured."""
    return table.observed if isinstance(table, DerivedEstimate) else table
