"""Revoked certificates: the authorities' revocation lists, read again whenever their file changes."""

import logging
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cryptography import x509

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.parties.identity import party_of_certificate

FILE = "crl.pem"
"""Name of the file of lists in a party's folder; without it nothing is revoked."""

_log = logging.getLogger(__name__)
_PEM = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----\n?", re.DOTALL)


class RevocationList:
    """The certificates that a file of lists revokes, one list an authority.

    A file that cannot be read is refused at the start; later the last good one stays in force and the log says so. A
    list of an authority that is not trusted here, and one that is older than the list in force, change nothing.

    Args:
        path: X.509 revocation lists, PEM, one after the other; may be missing.
        authority: the certificates of the study's authorities, PEM.

    Raises:
        InvalidInputError: the file is there and holds no list.
    """

    def __init__(self, path: Path, authority: bytes) -> None:
        self._path = path
        self._issuers = x509.load_pem_x509_certificates(authority)
        self._version: tuple[int, ...] | None = None
        self._since: dict[int, datetime] = {}
        self._serials: dict[int, frozenset[int]] = {}
        self._read()

    def revokes(self, serial: int) -> bool:
        """Return whether a certificate with this serial number is revoked now."""
        try:
            self._read()
        except InvalidInputError as error:
            _log.error("the revocation list is not taken over: %s", error.problem)
        return any(serial in revoked for revoked in self._serials.values())

    @property
    def last_update(self) -> datetime | None:
        """When the newest of the lists in force was made; None if none is."""
        return max(self._since.values(), default=None)

    def _read(self) -> None:
        """Take over the file if it has changed; what cannot be read now is tried again at the next call."""
        try:
            status = self._path.stat()
            version = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if version == self._version:
                return
            lists = [x509.load_pem_x509_crl(pem) for pem in _PEM.findall(self._path.read_bytes())]
        except FileNotFoundError:
            # A file that disappears does not bring its certificates back.
            return
        except (OSError, ValueError):
            raise self._refusal("this is not a revocation list") from None
        if not lists:
            raise self._refusal("this is not a revocation list")
        for one in lists:
            self._take(one)
        self._version = version

    def _take(self, crl: x509.CertificateRevocationList) -> None:
        for place, issuer in enumerate(self._issuers):
            if crl.issuer == issuer.subject and crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type] # any public key
                if place not in self._since or crl.last_update_utc >= self._since[place]:
                    self._since[place] = crl.last_update_utc
                    self._serials[place] = frozenset(entry.serial_number for entry in crl)
                return
        _log.error("a revocation list in %s is of no authority that is trusted here; it changes nothing", FILE)

    def _refusal(self, problem: str) -> InvalidInputError:
        return InvalidInputError(problem, where=str(self._path), remedy="`veiltab pki revoke` makes it.")


def check_none_revoked(path: Path, authority: bytes, certificates: Iterable[str]) -> str:
    """Return, in words, that no certificate is revoked.

    Anyone who has the key of a revoked certificate can sign with any date, so its earlier signatures are in doubt too.

    Args:
        path: the authority's revocation list, PEM.
        authority: the certificates of the study's authorities, PEM.
        certificates: PEM.

    Raises:
        InvalidInputError: the file is not a list, or what signed is not a certificate.
        IntegrityError: it is none of the authority's, or revokes a certificate.
    """
    lists = RevocationList(path, authority)
    if lists.last_update is None:
        raise IntegrityError("the revocation list is not there, or is of another authority", where=str(path))
    signers = {party_of_certificate(one.encode()) for one in certificates}
    for one in signers:
        if lists.revokes(one.serial):
            raise IntegrityError(f"the certificate {one.serial:x} of {one.party}, which signed, is revoked")
    return f"none of {len(signers)} signing certificates is on the list of {lists.last_update:%Y-%m-%d %H:%M} UTC"
