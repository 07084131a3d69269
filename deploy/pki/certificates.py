"""The certificates of a study: one authority, and one certificate a party of the study file.

DIR/ca.pem  DIR/ca.key              the authority; anyone who holds ca.key can pose as any party
DIR/issued  DIR/crl.pem             issued serial numbers; revoked ones
DIR/<role>-<name>/ca.pem            these three make a party's directory, to be copied to its machine as it is
DIR/<role>-<name>/<name>.pem
DIR/<role>-<name>/<name>.key
"""

from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from veiltab.common.command.parties import parties_of
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError
from veiltab.common.rpc.parties.identity import Clock, Party, utc_now
from veiltab.common.rpc.parties.revocation import FILE
from veiltab.common.storage.files import created_private, write_whole
from veiltab.common.study.file import Study
from veiltab.common.study.members import RELAYED
from veiltab.deploy.pki.authority import (
    Authority,
    Issued,
    authority_name,
    common_name,
    key_pem,
    names_of,
    new_authority,
)

LIFETIME = timedelta(days=825)
"""Default lifetime of a party's certificate."""

ISSUED = "issued"
"""File beside the authority: the serial numbers that it issued, and to whom."""

AUTHORITY_LIFETIME = timedelta(days=3650)
"""Shortest lifetime of an authority: it outlives the certificates that it renews."""

BACKDATING = timedelta(minutes=5)
"""How long before its making a certificate becomes valid: the parties' clocks differ a little."""

_NOWHERE = "localhost:0"
"""Endpoint in the certificates of those who listen nowhere, and of the relay, which is known by its DNS name."""


def init_pki(study: Study, out: Path, *, lifetime: timedelta = LIFETIME, clock: Clock = utc_now) -> dict[Party, Path]:
    """Make a study's authority and one certificate for each of its parties.

    Args:
        out: directory for all files; made if it does not exist.
        lifetime: how long the parties' certificates are valid from now.

    Returns:
        Each party's directory.

    Raises:
        ConflictError: `out` holds an authority already.
        InvalidInputError: an endpoint is not valid in a certificate.
    """
    check_no_authority(out, "Renew or add a party with `veiltab pki issue`, or give another directory.")
    parties = parties_of(study)
    for party, endpoint in parties.items():
        names_of(party, _place(endpoint))
    now = clock()
    authority = new_authority(study.id, since=now - BACKDATING, until=now + max(AUTHORITY_LIFETIME, lifetime))
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(out / "ca.key", key_pem(authority.key))
    write_whole(out / "ca.pem", authority.certificate.public_bytes(Encoding.PEM))
    return {party: issue_party(study, out, party, lifetime=lifetime, clock=clock) for party in parties}


def _place(endpoint: str | None) -> str:
    return _NOWHERE if endpoint in {None, RELAYED} else endpoint


def check_no_authority(out: Path, remedy: str) -> None:
    """Refuse a directory that holds an authority already.

    Raises:
        ConflictError: it does.
    """
    if any((out / name).exists() for name in ("ca.pem", "ca.key")):
        raise ConflictError(
            "there is already an authority here, and a new one would invalidate all its certificates",
            where=str(out),
            remedy=remedy,
        )


def issue_party(
    study: Study, pki: Path, party: Party, *, lifetime: timedelta = LIFETIME, clock: Clock = utc_now
) -> Path:
    """Make or renew one party's certificate, with a fresh key, by the existing authority.

    Args:
        study: names the party and its endpoint.
        lifetime: how long it is valid from now; it ends with the authority at the latest.

    Returns:
        The party's directory.

    Raises:
        NotFoundError: there is no authority.
        InvalidInputError: the party is not in the study, or the authority is another study's or has expired.
    """
    parties = parties_of(study)
    if party not in parties:
        raise InvalidInputError(
            f"the study has no {party}", where=f"study {study.id}", remedy=f"Known: {', '.join(map(str, parties))}."
        )
    authority, now = _load_authority(pki, study.id), clock()
    if now > authority.certificate.not_valid_after_utc:
        raise InvalidInputError(
            "the authority has expired", where=str(pki), remedy="Make a new one with `veiltab pki init`."
        )
    issued = authority.issue(str(party), names_of(party, _place(parties[party])), now - BACKDATING, now + lifetime)
    folder = pki / f"{party.role.value}-{party.name}"
    write_identity(folder, party.name, authority, issued)
    with open(pki / ISSUED, "a", encoding="utf-8", opener=created_private) as record:
        record.write(f"{issued.certificate.serial_number:x} {party.uri}\n")
    return folder


def revoke_certificates(study: Study, pki: Path, *, party: Party | None = None, serial: int | None = None) -> list[int]:
    """Revoke all certificates of a party, or one certificate, and write the authority's list to DIR/crl.pem.

    Earlier revocations stay in the list. A copy goes into every party's folder in `pki`.

    Args:
        serial: the number of one certificate to revoke.

    Returns:
        The serial numbers that this call revoked.

    Raises:
        NotFoundError: there is no authority, or it issued no such certificate.
    """
    authority = _load_authority(pki, study.id)
    issued = _read_issued(pki)
    numbers = [number for number, uri in issued if (party is not None and uri == party.uri) or number == serial]
    if not numbers:
        raise NotFoundError("this authority issued no such certificate", where=str(pki / ISSUED))
    path = pki / FILE
    before = list(x509.load_pem_x509_crl(path.read_bytes())) if path.exists() else []
    serials = {entry.serial_number for entry in before}
    fresh = [number for number in numbers if number not in serials]
    data = authority.revocation_list(before, fresh, utc_now()).public_bytes(Encoding.PEM)
    for folder in (pki, *(child for child in pki.iterdir() if (child / "ca.pem").exists())):
        write_whole(folder / FILE, data)
    return fresh


def _read_issued(pki: Path) -> list[tuple[int, str]]:
    """Return the serial numbers that the authority issued, and to whom."""
    path = pki / ISSUED
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(int(number, 16), uri) for number, uri in (line.split() for line in lines)]


def _load_authority(pki: Path, study: str) -> Authority:
    """Read an authority, and check that it is this study's."""
    try:
        certificate = x509.load_pem_x509_certificate((pki / "ca.pem").read_bytes())
        key = load_pem_private_key((pki / "ca.key").read_bytes(), password=None)
    except FileNotFoundError:
        raise NotFoundError(
            "there is no authority with its key", where=str(pki), remedy="`veiltab pki init` makes one."
        ) from None
    except (ValueError, TypeError):
        raise InvalidInputError("ca.pem or ca.key cannot be read", where=str(pki)) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise InvalidInputError("ca.key is not the key of ca.pem", where=str(pki))
    if certificate.subject != common_name(authority_name(study)):
        raise InvalidInputError(f"this is not the authority of study {study}", where=str(pki))
    return Authority(certificate=certificate, key=key)


def write_identity(folder: Path, name: str, authority: Authority, issued: Issued) -> None:
    """Write a certificate with its key and its authority's certificate, readable by their owner only.

    Args:
        folder: where to; made if it does not exist.
        name: of the files of certificate and key.
    """
    folder.mkdir(exist_ok=True, mode=0o700)
    write_whole(folder / "ca.pem", authority.certificate.public_bytes(Encoding.PEM))
    write_whole(folder / f"{name}.key", issued.key_pem)
    write_whole(folder / f"{name}.pem", issued.certificate_pem)
