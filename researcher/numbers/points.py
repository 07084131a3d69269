"""The numbers that the categories of an attribute are, and what rounding them at random adds to a variance.

The true table of a release has rounded numbers. An estimate of the numbers themselves has the variance of the release,
and that of the rounding. Of the people between two points a share a became the lower one and b the upper one: the
rounding of a contrast that differs by d between these adds at most

    d^2 a b / (n (a + b)) <= d^2 ((1 - w)^2 a + w^2 b) / n    for every w,

and every cell k has T_k = a_k + b_(k-1). So all steps together add at most sum T_k m_k / n, m_k the larger of
d_k^2 (1 - w_k)^2 and d_(k-1)^2 w_(k-1)^2. Of w = 1/2 and w_k = T_k / (T_k + T_(k+1)) that with the lesser sum counts:
as a rule the second where most people are at few points.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.people_present import PresentEstimate
from veiltab.researcher.estimates.pooling import PooledEstimate

_LEAST = 1e-12
"""What is added to shares that divide."""

_REMEDY = "This takes attributes of kind number, of `integers`, or whose categories are all numbers."


def numbers_of(attribute: Attribute) -> Floats:
    """Return the numbers that the categories of an attribute are, shape (k,); NaN for missing numbers and people.

    Raises:
        InvalidInputError: a category is not a finite number, "absent" apart, nor the last one of an attribute of kind
            number.
    """
    numbers = np.array([number_of(category) for category in attribute.categories])
    strange, size = np.flatnonzero(np.isnan(numbers)), attribute.without_absent.size
    if (strange < size - bool(attribute.number)).any():
        raise InvalidInputError(
            f"the category {attribute.categories[strange[0]]!r} of {attribute.name} is not a number",
            where=attribute.name,
            remedy=_REMEDY,
        )
    return numbers


def are_numbers(attribute: Attribute) -> bool:
    """Return whether all categories of people who are present are numbers."""
    return not np.isnan([number_of(category) for category in attribute.without_absent.categories]).any()


def twin_of(attribute: Attribute, domain: Domain) -> Attribute:
    """Return the attribute that was rounded from the same numbers, independently; of exact numbers, itself.

    Raises:
        InvalidInputError: there is none.
    """
    if not attribute.number:
        return attribute
    for other in domain.attributes:
        if other.number == attribute.number and other.name != attribute.name:
            return other
    raise InvalidInputError(
        f"{attribute.name} has no twin here, and the mean of its squares cannot be told from rounded numbers",
        where=attribute.name,
        remedy="Give the study a second attribute of kind number with the same column, and release both in a table.",
    )


def covariance(table: TableEstimate, contrasts: Floats) -> Floats:
    """Return the covariance of the estimates of contrasts of shape (c, K), that of rounding with it, shape (c, c)."""
    result: Floats = table.contrast_covariance(contrasts) + rounding_variance(table, contrasts)
    return result


def deviations(table: TableEstimate, contrasts: Floats) -> Floats:
    """Return the standard deviation of the estimate of each contrast, shape (c,)."""
    result: Floats = np.sqrt(np.maximum(np.diagonal(covariance(table, contrasts)), 0.0))
    return result


def rounding_variance(table: TableEstimate, contrasts: Floats) -> Floats:
    """Return at most how much rounding adds to the (c, c) covariance of contrasts, shape (c, K).

    Each table of a release rounds anew: of tables that are pooled with weights w it is sum w^2 of that of one.
    """
    contrasts, table = table.as_measured(contrasts)
    if isinstance(table, PresentEstimate):
        contrasts, table = table.transported(contrasts), table.observed
    once = sum(float(w) ** 2 for w in table.design.weights) if isinstance(table, PooledEstimate) else 1.0
    shape = table.domain.shape
    tensors, shares = contrasts.reshape(-1, *shape), table.projected.reshape(shape)
    added = np.zeros((len(contrasts), len(contrasts)))
    for axis, attribute in enumerate(table.domain.attributes, 1):
        if not attribute.number:
            continue
        by_point = np.moveaxis(tensors, axis, -1)
        steps = np.diff(by_point[..., : _points(attribute)], axis=-1)
        of_numbers = np.moveaxis(shares, axis - 1, -1)[..., : _points(attribute)]
        by_share = of_numbers[..., :-1] / (of_numbers[..., :-1] + of_numbers[..., 1:] + _LEAST)
        ways = [_longer(steps, below) for below in (np.full_like(by_share, 0.5), by_share)]
        sums = [(of_numbers * one**2).sum(axis=(0, -1), keepdims=True) for one in ways]
        longer = np.zeros_like(by_point)
        longer[..., : _points(attribute)] = np.where(sums[1] < sums[0], ways[1], ways[0])
        longer = np.moveaxis(longer, -1, axis).reshape(len(contrasts), -1)
        added += once * (longer * shares.reshape(-1)) @ longer.T / table.population
    return added


def _longer(steps: Floats, below: Floats) -> Floats:
    """Return the longer of the two weighted steps of each point, shape (c, ..., k), of steps of shape (c, ..., k - 1).

    Args:
        below: w, of each step.
    """
    nothing = np.zeros((*steps.shape[:-1], 1))
    up, down = (np.concatenate(one, axis=-1) for one in ((steps * (1 - below), nothing), (nothing, steps * below)))
    result: Floats = np.where(np.abs(up) > np.abs(down), up, down)
    return result


def _points(attribute: Attribute) -> int:
    """Return how many categories are points of the grid."""
    return int((~np.isnan(numbers_of(attribute))).sum())


def number_of(text: str) -> float:
    """Return the number that a text is, NaN for any other text."""
    try:
        number = float(text)
    except ValueError:
        return float("nan")
    return number if np.isfinite(number) else float("nan")


def check_given(domain: Domain, given: Sequence[str], name: str) -> None:
    """Refuse groups of rounded numbers, and an attribute that is asked for and given."""
    if name in given:
        raise InvalidInputError(f"{name} is given, and was asked for", where="given")
    for attribute in domain.subset(given).attributes if given else ():
        if attribute.number:
            raise InvalidInputError(
                f"{attribute.name} was rounded at random, so its points are not groups of respondents",
                where="given",
                remedy="Give the study an attribute with bins of the same column.",
            )
