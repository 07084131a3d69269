"""Means of products of columns, each by least squares from all tables of a release that measured it.

A table t with both attributes of a product has unbiased contrasts y_t of its mean, with the covariance V_t of its
noise, sample and rounding; a square of rounded numbers takes the product of twins. Tables are independent given the
respondents, so with S_t = 1 where an observation is of a moment the best linear unbiased moments are

    mu_hat = (sum S_t' V_t^-1 S_t)^-1 sum S_t' V_t^-1 y_t.

What one table says too high of E[X] and E[XY] together, V_t knows: so a table that measured both says how Y goes with X
as well as if it stood alone, and wherever numbers begin. Columns are counted from the middle of their numbers in half
their range, for the digits alone.

Source: Aitken, On least squares and linear combination of observations (1935).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import sqrt

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.missing import joined
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.drawing.drawable import NOT_COVERED
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.estimates.people_present import PresentEstimate
from veiltab.researcher.numbers.points import are_numbers, covariance, numbers_of, twin_of

SURE = 2.0
"""Standard errors by which a variance stands out from the noise before anything is divided by it."""

UNSURE = (
    "A variance does not stand out from the noise, so nothing is divided by it. A grid that ends lower helps most (with"
    ' outside = "clip"), then a larger epsilon, or fewer tables.'
)
"""What a reader does about an answer that cannot be said."""

CLEAR = 3.0
"""Standard errors up to which a variance that stands out may do so by luck."""

FAINT = (
    f"A variance stands out from the noise by less than {CLEAR:g} standard errors, perhaps by luck: where so, answers"
    f" lie nearer to 0 than the truth on average, and intervals are {NOT_COVERED}. A grid that ends lower helps most"
    ' (with outside = "clip"), then a larger epsilon, or fewer tables.'
)
"""What a reader must know of an answer that divides by such a variance."""

_STEADY = 1e-10, 1e-20
"""What is added to variances in the weights, so that they exist: parts of the largest one, and of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A column of a model, in units of its own.

    Args:
        label: as the reader sees it.
        measures: attribute -> the value of each category; all of them are the same numbers, rounded independently.
        is_exact: whether nothing was rounded, so that the square of a value is that of the number.
        centre: the number that is 0 here.
        scale: how far from it the number is that is 1 here.
    """

    label: str
    measures: Mapping[str, Floats]
    is_exact: bool
    centre: float = 0.0
    scale: float = 1.0


Product = tuple[Feature, Feature | None]
"""Two columns; None is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Estimated means of products.

    Args:
        values: shape (m,).
        errors: their covariance, shape (m, m); NaN of a model.
        parts: the tables that they are from.
    """

    values: Floats
    errors: Floats
    parts: tuple[Table, ...]

    @property
    def is_measured(self) -> bool:
        """Whether no model is among the tables."""
        return all(isinstance(part, TableEstimate) for part in self.parts)

    def deviation(self, slopes: Floats) -> float:
        """Return the standard deviation of a linear combination, shape (m,) of its slopes; 0 of a model."""
        return sqrt(max(float(np.nan_to_num(slopes @ self.errors @ slopes)), 0.0))


def moments(tables: Sequence[Table], products: Sequence[Product]) -> Moments:
    """Estimate the means of some products of columns over all respondents.

    Args:
        tables: of one release.
        products: no two of them the same.

    Raises:
        InvalidInputError: no table has both attributes of a product.
    """
    size, parts = len(products), list[Table]()
    information, spread, score = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    measures = {name for pair in products for one in pair if one for name in one.measures}
    for table in tables:
        names = [name for name in table.domain.names if name in measures]
        part = table.marginal(names) if names else table
        measured = list(_measured(part.domain, products)) if names else []
        if not measured:
            continue
        contrasts, of = np.array([contrast for _, contrast in measured]), np.eye(size)[[place for place, _ in measured]]
        errors = covariance(part, contrasts) if isinstance(part, TableEstimate) else np.eye(len(of))
        ridge = _STEADY[0] * float(np.diagonal(errors).max()) + _STEADY[1]
        weights = np.linalg.solve(errors + ridge * np.eye(len(of)), of)
        information += of.T @ weights
        score += weights.T @ (contrasts @ part.raw)
        spread += weights.T @ errors @ weights
        parts.append(part)
    for (one, other), diagonal in zip(products, np.diagonal(information), strict=True):
        if not diagonal > 0:
            names = [*one.measures][: 1 + (one is other)] + (
                [*other.measures][:1] if other and other is not one else []
            )
            spokes = {spoke for table in tables if isinstance(table, PresentEstimate) for spoke in table.spokes}
            beside = f" and an attribute of {joined(sorted(spokes))}, which says who is absent" if spokes else ""
            every = sorted({next(iter(one.measures)) for pair in products for one in pair if one})
            remedy = f"Ask for a release with a table of {joined(every if spokes else names)}."
            raise InvalidInputError(f"no table has {' and '.join(names)}{beside}", remedy=remedy)
    inverse = np.linalg.inv(information)
    result = Moments(values=inverse @ score, errors=inverse @ spread @ inverse, parts=tuple(parts))
    return result if result.is_measured else replace(result, errors=np.full_like(spread, np.nan))


def _measured(domain: Domain, products: Sequence[Product]) -> Iterator[tuple[int, Floats]]:
    """Yield the number of each product that a table measures, and its value in each cell: once for each way."""
    for place, (one, other) in enumerate(products):
        ways = set[frozenset[str]]()
        for name, second in product(one.measures, other.measures if other else [""]):
            factors = [(name, one.measures[name]), *([(second, other.measures[second])] if other else [])]
            names = frozenset(name for name, _ in factors)
            is_square = name == second and not one.is_exact
            if is_square or names in ways or not names <= set(domain.names):
                continue
            ways.add(names)
            value = np.ones(domain.shape)
            for axis, values in factors:
                shape = [1] * len(domain.shape)
                shape[domain.names.index(axis)] = -1
                value = value * values.reshape(shape)
            yield place, value.reshape(-1)


def features(attribute: Attribute, domain: Domain) -> list[Feature]:
    """Return the columns of an attribute: its numbers, or indicators of its categories but the first."""
    if are_numbers(attribute) or attribute.number:
        twin_of(attribute, domain)
        return [number_feature(attribute, domain)]
    return [
        Feature(label=f"{attribute.name}={category}", measures={attribute.name: indicator}, is_exact=True)
        for category, indicator in zip(attribute.categories[1:], np.eye(attribute.size)[1:], strict=True)
    ]


def number_feature(attribute: Attribute, domain: Domain) -> Feature:
    """Return the column of an attribute of numbers, with its twins if it has any.

    Raises:
        InvalidInputError: some numbers are missing.
    """
    twins = [one for one in domain.attributes if attribute.number and one.number == attribute.number]
    same = {one.name: _whole_numbers(one) for one in (attribute, *twins)}
    numbers = same[attribute.name]
    centre, scale = (numbers.max() + numbers.min()) / 2, (numbers.max() - numbers.min()) / 2 or 1.0
    return Feature(
        label=attribute.name,
        measures={name: (values - centre) / scale for name, values in same.items()},
        is_exact=not attribute.number,
        centre=float(centre),
        scale=float(scale),
    )


def _whole_numbers(attribute: Attribute) -> Floats:
    """Return the numbers of an attribute without missing ones."""
    numbers = numbers_of(attribute)
    if np.isnan(numbers).any():
        raise InvalidInputError(
            f"some respondents miss {attribute.name}, and their moments are of all respondents",
            where=attribute.name,
            remedy='Ask for a release under a study whose attribute has missing = "drop".',
        )
    return numbers


def doubt_about(variance: float, deviation: float) -> str:
    """Return UNSURE of a variance by which nothing is divided, FAINT of one that may stand out by luck, else nothing.

    Args:
        deviation: standard error; 0 of a modelled table, whose error is not known.
    """
    if not variance > SURE * deviation:
        return UNSURE
    return FAINT if variance < CLEAR * deviation else ""


def domain_of(tables: Sequence[Table]) -> Domain:
    """Return all attributes of some tables."""
    return Domain(attributes=tuple(dict.fromkeys(a for table in tables for a in table.domain.attributes)))
