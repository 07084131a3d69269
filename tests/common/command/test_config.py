from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from veiltab.common.command.config import KEYS, read_party_file
from veiltab.common.command.options import ServeOptions, connected, serve_options
from veiltab.common.errors import InvalidInputError

Write = Callable[[str], Path]
WHOLE = """
study = "study.toml"
name = "alice"
identity = "pki/curator-alice"
state = "/var/lib/veiltab"
listen = "0.0.0.0:7401"
table = "../alice.csv"
query = "select 1"
encoding = "latin-1"
decimal = "comma"
policy = "policy.toml"
workers = 4
dask = "tls://10.0.0.5:8786"
dask_identity = "cluster/client"
shared = "/mnt/veiltab"
retention_days = 7
quota_releases = 9
quota_gib = 3
database = "postgresql://cloud@db.example.org/cloud"
http = "0.0.0.0:7443"
http_certificate = "public.pem"
http_key = "public.key"
allow_origin = "https://poll.example.org"
metrics = "127.0.0.1:9464"
proxy = "http://proxy.example.org:3128"
proxy_user = "user"
verbose = true
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "party.toml"
        path.write_text(text, "utf-8")
        return path

    return written


def test_every_key_is_read_and_paths_begin_at_the_file(write: Write, tmp_path: Path) -> None:
    values, problems = read_party_file(write(WHOLE))
    assert problems == []
    assert set(values) == set(KEYS)
    assert values["study"] == tmp_path / "study.toml"
    assert values["table"] == tmp_path / "../alice.csv"
    assert values["state"] == Path("/var/lib/veiltab")
    assert (values["name"], values["listen"], values["retention_days"]) == ("alice", "0.0.0.0:7401", 7)
    assert (values["metrics"], values["verbose"]) == ("127.0.0.1:9464", True)


@pytest.mark.parametrize(
    ("line", "key", "problem", "remedy"),
    [
        ("name = 7", "name", "another kind", "a text in quotes"),
        ('identity = " "', "identity", "names no file", "a path"),
        ('state = "a\\u0000b"', "state", "names no file", "a path"),
        ('verbose = "yes"', "verbose", "another kind", "true or false"),
        ("retention_days = -1", "retention_days", "between 0 and", "30 is usual"),
        ("retention_days = 1.5", "retention_days", "another kind", "a whole number"),
        ("quota_gib = 0", "quota_gib", "not a whole number from 1", "Leave it out"),
        ("workers = -1", "workers", "not a whole number from 0", "Leave it out"),
        ('shared = ""', "shared", "names no file", "a path"),
        ('stat = "x"', "stat", "unknown key 'stat'", "Did you mean 'state'?"),
        ("[table]", "table", "another kind", "a text in quotes"),
    ],
)
def test_what_is_wrong_names_the_file_the_key_and_the_fix(
    write: Write, line: str, key: str, problem: str, remedy: str
) -> None:
    path = write(line + "\n")
    values, [(wrong, error)] = read_party_file(path)
    assert (values, wrong, error.where) == ({}, key, str(path))
    assert problem in error.problem
    assert remedy in error.remedy


def test_everything_that_is_wrong_is_found(write: Write) -> None:
    _, problems = read_party_file(write('name = 7\nverbose = "no"\nstat = "x"\nstudy = "study.toml"\n'))
    assert [key for key, _ in problems] == ["name", "verbose", "stat"]


def test_a_key_of_another_role_is_named_as_such(write: Write) -> None:
    _, [(_, error)] = read_party_file(write('table = "a.csv"'), keys=["study", "name"])
    assert "not for this role" in error.problem


@pytest.mark.parametrize("text", ["name = ", "name = 'a'\nname = 'b'", "=", "x" * 70_000, "[" * 30_000])
def test_what_is_no_toml_is_refused(write: Write, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"not a TOML file|more than"):
        read_party_file(write(text))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_party_file(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(InvalidInputError, match="not a TOML file in UTF-8"):
        read_party_file(tmp_path / "binary.toml")


# The order in which options, environment and file count


@click.command()
@serve_options
@click.option("--retention-days", default=30)
def serve(options: ServeOptions, **others: object) -> None:
    values = asdict(options) | others
    click.echo(" ".join(f"{name}={value}" for name, value in sorted(values.items())))


def served(*args: str, **environment: str) -> dict[str, str]:
    result = CliRunner().invoke(serve, args, env=environment, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(pair.split("=", 1) for pair in result.output.split())


FILE = 'study = "s.toml"\nname = "cloud"\nidentity = "id"\nstate = "st"\nretention_days = 7\nverbose = true\n'


def test_the_file_gives_what_is_required(write: Write, tmp_path: Path) -> None:
    found = served("--config", str(write(FILE)))
    assert found["study_path"] == str(tmp_path / "s.toml")
    assert found["identity_folder"] == str(tmp_path / "id")
    assert (found["name"], found["retention_days"], found["verbose"]) == ("cloud", "7", "True")
    assert (found["listen"], found["metrics"]) == ("None", "None")


def test_the_environment_wins_over_the_file_and_options_over_both(write: Write, tmp_path: Path) -> None:
    path = str(write(FILE))
    environment = {"VEILTAB_IDENTITY": "/run/id", "VEILTAB_STATE": "/run/st"}
    found = served("--config", path, **environment)
    assert (found["identity_folder"], found["state_folder"], found["name"]) == ("/run/id", "/run/st", "cloud")
    found = served("other.toml", "--config", path, "--identity", "mine", "--name", "cirrus", **environment)
    assert (found["study_path"], found["identity_folder"], found["name"]) == ("other.toml", "mine", "cirrus")
    assert found["state_folder"] == "/run/st"
    assert served("--config", path, VEILTAB_STATE="")["state_folder"] == str(tmp_path / "st"), "empty is not given"


def test_what_nobody_gives_is_asked_for(write: Write) -> None:
    result = CliRunner().invoke(serve, ["--config", str(write('study = "s.toml"\nname = "cloud"\n'))])
    assert result.exit_code == 2
    assert "--identity" in result.output


def test_a_name_is_that_of_the_identity(tmp_path: Path) -> None:
    (tmp_path / "rosa.pem").touch()
    asked = click.command()(connected("message", lambda *_: nullcontext("it"))(click.echo))
    said = [CliRunner().invoke(asked, ["s", "--identity", str(tmp_path), "--name", one]) for one in ("rosa", "rosi")]
    assert said[0].output == "it\n"
    assert f"--name: the identity in {tmp_path} is not that of 'rosi'" in str(said[1].exception)


def test_a_file_with_a_mistake_starts_nothing(write: Write) -> None:
    for line, problem in (("stat = 'x'", "unknown key"), ("table = 'x'", "not for this role")):
        with pytest.raises(InvalidInputError, match=problem):
            CliRunner().invoke(serve, ["--config", str(write(line))], catch_exceptions=False)


def test_a_file_that_others_may_write_is_refused(write: Write) -> None:
    path = write(WHOLE)
    assert read_party_file(path)[1] == []
    path.chmod(0o666)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        read_party_file(path)
