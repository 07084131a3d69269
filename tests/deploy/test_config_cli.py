"""A party's file is checked with everything that it names, and every problem names file, key and fix."""

import json
import socket
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from veiltab.common.command.cli import run
from veiltab.common.rpc.parties.identity import Party, Role, utc_now
from veiltab.common.storage.files import OwnedFolder
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.deploy.operate.config_cli import config
from veiltab.deploy.operate.party_check import Findings, check_party
from veiltab.deploy.pki.certificates import init_pki, issue_party
from veiltab.deploy.pki.cluster import init_cluster
from veiltab.play.local.processes import free_ports

TABLE = "id,sex,age\nann,f,young\nbob,m,old\n"
CURATOR = """
study = "study.toml"
name = "alice"
identity = "pki/curator-alice"
state = "state/alice"
table = "alice.csv"
listen = "127.0.0.1:0"
"""
SERVER = (
    'study = "study.toml"\nname = "cloud"\nidentity = "pki/server-cloud"\nstate = "state"\nlisten = "127.0.0.1:0"\n'
)


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
def check(folder: Path) -> Callable[..., Findings]:
    def checked(text: str, clock: Callable[[], datetime] = utc_now, **environment: str) -> Findings:
        (folder / "party.toml").write_text(text)
        return check_party(folder / "party.toml", environment=environment, clock=clock)

    return checked


def problems(findings: Findings) -> dict[str, str]:
    assert all(found.key and found.where and found.fix for found in findings.problems)
    return {found.key: f"{found.where} | {found.problem} | {found.fix}" for found in findings.problems}


def notes(findings: Findings) -> str:
    return "\n".join(findings.notes)


Check = Callable[..., Findings]


