"""`veiltab study`: from nothing, or from tables that nobody prepared, to a study file that loads."""

import io
import json
import re
import sys
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from veiltab.common.study.file import load_study
from veiltab.curator.table.table_reading import load_table
from veiltab.deploy.study.study_cli import study


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> Ran:
    """Runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: ran(study, *words)


def as_json(cli: Ran, *args: str, code: int = 0) -> Any:  # noqa: ANN401 - as JSON has it
    found, out, _ = cli(*args, "--json")
    assert (found, out.count("\n")) == (code, 1)
    return json.loads(out)


def test_a_file_to_edit_passes_the_check(cli: Ran) -> None:
    code, out, err = cli("merge", "--study", "pay")
    assert (code, err) == (0, "")
    assert "veiltab study check study.toml" in out
    found = as_json(cli, "check", "study.toml")
    assert (found["ok"], found["study"], found["problems"]) == (True, "pay", [])
    assert found["digest"] == load_study(Path("study.toml")).digest
    assert cli("check", "study.toml")[1].startswith("study.toml: ready\n")


def test_a_file_to_edit_has_an_id_that_a_study_can_have_and_replaces_no_file(cli: Ran) -> None:
    code, _, err = cli("merge", "--study", "My study")
    assert (code, Path("study.toml").exists()) == (2, False)
    assert "is not a name" in err
    Path("study.toml").write_text("mine")
    code, _, err = cli("merge")
    assert (code, Path("study.toml").read_text()) == (5, "mine")
    assert "this file is there already. Name another one, or move this one away.\n" in err


def test_check_says_all_that_is_wrong(cli: Ran) -> None:
    cli("merge")
    text = Path("study.toml").read_text().replace("owner =", "onwer =").replace("[budget]", "[budjet]")
    Path("study.toml").write_text(text)
    found = as_json(cli, "check", "study.toml", code=2)
    assert not found["ok"]
    assert [problem["problem"] for problem in found["problems"]] == [
        "unknown table 'budjet'",
        "unknown key 'onwer'",
        "unknown key 'onwer'",
    ]
    lines = text.splitlines()
    assert all(problem["problem"].split("'")[1] in lines[problem["line"] - 1] for problem in found["problems"])
    code, out, _ = cli("check", "study.toml")
    assert code == 2
    assert out.startswith("study.toml: 3 problems\n  line ")
    assert "Did you mean 'owner' (the curator whose column it is)?" in out


def write(path: str, header: str, row: Callable[[int], str], rows: int = 60) -> None:
    Path(path).write_text("\n".join([header, *map(row, range(rows)), ""]))


@pytest.fixture
def tables(cli: Ran) -> Ran:
    """Two tables that nobody prepared, in the folder of the commands."""
    write("alice.csv", "id,Education,born", lambda row: f"{row + 95},{['HS', 'hs ', 'BA'][row % 3]},{1950 + row % 40}")
    write("bob.csv", "person,wage,town", lambda row: f"{row + 97},{row * 31},{['Ulm', 'Bonn'][row % 2]}")
    return cli


MERGE = (
    *("merge", "alice.toml", "bob.toml", "--study", "pay", "--server", "localhost:1", "--hub", "alice"),
    *("--curator", "alice=localhost:2", "--curator", "bob=localhost:3", "--researcher", "rosa=localhost:4"),
)


def test_from_two_tables_to_a_study_that_both_load(tables: Ran) -> None:
    for name in ("alice", "bob"):
        code, out, err = tables("draft", "--name", name, "--table", f"{name}.csv", "--yes")
        assert (code, err) == (0, "")
        assert f"{name}.toml is written, with 2 attributes" in out
        assert tables("check", f"{name}.toml")[1].startswith(f"{name}.toml: ready\n  curator: {name}\n")
    code, out, err = tables(*MERGE, "--epsilon", "2", "--delta", "1e-6")
    assert (code, err) == (0, "")
    assert "Next: veiltab pki init study.toml --out pki" in out
    merged = load_study(Path("study.toml"))
    assert (merged.id, merged.budget_epsilon, merged.budget_delta) == ("pay", Decimal(2), Decimal("1e-6"))
    for name in ("alice", "bob"):
        assert load_table(Path(f"{name}.csv"), merged, name).rows == 60
    assert [rule.name for rule in merged.attributes] == ["education", "born", "wage", "town"]
    assert as_json(tables, "check", "study.toml")["attributes"] == "alice has 2, bob has 2"


def test_as_json_a_draft_without_yes_shows_and_writes_nothing(tables: Ran) -> None:
    Path("bob.toml").write_text("", "utf-8")
    shown = as_json(tables, "draft", "--name", "bob", "--table", "bob.csv")
    assert (shown["file"], shown["curator"], shown["ids"]["columns"]) == (None, "bob", ["person"])
    assert [one["name"] for one in shown["attributes"]] == ["wage", "town"]
    assert not Path("bob.toml").read_text("utf-8")
    written = as_json(tables, "draft", "--name", "bob", "--table", "bob.csv", "--yes", "--out", "b.toml")
    assert written == {**shown, "file": "b.toml"}
    assert tables("check", "b.toml")[0] == 0


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_person_takes_changes_and_refuses_proposals(tables: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    rare = Path("alice.csv").read_text() + "7,nun,1999\n"
    Path("alice.csv").write_text(rare)
    answers = ["y", "1 2 3", "", "1 2 3", "x", "1900 1960 2000"]
    monkeypatch.setattr(sys, "stdin", Typed("\n".join([*answers, ""])))
    code, out, err = tables("draft", "--name", "alice", "--table", "alice.csv")
    assert (code, err) == (0, "")
    # What would name one person stays out unless somebody says otherwise.
    assert "warning: 1 row has 'nun'" in out
    assert "alice.toml is written, with 1 attribute (columns that stay out: Education). Read it" in out
    assert "Take it (y, n, or missing and a text that means a missing value) [n]: " in out
    assert "this is not an answer. Type y or n; a column of texts has no edges." in out
    assert "numbers of the column lie outside these edges" in out
    assert "this is not an answer. Type y or n, or edges such as 0 18 65." in out
    written = tomllib.loads(Path("alice.toml").read_text())
    assert [(one["name"], one["bins"]) for one in written["attribute"]] == [("born", [1900, 1960, 2000])]
    assert "nun" not in Path("alice.toml").read_text()


def test_edges_and_missing_values_are_taken_at_every_prompt(tables: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{row},{row % 9},{1950 + row % 40}-01-02,{['a', 'b'][row % 2]}\n" for row in range(60))
    Path("carol.csv").write_text(f"id,kids,born,town\n{rows}60,9,1950-01-02,k.A.\n61,99,1950-01-02,a\n")
    answers = ["y", "missing 99", "0 3 10", "1940 1970 2000", 'missing "k.A." "no such"', "missing k.A.", "y"]
    monkeypatch.setattr(sys, "stdin", Typed("\n".join([*answers, ""])))
    code, out, err = tables("draft", "--name", "carol", "--table", "carol.csv")
    assert (code, err) == (0, "")
    assert "edges such as 1990 2000-07 2010" in out
    kids, born, town = tomllib.loads(Path("carol.toml").read_text())["attribute"]
    assert (kids["bins"], kids["missing_values"]) == ([0, 3, 10], ["", "NA", "?", "99"])
    assert born["dates"] == ["1940", "1970", "2000"]
    assert (town["categories"], town["missing_values"]) == (["a", "b"], ["", "NA", "?", "k.A."])
    assert tables("check", "carol.toml")[0] == 0


def test_where_nobody_can_be_asked_the_option_is_named_and_before_it_a_file_that_is_not_there(
    tables: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _, err = tables("draft", "--name", "bob", "--table", "bob.csv")
    assert code == 2
    assert "Add --yes to take every proposal, or --json to see them" in err
    code, _, err = tables("draft", "--name", "alice", "--table", "alise.csv")
    assert code == 2
    assert "Did you mean 'alice.csv'?" in err


def drafted(cli: Ran) -> None:
    for name in ("alice", "bob"):
        as_json(cli, "draft", "--name", name, "--table", f"{name}.csv", "--yes")


def test_what_is_not_given_is_asked_proposed_or_refused(tables: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    drafted(tables)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _, err = tables("merge", "alice.toml", "bob.toml", "--study", "pay")
    assert code == 2
    assert "--server: this is not given, and nobody can be asked" in err
    monkeypatch.setattr(sys, "stdin", Typed("pay\nhub=localhost:1\n\nlocalhost:3\n\nbop\nbob\n"))
    found = as_json(tables, "merge", "alice.toml", "bob.toml")
    assert (found["ok"], found["study"]) == (True, "pay")
    merged = load_study(Path("study.toml"))
    parties = (merged.server, *merged.curators, *merged.researchers)
    assert merged.hub == "bob"
    assert [f"{party.name}={party.endpoint}" for party in parties] == [
        "hub=localhost:1",
        "alice=alice.example.org:7401",
        "bob=localhost:3",
        "rosa=rosa.example.org:7410",
    ]
    assert "--hub: nobody is the hub" in tables("merge", "alice.toml", "bob.toml", "--yes", "--out", "other.toml")[2]
    code, _, err = tables("merge", "alice.toml", "bob.toml", "--yes", "--hub", "alice", "--out", "other.toml")
    assert code == 0
    assert "--curator bob=HOST:PORT is not given: bob.example.org:7402 is taken, to be edited\n" in err
    assert load_study(Path("other.toml")).id == "study"


def test_with_a_relay_curators_without_an_endpoint_are_called_through_it(tables: Ran) -> None:
    drafted(tables)
    words = ("alice.toml", "bob.toml", "--relay", "relay.example.org:443", "--curator", "bob=localhost:3", "--yes")
    assert tables("merge", *words, "--hub", "alice")[0] == 0
    merged = load_study(Path("study.toml"))
    assert merged.relay is not None
    assert merged.relay.endpoint == "relay.example.org:443"
    parties = (merged.server, *merged.curators, *merged.researchers)
    assert [f"{party.name}={party.endpoint}" for party in parties] == [
        "cloud=cloud.example.org:7400",
        "alice=relay",
        "bob=localhost:3",
        "rosa=relay",
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--curator", "zoe=localhost:9"), "--curator: there is no draft of 'zoe'. Drafts: alice, bob."),
        (("--curator", "bob=localhost:9"), "--curator names 'bob' twice"),
        (("--epsilon", "x"), "epsilon"),
        (("--hub", "carol"), "--hub: there is no draft of 'carol'. Drafts: alice, bob."),
    ],
)
def test_options_that_make_no_study_are_refused(tables: Ran, options: tuple[str, ...], problem: str) -> None:
    drafted(tables)
    code, _, err = tables(*MERGE, *options)
    assert code == 2
    assert problem in err
    assert not Path("study.toml").exists()


def test_a_step_that_lets_ids_match_is_proposed(tables: Ran) -> None:
    drafted(tables)
    bob = Path("bob.toml")
    bob.write_text(re.sub('"9[+]" =', '"9+.0" =', bob.read_text()))
    alice = Path("alice.toml")
    alice.write_text(re.sub('"9[+]" =', '"0999" =', alice.read_text()))
    assert tables(*MERGE)[0] == 2
    code, _, err = tables(*MERGE, "--yes", "--out", "taken.toml")
    assert (code, 'with "integer" in normalise they can match: taken' in err) == (0, True)
    assert all("integer" in curator.normalise for curator in load_study(Path("taken.toml")).curators)


def test_a_draft_replaces_no_file_and_needs_a_place(tables: Ran) -> None:
    options = ("draft", "--name", "bob", "--table", "bob.csv", "--yes")
    assert tables(*options, "--out", "alice.csv")[0] == 5
    code, _, err = tables(*options, "--out", "alice.csv/bob.toml")
    assert code == 2
    assert "alice.csv: there is no such folder" in err
