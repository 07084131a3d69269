"""Reads the files of release certificates, of their authority, and of evidence, and checks a certificate."""

from pathlib import Path

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.certificates.release_certificate import LONGEST, ReleaseCertificate, plain_pem
from veiltab.common.rpc.certificates.release_verification import verified
from veiltab.common.study.file import Study


def file_text(path: Path) -> str:
    """Return what may be a release certificate.

    Raises:
        InvalidInputError: it cannot be read.
        IntegrityError: it is not a text, or too long.
    """
    try:
        return file_content(path).decode()
    except UnicodeDecodeError:
        raise IntegrityError("this is not a release certificate, or it was altered", where=str(path)) from None


def read_at_most(path: Path, size: int) -> bytes:
    """Return the first bytes of a file; InvalidInputError: it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InvalidInputError(
            f"the file cannot be read ({error.strerror})", where=str(path), remedy="Check the path and its rights."
        ) from None


def file_content(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        InvalidInputError: it cannot be read.
        IntegrityError: it is too long.
    """
    data = read_at_most(path, LONGEST + 1)
    if len(data) > LONGEST:
        raise IntegrityError("the file is too long to be what it should be", where=str(path))
    return data


def authority_pem(path: Path) -> bytes:
    """Return the certificates of a study's authority, PEM.

    Raises:
        InvalidInputError: the file cannot be read, or has none.
        IntegrityError: it is too long.
    """
    return plain_pem(file_content(path), str(path)).encode()


def checked_certificate(path: Path, study: Study, authority: bytes, revoked: Path | None = None) -> ReleaseCertificate:
    """Return a release certificate that holds, of this study; with a revocation list, nobody on it may have signed.

    Raises:
        IntegrityError: this is not a release certificate, or it was altered.
        InvalidInputError: the file cannot be read, or a line of it does not hold.
    """
    certificate = ReleaseCertificate.from_text(file_text(path), str(path))
    for finding in verified(certificate, study, authority, revoked):
        if finding.holds is False:
            raise InvalidInputError(
                f"the release certificate does not hold: {finding.what}: {finding.detail}",
                where=f"release {certificate.spec.release_id}",
                remedy="`veiltab verify` shows every line of it.",
            )
    return certificate
