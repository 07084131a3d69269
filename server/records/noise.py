"""One noise for one release: a repeated perturbation, from any copy of the state, draws the same coins.

A release's noise secret is made when the release is opened, lies in the database until the release is published or
over, and is deleted then. Its digest is stated and stays, so that curators notice a release that was opened a second
time, and has another secret. A copy of the state that still has to perturb holds the secret too, so it publishes the
same symbols; other ciphertext under the same release id gets coins that are independent of these. After the
publication nobody can determine which rows were replaced.
"""

import hashlib
from collections.abc import Mapping

from veiltab.common.core.derivation import derive
from veiltab.common.core.randomness import check_key

SECRET_LENGTH = 32


def noise_digest(secret: bytes) -> bytes:
    """Return what the server states of a release's noise secret: a SHA-256 that tells nothing of 32 uniform bytes."""
    return hashlib.sha256(b"veiltab noise secret" + check_key(secret)).digest()


def noise_secret(secret: bytes, spec_digest: bytes, columns: Mapping[str, bytes]) -> bytes:
    """Return the secret under which one release of one ciphertext is perturbed.

    HKDF-Expand-SHA256 of the stored secret, under the SHA-256 of the spec's digest and all columns' digests.

    Args:
        secret: the release's noise secret, 32 uniform bytes.
        spec_digest: SHA-256 of the release spec.
        columns: attribute -> SHA-256 of its ciphertext.

    Returns:
        32 bytes.

    Raises:
        InvalidInputError: the stored secret has another length.
    """
    digest = hashlib.sha256(b"veiltab noise" + spec_digest)
    for attribute in sorted(columns):
        digest.update(len(attribute).to_bytes(8, "big") + attribute.encode() + columns[attribute])
    return derive(check_key(secret), f"noise {digest.hexdigest()}")
