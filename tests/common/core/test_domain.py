"""Alphabets and the cells of their joint table."""

import numpy as np
import pytest

from veiltab.common.core.domain import MAX_CATEGORIES, Attribute, Domain, symbol_dtype
from veiltab.common.errors import InvalidInputError

SEX = Attribute(name="sex", categories=("f", "m"))
AGE = Attribute(name="age", categories=("young", "middle", "old"))
DOMAIN = Domain(attributes=(SEX, AGE))


@pytest.mark.parametrize(("size", "dtype"), [(1, "u1"), (256, "u1"), (257, "<u2"), (65_536, "<u2")])
def test_a_symbol_has_the_narrowest_type(size: int, dtype: str) -> None:
    assert symbol_dtype(size) == np.dtype(dtype)


@pytest.mark.parametrize("size", [-1, 0, 65_537])
def test_other_alphabets_have_no_symbols(size: int) -> None:
    with pytest.raises(InvalidInputError, match=f"{size} categories were given, not 1 to {MAX_CATEGORIES}"):
        symbol_dtype(size)


@pytest.mark.parametrize(
    ("name", "categories", "problem"),
    [
        ("", ("f", "m"), "has no name"),
        ("sex", ("f", "f"), "attribute sex: a category is listed twice"),
        ("sex", (), "0 categories were given"),
    ],
)
def test_attributes_that_cannot_be_are_refused(name: str, categories: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        Attribute(name=name, categories=categories)


def test_a_domain_needs_attributes_each_once() -> None:
    with pytest.raises(InvalidInputError, match="no attribute was given for the table"):
        Domain(attributes=())
    with pytest.raises(InvalidInputError, match="listed twice"):
        Domain(attributes=(SEX, AGE, SEX))


def test_cells_are_counted_in_c_order() -> None:
    assert (DOMAIN.names, DOMAIN.shape, DOMAIN.cells, SEX.size) == (("sex", "age"), (2, 3), 6, 2)
    assert [DOMAIN.categories_of(cell) for cell in range(6)] == [(sex, age) for sex in "fm" for age in AGE.categories]


def test_a_subset_keeps_the_order_asked_for() -> None:
    assert DOMAIN.subset(["age", "sex"]) == Domain(attributes=(AGE, SEX))
    assert DOMAIN.subset(["age"]) == Domain(attributes=(AGE,))
    with pytest.raises(InvalidInputError, match=r"no attribute 'height'.*Known: sex, age"):
        DOMAIN.subset(["height"])


def test_one_text_is_no_list_of_names() -> None:
    with pytest.raises(InvalidInputError, match=r"given as the text 'sex'.*Write \['sex'\]"):
        DOMAIN.subset("sex")
