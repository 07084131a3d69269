"""Drafts of curators: which are valid, which make a study together, and which study they make."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from veiltab.common.core.domain import ABSENT
from veiltab.common.errors import InvalidInputError
from veiltab.common.release.floors import USUAL, Floors
from veiltab.common.study.drafts.draft import Draft, draft_from_bytes, draft_problems, is_draft
from veiltab.common.study.drafts.merging import (
    StudyFrame,
    conflicts,
    effects,
    merged_tables,
    missing_steps,
    remarks,
    with_steps,
)
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.forms import Forms
from veiltab.common.study.toml_text import toml_text

DRAFT = """
[draft]
curator = "alice"
id_columns = ["id"]
forms = { id = { "9+" = 100 } }
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
missing = "category"
"""

STEPS = ("integer", "digits", "first", "last")
ALICE = draft_from_bytes(DRAFT.encode(), "alice.toml")
BOB = Draft(
    curator="bob",
    id_columns=("person",),
    normalise=("nfc", "casefold", "strip"),
    forms=(("person", (("9999", 90),)),),
    distinct_after=STEPS,
    attributes=({"name": "wage", "owner": "bob", "column": "pay", "bins": [0, Decimal("0.5"), 9], "recode": {}},),
)


def parts(text: str) -> Forms:
    """Return forms such as "0999 9+", each of a hundred rows."""
    return tuple((form, 100) for form in text.split())


def written(draft: Draft, text: str) -> Draft:
    """Return a draft whose ids are written so."""
    return replace(draft, forms=((draft.id_columns[0], parts(text)),))


FRAME = StudyFrame(
    id="pay",
    title="Pay",
    epsilon=Decimal("1.5"),
    delta=Decimal("1e-6"),
    server=("cloud", "localhost:1"),
    curators={"alice": "localhost:2", "bob": "localhost:3"},
    researchers={"rosa": "localhost:4"},
    hub="alice",
)


def test_a_draft_without_forms_is_valid_and_cannot_be_merged() -> None:
    assert [problem.problem for problem in conflicts([replace(ALICE, forms=()), BOB])] == [
        "forms is not there: how its ids are written"
    ]


def test_a_draft_is_read() -> None:
    assert (ALICE.curator, ALICE.id_columns, ALICE.forms) == ("alice", ("id",), (("id", (("9+", 100),)),))
    assert ALICE.normalise == ("strip", "casefold", "nfc")
    assert ALICE.names == ("sex",)
    assert is_draft(DRAFT.encode())
    assert not is_draft(b"[study]")
    assert not is_draft(b"[draft")
    assert draft_problems(DRAFT.encode()) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("forms =", "form =", "line 5, [draft]: unknown key 'form'. Did you mean 'forms' ("),
        ("categories =", "categorys =", "line 9, [[attribute]] sex: unknown key 'categorys'. Did you mean"),
        ('["f", "m"]', '["f", "f"]', "line 6, [[attribute]] sex: category 'f' is listed twice"),
        ('["f", "m"]', '"f, m"', "line 9, [[attribute]] sex: categories is of another kind."),
        ('owner = "alice"\n', "", "line 6, [[attribute]] sex: there is not one of owner and holders."),
        ('owner = "alice"', 'owner = "bob"', "attribute sex has another owner than alice"),
        ('"9+" = 100 }', '"9+" = 100 }, b = { "9" = 1 }', "forms are not of the id columns"),
        ('"9+"', '"1234"', "forms of id has '1234', which is not a form"),
        ('["id"]', "[]", "id_columns names no column"),
        ('"alice"', '"Alice"', "curator = 'Alice' is not a name"),
        ("[draft]", "[study]", "unknown table 'study'. Known tables: draft, attribute."),
        ("[[attribute]]", "[attribute]", "line 6: attribute is of another kind. It must be tables [[attribute]]."),
        ("[[attribute]]", "[[attribute]]]", "line 6: not a TOML file"),
    ],
)
def test_a_draft_that_was_edited_wrongly_says_where(old: str, new: str, expected: str) -> None:
    assert old in DRAFT
    edited = DRAFT.replace(old, new, 1).encode()
    assert expected in " ".join(str(problem) for problem in draft_problems(edited))
    with pytest.raises(InvalidInputError):
        draft_from_bytes(edited, "alice.toml")


def test_an_attribute_stands_once_in_a_draft() -> None:
    with pytest.raises(InvalidInputError, match="attributes are named 'sex' twice"):
        replace(ALICE, attributes=ALICE.attributes * 2)


def test_drafts_without_conflicts_make_a_study() -> None:
    assert conflicts([ALICE, BOB]) == ()
    study = study_from_bytes(toml_text(merged_tables([ALICE, BOB], FRAME)).encode(), "study.toml")
    assert (study.id, study.title) == ("pay", "Pay")
    assert (study.budget_epsilon, study.budget_delta) == (Decimal("1.5"), Decimal("1e-6"))
    served = {party.name: party.endpoint for party in (study.server, *study.curators, *study.researchers)}
    assert served == {name: f"localhost:{n}" for n, name in enumerate(("cloud", "alice", "bob", "rosa"), 1)}
    assert Floors.of(study) == replace(USUAL, population=100, pair_epsilon=Decimal("4.5"), row_epsilon=None)
    assert study.minimum_noise_split == Decimal("0.25")
    assert [curator.id_columns for curator in study.curators] == [("id",), ("person",)]
    sex, wage = study.attributes
    assert (sex.owner, sex.attribute.categories) == ("alice", ("f", "m", "missing"))
    assert (wage.owner, wage.column, wage.attribute.categories) == ("bob", "pay", ("[0, 0.5)", "[0.5, 9]", ABSENT))


def test_a_budget_without_delta_is_pure() -> None:
    text = toml_text(merged_tables([ALICE, BOB], replace(FRAME, delta=None)))
    assert study_from_bytes(text.encode(), "study.toml").budget_delta is None


TWO_WAYS = "alice and bob: ids are normalised in two ways"
OTHERWISE = (
    'Compare the id columns: they hold different things, or need each another normalise (docs/tables.md, "Ids").'
)
CLASH = "alice and bob: ids cannot match: id is written as 9+, by bob as"
ANOTHER_WAY = "ids are written in another way than those of others:"
INTEGER = 'Write into the draft of alice: normalise = ["strip", "casefold", "nfc", "integer"]'
BOBS = 'Write into the draft of bob: normalise = ["nfc", "casefold", "strip", "integer"]'
CAROL = replace(BOB, curator="carol", attributes=({"name": "age", "owner": "carol", "integers": [1, 3]},))


@pytest.mark.parametrize(
    ("drafts", "expected"),
    [
        ([ALICE], ["a study needs two curators or more. Give the draft of each."]),
        ([ALICE, ALICE], ["alice: two drafts are of this curator. Give one draft a curator."]),
        (
            [ALICE, replace(BOB, attributes=({**ALICE.attributes[0], "owner": "bob"},))],
            ["alice and bob: both have an attribute 'sex'. Name it otherwise in one, or leave it out."],
        ),
        (
            [ALICE, replace(BOB, normalise=())],
            [f"{TWO_WAYS}: strip, casefold, nfc, and not at all. Take the same of strip, casefold and nfc."],
        ),
        (
            [ALICE, replace(BOB, id_columns=("a", "b"), forms=(("a", (("9", 1),)), ("b", (("9", 1),))))],
            ["alice and bob: ids have 1 and 2 columns. Name respondents by the same columns in both tables."],
        ),
        (
            [ALICE, written(BOB, "0999")],
            [f"alice: {ANOTHER_WAY} id as 9+. {INTEGER}", f"bob: {ANOTHER_WAY} person as 0999. {BOBS}"],
        ),
        (
            [replace(ALICE, normalise=(*ALICE.normalise, "integer")), written(BOB, "9+.0")],
            [f"bob: {ANOTHER_WAY} person as 9+.0. {BOBS}"],
        ),
        ([ALICE, written(BOB, "aa-aa")], [f"{CLASH} aa-aa. {OTHERWISE}"]),
    ],
)
def test_conflicts_are_named(drafts: Sequence[Draft], expected: Sequence[str]) -> None:
    assert [str(conflict) for conflict in conflicts(drafts)] == expected


def test_every_pair_is_compared() -> None:
    carol = replace(written(CAROL, "aa"), normalise=("strip",))
    assert [conflict.where for conflict in conflicts([ALICE, BOB, carol])] == [
        "alice and carol",
        "bob and carol",
        "alice and carol",
        "bob and carol",
    ]
    assert conflicts([ALICE, BOB, CAROL]) == ()


def drafts_with(*shapes: str | Sequence[str], steps: Sequence[tuple[str, ...]] = ()) -> list[Draft]:
    """Return drafts whose ids are written so, and are normalised by some more steps."""
    more = [*steps, *(() for _ in shapes)]
    return [
        replace(
            BOB,
            curator=f"curator-{place}",
            forms=tuple((f"column {number}", parts(column)) for number, column in enumerate(columns)),
            id_columns=tuple(f"column {number}" for number in range(len(columns))),
            normalise=(*BOB.normalise, *more[place]),
            attributes=({"name": f"age-{place}", "owner": f"curator-{place}", "integers": [1, 3]},),
        )
        for place, one in enumerate(shapes)
        for columns in [[one] if isinstance(one, str) else one]
    ]


@pytest.mark.parametrize(
    ("drafts", "steps"),
    [
        (drafts_with("9+", "9+"), ()),
        (drafts_with("9+", "0999"), ("integer",)),
        (drafts_with("9+", "9+.0", "0999"), ("integer",)),
        (drafts_with("09999999", "09999999 9999999"), ("integer",)),
        (drafts_with("09999999 9+", "09999999 9+"), ("integer",)),
        (drafts_with("0999", "0999 999 text"), ("zfill:4",)),
        (drafts_with("9+", "VN-99"), ("digits",)),
        (drafts_with("9+", "VN-099"), ("digits", "zfill:3")),
        (drafts_with("0999999", "9+", "VN-0999999", steps=[(), ("integer",)]), ("digits", "zfill:7")),
        (drafts_with("099-09", "099/99"), ("digits",)),
        (drafts_with("9+", "0999", steps=[("integer",)]), ("integer",)),
        (drafts_with(["9+", "9+"], ["9+", "0999"]), ("integer",)),
        (drafts_with("9+", "9+.0", steps=[("zfill:9",)]), ()),
        (drafts_with("09999999", "09999999-9"), ()),  # a check digit
        (drafts_with("99-99", "9999"), ()),
        (drafts_with("099999", "099999/99"), ()),  # a year
        (drafts_with("9+/99", "9+-99"), ()),  # 12/34 and 1/234
        (drafts_with("09999999", "099999999"), ()),  # two numberings of fixed widths
        (drafts_with("0999", "GP-0999 0999"), ()),  # a prefix of a part of the rows
        (drafts_with("0999", "a-0999"), ()),  # letters that differ
        (drafts_with("99,999", "99999"), ()),
        (drafts_with(["text", "9+"], ["text", "0999"]), ("zfill:4",)),  # integer would refuse the texts
    ],
)
def test_the_steps_with_which_the_ids_of_all_curators_match(drafts: Sequence[Draft], steps: tuple[str, ...]) -> None:
    assert missing_steps(drafts) == steps
    assert missing_steps([*reversed(drafts)]) == steps
    if steps:
        assert conflicts(drafts) or remarks(drafts)
        changed = [with_steps(draft, steps) for draft in drafts]
        assert not conflicts(changed)
        assert missing_steps(changed) == ()
        same = [replace(draft, distinct_after=()) for draft in drafts]
        assert missing_steps(same) == ()  # the steps could make two ids of one table equal


def test_what_steps_do_is_said_in_rows() -> None:
    drafts = drafts_with("09999999", "09999999 9+")
    assert effects(drafts, missing_steps(drafts)) == [
        "100 column 0 of curator-0, written as 09999999, become 9+",
        "100 column 0 of curator-1, written as 09999999, become 9+",
        "100 column 0 of curator-1, written as 9+, stay so",
    ]


def test_a_part_that_is_written_otherwise_is_named() -> None:
    drafts = drafts_with("0999", "GP-0999 0999")
    assert conflicts(drafts) == ()
    assert remarks(drafts) == [
        "100 of 200 rows of curator-1 have column 0 written as no row of curator-0: GP-0999; there: 0999"
    ]
    remark, _ = remarks(drafts_with("0999 999 text", "0999 999 text"))
    assert remark.startswith("column 0 of curator-0 has numbers with leading zeros and others that may have lost them")


@pytest.mark.parametrize(
    ("one", "other", "remedy"),
    [
        ("09999999", "09999999-9", "curator-1 has more groups of digits, such as a check digit, a year or a place."),
        ("99,999", "99999", "Export the ids of curator-0 without a mark between thousands."),
        ("99999", "99\u2423999", "Export the ids of curator-1 without a mark between thousands."),
        ("99999999", "99999999a", "The ids of curator-1 have letters, such as a check letter or a place."),
        ("99999999", "9.099999E+09", "Export the column as text from where its digits are whole."),
        ("aaa", "99", "Compare the id columns"),
    ],
)
def test_where_no_step_is_right_it_is_said_what_to_do(one: str, other: str, remedy: str) -> None:
    (conflict,) = conflicts(drafts_with(one, other))
    assert remedy in str(conflict)


def test_every_curator_is_told_the_line_to_write() -> None:
    drafts = drafts_with("0999999", "9+", "VN-0999999")
    lines = [str(problem) for problem in conflicts(drafts)]
    assert len(lines) == len(drafts)
    assert all(': normalise = ["nfc", "casefold", "strip", "digits", "zfill:7"]' in line for line in lines)
