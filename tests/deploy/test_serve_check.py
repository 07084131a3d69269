"""`serve --check` is the start of a party up to listening: what it refuses, the start refuses, and nothing is left."""

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from veiltab.common.errors import VeiltabError
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.certificates import init_pki, issue_party

TABLE = "id,sex,age\nann,f,young\nbob,m,old\n"
SERVER = (
    'study = "study.toml"\nname = "cloud"\nidentity = "pki/server-cloud"\nstate = "state"\nlisten = "127.0.0.1:0"\n'
)
CURATOR = SERVER.replace("cloud", "alice").replace("server-", "curator-") + 'table = "alice.csv"\nworkers = 0\n'
RESEARCHER = SERVER.replace("cloud", "rosa").replace("server-", "researcher-")
ROLES = {CURATOR: "curator", SERVER: "server", RESEARCHER: "researcher"}

Check = Callable[..., Result]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, study_bytes: bytes) -> Path:
    """A folder with a study, certificates and a table; tests only read it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "study.toml").write_bytes(study_bytes)
    init_pki(study_from_bytes(study_bytes, "study.toml"), folder / "pki")
    (folder / "alice.csv").write_text(TABLE)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    for name in ("study.toml", "pki", "alice.csv"):
        (tmp_path / name).symlink_to(made / name)
    return tmp_path


@pytest.fixture
def check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.setattr("veiltab.common.command.options.log_to_stderr", lambda **_: None)

    def checked(text: str, *options: str, of: str = "", **environment: str) -> Result:
        (folder / "party.toml").write_text(text)
        words = ["serve", "--config", str(folder / "party.toml"), "--check", *options]
        none = {"VEILTAB_IDENTITY": "", "VEILTAB_STATE": ""}
        return CliRunner().invoke(veiltab, [ROLES[of or text], *words], env=none | environment)

    return checked


def refusal(result: Result) -> str:
    assert isinstance(result.exception, VeiltabError), result.output
    assert result.exception.remedy
    return f"{result.stderr}{result.exception}"


@pytest.mark.parametrize("text", ROLES)
def test_a_party_that_could_start_says_so_and_leaves_nothing(check: Check, folder: Path, text: str) -> None:
    before = {*folder.rglob("*")}
    result = check(text, "--json")
    assert result.exit_code == 0, result.exception
    data = json.loads(result.stdout)
    assert data["ok"]
    assert (data["listen"], data["certificate_days"] > 800) == ("127.0.0.1:0", True)
    assert f'name = "{data["party"].rpartition("/")[2]}"' in text
    assert {*folder.rglob("*")} - before == {folder / "party.toml"}
    assert "can serve at 127.0.0.1:0. Its certificate is valid for 8" in check(text).stdout


def test_the_steps_of_a_start_are_said(check: Check) -> None:
    said = check(CURATOR).stderr
    for words in ("reading ", "alice.csv", "2 respondents", "policy: "):
        assert words in said
    assert "ann" not in said


def test_a_state_folder_that_is_there_is_opened(check: Check, folder: Path) -> None:
    OwnedFolder(folder / "state", "veiltab://survey/curator/bob").release()
    assert "holds the state of" in refusal(check(SERVER))
    with OwnedFolder(folder / "other", "veiltab://survey/server/cloud"):
        assert "another process already runs" in refusal(check(SERVER.replace('"state"', '"other"'), of=SERVER))
    assert check(SERVER.replace('"state"', '"other"'), of=SERVER).exit_code == 0
    (folder / "file").touch()
    assert "this folder cannot be made" in refusal(check(SERVER.replace('"state"', '"file/state"'), of=SERVER))


@pytest.mark.parametrize(
    ("role", "change", "words"),
    [
        (SERVER, ("study.toml", "absent.toml"), "absent.toml"),
        (SERVER, ('"cloud"', '"carol"'), "Known: cloud."),
        (SERVER, ("server-cloud", "curator-bob"), "cloud.pem"),
        (SERVER, ("127.0.0.1:0", "nowhere"), "not HOST:PORT"),
        (SERVER, ("127.0.0.1:0", "192.0.2.1:7400"), "cannot be bound"),
        (SERVER, ("listen", 'http_key = "k"\nlisten'), "http-key need --http"),
        (SERVER, ("listen", 'metrics = "host"\nlisten'), "not PORT or HOST:PORT"),
        (SERVER, ("listen", 'stat = "x"\nverbose = 7\nlisten'), "Did you mean 'state'?"),
        (SERVER, ("listen", 'stat = "x"\nverbose = 7\nlisten'), "true or false"),
        (CURATOR, ("listen", 'policy = "bad.csv"\nlisten'), "bad.csv"),
        (CURATOR, ("alice.csv", "bad.csv"), "age"),
        (CURATOR, ("workers = 0", 'dask = "tls://localhost:1"'), "no folder was given that"),
        (CURATOR, ("listen", "retention_days = 3\nlisten"), "not for this role"),
    ],
)
def test_what_the_start_refuses_is_said(
    check: Check, folder: Path, role: str, change: tuple[str, str], words: str
) -> None:
    (folder / "bad.csv").write_text("id,sex\nann-4711,f\n")
    said = refusal(check(role.replace(*change), of=role))
    assert words in said
    assert "4711" not in said
    assert not (folder / "state").exists()


def test_metrics_need_their_package(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "veiltab.common.observe.metrics", raising=False)
    assert "pip install 'veiltab[metrics]'" in refusal(check(SERVER, "--metrics", "0"))


def test_a_certificate_that_ends_soon_names_the_command_that_renews_it(
    check: Check, study: Study, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fresh = tmp_path_factory.mktemp("fresh") / "pki"
    init_pki(study, fresh)
    issue_party(study, fresh, Party(study="survey", role=Role.CURATOR, name="alice"), lifetime=timedelta(days=3))
    said = check(CURATOR, VEILTAB_IDENTITY=str(fresh / "curator-alice")).stdout
    assert "valid for 2 days; renew it with `veiltab pki issue --party curator/alice`." in said
    assert "renew" not in check(CURATOR).stdout
