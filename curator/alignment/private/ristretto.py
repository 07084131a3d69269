"""The prime-order group ristretto255 (RFC 9496), computed by libsodium, through the package rbcl.

An element is its canonical encoding of 32 bytes; a column of elements is their concatenation. Whatever multiplies or
checks an element refuses encodings that are not canonical, and the identity.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from hashlib import blake2b, sha512
from secrets import token_bytes

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import load

ELEMENT_BYTES = 32
"""Length of an element."""

PAIR_BYTES = 2 * ELEMENT_BYTES
"""Length of a key and an element, as `weighted_sum` takes them."""

_DOMAIN = b"veiltab private alignment id\n"
_IDENTITY = bytes(ELEMENT_BYTES)
_SEED_BYTES = 32


def fresh_scalar() -> bytes:
    """Return a uniform scalar from the operating system (0 with probability 2^-252, which `masked` refuses)."""
    scalar: bytes = load().crypto_core_ristretto255_scalar_reduce(token_bytes(64))
    return scalar


def fresh_seed() -> bytes:
    """Return a seed of weights from the operating system."""
    return token_bytes(_SEED_BYTES)


def hashed(ids: Iterable[bytes], domain: bytes = _DOMAIN) -> bytes:
    """Return the elements of ids: the one-way map of RFC 9496, 4.3.4, of SHA-512(domain | UTF-8 bytes of the id).

    Nobody knows the discrete logarithm of such an element to any other.
    """
    to_element = load().crypto_core_ristretto255_from_hash
    return b"".join([to_element(sha512(domain + each).digest()) for each in ids])


def masked(elements: bytes, scalar: bytes) -> bytes:
    """Return every element multiplied by a scalar, in order.

    Raises:
        IntegrityError: one of them is no element of the group, or the identity.
    """
    multiply = load().crypto_scalarmult_ristretto255
    with _elements_alone():
        return b"".join([multiply(scalar, element) for element in _each(elements)])


def weighted_sum(pairs: bytes, seed: bytes) -> bytes:
    """Return the sum of elements, each times the weight of its key; without any, the identity.

    Args:
        pairs: a key and an element in turn, of 32 bytes each.
        seed: without it nobody can tell the weights from uniform scalars.

    Raises:
        IntegrityError: one of them is no element of the group, or the identity.
    """
    library = load()
    multiply, add = library.crypto_scalarmult_ristretto255, library.crypto_core_ristretto255_add
    total = _IDENTITY
    with _elements_alone():
        for start in range(0, len(pairs), PAIR_BYTES):
            key, element = pairs[start : start + ELEMENT_BYTES], pairs[start + ELEMENT_BYTES : start + PAIR_BYTES]
            total = add(total, multiply(_weight(key, seed), element))
    return total


def summed(elements: bytes) -> bytes:
    """Return the sum of valid elements, among which the identity may be; without any, the identity."""
    return reduce(load().crypto_core_ristretto255_add, _each(elements), _IDENTITY)


def is_in_balance(total: bytes, key: bytes, element: bytes, seed: bytes) -> bool:
    """Whether a weighted sum, in which an element stands under its key too, is that element without it."""
    rest: bytes = load().crypto_core_ristretto255_sub(total, weighted_sum(key + element, seed))
    return rest == element


def _weight(key: bytes, seed: bytes) -> bytes:
    """Return the scalar of a key: BLAKE2b-512, keyed with the seed, reduced by the order of the group."""
    scalar: bytes = load().crypto_core_ristretto255_scalar_reduce(blake2b(key, key=seed).digest())
    return scalar


@contextmanager
def _elements_alone() -> Iterator[None]:
    """Say what libsodium refuses."""
    try:
        yield
    except (RuntimeError, ValueError):
        raise IntegrityError(
            "a masked id is not an element of the group, or is the identity", where="private alignment"
        ) from None


def are_elements(elements: bytes) -> bool:
    """Whether a column holds elements of the group alone, and the identity nowhere."""
    is_valid = load().crypto_core_ristretto255_is_valid_point
    return all(len(each) == ELEMENT_BYTES and each != _IDENTITY and is_valid(each) for each in _each(elements))


def _each(elements: bytes) -> Iterable[bytes]:
    return (elements[start : start + ELEMENT_BYTES] for start in range(0, len(elements), ELEMENT_BYTES))