def test_a_curator_that_could_start(check: Check, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    (folder / "policy.toml").write_text('[[rule]]\ndecision = "approve"\n')
    findings = check(CURATOR + 'policy = "policy.toml"\ntrace_file = "trace.jsonl"\nmetrics = "0"\n')
    assert findings.problems == []
    assert findings.party == Party(study="survey", role=Role.CURATOR, name="alice")
    for text in (
        "is valid for 8",
        "2 respondents in 2 rows",
        "policy.toml, rules: 1",
        "made at the start",
        "metrics: 127",
    ):
        assert text in notes(findings)
    added = {path.name for path in set(folder.rglob("*")) - set(before)}
    assert added == {"policy.toml", "party.toml"}, "nothing is made"


def test_a_server_that_could_start(check: Check) -> None:
    findings = check(SERVER + "retention_days = 3\nquota_releases = 7\nquota_gib = 1\n")
    assert findings.problems == []
    assert str(findings.party) == "server cloud"


def test_reports_over_https_are_checked(check: Check, folder: Path) -> None:
    assert check(SERVER + 'http = "127.0.0.1:0"\n').problems == []
    (folder / "not.pem").write_text("no certificate")
    pair = 'http_certificate = "not.pem"\nhttp_key = "not.pem"\n'
    for text, said in {
        'http = "here"\n': "is not PORT or HOST:PORT",
        'http_key = "not.pem"\n': "--http-key need --http",
        'http = "0"\nhttp_key = "not.pem"\n': "come together",
        'http = "0"\n' + pair: "no certificate and its key",
    }.items():
        assert said in problems(check(SERVER + text))["http"]


def test_what_is_to_compute_is_checked(check: Check) -> None:
    assert check(CURATOR + "workers = 3\n").problems == []
    cluster = 'dask = "tls://localhost:1"\nshared = "."\n'
    for text, said in {
        'dask = "tls://localhost:1"\n': "workers need a folder",
        'shared = "."\n': "no cluster to share",
        'dask = "tls://localhost:1"\nshared = "nowhere"\n': "this is no folder",
        'dask_identity = "client"\n': "there is no cluster",
        cluster + "workers = 2\n": "has its own workers",
        cluster: "reached over TLS",
    }.items():
        assert said in problems(check(CURATOR + text))["dask"]


def test_a_cluster_is_checked_without_a_call(check: Check, folder: Path) -> None:
    pytest.importorskip("distributed")
    client = init_cluster(folder / "cluster")["client"]
    cluster = 'dask = "tls://localhost:1"\nshared = "."\ndask_identity = "cluster/client"\n'
    findings = check(CURATOR + cluster)
    assert findings.problems == []
    assert "dask: tls://localhost:1, with files in" in notes(findings)
    (client / "tasks.key").unlink()
    assert "tasks.key" in problems(check(CURATOR + cluster))["dask"]


def test_what_serve_would_refuse_of_its_options_is_a_problem(check: Check) -> None:
    assert "1<=x<=36500" in problems(check(SERVER + "retention_days = 0\n"))["retention_days"]
    assert set(problems(check(CURATOR.replace("table =", "# table =")))) == {"table"}


def test_all_problems_are_listed_together(check: Check, folder: Path) -> None:
    (folder / "policy.toml").write_text('[[rule]]\ndecision = "perhaps"\n')
    (folder / "bad.csv").write_text("id,sex\nann,f\n")
    text = """
study = "study.toml"
name = "alice"
identity = "pki/curator-bob"
state = "party.toml"
table = "bad.csv"
policy = "policy.toml"
listen = "nowhere"
metrics = "host"
trace_file = "absent/trace"
retention_days = 3
stat = "x"
verbose = 7
"""
    found = problems(check(text))
    assert set(found) == {
        *("identity", "state", "table", "policy", "listen", "metrics", "trace_file", "retention_days"),
        *("stat", "verbose"),
    }
    assert "alice.pem" in found["identity"]
    assert "no folder" in found["state"]
    assert "bad.csv" in found["table"]
    assert "age" in found["table"]
    assert 'must be "approve"' in found["policy"]
    assert "not HOST:PORT" in found["listen"]
    assert "not PORT or HOST:PORT" in found["metrics"]
    assert "absent/trace" in found["trace_file"]
    assert "not for a curator" in found["retention_days"]
    assert "Did you mean 'state'?" in found["stat"]
    assert "true or false" in found["verbose"]


def test_what_is_missing_is_named(check: Check) -> None:
    assert set(problems(check('listen = "127.0.0.1:0"'))) == {"study", "name", "identity", "state"}
    assert set(problems(check(CURATOR.replace("table", "# table")))) == {"table"}


def test_a_study_that_cannot_be_read_or_lacks_the_name(check: Check, folder: Path) -> None:
    found = problems(check(CURATOR.replace("study.toml", "absent.toml")))
    assert list(found) == ["study"]
    assert "absent.toml" in found["study"]
    (folder / "broken.toml").write_text("[study]\nid = 7\n")
    broken = check(CURATOR.replace("study.toml", "broken.toml"))
    assert "broken.toml [study]" in problems(broken)["study"]
    assert [
        problem.problem for problem in broken.problems if problem.where.endswith("broken.toml [study], line 2")
    ] == ["id is of another kind"]
    found = problems(check(CURATOR.replace('"alice"', '"carol"')))
    assert "Known: cloud, alice, bob, rosa, rita." in found["name"]


def test_an_analyst_runs_no_service(check: Check, folder: Path, study_bytes: bytes) -> None:
    (folder / "wider.toml").write_bytes(study_bytes + b'[[analyst]]\nname = "ana"\nresearcher = "rosa"\n')
    found = problems(check(CURATOR.replace("study.toml", "wider.toml").replace('"alice"', '"ana"')))
    assert "no party 'ana' of the study serves" in found["name"]
    assert "Known: cloud, alice, bob, rosa, rita." in found["name"]


def test_a_certificate_says_how_long_it_lasts(check: Check, folder: Path, study: Study, made: Path) -> None:
    days = timedelta(days=1)
    assert "expired on" in problems(check(CURATOR, lambda: utc_now() + 5000 * days))["identity"]
    assert "veiltab pki issue" in problems(check(CURATOR, lambda: utc_now() + 5000 * days))["identity"]
    assert "valid only from" in problems(check(CURATOR, lambda: utc_now() - 5000 * days))["identity"]
    soon = notes(check(CURATOR, lambda: utc_now() + 810 * days))
    assert "renew it with `veiltab pki issue --party curator/alice`" in soon
    assert "renew it" not in notes(check(CURATOR))
    copied = folder / "copied"
    copied.mkdir()
    for path in (made / "pki" / "curator-alice").iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
        (copied / path.name).chmod(0o644)
    wrong = problems(check(CURATOR.replace("pki/curator-alice", "copied")))["identity"]
    assert "others than the owner" in wrong
    assert "chmod 600" in wrong
    del study


def test_a_state_folder_of_another_party(check: Check, folder: Path) -> None:
    OwnedFolder(folder / "state", "veiltab://survey/curator/bob").release()
    assert "holds the state of" in problems(check(SERVER))["state"]
    assert "state: this party's" not in notes(check(SERVER))


def test_a_party_that_runs_is_not_in_its_own_way(check: Check, folder: Path) -> None:
    running = OwnedFolder(folder / "state", "veiltab://survey/server/cloud")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        findings = check(SERVER.replace(":0", f":{taken.getsockname()[1]}"))
        assert findings.problems == []
        assert "a process runs on this folder now" in notes(findings)
        running.release()
        assert "cannot be bound" in problems(check(SERVER.replace(":0", f":{taken.getsockname()[1]}")))["listen"]


def test_an_address_that_is_not_of_this_machine(check: Check) -> None:
    assert "cannot be bound" in problems(check(SERVER.replace("127.0.0.1:0", "192.0.2.1:7400")))["listen"]
    assert "not known here" in problems(check(SERVER.replace("127.0.0.1:0", "no.such.host.invalid:7400")))["listen"]


def test_without_an_address_the_study_s_port_is_tried(check: Check, folder: Path, study_bytes: bytes) -> None:
    (port,) = free_ports(1)
    (folder / "study.toml").unlink()
    (folder / "study.toml").write_bytes(study_bytes.replace(b":7400", f":{port}".encode()))
    found = check(SERVER.replace("listen", "# listen"))
    assert found.problems == []
    assert f"listen: [::]:{port}" in notes(found)


def test_metrics_need_their_package(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert problems(check(SERVER)) == {}
    for metrics in ("0", "host"):
        findings = check(SERVER + f'metrics = "{metrics}"\n')
        assert "pip install 'veiltab[metrics]'." in [found.fix for found in findings.problems]


def test_metrics_beyond_this_machine_are_noted(check: Check) -> None:
    assert "BEYOND this machine" in notes(check(SERVER + 'metrics = "0.0.0.0:0"\n'))
    assert "BEYOND" not in notes(check(SERVER + 'metrics = "0"\n'))


def test_the_environment_wins(check: Check, folder: Path) -> None:
    text = SERVER.replace("pki/server-cloud", "absent")
    assert set(problems(check(text))) == {"identity"}
    findings = check(text, VEILTAB_IDENTITY=str(folder / "pki" / "server-cloud"))
    assert findings.problems == []
    assert "identity: from the environment variable VEILTAB_IDENTITY" in notes(findings)


def test_a_query_of_a_database_is_checked_as_a_table_is(check: Check, folder: Path) -> None:
    header, *rows = ((folder / "alice.csv").read_text("utf-8")).splitlines()
    with closing(sqlite3.connect(folder / "alice.sqlite")) as connection, connection:
        connection.execute(f"create table people ({header})")
        connection.executemany(
            f"insert into people values ({', '.join('?' * len(header.split(',')))})",  # noqa: S608 - question marks
            [row.split(",") for row in rows],
        )
    query = CURATOR.replace('"alice.csv"', '"alice.sqlite"\nquery = "select * from people order by rowid"')
    findings = check(query)
    assert not findings.problems
    assert any(f"{len(rows)} rows; a query of a SQLite file" in note for note in findings.notes)
    assert "no statement that reads" in problems(check(query.replace("select *", "delete")))["table"]
    assert set(problems(check(f'{CURATOR}decimal = "dot"\n'))) == {"decimal"}


def test_a_table_is_never_quoted(check: Check, folder: Path) -> None:
    (folder / "secret.csv").write_text("id,sex,age\nann-4711,f,young\nann-4711,unicorn,old\n")
    findings = check(CURATOR.replace("alice.csv", "secret.csv"))
    assert len(findings.problems) == 2
    assert not any(word in str(findings) for word in ("4711", "unicorn"))


# The command


@pytest.fixture
def terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(folder)
    for name in ("VEILTAB_IDENTITY", "VEILTAB_STATE"):
        monkeypatch.delenv(name, raising=False)

    def command(text: str, *options: str) -> tuple[int, str]:
        (folder / "party.toml").write_text(text)
        monkeypatch.setattr(sys, "argv", ["veiltab", "check", "party.toml", *options])
        code = run(config)
        return code, capsys.readouterr().out

    return command


def test_the_command_says_what_is_ready(terminal: Callable[..., tuple[int, str]]) -> None:
    code, out = terminal(SERVER)
    assert code == 0
    assert out.startswith("party.toml: ready for server cloud\n")


def test_the_command_lists_problems_with_file_key_and_fix(terminal: Callable[..., tuple[int, str]]) -> None:
    code, out = terminal(SERVER.replace("pki/server-cloud", "absent") + "verbose = 7\n")
    assert code == 2
    assert out.startswith("party.toml: 2 problems for server cloud\n")
    assert "  problem: party.toml: verbose: verbose is of another kind. It must be true or false.\n" in out
    assert "  problem: party.toml: identity: absent/cloud.pem: a file of the identity is not there." in out
    code, out = terminal(SERVER.replace("pki/server-cloud", "absent"), "--json")
    data: dict[str, Any] = json.loads(out)
    assert (code, data["ok"], data["party"]) == (2, False, "veiltab://survey/server/cloud")
    assert set(data["problems"][0]) == {"file", "key", "where", "problem", "fix"}
    code, out = terminal("name = ")
    assert code == 2
    assert "party.toml: 1 problem\n" in out
    assert "not a TOML file" in out


def test_renewal_that_is_named_works(folder: Path, study: Study, tmp_path_factory: pytest.TempPathFactory) -> None:
    fresh = tmp_path_factory.mktemp("fresh") / "pki"
    init_pki(study, fresh)
    alice = Party(study="survey", role=Role.CURATOR, name="alice")
    issue_party(study, fresh, alice, lifetime=timedelta(days=3))
    (folder / "party.toml").write_text(CURATOR.replace("pki/curator-alice", str(fresh / "curator-alice")))
    findings = check_party(folder / "party.toml", environment={})
    assert findings.problems == []
    assert "valid for 2 days; renew it" in notes(findings)
