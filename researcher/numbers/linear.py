"""Linear regression of a number on numbers and categories, by the moments of one table or of several.

beta solves A beta = b with A = E[z z'] and b = E[z y]; z has 1, numbers, and an indicator of each category but the
first. A product of two attributes comes from a table with both, the square of a rounded number from one with its twin:
E[g g'] = E[X^2]. To first order

    beta_hat - beta = sum_t T_hat_t(c_t),    sum_t T_t(c_t) = 0,

c_t being A^-1 times the part of z (y - z' beta) that table t measures. Noise and samples of tables are independent
given the respondents, so their variances add up; rounded numbers add `rounding_variance`. The next order has the mean
-A^-1 E[dA A^-1 e], where dA is the error of A and e that of b - A beta; it is taken off. The true coefficients are
those of the true rows of all n respondents.
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, doubts, quantile
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.drawing.shown import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.moments import SURE, Feature, best_product, domain_of, features, whole_numbers
from veiltab.researcher.numbers.points import covariance, numbers_of

_EXAMPLE = 'Write for example "wage ~ age + education".'


def parse_linear(text: str, domain: Domain) -> tuple[Attribute, ...]:
    """Read "y ~ x + z": return the number that is explained, then the attributes on the right; the longest names win.

    Raises:
        InvalidInputError: it does not parse, names an attribute twice, or explains what is no number.
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
        tables: of one release, each pair of attributes in one of them at least; of several with both, the one with the
            least error counts.

    Returns:
        A row a coefficient, the intercept first.

    Raises:
        InvalidInputError: the formula does not parse, a rounded number on the right has no twin, no table has two
            attributes, or the attributes on the right determine one another.
    """
    domain = domain_of(tables)
    response, *terms = parse_linear(text, domain)
    columns = [column for attribute in terms for column in features(attribute, domain)]
    explained = Feature(label=response.name, attribute=response, twin=response, values=whole_numbers(response))
    every, p = [*columns, explained], len(columns) + 1
    moments, kept = np.zeros((p + 1, p + 1)), dict[int, dict[tuple[int, int], Floats]]()
    moments[0, 0] = 1.0
    for i in range(1, p + 1):
        for j in range(i + 1):
            if i == j == p:
                continue  # the square of y is in no coefficient
            number, product = best_product(tables, every[i - 1], every[j - 1] if j else None)
            moments[i, j] = moments[j, i] = float(tables[number].raw @ product)
            kept.setdefault(number, {})[i, j] = product
    square, cross = moments[:p, :p], moments[:p, p]
    try:
        inverse: Floats = np.linalg.inv(square).astype(np.float64)
    except np.linalg.LinAlgError:
        raise InvalidInputError("the attributes on the right determine one another", where="linear") from None
    beta: Floats = inverse @ cross
    is_known = _is_surely_definite(tables, kept, square)
    bias, half = _errors(tables, kept, inverse, beta) if is_known else (np.nan, np.nan)
    value = beta - bias
    parts = [tables[number] for number in kept]
    labels = ("(intercept)", *(column.label for column in columns))
    return Analysis(
        title=f"linear regression of {response.name}",
        labels={"coefficient": labels},
        unit=Unit.NUMBER,
        estimate=value,
        low=value - half,
        high=value + half,
        neutral=0.0,
        confidence=tables[0].confidence,
        is_measured=all(isinstance(part, TableEstimate) for part in parts),
        remarks=(
            f"n = {tables[0].population:,}. The first category of each attribute is the reference.",
            *([f"By the moments of {len(parts)} tables of the release."] if len(parts) > 1 else []),
            *dict.fromkeys(r for t in parts for r in doubts(t)),
        ),
        study_digest=tables[0].study_digest,
    )


def _is_surely_definite(
    tables: Sequence[Table], kept: dict[int, dict[tuple[int, int], Floats]], square: Floats
) -> bool:
    """Return whether the least eigenvalue of A, with its diagonal scaled to 1, lies SURE standard errors above 0.

    Of a modelled table no error is known, and it has to lie above 0.
    """
    diagonal = np.diagonal(square)
    if not (diagonal > 0).all():
        return False
    values, vectors = np.linalg.eigh(square / np.sqrt(np.outer(diagonal, diagonal)))
    weights, spread = vectors[:, 0] / np.sqrt(diagonal), 0.0
    for number, products in kept.items():
        table = tables[number]
        own = [
            product * weights[i] * weights[j] * (1 if i == j else 2)
            for (i, j), product in products.items()
            if i < len(diagonal)
        ]
        if own and isinstance(table, TableEstimate):
            spread += float(covariance(table, np.sum(own, axis=0)[None, :])[0, 0])
    return bool(values[0] > SURE * np.sqrt(max(spread, 0.0)))


def _errors(
    tables: Sequence[Table], kept: dict[int, dict[tuple[int, int], Floats]], inverse: Floats, beta: Floats
) -> tuple[Floats, Floats]:
    """Return the bias of the second order, and half the width of each interval: 0 and NaN if a table is modelled."""
    p = len(beta)
    total, bias = np.zeros((p, p)), np.zeros(p)
    for number, products in kept.items():
        table = tables[number]
        if not isinstance(table, TableEstimate):
            return np.zeros(p), np.full(p, np.nan)
        scores = np.zeros((p, table.domain.cells))
        for (i, j), product in products.items():
            # Where moment (i, j) stands in b - A beta.
            if i == p:
                scores[j] += product
                continue
            scores[i] -= product * beta[j]
            if i != j:
                scores[j] -= product * beta[i]
        contrasts = np.concatenate([inverse @ scores, list(products.values())])
        each = covariance(table, contrasts)
        total += each[:p, :p]
        for place, (i, j) in enumerate(products, p):
            if i < p:
                bias -= inverse[:, i] * each[j, place]
                bias -= inverse[:, j] * each[i, place] * (i != j)
    half: Floats = quantile(tables[0]) * np.sqrt(np.maximum(np.diagonal(total), 0.0))
    return bias, half
