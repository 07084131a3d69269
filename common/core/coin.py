"""Tossing a coin that no curator can bias: commit, then reveal.

Each curator commits to a random share before it sees another's, and opens it only once it holds everyone's commitment.
The value is a hash of all shares, so one honest curator makes it uniform. A curator that dislikes the value can only
refuse to open its share. The others notice that, and it costs the epsilon that was charged before the toss.
"""

import hashlib
import hmac
from collections.abc import Mapping

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from veiltab.common.errors import IntegrityError

SHARE_LENGTH = 32


def commitment(coin_id: str, curator: str, share: bytes) -> bytes:
    """Return the commitment of a curator to its share: SHA-256 over the coin, the curator and the share.

    A share has 256 bits of entropy, so the hash hides it; naming the curator stops another from copying it.
    """
    return hashlib.sha256(_framed(b"veiltab commitment", coin_id.encode(), curator.encode(), share)).digest()


def transcript(commitments: Mapping[str, bytes]) -> bytes:
    """Return the SHA-256 over everyone's commitments, in order of the curators' names.

    A curator opens its share only to a peer that holds the same commitments, which exposes a curator that sent two
    peers different ones.
    """
    parts = [part for name in sorted(commitments) for part in (name.encode(), commitments[name])]
    return hashlib.sha256(_framed(b"veiltab transcript", *parts)).digest()


def verify_share(coin_id: str, curator: str, share: bytes, committed: bytes) -> None:
    """Check an opened share against its commitment.

    Raises:
        IntegrityError: it is not the share that was committed to.
    """
    right = hmac.compare_digest(commitment(coin_id, curator, share), committed)
    if len(share) != SHARE_LENGTH or not right:
        raise IntegrityError("a share was opened that is not the one committed to", where=f"curator {curator}")


def toss(coin_id: str, shares: Mapping[str, bytes]) -> bytes:
    """Return the coin's 32-byte value: HKDF-SHA256 over all shares, in order of the curators' names."""
    parts = [part for name in sorted(shares) for part in (name.encode(), shares[name])]
    kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"veiltab coin " + coin_id.encode())
    return kdf.derive(_framed(*parts))


def _framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
