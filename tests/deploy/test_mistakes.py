"""Mistakes that people make: each refusal says where, what, and what to do next."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import STUDY_HEAD
from veiltab.common.command.cli import run
from veiltab.common.errors import InvalidInputError, UnavailableError
from veiltab.common.study.file import study_from_bytes
from veiltab.curator.officer.policy import policy_of
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.certificates import init_pki
from veiltab.researcher.client.client import Client

STUDY = (
    STUDY_HEAD.replace("localhost:7410", "localhost:1")
    + """[[attribute]]
name = "sex"
owner = "alice"
categories = ["f", "m"]
[[attribute]]
name = "wage"
owner = "bob"
bins = [0, 10, 20]
"""
)
PLAN = ("plan", "--population", "1000", "--cells", "4", "--epsilon")
ROSA = ("--identity", "pki/researcher-rosa")

Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refused:
    """Run a command in a folder that has a study and its certificates; return what it says, and check that it fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)

    def command(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["veiltab", *words])
        assert run(veiltab) != 0
        shown = capfd.readouterr()
        return shown.out + shown.err

    return command


@pytest.fixture
def pki(tmp_path: Path) -> None:
    init_pki(study_from_bytes(STUDY.encode(), "study.toml"), tmp_path / "pki")


STUDY_MISTAKES = {
    "categories as a text": ('["f", "m"]', '"f, m"', 'It must be a list of texts. Write ["f", "m"].'),
    "categories as truth values": ('["f", "m"]', "[false, true]", 'a list of texts. Write "false" in quotes'),
    "categories as numbers": ('["f", "m"]', "[0.0, 1.0]", 'a list of texts. Write "0.0" in quotes.'),
    "bins as a text": ("[0, 10, 20]", '"0, 10, 20"', "It must be a list of numbers. Write [0, 10, 20], wit"),
    "a number as a text": ("epsilon = 1", 'epsilon = "1,0"', "It must be a number. Write 1.0, without quotes."),
    "a decimal comma": ("epsilon = 1", "epsilon = 1,0", "line 8, column 12)). Write a decimal point"),
    "no quotes": ('title = "A survey"', "title = A survey", "line 4, column 9)). Put the text in quotes."),
    "curly quotes": ('name = "cloud"', "name = \u201ccloud\u201d", "line 10, column 8)). Write straight quotes"),
    "a path of Windows": ('title = "A survey"', r'title = "C:\Users"', "Write a path in 'single quotes'"),
    "an open quote": ('title = "A survey"', 'title = "A survey', "line 4, column 18)). Close the quote."),
    "an open list": ('["f", "m"]', '["f", "m"', "line 28, column 1)). Close the bracket, there or in a line before."),
    "an open table": ("[budget]", "[budget", "line 7, column 8)). Close the bracket"),
    "a colon": ('title = "A survey"', 'title: "A survey"', 'line 4, column 6)). Write it like key = "value".'),
    "a key twice": ('title = "A survey"', 'title = "A survey"\ntitle = "W"', "line 5, column 12)). Keep one"),
    "Python's truth": ('title = "A survey"', "title = True", "line 4, column 9)). Write true or false, in lower case."),
}


@pytest.mark.parametrize("mistake", STUDY_MISTAKES)
def test_a_mistake_in_the_study_file(refused: Refused, tmp_path: Path, mistake: str) -> None:
    right, wrong, said = STUDY_MISTAKES[mistake]
    (tmp_path / "study.toml").write_text(STUDY.replace(right, wrong, 1), "utf-8")
    assert said in refused("study", "check", "study.toml")


