"""One-time enrolment tokens: a node spends one with its report; the server stores only their digests."""

import hashlib
import re
import secrets

from veiltab.common.errors import InvalidInputError

TOKEN_BYTES = 16
"""Length of a token."""

DIGEST_BYTES = 32
"""Length of a token's digest."""

_TEXT = re.compile(r"[0-9a-f]{32}")


def new_token() -> bytes:
    """Return a fresh token from the operating system."""
    return secrets.token_bytes(TOKEN_BYTES)


def token_of(text: str, where: str = "token") -> bytes:
    """Return the token that a text stands for; raises InvalidInputError for any other text, without repeating it."""
    if not _TEXT.fullmatch(text):
        raise InvalidInputError(
            "the token is not 32 hexadecimal digits", where=where, remedy="Copy it as `veiltab collect enrol` wrote it."
        )
    return bytes.fromhex(text)


def token_digest(round_id: str, token: bytes) -> bytes:
    """Return SHA-256(round id | token), which the server stores; it is valid in one round only.

    Raises:
        InvalidInputError: the token has another length.
    """
    if len(token) != TOKEN_BYTES:
        raise InvalidInputError(f"the token has {len(token)} bytes, not {TOKEN_BYTES}")
    return hashlib.sha256(bytes.fromhex(round_id) + token).digest()
