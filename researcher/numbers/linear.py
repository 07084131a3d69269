"""Linear regression of a number on numbers and categories, by the moments of all tables of a release.

beta solves A beta = b with A = E[z z'] and b = E[z y]; z has 1, numbers, and an indicator of each category but the
first. `moments` estimates all of them together, with their covariance Sigma. To first order

    beta_hat - beta = A^-1 (db - dA beta) = J dmu,    Cov(beta_hat) = J Sigma J'.

The next order has the mean -A^-1 E[dA J dmu]; it is taken off. With the categories of one attribute on the right, beta
has the differences of the means of y, and J dmu is their error. The true coefficients are those of the true rows of all
n respondents.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, quantile
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.numbers.moments import (
    UNSURE,
    Feature,
    Moments,
    Product,
    domain_of,
    doubt_about,
    features,
    moments,
    number_feature,
)
from veiltab.researcher.numbers.points import numbers_of

_EXAMPLE = 'Write for example "wage ~ age + education".'


def parse_linear(text: str, domain: Domain) -> tuple[Attribute, ...]:
    """Read "y ~ x + z": return the number that is explained, then the attributes on the right; the longest names win.

    Raises:
        InvalidInputError: it does not parse, names an attribute twice, or explains what is not a number.
    """
    reader = Reader(text, domain, where="linear")
    response = reader.attribute()
    numbers_of(response)
    if not reader.takes("~"):
        raise reader.refusal("~", _EXAMPLE)
    terms = [reader.attribute()]
    while not reader.is_done:
        if not reader.takes("+"):
            raise reader.refusal("+", _EXAMPLE)
        terms.append(reader.attribute())
    if len({response, *terms}) != len(terms) + 1:
        raise InvalidInputError("an attribute stands twice in the formula", where="linear", remedy=_EXAMPLE)
    return (response, *terms)


def linear(tables: Sequence[Table], text: str) -> Analysis:
    """Regress a number on others.

    Args:
        tables: of one release, each pair of attributes in one of them at least.

    Returns:
        A row a coefficient, the intercept first.

    Raises:
        InvalidInputError: the formula does not parse, a rounded number on the right has no twin, no table has two
            attributes, or the attributes on the right determine one another.
    """
    domain = domain_of(tables)
    response, *terms = parse_linear(text, domain)
    columns = [column for attribute in terms for column in features(attribute, domain)]
    explained = number_feature(response, domain)
    # Which columns each moment multiplies: 0 is 1, p is y; the square of y is in no coefficient.
    p = len(columns) + 1
    pairs = [(i, j) for i in range(1, p + 1) for j in range(i + 1) if j < p]
    every: list[Feature | None] = [None, *columns, explained]
    products: list[Product] = [(one, every[j]) for i, j in pairs if (one := every[i]) is not None]
    estimates = moments(tables, products)
    beta, slopes, bias, doubt = _coefficients(estimates, pairs)
    # Back to the units of the numbers: z has every column less its centre, over its scale.
    units = np.diag([1.0, *(1 / column.scale for column in columns)])
    units[0, 1:] = [-column.centre / column.scale for column in columns]
    units *= explained.scale
    value = units @ (beta - bias)
    value[0] += explained.centre
    half = quantile(tables[0]) * np.array([estimates.deviation(slope) for slope in units @ slopes])
    half = half if estimates.is_measured else np.full_like(half, np.nan)
    return analysis_of(
        estimates.parts,
        f"linear regression of {response.name}",
        {"coefficient": ("(intercept)", *(column.label for column in columns))},
        (value, value - half, value + half),
        (
            f"n = {tables[0].population:,}. The first category of each attribute is the reference.",
            *([f"By the moments of {len(estimates.parts)} tables of the release."] if len(estimates.parts) > 1 else []),
            *([doubt] if doubt else []),
        ),
        neutral=0.0,
    )


def _coefficients(estimates: Moments, pairs: Sequence[tuple[int, int]]) -> tuple[Floats, Floats, Floats, str]:
    """Return beta, J of shape (p, m), the bias of the second order, and a doubt; NaN where A may be singular.

    Raises:
        InvalidInputError: A is singular.
    """
    p = max(i for i, _ in pairs)
    matrix = np.eye(p + 1)
    for (i, j), value in zip(pairs, estimates.values, strict=True):
        matrix[i, j] = matrix[j, i] = value
    try:
        inverse: Floats = np.linalg.inv(matrix[:p, :p]).astype(np.float64)
    except np.linalg.LinAlgError:
        raise InvalidInputError("the attributes on the right determine one another", where="linear") from None
    beta: Floats = inverse @ matrix[:p, p]
    scores = np.zeros((p, len(pairs)))
    for place, (i, j) in enumerate(pairs):
        # Where moment (i, j) stands in b - A beta.
        if i == p:
            scores[j, place] = 1.0
            continue
        scores[i, place] -= beta[j]
        scores[j, place] -= beta[i] * (i != j)
    slopes = inverse @ scores
    doubt = _doubt_about_columns(estimates, pairs, matrix[:p, :p])
    if doubt == UNSURE:
        return np.full(p, np.nan), slopes * np.nan, np.zeros(p), doubt
    bias, each = np.zeros(p), slopes @ np.nan_to_num(estimates.errors)
    for place, (i, j) in enumerate(pairs):
        if i < p:
            bias -= inverse[:, i] * each[j, place] + inverse[:, j] * each[i, place] * (i != j)
    return beta, slopes, bias, doubt


def _doubt_about_columns(estimates: Moments, pairs: Sequence[tuple[int, int]], square: Floats) -> str:
    """Return what is to be said of the least eigenvalue of the correlations of the columns; see `doubt_about`."""
    means = square[0, 1:]
    spread = square[1:, 1:] - np.outer(means, means)
    if not (np.diagonal(spread) > 0).all():
        return UNSURE
    scale = np.sqrt(np.diagonal(spread))
    values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    # A combination of columns less its mean, of which the value is the variance.
    weights = np.array([0.0, *(vectors[:, 0] / scale)])
    weights[0] = -means @ weights[1:]
    inside = [weights[i] * weights[j] * (2 - (i == j)) if i < len(weights) else 0.0 for i, j in pairs]
    return doubt_about(float(values[0]), estimates.deviation(np.array(inside)))
