"""A study has ids or an identity; what is wrong with either is said."""

from decimal import Decimal

import pytest

from tests.common.study.other import CHANGES, FULL
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import FieldKind
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.missing import presence_sentence, respondents_sentence
from veiltab.common.study.problems import study_problems

OLD, NEW, _ = CHANGES["identity in the place of ids"]
LINKED = FULL.replace(OLD, NEW).decode()
FIELDS = 'fields = ["given", "family", "birth"]'
ALICE = 'identity = { given = "first", family = "last", birth = ["year", "month", "day"] }'
BOB = 'identity = { given = "first", family = "last", birth = "born" }'


def test_a_study_with_an_identity() -> None:
    study = study_from_bytes(LINKED.encode(), "")
    assert study.identity is not None
    assert study.identity.hub == "alice"
    assert study.identity.names == ["given", "family", "birth"]
    assert study.identity.ladder[0].name == "given family birth"
    assert len(study.identity.ladder) == 4
    assert study.curator("alice").id_columns == ("first", "last", "year", "month", "day")
    assert study.curator("bob").date_order == "dmy"
    assert study_problems(LINKED.encode()) == ()


def test_results_say_that_n_counts_people_who_are_linked() -> None:
    study = study_from_bytes(LINKED.encode(), "")
    said = respondents_sentence(study, ["age"], {})
    assert said.startswith("n is the number of people in the table of alice")
    assert "Some links may be wrong: --linkage-error undoes them." in said


def test_what_may_be_stated() -> None:
    more = f"""{FIELDS[:-1]}, "sex", "parish:text"]
ladder = ["parish given birth", "given~ family birth sex"]
default_dates = ["1901-01-01", "01-01"]
missing_values = ["n.n."]
cap = 0.01
alone_in_spoke = 0.25
placebo = true
"""
    text = LINKED.replace(FIELDS, more).replace('birth = "born"', 'birth = "born", parish = "parish"')
    text = text.replace('"day"]', '"day"], parish = "pa"')
    identity = study_from_bytes(text.encode(), "").identity
    assert identity is not None
    assert identity.kinds["parish"] is FieldKind.TEXT
    assert [step.deletion for step in identity.ladder] == ["", "given"]
    assert (identity.cap, identity.alone_in_spoke, identity.alone_in_hub) == (
        Decimal("0.01"),
        Decimal("0.25"),
        Decimal("0.5"),
    )
    assert identity.wrong_a_match * 6 == 1
    assert identity.placebo
    assert (identity.default_dates, identity.missing_values) == (("1901-01-01", "01-01"), ("n.n.",))
    assert study_from_bytes(text.replace('["n.n."]', '["N.N."]').encode(), "").identity != identity


def test_deletions_follow_the_default_ladder() -> None:
    identity = study_from_bytes(LINKED.replace(FIELDS, f"{FIELDS}\ndeletions = 2").encode(), "").identity
    assert identity is not None
    assert [step.name for step in identity.ladder][4:] == ["given~ family birth", "family~ given birth"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('hub = "alice"', 'hub = "alise"', "hub = 'alise' is not a curator"),
        ('hub = "alice"\n', "", "hub is not there"),
        (FIELDS, 'fields = ["given", "famly"]', "'famly', whose kind is not known"),
        (FIELDS, 'fields = ["given", "parish:place"]', "'place' is not known"),
        (FIELDS, "fields = []", "fields names none"),
        (FIELDS, f'{FIELDS[:-1]}, "card:number", "card:text"]', "'card' twice"),
        (FIELDS, 'fields = ["given", "birth", "family", "b:birth"]', "two dates of birth"),
        (FIELDS, 'fields = ["given", "family"]', "there is no default ladder"),
        (FIELDS, 'fields = ["given", "maiden:family", "birth"]', "there is no default ladder"),
        (FIELDS, f"{FIELDS}\ndeletions = 3", "deletions = 3 is not from 0 to 2"),
        (FIELDS, f'{FIELDS}\ndeletions = 1\nladder = ["given"]', "a ladder and deletions"),
        (FIELDS, f'{FIELDS}\nladder = ["given sex"]', "'sex' in a key, which is not a field"),
        (FIELDS, f'{FIELDS}\nladder = ["given:sond"]', "'given:sond', which is not a part of a field"),
        (FIELDS, f'{FIELDS}\nladder = ["given", "given"]', "'given' twice"),
        (FIELDS, f'{FIELDS}\nladder = ["given~ family~"]', "lets two fields differ"),
        (FIELDS, f'{FIELDS}\nladder = ["given+family+birth"]', "joins three"),
        (FIELDS, f'{FIELDS}\ndefault_dates = ["1.1.1900"]', "default_dates has '1.1.1900'"),
        ('date_order = "dmy"', 'date_order = "dmy"\nfirst_year = 0', "first_year is not a year"),
        (FIELDS, f"{FIELDS}\ncap = 0", "cap is not between 0 and 1"),
        (FIELDS, f"{FIELDS}\nalone_in_spoke = 1", "a share of rows without partner"),
        (FIELDS, f"{FIELDS}\nplacebo = 1", "placebo is of another kind"),
        (FIELDS, f"{FIELDS}\nhubs = 1", "unknown key 'hubs'"),
        (ALICE, 'id_columns = ["id"]', "curator alice has ids, and the study has an [identity]"),
        (ALICE, f'{ALICE}\nid_columns = ["id"]', "ids and an identity"),
        (ALICE, "", "id_columns names no column"),
        (ALICE, ALICE.replace("given", "givn"), "'givn', which is not a field"),
        (ALICE, ALICE.replace('"first"', "[]"), "identity has no column for given"),
        (ALICE, ALICE.replace('"first"', "7"), "given is of another kind"),
        (ALICE, ALICE.replace('"last"', '"first"'), "'first' twice"),
        (BOB, 'identity = { birth = "born" }', "curator bob and the hub have no key of the ladder"),
        ('date_order = "dmy"', 'date_order = "dym"', "date_order = 'dym' is not known"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, said: str) -> None:
    text = LINKED.replace(old, new, 1)
    assert text != LINKED
    with pytest.raises(InvalidInputError) as refusal:
        study_from_bytes(text.encode(), "")
    assert said in str(refusal.value)
    assert refusal.value.remedy
    assert any(said in str(problem) for problem in study_problems(text.encode()))


def test_a_curator_with_an_identity_needs_the_studys() -> None:
    text = FULL.decode().replace('id_columns = ["id"]\nnormalise = ["strip"]', ALICE)
    with pytest.raises(InvalidInputError, match="curator alice has an identity, and the study has none"):
        study_from_bytes(text.encode(), "")


def test_a_number_that_no_key_takes_links_nobody_and_is_not_said_to() -> None:
    text = LINKED.replace(FIELDS, f'{FIELDS[:-1]}, "card:number"]').replace(
        'birth = "born"', 'birth = "born", card = "c"'
    )
    assert presence_sentence(study_from_bytes(text.encode(), "")).endswith(
        "People are linked by given, family and birth: a row of another curator that is changed, added or removed"
        " changes one row; other identifiers change 2."
    )
