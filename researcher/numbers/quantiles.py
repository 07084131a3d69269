"""Quantiles of numbers by group, with ends that hold however the numbers lie within the steps of their grid.

S_i, the share of the points up to g_i, lies between two values of the distribution function F of the numbers before
they were rounded:

    F(g_i) <= S_i <= F(g_(i+1)),

since a number up to g_i was rounded to one of these points, and one above g_(i+1) was not. So with the first i where
S_i >= q, the quantile is above g_(i-1) and at most g_(i+1). Of exact numbers F(g_i) = S_i, and it is g_i.

The interval tests D_i = T(points up to g_i) - q T(group) at each point, a contrast of the table whose variance is known
(Woodruff 1952): that i is at least the first one with D_i + z sd >= 0, and at most the one after the last one with
D_i - z sd < 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, given_text, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.numbers.means import by_group, groups_of
from veiltab.researcher.numbers.points import check_given, deviations, numbers_of


def quantiles(table: Table, name: str, share: float, given: Sequence[str] = ()) -> Analysis:
    """Estimate the least number that at least a share of the respondents of each group do not exceed.

    Args:
        table: with all attributes concerned.
        name: the attribute; its categories are increasing numbers.
        share: above 0 and below 1.
        given: attributes whose combinations of categories are the groups; none is all respondents.

    Returns:
        A row a group: of rounded numbers, the estimate is interpolated between points as if they were spread evenly.

    Raises:
        InvalidInputError: an unknown attribute, one without increasing numbers, or a share out of range.
    """
    if not 0 < share < 1:
        raise InvalidInputError(f"{share:g} is not above 0 and below 1", where="quantile")
    check_given(table.domain, given, name)
    part = table.marginal([*given, name])
    attribute = part.domain.attributes[-1]
    numbers = numbers_of(attribute)
    is_number = ~np.isnan(numbers)
    points = numbers[is_number]
    if (np.diff(points) <= 0).any():
        raise InvalidInputError(f"the numbers of {name} do not increase", where=name)
    groups = part.raw.reshape(-1, len(numbers))
    low = high = np.full(len(groups), np.nan)
    if isinstance(part, TableEstimate):
        # D_i of one group: 1 - q up to point i, -q after it, 0 where the number is missing.
        contrasts = np.where(is_number, np.tri(len(points), len(numbers)) - share, 0.0)
        spreads = np.transpose([deviations(part, by_group(len(groups), contrast)) for contrast in contrasts])
        shares, half = groups @ contrasts.T, quantile(table) * spreads
        first, last = _first(shares + half >= 0), len(points) - 1 - _first((shares - half < 0)[:, ::-1])
        further = 1 if attribute.number else 0
        low = points[np.clip(first - further, 0, len(points) - 1)]
        high = points[np.clip(last + 1 + further, 0, len(points) - 1)]
    nearest = project_to_simplex(part.raw).reshape(groups.shape)[:, is_number]
    value = np.array([_value(one, points, share, is_rounded=bool(attribute.number)) for one in nearest])
    low, high = (np.where(np.isnan(value), np.nan, end) for end in (low, high))
    remarks = (
        ("The ends hold however the numbers lie within the steps; the estimate takes them to be spread evenly.",)
        if attribute.number
        else ()
    )
    title = f"{share:.10g} quantile of {name}{given_text(given)}"
    return analysis_of([part], title, groups_of(part, given), (value, low, high), remarks)


def _first(flags: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the first true place of each row, its length if there is none."""
    places: NDArray[np.intp] = np.where(flags.any(axis=1), flags.argmax(axis=1), flags.shape[1])
    return places


def _value(shares: Floats, points: Floats, share: float, *, is_rounded: bool) -> float:
    """Return the quantile of one group's shares of the points; NaN if the group is empty."""
    up_to = np.cumsum(shares)
    if up_to[-1] <= 0:
        return np.nan
    up_to /= up_to[-1]
    if not is_rounded:
        return float(points[np.searchsorted(up_to, share)])
    middles = (points[1:] + points[:-1]) / 2
    return float(np.interp(share, [0.0, *up_to[:-1], 1.0], [points[0], *middles, points[-1]]))