def test_a_study_file_of_an_office_program(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-16")
    assert "It is UTF-16: save it as UTF-8" in refused("study", "check", "study.toml")
    elsewhere = refused("pki", "init", "study.toml", "--out", "pki")
    assert "`veiltab study check study.toml` shows everything that is wrong, with its line." in elsewhere


def test_a_mistake_in_a_partys_file_quotes_no_line_of_it(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "party.toml").write_text("database = postgresql://cloud:secret@db/veiltab\n")
    said = refused("server", "serve", "--config", "party.toml")
    assert (
        "party.toml: not a TOML file in UTF-8 (Invalid value (at line 1, column 12)). Put the text in quotes." in said
    )
    assert "secret" not in said
    (tmp_path / "party.toml").write_text('identiy = "pki"\n')
    assert "unknown key 'identiy'. Did you mean 'identity'?" in refused("server", "serve", "--config", "party.toml")


POLICY_MISTAKES = {
    'researcher = "rose"': "researcher is not in the study: 'rose'. Did you mean 'rosa'? Researchers: rosa.",
    'attributes = ["sexx"]': "attributes are not this curator's: 'sexx'. Did you mean 'sex'? Its attributes: sex.",
    'reseacher = "rosa"': "unknown key 'reseacher'. Did you mean 'researcher'?",
    "maximum_epsilon = 0,5": "line 2, column 20)). Write a decimal point",
}


@pytest.mark.parametrize("mistake", POLICY_MISTAKES)
def test_a_mistake_in_a_policy(tmp_path: Path, mistake: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f'[[rule]]\n{mistake}\ndecision = "approve"\n')
    with pytest.raises(InvalidInputError) as refused:
        policy_of(study_from_bytes(STUDY.encode(), "study.toml"), "alice", path)
    assert str(refused.value).startswith(str(path))
    assert POLICY_MISTAKES[mistake] in str(refused.value)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("0,5", "epsilon: '0,5' is not a number from 1e-12 to 100. Write it with a point: 0.5."),
        ("half", "'half' is not a number from 1e-12 to 100. Enter nats, such as 0.5."),
        ("0.5 --delta 1e-6,5", "delta: '1e-6,5' is not a number from 1e-12 on and below 1."),
        ("0.5 --delta 0,000001", "Write it with a point: 0.000001."),
    ],
)
def test_a_number_with_a_comma(refused: Refused, number: str, said: str) -> None:
    assert said in refused(*PLAN, *number.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stuyd check study.toml", "No such command 'stuyd'. Did you mean 'study'?"),
        ("researcher reqest study.toml", "No such command 'reqest'. Did you mean 'request'?"),
        ("demo tabel", "No such command 'tabel'. Did you mean 'table'?"),
        (f"plan --cells 1{'0' * 400} --population 9 --epsilon 1", "is not in the range 2<=x<=10000000."),
        ("plan --epsilom 1", "No such option '--epsilom'. (Did you mean one of: '--epsilon'"),
        ("server serve --reports localhost:80", "No such option '--reports'. Did you mean --http?"),
        ("curator serve studdy.toml --nane alice", "No such option '--nane'. (Did you mean one of:"),
    ],
)
def test_a_misspelt_command_or_option(refused: Refused, words: str, said: str) -> None:
    assert said in refused(*words.split())


@pytest.mark.usefixtures("pki")
@pytest.mark.parametrize("folder", ["pki", "pki/curator-alice", "pki/nobody"])
def test_an_identity_in_another_folder(refused: Refused, folder: str) -> None:
    said = refused("researcher", "status", "study.toml", "--identity", folder)
    assert f"veiltab: {folder}/rosa.pem: a file of the identity is not there. Give pki/researcher-rosa" in said


def test_an_identity_that_was_never_made(refused: Refused) -> None:
    said = refused("researcher", "status", "study.toml", *ROSA)
    assert "Give the folder researcher-rosa that `veiltab pki init` makes." in said


@pytest.mark.usefixtures("pki")
def test_the_folder_above_where_a_command_takes_any_party(refused: Refused) -> None:
    said = refused("status", "study.toml", "--identity", "pki")
    assert "veiltab: pki: there are 0 private keys here, not exactly one. Give a party's folder" in said
    assert "such as pki/curator-alice, pki/curator-bob, pki/researcher-rosa" in said


@pytest.mark.usefixtures("pki")
def test_an_unknown_party(refused: Refused) -> None:
    said = refused("curator", "check", "study.toml", "--name", "Alice", "--table", "alice.csv")
    assert "no curator 'Alice'. Did you mean 'alice'? Curators: alice, bob." in said


@pytest.mark.usefixtures("pki", "refused")
def test_an_endpoint_where_nobody_listens() -> None:
    rosa = Client("study.toml", identity="pki/researcher-rosa", name="rosa", timeout=0.1)
    with rosa as client, pytest.raises(UnavailableError) as away:
        client.releases()
    said = str(away.value)
    assert said.startswith("researcher rosa: no connection. Check that it runs, its endpoint in the study file")
    assert said.endswith("of another study. It is called at localhost:1.")


@pytest.mark.usefixtures("pki")
def test_a_port_in_use_is_one_line(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused(
            "researcher", "serve", "study.toml", "--name", "rosa", *ROSA, "--state", "state", "--listen", address
        )
    assert said == (
        f"veiltab: {address}: this address cannot be bound; another process may have the port. Stop the other process,"
        " or give another address with --listen.\n"
    )


@pytest.mark.usefixtures("pki")
@pytest.mark.parametrize("group", ["researcher", "collect"])
def test_a_kind_of_file_that_cannot_be_written_is_refused_before_anybody_is_asked(refused: Refused, group: str) -> None:
    named = ("--release", "wages") if group == "researcher" else ("--round", "0" * 32)
    said = refused(group, "estimate", "study.toml", *ROSA, *named, "--out", "wages.xlsx")
    assert said == (
        "veiltab: wages.xlsx: nothing can be written as .xlsx here. End the name in one of .csv, .parquet, .json.\n"
    )
