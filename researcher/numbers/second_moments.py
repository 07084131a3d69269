"""Variances of numbers by group.

Of rounded numbers g the mean of g^2 is not that of X^2; of two independent roundings of the same number, twins, the
product has it: E[g g'] = E[X^2]. So the variance of a group with weight W is V = sum g g' T / W - (sum g T / W)
(sum g' T / W). With the contrasts u = (g - m) 1_group, v = (g' - m') 1_group and s = ((g - m)(g' - m') - V) 1_group of
the table, exactly

    V_hat - V = T_hat(s) / W_hat - T_hat(u) T_hat(v) / W_hat^2

so that to second order V_hat is too small by (Cov(T_hat u, T_hat v) + Cov(T_hat s, W_hat)) / W^2, which is added back,
and its error is that of T_hat(s) / W. Of exact numbers g' = g.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.researcher.analysis.comparisons import Table, analysis_of, given_text, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats, paired_errors
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.means import by_group, groups_of
from veiltab.researcher.numbers.points import check_given, deviations, numbers_of, twin_of


def variances(table: Table, name: str, given: Sequence[str] = ()) -> Analysis:
    """Estimate the variance of an attribute of numbers in each group, with the divisor n.

    Args:
        table: with all attributes concerned; of rounded numbers, the twin too.
        given: attributes whose combinations of categories are the groups; none is all respondents.

    Returns:
        A row a group; NaN where the group cannot be told from an empty one, or the variance is negative.

    Raises:
        InvalidInputError: an unknown attribute, one without numbers, or rounded numbers without a twin.
    """
    check_given(table.domain, given, name)
    (attribute,) = table.domain.subset([name]).attributes
    twin = twin_of(attribute, table.domain)
    part = table.marginal([*given, *dict.fromkeys((name, twin.name))])
    first, second = _pair(numbers_of(attribute), numbers_of(twin), is_same=twin is attribute)
    is_number = ~np.isnan(first * second)
    groups = part.raw.reshape(-1, len(first))
    whole = groups @ is_number
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other = (groups @ np.where(is_number, one, 0.0) / whole for one in (first, second))
        value = groups @ np.where(is_number, first * second, 0.0) / whole - mean * other
    low = high = np.full(value.shape, np.nan)
    is_sayable = (whole > 0) & (value > 0)
    if isinstance(part, TableEstimate):
        is_sayable &= whole > quantile(table) * deviations(part, by_group(len(groups), is_number.astype(np.float64)))
        with np.errstate(divide="ignore", invalid="ignore"):
            off, apart = (first - mean[:, None]) / whole[:, None], (second - other[:, None]) / whole[:, None]
            score = off * apart * whole[:, None] - (value / whole)[:, None]
        inside = is_number & is_sayable[:, None]
        u, v, contrasts = (by_group(len(groups), np.where(inside, one, 0.0)) for one in (off, apart, score))
        weights = by_group(len(groups), inside / np.where(is_sayable, whole, 1.0)[:, None])
        value = value + paired_errors(part, u, v)[1] + paired_errors(part, contrasts, weights)[1]
        half = np.where(is_sayable, quantile(table) * deviations(part, contrasts), np.nan)
        most = (np.nanmax(first) - np.nanmin(first)) ** 2 / 4
        low, high = np.maximum(value - half, 0.0), np.maximum(np.minimum(value + half, most), value)
    value = np.where(is_sayable, value, np.nan)
    return analysis_of([part], f"variance of {name}{given_text(given)}", groups_of(part, given), (value, low, high))


def _pair(first: Floats, second: Floats, *, is_same: bool) -> tuple[Floats, Floats]:
    """Return both numbers of each cell of the two attributes, or of the one that is its own twin."""
    if is_same:
        return first, first
    return np.repeat(first, len(second)), np.tile(second, len(first))
