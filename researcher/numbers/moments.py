"""Means of products of two attributes, from the tables of a release: E[X Y] from one with both, E[X^2] from twins."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.points import are_numbers, numbers_of, twin_of

SURE = 2.0
"""Standard errors by which a variance stands out from the noise before anything is divided by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The value of each category of an attribute, and the attribute that its square is measured with."""

    label: str
    attribute: Attribute
    twin: Attribute
    values: Floats


def best_product(tables: Sequence[Table], one: Feature, other: Feature | None) -> tuple[int, Floats]:
    """Return the best table for the product of two columns (None: of 1), and its value in each cell."""
    if other is None:
        factors = {one.attribute.name: one.values}
    elif one.attribute.name != other.attribute.name:
        factors = {one.attribute.name: one.values, other.attribute.name: other.values}
    elif one.twin is one.attribute:
        factors = {one.attribute.name: one.values * other.values}
    else:
        factors = {one.attribute.name: one.values, one.twin.name: whole_numbers(one.twin)}
    having = [place for place, table in enumerate(tables) if set(factors) <= set(table.domain.names)]
    if not having:
        raise InvalidInputError(
            f"no table has {' and '.join(factors)}", remedy="Ask for a release with a table of both."
        )
    best = min(having, key=lambda place: _error(tables[place], list(factors)))
    domain = tables[best].domain
    product = np.ones(domain.shape)
    for name, values in factors.items():
        shape = [1] * len(domain.shape)
        shape[domain.names.index(name)] = -1
        product = product * values.reshape(shape)
    return best, product.reshape(-1)


def _error(table: Table, names: Sequence[str]) -> float:
    part = table.marginal(names)
    return part.root_mse if isinstance(part, TableEstimate) else np.inf


def features(attribute: Attribute, domain: Domain) -> list[Feature]:
    """Return the columns of an attribute: its numbers, or indicators of its categories but the first."""
    name = attribute.name
    if are_numbers(attribute) or attribute.number:
        twin = twin_of(attribute, domain)
        return [Feature(label=name, attribute=attribute, twin=twin, values=whole_numbers(attribute))]
    return [
        Feature(label=f"{name}={category}", attribute=attribute, twin=attribute, values=indicator)
        for category, indicator in zip(attribute.categories[1:], np.eye(attribute.size)[1:], strict=True)
    ]


def whole_numbers(attribute: Attribute) -> Floats:
    """Return the numbers of an attribute without missing ones."""
    numbers = numbers_of(attribute)
    if np.isnan(numbers).any():
        raise InvalidInputError(
            f"some respondents miss {attribute.name}, and their moments are of all respondents",
            where=attribute.name,
            remedy='Ask for a release under a study whose attribute has missing = "drop".',
        )
    return numbers


def domain_of(tables: Sequence[Table]) -> Domain:
    """Return all attributes of some tables."""
    return Domain(attributes=tuple(dict.fromkeys(a for table in tables for a in table.domain.attributes)))
