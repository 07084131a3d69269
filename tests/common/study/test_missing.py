"""Whom n counts, in words."""

import pytest

from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.missing import presence_sentence, respondents_sentence
from veiltab.play.studies.linked_tables import linked_study

TEXT = linked_study().decode()
CATEGORY = 'missing = "category"'


def sentence(text: str, *names: str) -> str:
    return respondents_sentence(study_from_bytes(text.encode(), "s.toml"), names, {})


HUB = "n is the number of people in the table of alice"


@pytest.mark.parametrize(
    ("names", "asked", "ending"),
    [
        (("age", "sex"), "age, sex and 4 other attributes of it", ""),
        (
            ("age", "country"),
            "age and 5 other attributes of it",
            ' Missing values are a category in country ("missing").',
        ),
        (
            ("occupation", "workclass", "country"),
            "6 other attributes of it",
            ' Missing values are a category in workclass ("missing"), occupation ("missing") and country ("missing").',
        ),
    ],
)
def test_attributes_of_the_hub_that_a_release_asks_for_are_named(
    names: tuple[str, ...], asked: str, ending: str
) -> None:
    assert sentence(TEXT, *names) == f"{HUB} who have a value in {asked}.{ending}"


def test_estimates_are_of_those_whom_the_others_have() -> None:
    lacking = TEXT.replace("complete = true\n", "")
    assert sentence(lacking, "age", "hours").endswith(
        ' Estimates are of those who are in the table of bob, unless "absent" is shown.'
    )
    assert "absent" not in sentence(lacking, "age", "sex") + sentence(TEXT, "age", "hours")


CAROL = '[[curator]]\nname = "carol"\nendpoint = "localhost:7403"\nid_columns = ["id"]\n[[researcher]]'
INCOMPLETE = ("complete = true\n", "")
COMPLETE = "That everybody in the table of alice is in that of bob is public. bob learns"
OF_BOB = (
    "Whether a person is in the table of bob, and what stands there, is one row of n, and no curator but bob learns"
)
OF_TWO = (
    "Whether a person is in the table of bob or carol, and what stands there, is one row of n, and no other curator"
)
KNOWN = "learns which of its own people alice has"
HUB_KNOWN = "That a person is in the table of alice is not protected."
TESTS = "and can test every name that it can think of"
ROWS = "If alice exchanges people, a person may lie in 2 rows, one for each of bob and carol."
SAID = (
    f"{COMPLETE} which of its own people alice has. {HUB_KNOWN}",
    f"{OF_BOB} whether the person is in it. bob {KNOWN}. {HUB_KNOWN}",
    f"{OF_TWO} learns whether the person is in it. Each of bob and carol {KNOWN} {TESTS}. {HUB_KNOWN} {ROWS}",
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((), SAID[0]),
        ((INCOMPLETE,), SAID[1]),
        ((INCOMPLETE, ("[[researcher]]", CAROL), ("[study]", '[study]\nalignment = "tokens"')), SAID[2]),
    ],
)
def test_who_learns_of_whose_presence(changes: tuple[tuple[str, str], ...], said: str) -> None:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new, 1)
    assert presence_sentence(study_from_bytes(text.encode(), "s.toml")) == said


def test_rows_that_were_left_out_are_said_by_curator() -> None:
    study = study_from_bytes(TEXT.encode(), "s.toml")
    said = respondents_sentence(study, ["country"], {"bob": 3620, "alice": 0})
    assert said.endswith(
        " Rows left out for a missing value: 0 at alice and 3,620 at bob."
        ' Missing values are a category in country ("missing").'
    )


def test_without_a_rule_that_drops_n_counts_everybody() -> None:
    none_drops = TEXT.replace(f"{CATEGORY}\n", "").replace("[[attribute]]\n", f"[[attribute]]\n{CATEGORY}\n")
    assert sentence(none_drops, "sex").startswith(f"{HUB}. Missing values")
