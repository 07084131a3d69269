"""Reads what may be a certificate, or evidence."""

from pathlib import Path

from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.rpc.certificates.release_certificate import LONGEST, plain_pem


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
    """Return the certificates of a study's authority, PEM; InvalidInputError: the file cannot be read, or has none."""
    return plain_pem(read_at_most(path, LONGEST), str(path)).encode()
