"""Whom n counts, in words."""

import pytest

from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.missing import respondents_sentence
from veiltab.play.studies.linked_tables import linked_study

TEXT = linked_study().decode()
CATEGORY = 'missing = "category"'


def sentence(text: str, *names: str) -> str:
    return respondents_sentence(study_from_bytes(text.encode(), "s.toml"), names, {})


def test_a_rule_that_drops_counts_for_every_release() -> None:
    dropping = TEXT.replace(CATEGORY, 'missing = "drop"')
    said = "n is the number of people who are in every curator's table and have a value in each attribute of the study"
    assert sentence(dropping, "age", "hours") == f"{said}, also where the release does not ask for it."


@pytest.mark.parametrize(
    ("names", "asked", "ending"),
    [
        (("age", "sex"), "age, sex and 9 other attributes of the study", ""),
        (
            ("age", "country"),
            "age and 10 other attributes of the study",
            ' Missing values are a category in country ("missing").',
        ),
        (
            ("occupation", "workclass", "country"),
            "11 other attributes of the study",
            ' Missing values are a category in workclass ("missing"), occupation ("missing") and country ("missing").',
        ),
    ],
)
def test_attributes_that_a_release_asks_for_are_named(names: tuple[str, ...], asked: str, ending: str) -> None:
    start = f"n is the number of people who are in every curator's table and have a value in {asked}"
    assert sentence(TEXT, *names) == f"{start}.{ending}"


def test_rows_that_were_left_out_are_said_by_curator() -> None:
    study = study_from_bytes(TEXT.encode(), "s.toml")
    said = respondents_sentence(study, ["country"], {"bob": 3620, "alice": 0})
    assert said.endswith(
        " Rows left out for a missing value: 0 at alice and 3,620 at bob."
        ' Missing values are a category in country ("missing").'
    )


def test_without_a_rule_that_drops_n_counts_everybody() -> None:
    none_drops = TEXT.replace(f"{CATEGORY}\n", "").replace("[[attribute]]\n", f"[[attribute]]\n{CATEGORY}\n")
    assert sentence(none_drops, "sex").startswith(
        "n is the number of people who are in every curator's table. Missing values"
    )
