import os
import re
from decimal import Decimal
from pathlib import Path

import pytest

from tests.compose.releases import ATTRIBUTES, DELTA, EPSILON
from tests.compose.stack import PARTIES
from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.identity import Role, load_identity
from veiltab.common.study.file import Study, load_study
from veiltab.curator.officer.policy import load_policy
from veiltab.play.compose.prepare import IMAGE_USER, prepare

COMPOSE = Path(__file__).parents[3] / "deploy" / "compose" / "compose.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compose") / "adult"
    prepare(path, port=7555, source=Path("/a clone"))
    return path


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return load_study(folder / "study.toml")


def test_compose_finds_everything_that_it_mounts(folder: Path) -> None:
    text = (folder / "compose.yaml").read_text("utf-8")
    assert text == COMPOSE.read_text("utf-8")
    mounted = re.findall(r"^ +- (\./\S+?):\S+:ro$", text, re.MULTILINE)
    assert len(mounted) > 10
    assert [path for path in mounted if not (folder / path).exists()] == []


def test_every_party_finds_its_own_identity(folder: Path, study: Study) -> None:
    for name, service in PARTIES.items():
        role = Role(service.partition("-")[0])
        assert load_identity(folder / "pki" / service, role, name, study=study.id).party.name == name


def test_a_signal_reaches_every_party_from_its_first_moment() -> None:
    """A process 1 of a container gets no signal that it does not wait for yet: the parties run below another."""
    text = COMPOSE.read_text("utf-8")
    _, _, party = text.partition("x-party: &party\n")
    assert "\n  init: true\n" in party.partition("\n\n")[0]
    _, _, services = text.partition("\nservices:\n")
    services, _, _ = services.partition("\nnetworks:\n")
    names = re.findall(r"^  [a-z-]+:$", services, re.MULTILINE)
    assert len(names) == services.count("\n    <<: *party\n") == 5


def test_settings_survive_a_path_with_a_space(folder: Path) -> None:
    settings = (folder / ".env").read_text("utf-8").splitlines()
    assert settings[0] == "VEILTAB_SOURCE='/a clone'"
    assert settings[2] == "VEILTAB_PORT='7555'"


def test_the_containers_run_as_who_owns_the_files_and_never_as_root(folder: Path) -> None:
    uid = os.getuid() or IMAGE_USER
    assert f"VEILTAB_USER='{uid}:" in (folder / ".env").read_text("utf-8")
    key = folder / "pki" / "curator-alice" / "alice.key"
    assert {path.stat().st_uid for path in (key, key.parent, folder / "bob.csv", folder / "study.toml")} == {uid}
    assert {path.stat().st_mode & 0o077 for path in (key, folder / "alice.csv", folder / "bob.csv")} == {0}


def test_policies_grant_what_the_check_asks_and_hold_more(folder: Path, study: Study) -> None:
    for curator in study.curators:
        own = [rule.name for rule in study.attributes_of(curator.name)]
        path = folder / f"policy-{curator.name}.toml"
        policy = load_policy(path, researchers=[r.name for r in study.researchers], attributes=own)
        assert set(own) <= set(ATTRIBUTES.split(","))
        assert policy.rules[0].maximum_epsilon is not None
        assert policy.rules[0].maximum_epsilon >= Decimal(EPSILON)
    assert study.budget_delta is not None
    assert study.budget_delta >= 5 * Decimal(DELTA)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InvalidInputError, match="not empty"):
        prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
