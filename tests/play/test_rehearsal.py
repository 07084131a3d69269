"""A rehearsal is the study with dummy tables, and cannot be taken for the study."""

import json
import shlex
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.play.rehearsed_study import STUDY
from veiltab.common.command.parties import parties_of
from veiltab.common.errors import InvalidInputError, VeiltabError
from veiltab.common.rpc.parties.identity import load_identity
from veiltab.common.study.file import study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.certificates import init_pki
from veiltab.play.rehearsal.commands import commands_to_try
from veiltab.play.rehearsal.rehearsal import Rehearsal, RehearsalOptions, prepare
from veiltab.play.rehearsal.rehearsal_cli import rehearse

NODES = toml_text(
    {
        "nodes": {"name": "fleet", "budget_epsilon": Decimal("3.0"), "strata": ["north", "south"]},
        "question": [{"name": "age", "integers": [1, 10]}],
    }
).encode()
OF_NODES = (
    STUDY[: STUDY.index(b"[[curator]]")].replace(b"[budget]\nepsilon = 3.0\ndelta = 0.00001", b"")
    + b'[[researcher]]\nname = "rosa"\nendpoint = "rosa.example.org:7410"\n'
    + NODES
)
POLICY = '[[rule]]\nresearcher = "rosa"\nmaximum_epsilon = 1.0\ndecision = "approve"\n'


