"""The prime-order group ristretto255 (RFC 9496), computed by libsodium, through the package rbcl.

An element is its canonical encoding of 32 bytes, a scalar 32 bytes, least first.
"""

import sys
import tempfile
from pathlib import Path
from types import ModuleType

from veiltab.common.errors import IntegrityError, InvalidInputError

ELEMENT_BYTES = 32
"""Length of an element."""

UNIFORM_BYTES = 64
"""Length of the uniform bytes that become a scalar or an element."""

IDENTITY = bytes(ELEMENT_BYTES)
"""The element that adds nothing."""


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
            import rbcl  # noqa: PLC0415 - not for alignment by tokens
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


def scalar(uniform: bytes) -> bytes:
    """Return 64 bytes as a number, modulo the order of the group; further from uniform by 2^-259 at most."""
    reduced: bytes = load().crypto_core_ristretto255_scalar_reduce(uniform)
    return reduced


def hashed(uniform: bytes) -> bytes:
    """Return the element of a hash of 64 bytes: the one-way map of RFC 9496, 4.3.4."""
    element: bytes = load().crypto_core_ristretto255_from_hash(uniform)
    return element


def multiple(factor: bytes, element: bytes | None = None) -> bytes:
    """Return an element times a scalar, which may be the identity; without an element, the generator times it."""
    if element is None:
        product: bytes = load().crypto_scalarmult_ristretto255_base_allow_scalar_zero(factor)
    else:
        product = load().crypto_scalarmult_ristretto255_allow_scalar_zero(factor, element)
    return product


def added(one: bytes, other: bytes) -> bytes:
    """Return the sum of two elements."""
    total: bytes = load().crypto_core_ristretto255_add(one, other)
    return total


def subtracted(one: bytes, other: bytes) -> bytes:
    """Return one element without another."""
    rest: bytes = load().crypto_core_ristretto255_sub(one, other)
    return rest


def elements(message: bytes, count: int, *, where: str) -> list[bytes]:
    """Return the elements that a peer sent, one after the other; the identity may be among them.

    Args:
        message: what the peer sent.
        count: how many there must be.
        where: the message, for errors.

    Raises:
        IntegrityError: other bytes than so many canonical encodings.
    """
    each = [message[start : start + ELEMENT_BYTES] for start in range(0, len(message), ELEMENT_BYTES)]
    is_valid = load().crypto_core_ristretto255_is_valid_point
    if len(message) != count * ELEMENT_BYTES or not all(map(is_valid, each)):
        raise IntegrityError(f"the message is not {count} elements of the group", where=where)
    return each
