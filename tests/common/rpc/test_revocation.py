import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from veiltab.common.errors import InvalidInputError
from veiltab.common.rpc.parties.revocation import RevocationList
from veiltab.deploy.pki.authority import Authority, new_authority

NOW = datetime(2030, 1, 15, 12, tzinfo=UTC)


def authority(name: str = "survey") -> Authority:
    return new_authority(name, since=NOW, until=NOW + timedelta(days=100))


def write(path: Path, of: Authority, *serials: int) -> None:
    path.write_bytes(of.revocation_list([], serials, NOW).public_bytes(Encoding.PEM))
    # Two writes within one tick of the file system's clock are told apart by their size; make sure of it.
    os.utime(path, ns=(len(serials), len(serials)))


def pem(of: Authority) -> bytes:
    return of.certificate.public_bytes(Encoding.PEM)


def test_nothing_is_revoked_without_a_list_and_the_list_counts_once_it_is_there(tmp_path: Path) -> None:
    own, path = authority(), tmp_path / "crl.pem"
    found = RevocationList(path, pem(own))
    assert not found.revokes(7)
    write(path, own, 7)
    assert found.revokes(7)
    assert not found.revokes(8)
    write(path, own, 7, 8)
    assert found.revokes(8)
    path.unlink()
    assert found.revokes(7)


def test_what_is_no_list_is_refused_at_the_start_and_not_taken_over_later(tmp_path: Path) -> None:
    own, path = authority(), tmp_path / "crl.pem"
    write(path, own, 7)
    found = RevocationList(path, pem(own))
    path.write_text("nonsense", "utf-8")
    assert found.revokes(7)
    assert not found.revokes(8)
    with pytest.raises(InvalidInputError, match="not a revocation list"):
        RevocationList(path, pem(own))
    write(path, own, 7, 8)
    assert found.revokes(8)


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
def test_whatever_is_no_list_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "crl.pem"
    path.write_text(content, "utf-8")
    with pytest.raises(InvalidInputError, match="not a revocation list") as caught:
        RevocationList(path, pem(authority()))
    assert (caught.value.where, "veiltab pki revoke" in caught.value.remedy) == (str(path), True)


@pytest.mark.parametrize("name", ["other", "survey"])
def test_a_list_of_an_authority_that_is_not_trusted_changes_nothing(tmp_path: Path, name: str) -> None:
    own, path = authority(), tmp_path / "crl.pem"
    write(path, own, 7)
    found = RevocationList(path, pem(own))
    write(path, authority(name), 8, 9)
    assert found.revokes(7)
    assert not found.revokes(8)
    assert not RevocationList(path, pem(own)).revokes(8)


def test_an_older_list_does_not_bring_certificates_back(tmp_path: Path) -> None:
    own, path = authority(), tmp_path / "crl.pem"
    newer = own.revocation_list([], [7, 8], NOW + timedelta(days=1))
    path.write_bytes(newer.public_bytes(Encoding.PEM))
    found = RevocationList(path, pem(own))
    write(path, own, 7)
    assert found.revokes(8)


def test_lists_of_two_authorities_stand_beside_each_other(tmp_path: Path) -> None:
    old, new, path = authority(), authority(), tmp_path / "crl.pem"
    lists = [one.revocation_list([], [number], NOW) for one, number in ((old, 7), (new, 8))]
    path.write_bytes(b"".join(one.public_bytes(Encoding.PEM) for one in lists))
    found = RevocationList(path, pem(old) + pem(new))
    assert found.revokes(7)
    assert found.revokes(8)
    assert not RevocationList(path, pem(new)).revokes(7)
