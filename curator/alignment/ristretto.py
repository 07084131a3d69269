"""The prime-order group ristretto255 (RFC 9496), computed by libsodium, through the package rbcl.

An element is its canonical encoding of 32 bytes; a column of elements is their concatenation. Whatever multiplies or
checks an element refuses encodings that are not canonical, and the identity.
"""

import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha512
from pathlib import Path
from secrets import token_bytes
from types import ModuleType

from veiltab.common.errors import IntegrityError, InvalidInputError

ELEMENT_BYTES = 32
"""Length of an element."""

SCALAR_BYTES = 32
"""Length of a scalar."""

_DOMAIN = b"veiltab private alignment id\n"
_IDENTITY = bytes(ELEMENT_BYTES)


def load(folder: Path | None = None) -> ModuleType:
    """Load libsodium, once a process.

    rbcl writes the library into a temporary file, loads it and leaves the file behind. Here the file is in a folder of
    its own that is deleted at once, where programs may be loaded: a temporary folder often forbids that.

    Args:
        folder: an existing folder; by default the system's temporary folder.

    Raises:
        InvalidInputError: the folder forbids to load a library from it.
    """
    if "rbcl" in sys.modules:
        return sys.modules["rbcl"]
    usual = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="libsodium-", dir=folder) as place:
        tempfile.tempdir = place
        try:
            import rbcl  # noqa: PLC0415 - parties of studies that align by tokens never need it
        except OSError:
            raise InvalidInputError(
                "libsodium cannot be loaded from a file in this folder",
                where=str(Path(place).parent),
                remedy="Allow programs there (no `noexec`), or name another: a curator's --state, or TMPDIR.",
            ) from None
        finally:
            tempfile.tempdir = usual
    library: ModuleType = rbcl
    return library


def fresh_scalar() -> bytes:
    """Return a uniform scalar from the operating system (0 with probability 2^-252, which `masked` refuses)."""
    scalar: bytes = load().crypto_core_ristretto255_scalar_reduce(token_bytes(64))
    return scalar


def hashed(ids: Iterable[bytes]) -> bytes:
    """Return the elements of ids: the one-way map of RFC 9496, 4.3.4, of SHA-512(domain | UTF-8 bytes of the id).

    Nobody knows the discrete logarithm of such an element to any other.
    """
    to_element = load().crypto_core_ristretto255_from_hash
    return b"".join([to_element(sha512(_DOMAIN + each).digest()) for each in ids])


def masked(elements: bytes, scalar: bytes) -> bytes:
    """Return every element multiplied by a scalar, in order.

    Raises:
        IntegrityError: one of them is no element of the group, or the identity.
    """
    multiply = load().crypto_scalarmult_ristretto255
    try:
        return b"".join([multiply(scalar, element) for element in _each(elements)])
    except (RuntimeError, ValueError):
        raise IntegrityError(
            "a masked id is no element of the group, or is the identity", where="private alignment"
        ) from None


def are_elements(elements: bytes) -> bool:
    """Whether a column holds elements of the group alone, and the identity nowhere."""
    is_valid = load().crypto_core_ristretto255_is_valid_point
    return all(len(each) == ELEMENT_BYTES and each != _IDENTITY and is_valid(each) for each in _each(elements))


def _each(elements: bytes) -> Iterable[bytes]:
    return (elements[start : start + ELEMENT_BYTES] for start in range(0, len(elements), ELEMENT_BYTES))
