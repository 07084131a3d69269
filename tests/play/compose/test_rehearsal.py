"""The rehearsal of a study in containers: compose.yaml's own services, for the parties of the study."""

import re
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.play.rehearsed_study import STUDY
from tests.worlds.studies import APPROVE_ALL
from veiltab.common.command.parties import parties_of
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import load_identity
from veiltab.common.study.file import Study, load_study, study_from_bytes
from veiltab.common.study.toml_text import toml_text
from veiltab.curator.check.inspection import inspect_table
from veiltab.curator.officer.policy import policy_of
from veiltab.play.compose.prepare import prepare, prepare_rehearsal
from veiltab.play.compose.services import TEMPLATE, compose_text, endpoints_of
from veiltab.play.rehearsal.rehearsal import RehearsalOptions

MORE = toml_text(
    {
        "curator": [{"name": "cara", "endpoint": "cara.example.org:7400", "id_columns": ["a", "b"]}],
        "researcher": [{"name": "rita", "endpoint": "rita.example.org:7410"}],
        "nodes": {"name": "phones", "budget_epsilon": Decimal("3.0")},
        "question": [{"name": "mood", "integers": [1, 5]}],
    }
).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("compose")
    (where / "study.toml").write_bytes(STUDY.replace(b'"alice"', b'"north-care"') + MORE)
    (where / "policy.toml").write_text(APPROVE_ALL)
    options = RehearsalOptions(
        study=where / "study.toml", out=where / "made", people=300, policies={"bob": where / "policy.toml"}
    )
    prepare_rehearsal(options, port=7555, source=Path("/a clone"))
    return where / "made"


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return load_study(folder / "study.toml")


def services(text: str) -> list[str]:
    _, _, rest = text.partition("\nservices:\n")
    listed, _, _ = rest.partition("\nnetworks:\n")
    return re.findall(r"^  ([a-z-]+):$", listed, re.MULTILINE)


def test_of_the_adult_study_it_is_the_file_that_is_read(tmp_path: Path) -> None:
    """The patterns are those of the file, so that nothing of it is lost or written twice."""
    prepare(tmp_path / "adult")
    adult = load_study(tmp_path / "adult" / "study.toml")
    asked = replace(adult, researchers=adult.researchers[:1], title="T", id="veiltab")
    _, _, made = compose_text(asked, {"alice": "alice.csv", "bob": "bob.csv"}).partition("\nname: ")
    _, _, read = TEMPLATE.read_text("utf-8").partition("\nname: ")
    assert made == read


def test_there_is_a_service_for_each_party(folder: Path, study: Study) -> None:
    text = (folder / "compose.yaml").read_text("utf-8")
    assert services(text) == [
        "curator-north-care",
        "curator-bob",
        "curator-cara",
        "server-cloud",
        "researcher-rosa",
        "researcher-rita",
        "node-fleet",
    ]
    assert text.startswith("# Rehearsal of Wages and schools")
    assert "\nname: wages-rehearsal\n" in text
    assert not re.search(r"\balice\b", text)
    # Names of curators exist in their own network alone.
    assert re.findall(r"(\w+): \{aliases: \[(?:north-care|bob|cara)\]\}", text) == ["curators"] * 3
    names = [*(one.name for one in (*study.curators, study.server, *study.researchers)), "fleet", "tokens"]
    (volumes,) = re.findall(r"^volumes: \{(.*)\}$", text, re.MULTILINE)
    assert volumes.split(", ") == [f"{name}: {{}}" for name in names]
    assert "binomial:5:0.5" in text


def test_every_service_finds_what_it_mounts(folder: Path, study: Study) -> None:
    text = (folder / "compose.yaml").read_text("utf-8")
    mounted = re.findall(r"^ +- (\./\S+?):\S+:ro$", text, re.MULTILINE)
    assert len(mounted) == 4 * len(study.curators) + 2 * (1 + len(study.researchers) + 1)
    assert [path for path in mounted if not (folder / path).exists()] == []
    for curator in study.curators:
        assert inspect_table(folder / f"dummy-{curator.name}.csv", study, curator.name).ok
        rules = policy_of(study, curator.name, folder / f"policy-{curator.name}.toml").rules
        assert len(rules) == (curator.name == "bob")


def test_services_listen_where_the_study_file_says(folder: Path, study: Study) -> None:
    text = (folder / "compose.yaml").read_text("utf-8")
    assert [one.endpoint for one in study.curators] == ["north-care:7401", "bob:7402", "cara:7403"]
    for curator in study.curators:
        assert f"--listen {curator.endpoint}\n" in text
        assert f"curators: {{aliases: [{curator.name}]}}" in text
    assert study.server.endpoint == "cloud:7400"
    assert [one.endpoint for one in study.researchers] == ["localhost:7555", "localhost:7556"]
    assert re.findall(r'ports: \["(.*)"\]', text) == ["127.0.0.1:${VEILTAB_PORT:-7410}:7410", "127.0.0.1:7556:7410"]
    assert "VEILTAB_PORT='7555'" in (folder / ".env").read_text("utf-8").splitlines()


def test_every_party_has_an_identity_of_the_rehearsal_and_none_has_the_authority(folder: Path, study: Study) -> None:
    text = (folder / "compose.yaml").read_text("utf-8")
    mounted = re.findall(r"- \./pki/(\S+?):\S+:ro$", text, re.MULTILINE)
    parties = {f"{party.role.value}-{party.name}": party for party in parties_of(study)}
    assert set(mounted) == set(parties) - {"analyst-ana"}
    for path in mounted:
        party = parties[path]
        assert load_identity(folder / "pki" / path, party.role, party.name, study="wages-rehearsal").party == party
    assert not re.search(r"\./pki/?:|ca\.key", text)


def test_everything_else_of_the_study_is_kept(folder: Path) -> None:
    ran, real = (tomllib.loads(text.decode()) for text in ((folder / "study.toml").read_bytes(), STUDY))
    for table in ("budget", "release"):
        assert ran[table] == real[table]
    assert ran["study"]["alignment"] == "tokens"


def test_a_party_that_is_named_like_a_volume_is_refused(study: Study) -> None:
    text = STUDY.replace(b'"rosa"', b'"tokens"')
    with pytest.raises(InvalidInputError, match="study wages: a party is named 'tokens', as a volume is"):
        endpoints_of(study_from_bytes(text, "study.toml"), 7410)
    assert endpoints_of(study, 7000)["rita"] == "localhost:7001"
