"""One column, encrypted by itself."""

from collections.abc import Callable

from veiltab.common.release.modes import Pad
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import Column, CuratorsNoise, PlainColumn


def encrypt(  # noqa: PLR0913, PLR0917 - what an encryption consists of
    encryption: ColumnEncryption,
    attribute: str,
    column: Column,
    size: int,
    pad: Pad,
    noise: CuratorsNoise,
    advance: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Return the SHA-256 of the ciphertext."""
    encryption.encrypt([PlainColumn(attribute=attribute, symbols=column, size=size)], pad, noise, advance)
    return encryption._store.keys.ciphertext_digest(encryption._release_id, attribute)
