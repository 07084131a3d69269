"""Means and sums of numbers, by group.

The mean of a group is theta = sum x T / sum T over its cells, x the number of each. The contrast c = x - theta on the
cells of the group has T c = 0, and T_hat c is linear in the table, so it has mean 0 and exactly the variance

    V(theta) = C sum c^2 + L T(c^2) - B (sum c)^2

with the constant, linear and background terms of Cov(T_hat); rounded numbers add `rounding_variance`, which theta does
not change. The interval has the theta with (T_hat c)^2 <= z^2
V(theta): Fieller's argument, a quadratic in theta, as for conditional shares; T(c^2) is taken at the projected table.
The sum n sum x T is a contrast itself. Respondents whose number is missing are in no group.

Means p and q of two groups have to first order the errors T_hat(c_p / W_p) and T_hat(c_q / W_q), whose covariance is
that of two contrasts; the mean of the second order, -Cov(T_hat(c_p), W_hat_p) / W_p^2, is taken off. So a difference is
the coefficient of a linear model on the groups. The interval of a ratio has the r with (p - r q)^2 <= z^2 Var(p - r q).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import (
    Table,
    analysis_of,
    cell_labels,
    counted,
    given_text,
    quantile,
    reference_group,
)
from veiltab.researcher.analysis.contrasts import Contrast
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats, paired_errors
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.projection import project_to_simplex
from veiltab.researcher.numbers.points import check_given, covariance, deviations, numbers_of, rounding_variance

EVERYBODY = "all respondents"


def means(table: Table, name: str, given: Sequence[str] = ()) -> Analysis:
    """Estimate the mean of an attribute in each group.

    Args:
        table: with all attributes concerned.
        name: the attribute; its categories are numbers.
        given: attributes whose combinations of categories are the groups; none is all respondents.

    Returns:
        A row a group. NaN where the group cannot be told from an empty one.

    Raises:
        InvalidInputError: an unknown attribute, one whose categories are not numbers, or one that is given too.
    """
    raw, numbers, part, groups = _cells(table, name, given)
    whole, first = raw.sum(axis=1), raw @ numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(whole > 0, first / whole, np.nan)
    low = high = np.full(value.shape, np.nan)
    is_sayable = whole > 0
    if isinstance(part, TableEstimate):
        low, high, is_sayable = _fieller(part, (len(raw), len(numbers)), quantile(table))
    value, low, high = (np.where(is_sayable, end, np.nan) for end in (value, low, high))
    return analysis_of(
        [part], f"mean of {name}{given_text(given)}", groups, (value, low, high), facts=_at_ends(part, name)
    )


def mean_contrasts(
    table: Table, kind: Contrast, name: str, given: Sequence[str], reference: Mapping[str, str] | None = None
) -> Analysis:
    """Compare the mean of an attribute in every group with that of a reference group: minus it, or over it.

    Args:
        table: with all attributes concerned.
        kind: difference or ratio.
        name: the attribute; its categories are numbers.
        given: attributes whose combinations of categories are the groups, at least one.
        reference: category of each given attribute in the reference group; by default the first of each.

    Returns:
        A row for each other group. NaN where a group cannot be told from an empty one, or a mean that divides from 0.

    Raises:
        InvalidInputError: as `means`; no group, an unknown one, or an odds ratio.
    """
    if not given or kind is Contrast.ODDS_RATIO:
        raise InvalidInputError(
            f"the {kind.value.replace('-', ' ')} of means was asked for"
            + (", and odds are of shares" if given else " without groups"),
            where="mean",
            remedy="Name the attribute that makes the groups, and ask for the difference or the ratio of their means.",
        )
    raw, numbers, part, groups = _cells(table, name, given)
    base = reference_group(part.domain, given, reference or {})
    rows, whole = np.flatnonzero(np.arange(len(raw)) != base), raw.sum(axis=1)
    is_sayable, z = whole > 0, quantile(table)
    mean = np.divide(raw @ numbers, whole, out=np.full(whole.shape, np.nan), where=is_sayable)
    errors = np.full((len(raw), len(raw)), np.nan)
    if isinstance(part, TableEstimate):
        *_, is_sayable = _fieller(part, (len(raw), len(numbers)), z)
        every = numbers_of(part.domain.attributes[-1])
        inside = ~np.isnan(every) & is_sayable[:, None]
        weights = inside / np.where(is_sayable, whole, 1.0)[:, None]
        off = by_group(len(raw), np.where(inside, np.nan_to_num(every - mean[:, None]) * weights, 0.0))
        errors = covariance(part, off)
        mean = mean + paired_errors(part, off, by_group(len(raw), weights))[1]
    p, q, pp, qq, pq = mean[rows], mean[base], np.diagonal(errors)[rows], errors[base, base], errors[rows, base]
    if kind is Contrast.DIFFERENCE:
        value, half = p - q, z * np.sqrt(np.maximum(pp - 2 * pq + qq, 0.0))
        low, high, is_sayable_here = value - half, value + half, is_sayable[rows] & is_sayable[base]
    else:
        # (p - r q)^2 <= z^2 (pp - 2 r pq + r^2 qq), a quadratic in r.
        lead, middle = q * q - z * z * np.nan_to_num(qq), p * q - z * z * pq
        is_sayable_here = is_sayable[rows] & is_sayable[base] & (lead > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value, root = p / q, np.sqrt(np.maximum(middle**2 - lead * (p * p - z * z * pp), 0.0))
            low, high = (middle - root) / lead, (middle + root) / lead
    labels = {label: tuple(texts[row] for row in rows) for label, texts in groups.items()}
    against = ", ".join(texts[base] for texts in groups.values())
    title = f"{kind.value} of the mean of {name}{given_text(given)}, against {against}"
    value, low, high = (np.where(is_sayable_here, end, np.nan) for end in (value, low, high))
    return analysis_of([part], title, labels, (value, low, high), neutral=kind.neutral)


def means_by_each(table: Table, name: str) -> Analysis:
    """Estimate the mean of an attribute of all respondents, and by each other attribute whose symbols are groups.

    Args:
        table: with the attribute, and those that make groups.
        name: the attribute; its categories are numbers.

    Returns:
        A row for all respondents, then one for each category of each other attribute that was not rounded.
    """
    others = [one.name for one in table.domain.attributes if one.name != name and not one.number]
    analyses = [means(table, name), *(means(table, name, [other]) for other in others)]
    groups = [EVERYBODY]
    for other, by_other in zip(others, analyses[1:], strict=True):
        groups += [f"{other} {group}" for group in by_other.names]
    ends = zip(*((one.estimate, one.low, one.high) for one in analyses), strict=True)
    estimate, low, high = (np.concatenate(end) for end in ends)
    return replace(analyses[0], labels={"group": tuple(groups)}, estimate=estimate, low=low, high=high)


def _at_ends(part: Table, name: str) -> dict[str, float]:
    """Return the shares of respondents at both ends of a grid, where clipped numbers are too; nothing of categories."""
    attribute = part.domain.attributes[-1]
    if not attribute.number:
        return {}
    shares, points = part.marginal([name]).raw, np.flatnonzero(~np.isnan(numbers_of(attribute)))
    return {f"share at the end {attribute.categories[end]}": float(shares[end]) for end in (points[0], points[-1])}


def sums(table: Table, name: str, given: Sequence[str] = ()) -> Analysis:
    """Estimate the sum of an attribute over the respondents of each group; see `means`."""
    raw, _, part, groups = _cells(table, name, given)
    contrasts = by_group(len(raw), np.nan_to_num(numbers_of(part.domain.attributes[-1])))
    whole, contrasts, n = counted(part, contrasts)
    value = n * (contrasts @ whole.raw)
    low = high = np.full(value.shape, np.nan)
    if isinstance(whole, TableEstimate):
        half = quantile(table) * n * deviations(whole, contrasts)
        low, high = value - half, value + half
    return analysis_of([part], f"sum of {name}{given_text(given)}", groups, (value, low, high))


def _cells(table: Table, name: str, given: Sequence[str]) -> tuple[Floats, Floats, Table, dict[str, tuple[str, ...]]]:
    """Return T_hat of shape (groups, k), the k numbers, the marginal that they are of, and the labels of the groups."""
    check_given(table.domain, given, name)
    part = table.marginal([*given, name])
    numbers = numbers_of(part.domain.attributes[-1])
    is_number = ~np.isnan(numbers)
    return part.raw.reshape(-1, len(numbers))[:, is_number], numbers[is_number], part, groups_of(part, given)


def groups_of(table: Table, given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the labels of the groups of some attributes; of none, of all respondents."""
    return cell_labels(table.domain.subset(given)) if given else {"group": (EVERYBODY,)}


