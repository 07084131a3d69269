"""Drafts of curators: which are valid, which make a study together, and which study they make."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from veiltab.common.errors import InvalidInputError
from veiltab.common.study.drafts.draft import Draft, draft_from_bytes, draft_problems, is_draft
from veiltab.common.study.drafts.merging import StudyFrame, conflicts, merged_tables, missing_steps, with_steps
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.toml_text import toml_text

DRAFT = """
[draft]
curator = "alice"
id_columns = ["id"]
id_shapes = ["9+"]
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
missing = "category"
"""

ALICE = draft_from_bytes(DRAFT.encode(), "alice.toml")
BOB = Draft(
    curator="bob",
    id_columns=("person",),
    normalise=("nfc", "casefold", "strip"),
    id_shapes=("9999",),
    attributes=({"name": "wage", "owner": "bob", "column": "pay", "bins": [0, Decimal("0.5"), 9], "recode": {}},),
)
FRAME = StudyFrame(
    id="pay",
    title="Pay",
    epsilon=Decimal("1.5"),
    delta=Decimal("1e-6"),
    server=("cloud", "localhost:1"),
    curators={"alice": "localhost:2", "bob": "localhost:3"},
    researchers={"rosa": "localhost:4"},
)


def test_a_draft_is_read() -> None:
    assert (ALICE.curator, ALICE.id_columns, ALICE.id_shapes) == ("alice", ("id",), ("9+",))
    assert ALICE.normalise == ("strip", "casefold", "nfc")
    assert ALICE.names == ("sex",)
    assert is_draft(DRAFT.encode())
    assert not is_draft(b"[study]")
    assert not is_draft(b"[draft")
    assert draft_problems(DRAFT.encode()) == ()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("id_shapes =", "id_shape =", "line 5, [draft]: unknown key 'id_shape'. Did you mean 'id_shapes' ("),
        (
            "categories =",
            "categorys =",
            "line 9, [[attribute]] sex: unknown key 'categorys'. Did you mean 'categories' (",
        ),
        ('["f", "m"]', '["f", "f"]', "line 6, [[attribute]] sex: category 'f' is listed twice"),
        (
            '["f", "m"]',
            '"f, m"',
            "line 9, [[attribute]] sex: categories is of another kind. It must be a list of texts.",
        ),
        (
            'owner = "alice"\n',
            "",
            "line 6, [[attribute]] sex: owner is not there. Add it: the curator whose column it is.",
        ),
        ('owner = "alice"', 'owner = "bob"', "attribute sex has another owner than alice"),
        ('["9+"]', '["9+", "9+"]', "id_shapes are not as many as id_columns"),
        ('["9+"]', '["1234"]', "id_shapes has '1234', which is not a shape"),
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
    assert (study.id, study.title, study.budget_epsilon, study.budget_delta) == (
        "pay",
        "Pay",
        Decimal("1.5"),
        Decimal("1e-6"),
    )
    assert [(party.name, party.endpoint) for party in (study.server, *study.curators, *study.researchers)] == [
        ("cloud", "localhost:1"),
        ("alice", "localhost:2"),
        ("bob", "localhost:3"),
        ("rosa", "localhost:4"),
    ]
    assert [curator.id_columns for curator in study.curators] == [("id",), ("person",)]
    sex, wage = study.attributes
    assert (sex.owner, sex.attribute.categories) == ("alice", ("f", "m", "missing"))
    assert (wage.owner, wage.column, wage.attribute.categories) == ("bob", "pay", ("[0, 0.5)", "[0.5, 9]"))


def test_a_budget_without_delta_is_pure() -> None:
    text = toml_text(merged_tables([ALICE, BOB], replace(FRAME, delta=None)))
    assert study_from_bytes(text.encode(), "study.toml").budget_delta is None


TWO_WAYS = "alice and bob: ids are normalised in two ways"
OTHERWISE = (
    'Compare the id columns: they hold different things, or need each another normalise (docs/tables.md, "Ids").'
)
CLASH = "alice and bob: ids cannot match: id is written as 9+, person as"
ANOTHER_WAY = "ids are written in another way than those of others:"
INTEGER = 'Write normalise = ["strip", "casefold", "nfc", "integer"]'
BOBS = 'Write normalise = ["nfc", "casefold", "strip", "integer"]'
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
            [ALICE, replace(BOB, id_columns=("a", "b"), id_shapes=("9", "9"))],
            ["alice and bob: ids have 1 and 2 columns. Name respondents by the same columns in both tables."],
        ),
        (
            [ALICE, replace(BOB, id_shapes=("0999",))],
            [f"alice: {ANOTHER_WAY} id as 9+. {INTEGER}", f"bob: {ANOTHER_WAY} person as 0999. {BOBS}"],
        ),
        (
            [replace(ALICE, normalise=(*ALICE.normalise, "integer")), replace(BOB, id_shapes=("9+.0",))],
            [f"bob: {ANOTHER_WAY} person as 9+.0. {BOBS}"],
        ),
        ([ALICE, replace(BOB, id_shapes=("aa-aa",))], [f"{CLASH} aa-aa. {OTHERWISE}"]),
    ],
)
def test_conflicts_are_named(drafts: Sequence[Draft], expected: Sequence[str]) -> None:
    assert [str(conflict) for conflict in conflicts(drafts)] == expected


def test_every_pair_is_compared() -> None:
    carol = replace(CAROL, normalise=("strip",), id_shapes=("aa",))
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
            id_shapes=tuple([one] if isinstance(one, str) else one),
            id_columns=tuple(f"column {number}" for number in range(1 if isinstance(one, str) else len(one))),
            normalise=(*BOB.normalise, *more[place]),
            attributes=({"name": f"age-{place}", "owner": f"curator-{place}", "integers": [1, 3]},),
        )
        for place, one in enumerate(shapes)
    ]


@pytest.mark.parametrize(
    ("drafts", "steps"),
    [
        (drafts_with("9+", "9+"), ()),
        (drafts_with("9+", "0999"), ("integer",)),
        (drafts_with("9+", "9+.0", "0999"), ("integer",)),
        (drafts_with("99-99", "9999"), ("digits",)),
        (drafts_with("9+", "aa-99"), ("digits", "zfill:2")),
        (drafts_with("0999999", "9+", "aa-9999999"), ("digits", "zfill:7")),
        (drafts_with("0999999", "9+", "aa-9999999", steps=[(), ("integer",)]), ("digits", "zfill:7")),
        (drafts_with("99-99", "9999", "9+.0"), ()),
        (drafts_with("9+", "aaa"), ()),
        (drafts_with("9+", "0999", steps=[("integer",)]), ("integer",)),
        (drafts_with("9+", "9+.0", steps=[("zfill:9",)]), ()),
        (drafts_with(["text", "9+"], ["text", "0999"]), ()),  # integer would refuse the texts
        (drafts_with(["9+", "9+"], ["9+", "0999"]), ("integer",)),
    ],
)
def test_the_steps_with_which_the_ids_of_all_curators_match(drafts: Sequence[Draft], steps: tuple[str, ...]) -> None:
    assert missing_steps(drafts) == steps
    if steps:
        assert conflicts(drafts)
        assert not conflicts([with_steps(draft, steps) for draft in drafts])


def test_every_curator_is_told_the_line_to_write() -> None:
    drafts = drafts_with("0999999", "9+", "aa-9999999")
    lines = [str(problem) for problem in conflicts(drafts)]
    assert len(lines) == len(drafts)
    assert all('Write normalise = ["nfc", "casefold", "strip", "digits", "zfill:7"]' in line for line in lines)
