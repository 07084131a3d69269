"""Means and sums of an attribute whose categories are numbers, by group.

The mean of a group is theta = sum x T / sum T over its cells, x the number of each. The contrast c = x - theta on the
cells of the group has T c = 0, and T_hat c is linear in the table, so it has mean 0 and exactly the variance

    V(theta) = C sum c^2 + L T(c^2) - B (sum c)^2

with the constant, linear and background terms of Cov(T_hat). The interval has the theta with (T_hat c)^2 <= z^2
V(theta): Fieller's argument, a quadratic in theta, as for conditional shares; T(c^2) is taken at the projected table.
The sum n sum x T is a contrast itself.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.core.domain import Attribute
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, cell_labels, few_rows, given_text, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.drawing.shown import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.projection import project_to_simplex

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
    said = whole > 0
    if isinstance(part, TableEstimate):
        low, high, said = _fieller(part, raw, numbers, quantile(table))
    return _analysis(
        part,
        f"mean of {name}{given_text(given)}",
        groups,
        (np.where(said, value, np.nan), np.where(said, low, np.nan), np.where(said, high, np.nan)),
    )


def sums(table: Table, name: str, given: Sequence[str] = ()) -> Analysis:
    """Estimate the sum of an attribute over the respondents of each group; see `means`."""
    raw, numbers, part, groups = _cells(table, name, given)
    value = part.population * (raw @ numbers)
    low = high = np.full(value.shape, np.nan)
    if isinstance(part, TableEstimate):
        contrasts = np.kron(np.eye(len(raw)), numbers).astype(np.float64)
        deviations = np.sqrt(np.maximum(np.diagonal(part.contrast_covariance(contrasts)), 0.0))
        half = quantile(table) * part.population * deviations
        low, high = value - half, value + half
    return _analysis(part, f"sum of {name}{given_text(given)}", groups, (value, low, high))


def numbers_of(attribute: Attribute) -> Floats:
    """Return the numbers that the categories of an attribute are, shape (k,).

    Raises:
        InvalidInputError: a category is no finite number.
    """
    try:
        numbers = np.array([float(category) for category in attribute.categories])
    except ValueError:
        numbers = np.full(1, np.nan)
    if not np.isfinite(numbers).all():
        strange = next((one for one in attribute.categories if not _is_number(one)), attribute.categories[0])
        raise InvalidInputError(
            f"the category {strange!r} of {attribute.name} is not a number",
            where=attribute.name,
            remedy="Means and sums take attributes of `integers`, or whose categories are all numbers.",
        )
    return numbers


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _cells(table: Table, name: str, given: Sequence[str]) -> tuple[Floats, Floats, Table, dict[str, tuple[str, ...]]]:
    """Return T_hat of shape (groups, k), the numbers, the marginal that they are of, and the labels of the groups."""
    if name in given:
        raise InvalidInputError(f"{name} is given, and its mean was asked for", where="given")
    part = table.marginal([*given, name])
    numbers = numbers_of(part.domain.attributes[-1])
    labels: dict[str, tuple[str, ...]] = cell_labels(part.domain.subset(given)) if given else {"group": (EVERYBODY,)}
    return part.raw.reshape(-1, len(numbers)), numbers, part, labels


def _fieller(part: TableEstimate, raw: Floats, numbers: Floats, z: float) -> tuple[Floats, Floats, Floats]:
    """Return the ends of the intervals, and which groups can be told from empty ones."""
    constant, linear, background = (
        float(one) for one in (part.design.terms.constant, part.design.terms.linear, part.design.terms.background)
    )
    # Numbers about their middle, so that no digits are lost in squares.
    middle = float(numbers.min() + numbers.max()) / 2
    x, k = numbers - middle, len(numbers)
    true = project_to_simplex(part.raw).reshape(raw.shape)
    first, whole = raw @ x, raw.sum(axis=1)
    # (first - theta whole)^2 - z^2 (v0 - 2 v1 theta + v2 theta^2) <= 0
    v0 = constant * float(x @ x) + linear * (true @ (x * x)) - background * float(x.sum()) ** 2
    v1 = constant * float(x.sum()) + linear * (true @ x) - background * k * float(x.sum())
    v2 = constant * k + linear * true.sum(axis=1) - background * k * k
    lead = whole**2 - z * z * v2
    half = first * whole - z * z * v1
    rest = first**2 - z * z * v0
    said = (whole > 0) & (lead > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(half * half - lead * rest, 0.0))
        low, high = (half - root) / lead + middle, (half + root) / lead + middle
    low, high = np.clip(low, numbers.min(), numbers.max()), np.clip(high, numbers.min(), numbers.max())
    return low, high, said


def _analysis(
    part: Table,
    title: str,
    labels: dict[str, tuple[str, ...]],
    ends: tuple[Floats, Floats, Floats],
) -> Analysis:
    value, low, high = ends
    return Analysis(
        title=title,
        labels=labels,
        unit=Unit.NUMBER,
        estimate=value,
        low=low,
        high=high,
        confidence=part.confidence,
        is_measured=isinstance(part, TableEstimate),
        remarks=few_rows(part),
        study_digest=part.study_digest,
    )
