"""How `veiltab server serve` is told of a database, and what it says when it cannot use it."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.conftest import refuses
from tests.server.cluster import Cluster
from veiltab.common.errors import ConflictError, InvalidInputError, UnavailableError
from veiltab.common.study.file import Study
from veiltab.deploy.pki.certificates import init_pki
from veiltab.server.cli import serve
from veiltab.server.sharing.quota import Quota
from veiltab.server.sharing.shared_folder import SharedFolder

Serve = Callable[..., None]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, study: Study, study_bytes: bytes) -> Path:
    """A folder with a study file and certificates."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "study.toml").write_bytes(study_bytes)
    init_pki(study, folder / "pki")
    return folder


@pytest.fixture
def start(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Start a server that cannot be started."""
    monkeypatch.setattr("veiltab.common.command.options.log_to_stderr", lambda **_: None)

    def started(*options: str) -> None:
        words = [str(served / "study.toml"), "--name", "cloud", "--identity", str(served / "pki" / "server-cloud")]
        serve.main([*words, "--state", str(tmp_path / "state"), *options], standalone_mode=False)

    return started


def test_a_database_is_named_by_an_option_or_in_the_environment(start: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILTAB_DATABASE", "sqlite:///hunter2")
    with pytest.raises(InvalidInputError, match="not the URL of a PostgreSQL") as refusal:
        start()
    assert "hunter2" not in str(refusal.value)
    with refuses(UnavailableError, where="--database") as refused:
        start("--database", "postgresql://cloud:hunter2@localhost:1/state")
    assert "hunter2" not in str(refused.value)
    assert "VEILTAB_DATABASE" in serve.get_help(click.Context(serve))


def test_nothing_is_held_after_a_refusal(start: Serve, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(UnavailableError):
            start("--database", "postgresql://localhost:1/state")
    SharedFolder(tmp_path / "state", "veiltab://survey/server/cloud").release()


def test_a_database_of_another_folder_or_none_is_refused(start: Serve, tmp_path: Path, cluster: Cluster) -> None:
    url = cluster.new_url()
    # The address of nobody: the server holds its state by then, and lets go of it.
    with pytest.raises(InvalidInputError, match="cannot be bound"):
        start("--database", url, "--listen", "192.0.2.1:1")
    with pytest.raises(ConflictError, match="state is in a PostgreSQL"):
        start()
    (tmp_path / "state" / "database").unlink()
    with pytest.raises(ConflictError, match="not the folder that goes with the database"):
        start("--database", url)


def test_a_study_without_nodes_takes_no_reports(start: Serve) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        start("--http", "0")
    assert refusal.value.where == "--http"


def test_a_curator_s_quota_is_an_option(start: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas: list[Quota] = []
    monkeypatch.setattr("veiltab.server.party.serving.serve_server", lambda *_, quota, **__: quotas.append(quota))
    start()
    start("--advanced", "quota-releases=3", "--advanced", "quota-gib=2")
    assert quotas == [Quota(releases=256, gibibytes=64), Quota(releases=3, gibibytes=2)]
    with pytest.raises(click.UsageError, match="x>=1"):
        start("--advanced", "quota-gib=0")
