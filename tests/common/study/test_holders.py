"""Attributes that several curators hold: what a study file may say of them."""

import re

import pytest

from tests.common.study.test_file import TEXT, study
from veiltab.common.errors import InvalidInputError
from veiltab.common.study.toml_text import toml_text

HELD = toml_text(
    {
        "curator": [
            {"name": "carol", "endpoint": "localhost:7403", "id_columns": ["id"]},
            {"name": "dan", "endpoint": "localhost:7404", "id_columns": ["id"]},
        ],
        "attribute": [{"name": "stay", "holders": ["dan", "carol"], "several": "sum", "integers": [1, 60]}],
    }
)


def test_an_attribute_may_have_several_holders() -> None:
    read = study(TEXT + HELD)
    stay = read.attributes[-1]
    assert (stay.owner, stay.others, stay.holders) == ("dan", ("carol",), ("dan", "carol"))
    assert stay.attribute.has_absent
    assert stay.attribute.size == 61
    assert [rule.name for name in ("carol", "dan") for rule in read.attributes_of(name)] == ["stay", "stay"]
    apart = HELD.replace('"sum"\nintegers = [1, 60]', '"apart"\ncategories = ["short", "long"]')
    assert study(TEXT + apart).attributes[-1].attribute.categories == ("short", "long", "absent")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('several = "sum"', "", "several = '' is not known. Use one of: apart, sum."),
        ('several = "sum"', 'several = "most"', "several = 'most' is not known. Use one of: apart, sum."),
        ('several = "sum"', 'several = "first"', "a holder would learn which of its people an earlier one has"),
        ("holders", 'owner = "alice"\nholders', "there is not one of owner and holders"),
        ('holders = ["dan", "carol"]\n', "", "there is not one of owner and holders"),
        ('holders = ["dan", "carol"]', 'owner = "dan"', "several stands without holders"),
        ('["dan", "carol"]', '["dan"]', "holders are not two or more different curators"),
        ('["dan", "carol"]', '["dan", "dan"]', "holders are not two or more different curators"),
        ('["dan", "carol"]', '["dan", "erin"]', "attribute stay has the owner 'erin', who is not a curator"),
        ('["dan", "carol"]', '["dan", "alice"]', "attribute stay has the holder alice, who lacks nobody of the hub"),
        ("[1, 60]", "[0, 60]", "whole numbers from 1"),
        ("integers = [1, 60]", 'categories = ["1", "3"]', "whole numbers from 1"),
        ("integers = [1, 60]", 'integers = [1, 60]\nmissing = "category"', "whole numbers from 1"),
        ("integers = [1, 60]", 'kind = "number"\ngrid = [1, 2, 3]', "whole numbers from 1"),
    ],
)
def test_holders_whose_sum_would_mean_nothing_are_refused(old: str, new: str, problem: str) -> None:
    assert HELD.count(old) == 1
    with pytest.raises(InvalidInputError, match=re.escape(problem)):
        study(TEXT + HELD.replace(old, new))
