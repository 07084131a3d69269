"""The reference of keys is complete: what the readers ask for, what docs/ lists, and what init writes."""

import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from tests.common.study.other import FULL
from tests.study_page import EXAMPLE, PAGE, TEMPLATE, page
from veiltab.common.study.drafts.draft import DRAFT_TABLES
from veiltab.common.study.drafts.template import study_template
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.problems import study_problems
from veiltab.common.study.study_tables import STUDY_TABLES
from veiltab.common.study.toml_fields import Fields
from veiltab.curator.officer.policy import load_policy

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Keys that were asked for, by the place of their table in the file, for every table that was read whole."""
    found: dict[str, set[str]] = {}
    finish = Fields.finish

    def recorded(fields: Fields) -> None:
        found[re.sub(r"\]\].*", "]]", fields.where).strip()] = set(fields._read_keys)
        finish(fields)

    monkeypatch.setattr(Fields, "finish", recorded)
    return found


def test_the_page_of_the_study_file_is_what_the_keys_make_of_it() -> None:
    assert (page(), EXAMPLE) == (PAGE.read_text("utf-8"), TEMPLATE.read_text("utf-8")), "run `make study-page`"
    assert {"owner", "column"} == set(STUDY_TABLES["attribute"].keys) - set(STUDY_TABLES["question"].keys)
    assert DRAFT_TABLES["attribute"].keys == STUDY_TABLES["attribute"].keys


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
    read = [
        key.kind.read(Fields(tomllib.loads(f"x = {key.default}", parse_float=Decimal), ""), "x")
        for table in (*STUDY_TABLES.values(), *DRAFT_TABLES.values())
        for key in table.keys.values()
        if key.default and re.match(r'["\[{\d]', key.default)
    ]
    assert len(read) > 12


def test_what_init_writes_is_a_study_and_names_every_key_of_its_tables() -> None:
    text = study_template("wages")
    study = study_from_bytes(text.encode(), "study.toml")
    assert study.id == "wages"
    assert [rule.owner for rule in study.attributes] == ["alice", "bob"]
    tables = {re.sub(r"\W", "", line) for line in text.splitlines() if line.startswith("[")}
    assert set(STUDY_TABLES) - tables == {"analyst", "identity", "nodes", "question", "relay"}
    for name in tables:
        for key in STUDY_TABLES[name].keys:
            assert re.search(rf"^(# )?{key} (=|\()", text, re.MULTILINE), key
    assert max(map(len, text.splitlines())) <= 120


def test_a_study_without_problems_has_none() -> None:
    assert study_problems(FULL) == ()
