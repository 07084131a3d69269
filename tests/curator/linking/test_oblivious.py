"""The function of hub and spoke: vectors, blinding, and handles that nobody can invent."""

import hashlib

import numpy as np
import pytest

from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import load
from veiltab.curator.alignment.linking.oblivious import (
    Handles,
    digests,
    direct_values,
    elements,
    inverse,
    scalar_of,
    token_values,
    unblinded_values,
    values,
)
from veiltab.curator.alignment.private.ristretto import masked

KEYS = [f"\x01ann{number}\x1flee\x1f19700101".encode() for number in range(50)]
SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))


def test_vectors() -> None:
    """F as docs/linkage.md defines it, by hashlib and libsodium alone."""
    library = load()
    (digest,) = [digests(KEYS[:1], "a" * 32)]
    assert digest == hashlib.sha256(b"veiltab linkage key\n" + b"a" * 32 + b"\n" + KEYS[0]).digest()
    element = library.crypto_core_ristretto255_from_hash(hashlib.sha512(b"veiltab linkage key\n\x07" + digest).digest())
    scalar = scalar_of(SECRET, "one")
    multiplied = library.crypto_scalarmult_ristretto255(scalar, element)
    wanted = hashlib.sha512(b"veiltab linkage value\n\x07" + digest + multiplied).digest()[:32]
    assert direct_values(7, digest, scalar) == wanted
    # Pinned, so that curators of two versions do not silently find different links.
    assert wanted.hex() == "99280e2cebc57cb45d19a637e719621700244f5ba75861ab25af87a3e5fd6a90"


def test_blinded_and_unblinded_is_direct() -> None:
    made, hub, blind = digests(KEYS, "x"), scalar_of(SECRET, "hub"), scalar_of(OTHER, "blind")
    asked = masked(elements(3, made), blind)
    answered = masked(asked, hub)
    assert unblinded_values(3, made, answered, inverse(blind)) == direct_values(3, made, hub)
    assert asked != elements(3, made)


def test_values_of_another_pass_scalar_alignment_or_digest_differ() -> None:
    made, hub = digests(KEYS, "x"), scalar_of(SECRET, "hub")
    made_values = [
        direct_values(3, made, hub),
        direct_values(4, made, hub),
        direct_values(3, made, scalar_of(SECRET, "another")),
        direct_values(3, made, scalar_of(OTHER, "hub")),
        direct_values(3, digests(KEYS, "y"), hub),
        token_values(3, made, SECRET),
        token_values(4, made, SECRET),
        token_values(3, made, OTHER),
    ]
    parts = [one[at : at + 16] for one in made_values for at in range(0, len(one), 16)]
    assert len(set(parts)) == len(parts) == 8 * 2 * len(KEYS)


def test_an_answer_that_is_no_element_is_refused() -> None:
    made = digests(KEYS[:2], "x")
    good = masked(elements(1, made), scalar_of(SECRET, "hub"))
    for bad in (bytes(32), b"\xff" * 32, good[1:32] + b"\x80"):
        with pytest.raises(IntegrityError, match="not an element"):
            unblinded_values(1, made, good[:32] + bad, inverse(scalar_of(OTHER, "blind")))


def test_a_value_depends_on_the_element() -> None:
    made = digests(KEYS[:1], "x")
    assert values(1, made, bytes(32)) != values(1, made, bytes(31) + b"\x01")


def test_handles_come_back_and_others_are_refused() -> None:
    handles, others, rows = Handles(SECRET), Handles(OTHER), np.array([0, 5, 99], np.int64)
    made = handles.of(rows)
    assert handles.rows(made.tobytes(), 100).tolist() == [0, 5, 99]
    assert not np.array_equal(made, others.of(rows))
    for wrong, count in ((made.tobytes(), 99), (others.of(rows).tobytes(), 100), (bytes(16), 100)):
        with pytest.raises(IntegrityError, match="not one that was given"):
            handles.rows(wrong, count)
