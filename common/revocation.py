"""Which certificates no longer count: the authority's revocation list, read again whenever its file changes."""

import logging
from pathlib import Path

from cryptography import x509

from common.errors import InvalidInputError

FILE = "crl.pem"
"""Name of the list in a party's folder; without the file nothing is revoked."""

_log = logging.getLogger(__name__)


class RevocationList:
    """The serial numbers that one file revokes.

    A list that comes to be unreadable, or is not the authority's, is refused at the start; later the last good one
    stays in force and the log says so.

    Args:
        path: an X.509 revocation list, PEM; may be missing.
        authority: the certificates of the study's authority, PEM.

    Raises:
        InvalidInputError: the file is there and is no list of this authority.
    """

    def __init__(self, path: Path, authority: bytes) -> None:
        self._path = path
        self._issuers = x509.load_pem_x509_certificates(authority)
        self._seen: tuple[int, int, int] | None = None
        self._revoked: frozenset[int] = frozenset()
        self._read()

    def revokes(self, serial: int) -> bool:
        """Tell whether a certificate with this serial number is revoked now."""
        try:
            self._read()
        except InvalidInputError as error:
            _log.error("the revocation list is not taken over: %s", error.problem)
        return serial in self._revoked

    def _read(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            # A list that disappears does not bring its certificates back.
            return
        version = (found.st_mtime_ns, found.st_size, found.st_ino)
        if version != self._seen:
            self._seen = version
            self._revoked = frozenset(entry.serial_number for entry in self._list())

    def _list(self) -> x509.CertificateRevocationList:
        try:
            found = x509.load_pem_x509_crl(self._path.read_bytes())
        except (OSError, ValueError):
            raise self._refusal("this is no revocation list") from None
        for issuer in self._issuers:
            key = issuer.public_key()
            if found.issuer == issuer.subject and found.is_signature_valid(key):  # type: ignore[arg-type] # any public key
                return found
        raise self._refusal("the revocation list is not of the authority beside it")

    def _refusal(self, problem: str) -> InvalidInputError:
        return InvalidInputError(problem, where=str(self._path), remedy="`veiltab pki revoke` makes it.")
