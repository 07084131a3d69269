import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner
from cryptography import x509

from tests.conftest import refuses
from veiltab.common.errors import ConflictError, InvalidInputError
from veiltab.common.rpc.parties.identity import check_issuer
from veiltab.deploy.cli import veiltab
from veiltab.deploy.pki.cluster import init_cluster

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)


def test_each_role_gets_what_it_needs_and_the_scheduler_no_key_of_tasks(tmp_path: Path) -> None:
    folders = init_cluster(tmp_path / "pki")
    files = {role: {path.name for path in folder.iterdir()} for role, folder in folders.items()}
    assert files == {
        "scheduler": {"ca.pem", "scheduler.pem", "scheduler.key"},
        "worker": {"ca.pem", "worker.pem", "worker.key", "tasks.key"},
        "client": {"ca.pem", "client.pem", "client.key", "tasks.key"},
    }
    assert (folders["worker"] / "tasks.key").read_bytes() == (folders["client"] / "tasks.key").read_bytes()
    every = [path for path in (tmp_path / "pki").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in every} == {0o600}


def test_one_authority_issues_all_and_leaves_no_key_behind(tmp_path: Path) -> None:
    folders = init_cluster(tmp_path, lifetime=timedelta(days=7), clock=lambda: NOW)
    authority = (tmp_path / "ca.pem").read_bytes()
    for role, folder in folders.items():
        certificate = x509.load_pem_x509_certificate((folder / f"{role}.pem").read_bytes())
        check_issuer(certificate, authority)
        assert certificate.not_valid_after_utc == NOW + timedelta(days=7)
        assert (folder / "ca.pem").read_bytes() == authority
    assert {path.name for path in tmp_path.iterdir()} == {"ca.pem", *folders}


def test_two_clusters_share_nothing(tmp_path: Path) -> None:
    one, two = init_cluster(tmp_path / "one"), init_cluster(tmp_path / "two")
    for name in ("ca.pem", "client.pem", "client.key", "tasks.key"):
        assert (one["client"] / name).read_bytes() != (two["client"] / name).read_bytes()


def test_a_cluster_is_not_replaced(tmp_path: Path) -> None:
    init_cluster(tmp_path)
    with refuses(ConflictError, where=str(tmp_path)) as caught:
        init_cluster(tmp_path)
    assert "another directory" in caught.value.remedy


def test_the_command_names_the_folders(tmp_path: Path) -> None:
    words = ["pki", "init", "--cluster", "--out", str(tmp_path / "pki"), "--days", "30", "--json"]
    done = CliRunner().invoke(veiltab, words)
    assert json.loads(done.output)["folders"] == {
        role: str(tmp_path / "pki" / role) for role in ("scheduler", "worker", "client")
    }
    said = CliRunner().invoke(veiltab, ["pki", "init", "--cluster", "--out", str(tmp_path / "other")]).output
    assert "dask-identity" in said
    for wrong in ([], ["study.toml", "--cluster"]):
        refused = CliRunner().invoke(veiltab, ["pki", "init", *wrong, "--out", str(tmp_path / "none")])
        assert isinstance(refused.exception, InvalidInputError)
