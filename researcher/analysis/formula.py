"""Formulas of regressions, such as "wage=high ~ education + age * sex", and the design matrices that they stand for."""

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.names import Reader

LARGEST = 30_000_000
"""Most entries of a design matrix (240 MB)."""

_EXAMPLE = 'Write for example "wage ~ education + age" or "~ education * wage".'


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A model of one attribute given others, or of all attributes together.

    Args:
        response: the attribute whose event is explained; "" in a log-linear model.
        event: its categories that make the event; empty in a log-linear model.
        terms: sets of attributes; () is the intercept, of two or more their interaction. Every subset of a term is a
            term too.
    """

    response: str
    event: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes on the right, in order of appearance."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term))


def parse_formula(text: str, domain: Domain) -> Formula:
    """Read a formula.

    [attribute[=category[|category...]]] ~ term + term ..., a term being attributes with * between them: their main
    effects and all their interactions. Without a left side it is a log-linear model. A name is the longest that fits,
    so attributes and categories may have any characters.

    Args:
        domain: the attributes that it may name.

    Raises:
        InvalidInputError: it does not parse; an unknown attribute or category; an attribute on both sides; a response
            that has not two categories and no event, or an event of all categories.
    """
    reader = Reader(text, domain, where="model")
    response, event = "", tuple[str, ...]()
    if not reader.takes("~"):
        explained = reader.attribute()
        event, response = parse_event(reader, explained), explained.name
        if not reader.takes("~"):
            raise reader.refusal("~", _EXAMPLE)
    terms: dict[tuple[str, ...], None] = {(): None}
    while True:
        factors = [reader.attribute().name]
        while reader.takes("*"):
            factors.append(reader.attribute().name)
        if response in factors:
            raise InvalidInputError(f"{response} stands on both sides of the formula", where="model", remedy=_EXAMPLE)
        unique = tuple(dict.fromkeys(factors))
        for size in range(1, len(unique) + 1):
            terms |= dict.fromkeys(tuple(sorted(part, key=domain.names.index)) for part in combinations(unique, size))
        if reader.is_done:
            break
        if not reader.takes("+"):
            raise reader.refusal("+ or *", _EXAMPLE)
    return Formula(response=response, event=event, terms=tuple(sorted(terms, key=len)))


def parse_event(reader: Reader, attribute: Attribute) -> tuple[str, ...]:
    """Read "=category|..." after an attribute; of one with two categories nothing means the second.

    Raises:
        InvalidInputError: an unknown category, all categories, or none where there are not two.
    """
    event = reader.categories(attribute) if reader.takes("=") else _usual_event(attribute)
    if len(event) == attribute.size:
        raise InvalidInputError(f"every respondent has one of these categories of {attribute.name}", where="model")
    return event


def design_matrix(formula: Formula, domain: Domain) -> tuple[NDArray[np.float64], list[str]]:
    """Return the matrix of a formula over the cells of its attributes, and the names of its columns.

    An attribute has one column a category but the first, which is the reference; an interaction has the products.

    Args:
        domain: its attributes on the right, in any order.

    Returns:
        Shape (cells, p), and p names; the first column is the intercept.

    Raises:
        InvalidInputError: a matrix of more than LARGEST entries.
    """
    sizes = {attribute.name: attribute.size for attribute in domain.attributes}
    width = sum(int(np.prod([sizes[name] - 1 for name in term])) for term in formula.terms)
    if width * domain.cells > LARGEST:
        raise InvalidInputError(
            f"a model of {width:,} coefficients over {domain.cells:,} cells is too large",
            where="model",
            remedy="Leave interactions or attributes out.",
        )
    codes = dict(zip(domain.names, np.unravel_index(np.arange(domain.cells), domain.shape), strict=True))
    columns, names = [], []
    for term in formula.terms:
        members = [domain.attributes[domain.names.index(name)] for name in term]
        for levels in product(*(range(1, attribute.size) for attribute in members)):
            column = np.ones(domain.cells)
            for attribute, level in zip(members, levels, strict=True):
                column *= codes[attribute.name] == level
            columns.append(column)
            parts = [f"{a.name}={a.categories[level]}" for a, level in zip(members, levels, strict=True)]
            names.append(" \N{MULTIPLICATION SIGN} ".join(parts) or "(intercept)")
    return np.array(columns).T, names


def _usual_event(attribute: Attribute) -> tuple[str, ...]:
    """Return the event of an attribute with two categories: the second."""
    if attribute.size != 2:
        raise InvalidInputError(
            f"{attribute.name} has {attribute.size} categories, and a logistic regression explains one event",
            where="model",
            remedy=f'Name the event, as in "{attribute.name}={attribute.categories[-1]} ~ ...".',
        )
    return attribute.categories[1:]
