from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.errors import InvalidInputError, NotFoundError
from veiltab.common.tasks.cluster_identity import load_cluster_identity
from veiltab.deploy.pki.authority import new_authority
from veiltab.deploy.pki.cluster import init_cluster

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)


def at(*, days: int) -> datetime:
    return NOW + timedelta(days=days)


@pytest.fixture
def client(tmp_path: Path) -> Path:
    return init_cluster(tmp_path, lifetime=timedelta(days=10), clock=lambda: NOW)["client"]


def test_the_folder_of_the_client_is_read(client: Path) -> None:
    identity = load_cluster_identity(client, clock=lambda: NOW)
    assert identity.authority.read_bytes() == (client.parent / "ca.pem").read_bytes()
    assert identity.tasks_key.hex() == (client / "tasks.key").read_text().strip()
    assert repr(identity.tasks_key) not in repr(identity)


@pytest.mark.parametrize("name", ["ca.pem", "client.pem", "client.key", "tasks.key"])
def test_a_file_that_is_missing_is_named(client: Path, name: str) -> None:
    (client / name).unlink()
    with pytest.raises(NotFoundError) as caught:
        load_cluster_identity(client, clock=lambda: NOW)
    assert caught.value.where == str(client / name)


@pytest.mark.parametrize("name", ["client.key", "tasks.key"])
def test_a_key_that_others_may_read_is_refused(client: Path, name: str) -> None:
    (client / name).chmod(0o604)
    with pytest.raises(InvalidInputError, match="others than the owner") as caught:
        load_cluster_identity(client, clock=lambda: NOW)
    assert caught.value.where == str(client / name)


@pytest.mark.parametrize("name", ["ca.pem", "client.pem"])
def test_what_is_no_certificate_is_refused(client: Path, name: str) -> None:
    (client / name).write_text("hello")
    with pytest.raises(InvalidInputError, match="this is not a PEM certificate"):
        load_cluster_identity(client, clock=lambda: NOW)


@pytest.mark.parametrize("days", [-1, 11])
def test_a_certificate_is_valid_in_its_time(client: Path, days: int) -> None:
    with pytest.raises(InvalidInputError, match="not valid now"):
        load_cluster_identity(client, clock=lambda: at(days=days))


def test_the_authority_of_another_cluster_is_refused(client: Path, tmp_path: Path) -> None:
    init_cluster(tmp_path / "other", clock=lambda: NOW)
    (client / "ca.pem").write_bytes((tmp_path / "other" / "ca.pem").read_bytes())
    with pytest.raises(InvalidInputError, match="not issued by the authority"):
        load_cluster_identity(client, clock=lambda: NOW)


def test_the_authority_of_the_study_is_refused(client: Path) -> None:
    study = new_authority("survey", since=NOW, until=at(days=1)).certificate
    other = study.public_bytes(Encoding.PEM)
    load_cluster_identity(client, study_authority=other, clock=lambda: NOW)
    both = other + (client / "ca.pem").read_bytes()
    with pytest.raises(InvalidInputError, match="every party of the study") as caught:
        load_cluster_identity(client, study_authority=both, clock=lambda: NOW)
    assert "pki init --cluster" in caught.value.remedy


@pytest.mark.parametrize("name", ["ca.pem", "client.pem", "."])
def test_an_identity_that_others_may_write_is_refused(client: Path, name: str) -> None:
    (client / name).chmod(0o777)
    with pytest.raises(InvalidInputError, match="others than its owner may write this"):
        load_cluster_identity(client, clock=lambda: NOW)
