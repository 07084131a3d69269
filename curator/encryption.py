"""Encrypts a sampled column once: noise, canaries, a fresh pad durably spent before its first symbol, one ciphertext.

A key, of a pad or of replaced symbols, is drawn by this curator alone; no other curator can derive it. If a crash
leaves a key spent but no ciphertext recorded, nothing under it was sent: the key is dropped and a fresh one drawn. Once
the ciphertext's digest is recorded, only those bytes are ever sent.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import assert_never

import numpy as np

from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import PAD, encrypt
from veiltab.common.core.randomness import CipherStream, SystemSource
from veiltab.common.core.symbols import CHUNK, add, check_symbols, fill_uniform, row_slices
from veiltab.common.errors import IntegrityError
from veiltab.common.release.modes import Pad
from veiltab.common.storage.files import file_digest, written_whole
from veiltab.curator.draw_tasks import DrawnColumn
from veiltab.curator.encryption_tasks import encrypted_in_tasks
from veiltab.curator.noise import Column, CuratorsNoise
from veiltab.curator.store import CuratorStore

_DISTINCT = 128
"""Length of a pad, in symbols, from which on two pads are never equal by chance."""


class ColumnEncryption:
    """The encrypted columns of one release, in files of their own until the server has them."""

    def __init__(self, store: CuratorStore, folder: Path, release_id: str) -> None:
        self._store = store
        self._folder = folder
        self._release_id = release_id

    def ciphertext(self, attribute: str) -> Path:
        """Return where the ciphertext of a column is kept until it is sent."""
        return self._folder / f"{attribute}.ciphertext"

    def pad_file(self, attribute: str) -> Path:
        """Return where the one-time pad of a column is kept until its grant ends."""
        return self._folder / f"{attribute}.pad"

    def canaries(self, attribute: str) -> Path:
        """Return where the ciphertext of a column's canaries is kept until the server is tested."""
        return self._folder / f"{attribute}.canaries"

    def encrypt(  # noqa: PLR0913, PLR0917 - what an encryption consists of
        self,
        attribute: str,
        column: Column,
        size: int,
        pad: Pad,
        noise: CuratorsNoise,
        advance: Callable[[int], None] = lambda _: None,
    ) -> bytes:
        """Encrypt a column, unless that was done, and return the SHA-256 of its ciphertext.

        ciphertext = (column with the curators' noise, and canaries among its rows) + pad mod size

        Args:
            attribute: the column's name.
            column: (m,) symbols 0..size-1 in sample order.
            size: alphabet size K_a.
            pad: where the pad comes from.
            noise: the coins and the canaries.
            advance: called with the number of rows whenever some more are encrypted.

        Raises:
            IntegrityError: the pad is spent and its ciphertext is not complete here; it is never made again.

        Source: Lin, Wang, Rane, Section III-A (one-time pad), with a stream cipher as the alternative.
        """
        done = self._store.pad(self._release_id, attribute)
        if done is not None:
            self._check(attribute, done[1])
            return done[1]
        source: CipherStream | None
        match pad:
            case Pad.CHACHA20:
                key = os.urandom(32)
                source = CipherStream(key)
            case Pad.OTP:
                length = len(column) + len(noise.places)
                self._draw_one_time_pad(attribute, length, size)
                # A short pad may repeat, or it would not be uniform; a long one that repeats tells of a bad generator.
                key = file_digest(self.pad_file(attribute)) if length >= _DISTINCT else os.urandom(32)
                source = None
            case _:
                assert_never(pad)
        replacement_key = b"" if noise.mechanism is None else os.urandom(32)
        self._store.spend_key(self._release_id, attribute, key, replacement_key)
        if source is not None and isinstance(column, DrawnColumn):
            chunks = encrypted_in_tasks(attribute, column, size, key, replacement_key, noise)
        else:
            rows = noise.applied(attribute, column, size, replacement_key)
            chunks = (self._encrypted(attribute, chunk, size, source, number) for number, chunk in enumerate(rows))
        digest = self._write(attribute, chunks, noise.places, advance)
        self._store.set_pad_digest(self._release_id, attribute, digest)
        return digest

    def forget_ciphertext(self) -> None:
        """Delete the ciphertexts: the server has them."""
        for path in self._folder.glob("*.ciphertext"):
            path.unlink()

    def forget_canaries(self) -> None:
        """Delete the ciphertexts of the canaries: the server is tested, or never will be."""
        for path in self._folder.glob("*.canaries"):
            path.unlink()

    def forget_pads(self) -> None:
        """Delete the one-time pads: no grant is left."""
        for path in self._folder.glob("*.pad"):
            path.unlink()

    def _check(self, attribute: str, digest: bytes) -> None:
        path = self.ciphertext(attribute)
        if not path.exists() or file_digest(path) != digest:
            raise IntegrityError(
                "the pad is spent and its ciphertext is gone or altered",
                where=f"attribute {attribute}",
                remedy="Ask for a new release; a pad is never used again.",
            )

    def _write(
        self, attribute: str, chunks: Iterable[Symbols], places: CanaryPlaces, advance: Callable[[int], None]
    ) -> bytes:
        """Write the ciphertext of a column that comes in chunks, and that of its canaries; return its SHA-256."""
        digest = hashlib.sha256()
        with ExitStack() as files:
            file = files.enter_context(written_whole(self.ciphertext(attribute)))
            canaries = files.enter_context(written_whole(self.canaries(attribute))) if len(places) else None
            start = 0
            for ciphertext in chunks:
                part = slice(start, start + len(ciphertext))
                file.write(ciphertext.data)
                digest.update(ciphertext.data)
                if canaries is not None:
                    canaries.write(ciphertext[places.within(part) - start].data)
                start = part.stop
                advance(len(ciphertext))
        return digest.digest()

    def _encrypted(
        self, attribute: str, chunk: Symbols, size: int, source: CipherStream | None, number: int
    ) -> Symbols:
        out: Symbols = np.empty(len(chunk), symbol_dtype(size))
        if source is None:
            check_symbols(chunk, size)
            drawn: Symbols = np.empty_like(out)
            with self.pad_file(attribute).open("rb") as file:
                file.seek(number * CHUNK * out.itemsize)
                file.readinto(drawn.data)
            add(chunk, drawn, size, out)
        else:
            encrypt(chunk, size, source, out, first_chunk=number)
        return out

    def _draw_one_time_pad(self, attribute: str, rows: int, size: int) -> None:
        source = SystemSource()
        with written_whole(self.pad_file(attribute)) as file:
            for number, part in enumerate(row_slices(rows)):
                symbols: Symbols = np.empty(part.stop - part.start, symbol_dtype(size))
                fill_uniform(symbols, size, source, label=PAD, chunk=number)
                file.write(symbols.data)