def by_group(groups: int, contrast: Floats) -> Floats:
    """Return a contrast for each of some groups, which is 0 in the others, shape (groups, groups k).

    Args:
        groups: how many.
        contrast: (k,) for all groups, or (groups, k).
    """
    each: Floats = (np.eye(groups)[:, :, None] * contrast).reshape(groups, -1)
    return each


def _fieller(part: TableEstimate, shape: tuple[int, int], z: float) -> tuple[Floats, Floats, Floats]:
    """Return the ends of the intervals, and which groups can be told from empty ones.

    Args:
        part: the groups, and last the numbers.
        shape: (groups, numbers that are not missing).
        z: standard deviations.
    """
    numbers = numbers_of(part.domain.attributes[-1])
    is_number, k = ~np.isnan(numbers), shape[1]
    raw = part.raw.reshape(shape[0], -1)[:, is_number]
    # Numbers about their middle, so that no digits are lost in squares.
    middle = float(np.nanmin(numbers) + np.nanmax(numbers)) / 2
    x = numbers[is_number] - middle
    first, whole = raw @ x, raw.sum(axis=1)
    of_numbers = by_group(shape[0], np.where(is_number, numbers - middle, 0.0))
    rounding = np.diagonal(rounding_variance(part, of_numbers))
    # (first - theta whole)^2 - z^2 (v0 - 2 v1 theta + v2 theta^2) <= 0
    if part.terms is None:
        v0, v1, v2 = paired_errors(part, of_numbers, by_group(shape[0], is_number.astype(np.float64)))
        v0 = v0 + rounding
    else:
        terms, true = part.terms, project_to_simplex(part.raw).reshape(shape[0], -1)[:, is_number]
        constant, linear, background = (float(one) for one in (terms.constant, terms.linear, terms.background))
        v0 = constant * float(x @ x) + linear * (true @ (x * x)) - background * float(x.sum()) ** 2 + rounding
        v1 = constant * float(x.sum()) + linear * (true @ x) - background * k * float(x.sum())
        v2 = constant * k + linear * true.sum(axis=1) - background * k * k
    lead = whole**2 - z * z * v2
    half = first * whole - z * z * v1
    rest = first**2 - z * z * v0
    is_sayable = (whole > 0) & (lead > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(half * half - lead * rest, 0.0))
        low, high = (half - root) / lead + middle, (half + root) / lead + middle
    low, high = (np.clip(end, np.nanmin(numbers), np.nanmax(numbers)) for end in (low, high))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = first / whole + middle
    # The estimate is unbiased and may lie beyond the numbers; its interval then reaches to it.
    return np.fmin(low, value), np.fmax(high, value), is_sayable
