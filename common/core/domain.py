"""The public alphabet of a release: attributes, their categories, and the cells of their joint table."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass, replace
from veiltab.common.errors import InvalidInputError

MAX_CATEGORIES = 65_536
"""Largest alphabet of one attribute: a symbol travels as one or two bytes."""

ABSENT = "absent"
"""Last category of an attribute whose curator may lack a person of the hub: that person's symbol."""

Symbols = NDArray[np.uint8] | NDArray[np.uint16]
"""A column of symbols 0..K_a-1, in the narrowest unsigned type that holds them."""

_BYTE, _TWO_BYTES = np.dtype(np.uint8), np.dtype("<u2")

PARTS = 2**16
"""Parts of a step of a grid: position PARTS i + f lies f / PARTS of the way from the point of symbol i to the next."""

POSITION = np.dtype("<u4")
"""Type of positions; a column of this type is one of numbers."""

Number = TypeVar("Number", np.int64, np.float64)


def symbol_dtype(size: int) -> np.dtype[np.uint8] | np.dtype[np.uint16]:
    """Return the type of the symbols of an alphabet of `size` categories: uint8 to 256, else little-endian uint16."""
    if not 1 <= size <= MAX_CATEGORIES:
        raise InvalidInputError(f"{size} categories were given, not 1 to {MAX_CATEGORIES}")
    return _BYTE if size <= 256 else _TWO_BYTES


def check_names(names: Iterable[str]) -> None:
    """Refuse one text where a list of names belongs; Python would take it for a list of its characters."""
    if isinstance(names, str):
        raise InvalidInputError(
            f"the attributes were given as the text {names!r}, not as a list of names", remedy=f"Write [{names!r}]."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute: its name and its categories; symbol i stands for categories[i].

    Args:
        categories: in the order of their symbols.
        number: names the numbers that were rounded at random to the categories, their curator and column; "" if none
            were. Two attributes of one number were rounded independently: they are twins.
    """

    name: str
    categories: tuple[str, ...]
    number: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInputError("an attribute has no name")
        if len(set(self.categories)) != len(self.categories):
            raise InvalidInputError("a category is listed twice", where=f"attribute {self.name}")
        symbol_dtype(len(self.categories))

    @property
    def size(self) -> int:
        """Number of categories, K_a."""
        return len(self.categories)

    @property
    def has_absent(self) -> bool:
        """Whether its last category is that of people who are not in its curator's table."""
        return self.categories[-1] == ABSENT

    @property
    def without_absent(self) -> "Attribute":
        """The attribute of the people who are in its curator's table."""
        return replace(self, categories=self.categories[:-1]) if self.has_absent else self

    @property
    def integers(self) -> range | None:
        """The whole numbers that all categories are, one after the other, such as years; None of others."""
        if not re.fullmatch(r"0|-?[1-9][0-9]{0,9}", self.categories[0]):
            return None
        first = int(self.categories[0])
        numbers = range(first, first + self.size)
        return numbers if tuple(map(str, numbers)) == tuple(self.categories) else None


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The attributes of a table, in order; cells are counted in C order (the last attribute runs fastest)."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InvalidInputError("no attribute was given for the table")
        if len(set(self.names)) != len(self.names):
            raise InvalidInputError("an attribute is listed twice")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Alphabet sizes K_a, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def cells(self) -> int:
        """Number of cells K, the product of the K_a (an exact integer, however large)."""
        return prod(self.shape)

    def subset(self, names: Sequence[str]) -> "Domain":
        """Return the domain of some attributes, in the order of `names`.

        Raises:
            InvalidInputError: an unknown or repeated attribute, or none; one text instead of a list of names.
        """
        check_names(names)
        attributes = dict(zip(self.names, self.attributes, strict=True))
        for name in names:
            if name not in attributes:
                raise InvalidInputError(f"no attribute {name!r}", remedy=f"Known: {', '.join(self.names)}.")
        return Domain(attributes=tuple(attributes[name] for name in names))

    @property
    def without_absent(self) -> "Domain":
        """The domain of the people who are in every curator's table."""
        return Domain(attributes=tuple(attribute.without_absent for attribute in self.attributes))

    def summed(self, values: NDArray[Number], names: Sequence[str]) -> NDArray[Number]:
        """Return values of the cells summed down to some attributes, in C order of the domain of `names`.

        Args:
            values: one a cell, shape (K,).
            names: attributes to keep, each once.
        """
        axes = [self.names.index(name) for name in names]
        others = tuple(axis for axis in range(len(self.shape)) if axis not in axes)
        order = np.argsort(np.argsort(axes))
        summed: NDArray[Number] = values.reshape(self.shape).sum(axis=others).transpose(order).reshape(-1)
        return summed

    @property
    def codebook(self) -> dict[str, list[str]]:
        """Attribute -> its categories, in the order of the cells."""
        return {attribute.name: list(attribute.categories) for attribute in self.attributes}

    def categories_of(self, cell: int) -> tuple[str, ...]:
        """Return the category of each attribute in cell number `cell`."""
        symbols = np.unravel_index(cell, self.shape)
        return tuple(a.categories[int(s)] for a, s in zip(self.attributes, symbols, strict=True))
