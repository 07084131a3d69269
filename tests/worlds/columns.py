"""One column: encrypted by itself, and read from its file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.release.modes import Pad
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import Column, CuratorsNoise, PlainColumn


def read(path: Path, size: int) -> Symbols:
    """Return the symbols of a file, of an alphabet of `size`."""
    symbols: Symbols = np.empty(path.stat().st_size // symbol_dtype(size).itemsize, symbol_dtype(size))
    symbols.view(np.uint8)[:] = np.frombuffer(path.read_bytes(), np.uint8)
    return symbols


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
