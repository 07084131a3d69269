"""Seals what passes a cluster's scheduler, which can then neither read it nor exchange it.

Each call of an engine is a run with a random name. Its key is derived from the file `tasks.key`, which the client and
the workers of a cluster have and its scheduler has not. AES-256-GCM under that key authenticates with every task and
every outcome which of the two it is, and its number.
"""

import secrets
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from veiltab.common.core.derivation import derive
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError, TransferError
from veiltab.common.rpc.parties.identity import read_identity_file

KEY_FILE = "tasks.key"
"""Name of the file, in the folders of the client and of the workers."""

MADE_BY = "veiltab pki init --cluster"
"""The command that makes it."""

_KEY_BYTES = 32
_NONCE_BYTES = 12
Kind = Literal["task", "outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Seals and opens the tasks and outcomes of one run.

    Args:
        key: 32 bytes, as in the file.
    """

    key: bytes = field(repr=False)
    run: str

    def seal(self, kind: Kind, number: int, text: bytes) -> bytes:
        """Return a task or an outcome with its number, sealed."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, text, _context(kind, number))

    def open(self, kind: Kind, number: int, sealed: bytes) -> bytes:
        """Return what was sealed.

        Raises:
            TransferError: it is another task's or run's, was altered, or was sealed under another key.
        """
        try:
            return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _context(kind, number))
        except (InvalidTag, ValueError):
            raise TransferError(
                f"the {kind} that came is not one that was sealed here under this number",
                where=KEY_FILE,
                remedy="Give client and workers the same file of `veiltab pki init --cluster`, and begin again.",
            ) from None

    def _cipher(self) -> AESGCM:
        return AESGCM(derive(self.key, f"tasks {self.run}"))


def new_run() -> str:
    """Return a name for a run that no other has."""
    return secrets.token_hex(16)


def new_key() -> str:
    """Return what a new key file says: 64 hexadecimal digits."""
    return secrets.token_hex(_KEY_BYTES)


def read_key(path: Path) -> bytes:
    """Read a key file.

    Raises:
        NotFoundError: there is none.
        InvalidInputError: it cannot be read, others than its owner may read it, or it holds no key.
    """
    text = read_identity_file(path, private=True, made_by=MADE_BY)
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidInputError(
            "this file holds no key of tasks", where=str(path), remedy="Copy it from `veiltab pki init --cluster`."
        )
    return key


def _context(kind: Kind, number: int) -> bytes:
    return f"{kind} {number}".encode()
