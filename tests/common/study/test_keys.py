"""The reference of keys is complete: what the readers ask for, what docs/ lists, and what init writes."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from veiltab.common.study.drafts.draft import draft_from_bytes
from veiltab.common.study.drafts.template import study_template
from veiltab.common.study.fields import Fields
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.keys import DRAFT_TABLES, STUDY_TABLES, Kind, TableKeys
from veiltab.common.study.problems import study_problems
from veiltab.curator.officer.policy import load_policy

DOCS = Path(__file__).parents[3] / "docs"

EVERY_TABLE = """
[study]
id = "s"
title = "S"
[budget]
epsilon = 1
[release]
[server]
name = "cloud"
endpoint = "localhost:1"
[[curator]]
name = "alice"
endpoint = "localhost:2"
id_columns = ["id"]
[[curator]]
name = "bob"
endpoint = "localhost:3"
id_columns = ["id"]
[[researcher]]
name = "rosa"
endpoint = "localhost:4"
[[analyst]]
name = "ana"
researcher = "rosa"
[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
missing = "category"
[nodes]
name = "fleet"
budget_epsilon = 1
[[question]]
name = "age"
integers = [1, 3]
missing = "category"
"""

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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Keys that were asked for, by the place of their table in the file, for every table that was read whole."""
    found: dict[str, set[str]] = {}
    finish = Fields.finish

    def recorded(fields: Fields) -> None:
        found[re.sub(r"\]\].*", "]]", fields.where).strip()] = set(fields._asked)
        finish(fields)

    monkeypatch.setattr(Fields, "finish", recorded)
    return found


def headers(tables: Mapping[str, TableKeys]) -> dict[str, TableKeys]:
    return {f"[[{name}]]" if table.is_list else f"[{name}]": table for name, table in tables.items()}


def test_the_reference_has_the_keys_that_reading_asks_for(asked: dict[str, set[str]]) -> None:
    study_from_bytes(EVERY_TABLE.encode(), "")
    assert asked.pop("") == set(STUDY_TABLES)
    assert asked == {header: set(table.keys) for header, table in headers(STUDY_TABLES).items()}


def test_the_reference_has_the_keys_that_reading_a_draft_asks_for(asked: dict[str, set[str]]) -> None:
    draft_from_bytes(DRAFT.encode(), "")
    assert asked.pop("") == set(DRAFT_TABLES)
    assert asked == {header: set(table.keys) for header, table in headers(DRAFT_TABLES).items()}


def rows(tables: Mapping[str, TableKeys]) -> list[str]:
    return [
        f"| `{name}` | {key.kind.value} | {key.default or 'it must be there'} | {key.meaning} |"
        for table in tables.values()
        for name, key in table.keys.items()
    ]


def documented(page: str, heading: str) -> list[str]:
    """The rows below the headings from one on that document a key."""
    text = (DOCS / page).read_text("utf-8").split(heading, 1)[1]
    return [line for line in text.splitlines() if line.startswith("| `")]


def test_the_page_of_the_study_file_lists_every_key_of_the_reference() -> None:
    text = (DOCS / "study-file.md").read_text("utf-8")
    attribute = {"attribute": STUDY_TABLES["attribute"]}
    assert set(rows({"question": STUDY_TABLES["question"]})) < set(rows(attribute))
    assert rows({"attribute": DRAFT_TABLES["attribute"]}) == rows(attribute)
    assert documented("study-file.md", "## Tables") == [
        *(row for name, table in STUDY_TABLES.items() if name != "question" for row in rows({name: table})),
        *(row for name, table in DRAFT_TABLES.items() if name != "attribute" for row in rows({name: table})),
    ]
    assert re.findall(r"^### `(.*)`$", text, re.MULTILINE) == [*headers(STUDY_TABLES), *headers(DRAFT_TABLES)]


def test_the_page_of_the_policy_lists_every_key_that_reading_asks_for(
    asked: dict[str, set[str]], tmp_path: Path
) -> None:
    text = (DOCS / "policy.md").read_text("utf-8")
    example = text.split("```toml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "policy.toml").write_text(example)
    policy = load_policy(tmp_path / "policy.toml", researchers=["rosa"], attributes=["education", "wage"])
    assert len(policy.rules) == 2
    of_file, of_rule, of_notices = (
        {re.findall(r"`(.*?)`", row)[0] for row in part.splitlines() if row.startswith("| `")}
        for part in re.split(r"## `\[.*\]`", text.split("## The file")[1])
    )
    assert {re.sub(r".*policy\.toml", "", where).strip(): keys for where, keys in asked.items()} == {
        "": of_file,
        "[[rule]]": of_rule,
        "[notify]": of_notices,
    }


def test_every_default_that_is_toml_is_of_the_kind_of_its_key() -> None:
    kinds = {Kind.TEXT: str, Kind.WHOLE_NUMBER: int, Kind.TEXTS: list, Kind.TEXT_TO_TEXT: dict}
    checked = 0
    for table in (*STUDY_TABLES.values(), *DRAFT_TABLES.values()):
        for key in table.keys.values():
            if key.default and re.match(r'["\[{\d]', key.default):
                assert isinstance(tomllib.loads(f"x = {key.default}")["x"], kinds[key.kind])
                checked += 1
    assert checked > 12


def test_what_init_writes_is_a_study_and_names_every_key_of_its_tables() -> None:
    text = study_template("wages")
    study = study_from_bytes(text.encode(), "study.toml")
    assert study.id == "wages"
    assert [rule.owner for rule in study.attributes] == ["alice", "bob"]
    tables = {re.sub(r"\W", "", line) for line in text.splitlines() if line.startswith("[")}
    assert set(STUDY_TABLES) - tables == {"analyst", "nodes", "question"}
    for name in tables:
        for key in STUDY_TABLES[name].keys:
            assert re.search(rf"^(# )?{key} (=|\()", text, re.MULTILINE), key
    assert max(map(len, text.splitlines())) <= 120


def test_a_study_without_problems_has_none() -> None:
    assert study_problems(EVERY_TABLE.encode()) == ()