@pytest.fixture
def study_path(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_bytes(STUDY + NODES)
    return path


@pytest.fixture
def rehearsal(study_path: Path) -> Rehearsal:
    (study_path.parent / "policy.toml").write_text(POLICY)
    policies = {"bob": study_path.parent / "policy.toml"}
    out = study_path.parent / "out"
    return prepare(RehearsalOptions(study=study_path, out=out, people=300, policies=policies))


def test_it_keeps_of_the_study_all_but_endpoints_id_and_title(rehearsal: Rehearsal) -> None:
    ran, real = (tomllib.loads(text.decode()) for text in (rehearsal.study.source, STUDY + NODES))
    assert ran["study"].pop("id") == "wages-rehearsal"
    assert ran["study"].pop("title") == "Rehearsal of Wages and schools"
    del real["study"]["id"], real["study"]["title"]
    for file in (ran, real):
        for party in (file["server"], *file["curator"], *file["researcher"]):
            host, _, _ = party.pop("endpoint").rpartition(":")
            assert (host == "localhost") == (file is ran)
    assert ran == real


def test_a_long_id_and_title_keep_their_mark(study_path: Path, tmp_path: Path) -> None:
    study_path.write_bytes(
        STUDY.replace(b'"wages"', b'"' + b"a" * 29 + b"-" + b'bcd"').replace(b"Wages and", b"W" * 190)
    )
    made = prepare(RehearsalOptions(study=study_path, out=tmp_path / "long", people=300)).study
    assert made.id == "a" * 29 + "-rehearsal"
    assert made.title.startswith("Rehearsal of WWW")


def test_its_certificates_and_those_of_the_study_are_no_use_to_each_other(
    rehearsal: Rehearsal, study_path: Path
) -> None:
    study = study_from_bytes(STUDY + NODES, "study.toml")
    init_pki(study, study_path.parent / "pki")
    for party in parties_of(rehearsal.study):
        folder = rehearsal.local.identity_folder(party.role, party.name)
        assert folder.is_relative_to(rehearsal.local.folder)
        assert load_identity(folder, party.role, party.name, study="wages-rehearsal").party == party
        with pytest.raises(VeiltabError):
            load_identity(folder, party.role, party.name, study=study.id)
        real = study_path.parent / "pki" / folder.name
        with pytest.raises(VeiltabError):
            load_identity(real, party.role, party.name, study="wages-rehearsal")


def test_a_policy_is_the_one_that_is_given_and_without_one_a_person_decides(rehearsal: Rehearsal) -> None:
    assert {name: path.read_text() for name, path in rehearsal.local.policies.items()} == {"bob": POLICY}
    assert sorted(rehearsal.local.tables) == ["alice", "bob"]


@pytest.mark.parametrize(
    ("curator", "text", "said"),
    [("bobby", POLICY, "no curator 'bobby'"), ("bob", POLICY.replace("rosa", "rose"), "researcher")],
)
def test_a_policy_that_the_study_cannot_have_is_refused_before_anything_is_written(
    study_path: Path, tmp_path: Path, curator: str, text: str, said: str
) -> None:
    (tmp_path / "policy.toml").write_text(text)
    policies = {curator: tmp_path / "policy.toml"}
    with pytest.raises(InvalidInputError, match=said):
        prepare(RehearsalOptions(study=study_path, out=tmp_path / "out", policies=policies))
    assert not (tmp_path / "out").exists()


def test_the_usual_request_fits_the_study(rehearsal: Rehearsal) -> None:
    words = ["--attributes", "school,wage", "--epsilon", "0.75", "--delta", "0.000001"]
    assert rehearsal.usual_request() == tuple(words)
    pure = replace(rehearsal.study, budget_delta=None, maximum_cells=4)
    assert pure.domain(["school"]).cells == 3

    class OfPure(Rehearsal):
        @property
        def study(self) -> Any:  # noqa: ANN401 - a study
            return pure

    changed = OfPure(local=rehearsal.local, people=300, tables=None)
    assert changed.usual_request() == ("--attributes", "school", "--epsilon", "0.75")


def test_the_usual_round_fits_the_share_of_its_researcher(rehearsal: Rehearsal) -> None:
    asked = rehearsal.usual_round()
    assert (asked.researcher, asked.question, asked.epsilon) == ("rosa", "age", Decimal("1.5"))
    assert (asked.nodes, asked.values) == (300, "binomial:10:0.5")


def test_every_command_to_try_is_one(rehearsal: Rehearsal) -> None:
    tried = [command for _, commands in commands_to_try(rehearsal) for command in commands]
    assert len(tried) > 12
    for line in tried:
        program, *words = shlex.split(line)
        assert program == "veiltab"
        command: click.Command = veiltab
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        command.make_context("veiltab", words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "policy.toml"), "--policy: 'policy.toml' does not say whose policy it is. Write it like alice="),
        (("--policy", "bob=a.toml", "--policy", "bob=b.toml"), "--policy: bob has two policies"),
        (("--request", "--attributes 'school"), "--request: these are not options (No closing quotation)"),
        (("--population", "20"), "--population: of 20 dummy people"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_written(
    study_path: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    refused = CliRunner().invoke(rehearse, [str(study_path), "--out", str(tmp_path / "out"), *words])
    assert isinstance(refused.exception, InvalidInputError)
    assert str(refused.exception).startswith(said)
    assert not (tmp_path / "out").exists()


def test_a_request_in_a_study_of_nodes_alone_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(OF_NODES)
    words = [str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--request", "--epsilon 1"]
    refused = CliRunner().invoke(rehearse, words)
    assert str(refused.exception) == "--request: the study has no curators. Its nodes answer a round: use --once."


def run(*words: str | Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "veiltab", "rehearse", *map(str, words), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=280)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.long
def test_a_request_runs_under_the_policy_or_a_persons_approval_and_stands_beside_the_dummy_truth(
    study_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "two.toml").write_text("persons = 2\n")
    number = b'kind = "number"\ngrid = [0, 2000, 4000, 10000]'
    study_path.write_bytes(STUDY.replace(b"bins = [0, 2000, 4000, 1000000]", number))
    asked = "--attributes school,wage --epsilon 1 --delta 1e-6 --label first --wait"
    policies = ("--policy", f"bob={tmp_path / 'policy.toml'}", "--policy", f"alice={tmp_path / 'two.toml'}")
    answer = run(study_path, "--request", asked, *policies, "--out", tmp_path / "out")
    assert (answer["study"], answer["data"], answer["round"]) == ("wages-rehearsal", "dummy", None)
    assert len({party["pid"] for party in answer["parties"]}) == 4
    release = answer["release"]
    assert (release["state"], release["approved_by_a_person_at"]) == ("ready", ["alice"])
    (table,) = release["tables"]
    assert table["attributes"] == ["school", "wage"]
    assert sum(cell["truth"] for cell in table["rows"]) == pytest.approx(1)
    # Twelve cells of 1,900 people: independent tables would be .15 apart, and the noise is a tenth of that.
    assert 0 < table["distance"] < 0.08
    (wage,) = table["means"]
    assert wage["attribute"] == "wage"
    assert [row["group"] for row in wage["groups"]] == [
        "all respondents",
        "school none",
        "school some",
        "school unknown",
    ]
    assert all(abs(row["estimate"] - row["truth"]) < 600 for row in wage["groups"][:3])
    assert all(row["low"] < row["estimate"] < row["high"] for row in wage["groups"][:3])


@pytest.mark.long
def test_several_tables_and_a_round_run_too(study_path: Path, tmp_path: Path) -> None:
    study_path.write_bytes(STUDY)
    asked = "--attributes school,age,wage --workload linked --epsilon 2 --delta 1e-6"
    tables = run(study_path, "--request", asked, "--out", tmp_path / "tables")["release"]["tables"]
    assert sorted(table["attributes"] for table in tables) == [["age", "wage"], ["school", "age"], ["school", "wage"]]
    study_path.write_bytes(OF_NODES)
    answered = run(study_path, "--once", "--out", tmp_path / "round")
    assert answered["release"] is None
    assert answered["round"]["distance"] < 0.2
    assert sum(answered["round"]["truth"]) == 4000


@pytest.mark.long
def test_without_a_request_it_runs_until_it_is_interrupted(study_path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "veiltab", "rehearse", str(study_path), "--out", str(tmp_path / "out"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        invited = json.loads(process.stdout.readline())
        assert all(Path(f"/proc/{party['pid']}").exists() for party in invited["parties"])
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not any(Path(f"/proc/{party['pid']}").exists() for party in invited["parties"])
