"""Encrypts a sampled column once: noise, canaries, a fresh pad durably spent before a symbol leaves, one ciphertext.

A key, of a pad or of replaced symbols, is drawn by this curator alone; no other curator can derive it. It is recorded
as spent together with the digest of its ciphertext: from then on only those bytes are ever sent. If a crash comes
before that, nothing under the key was sent, and a fresh one is drawn.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import PAD, encrypt
from veiltab.common.core.randomness import CipherStream, SystemSource
from veiltab.common.core.symbols import CHUNK, add, check_symbols, fill_uniform, row_slices
from veiltab.common.errors import IntegrityError
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Pad
from veiltab.common.release.table_spec import PART
from veiltab.common.storage.database import transaction
from veiltab.common.storage.files import file_digest, sync_folder, written_whole
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn
from veiltab.curator.columns.sample_rows import SampledColumn
from veiltab.curator.records.store import CuratorStore

_DISTINCT = 128
"""Length of a pad, in symbols, from which on two pads are never equal by chance."""


class ColumnEncryption:
    """The encrypted columns of one release, in files of their own until the server is tested."""

    def __init__(self, store: CuratorStore, folder: Path, release_id: str) -> None:
        self._store = store
        self._folder = folder
        self._release_id = release_id

    @property
    def folder(self) -> Path:
        """Where the files of the release lie."""
        return self._folder

    def ciphertext(self, attribute: str) -> Path:
        """Return where the ciphertext of a column is kept until the server is tested."""
        return self._folder / f"{attribute}.ciphertext"

    def pad_file(self, attribute: str) -> Path:
        """Return where the one-time pad of a column is kept until its grant ends."""
        return self._folder / f"{attribute}.pad"

    def canaries(self, attribute: str, holder: str = "") -> Path:
        """Return where the ciphertext of the canaries in one holder's part of a column is kept, for another holder.

        Args:
            holder: the other curator whose part of the column it is; this one's own without.
        """
        return self._folder / f"{attribute}{PART if holder else ''}{holder}.canaries"

    def encrypt(
        self,
        columns: Iterable[PlainColumn],
        pad: Pad,
        noise: CuratorsNoise,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Encrypt columns, but for those that are; what is recorded of them becomes durable together.

        ciphertext = (column with the curators' noise, and canaries among its rows) + pad + share of zero mod size

        Args:
            columns: the columns, of the same length.
            pad: where the pads come from.
            noise: the coins and the canaries.
            advance: called with the number of rows whenever some more are encrypted.

        Raises:
            IntegrityError: a pad is spent and its ciphertext is not complete here; it is never made again.

        Source: Lin, Wang, Rane, Section III-A (one-time pad), with a stream cipher as the alternative.
        """
        made = []
        for column in columns:
            if self._is_encrypted(column):
                continue
            key, replacement_key = self._keys(column, pad, noise)
            size = (len(column.symbols) + len(noise.places)) * symbol_dtype(column.size).itemsize
            with step("encrypt", release_id=self._release_id, attribute=column.attribute, size=size):
                chunks = self._ciphertext(column, pad, key, replacement_key, noise)
                digest = self._write(column.attribute, chunks, advance)
            made.append((column.attribute, digest, key, replacement_key))
        if made:
            sync_folder(self._folder)
            with transaction(self._store.connection):
                for attribute, digest, *keys in made:
                    self._store.keys.spend_keys(self._release_id, attribute, digest, *keys)

    def _is_encrypted(self, column: PlainColumn) -> bool:
        done = self._store.keys.pad(self._release_id, column.attribute)
        if done is None:
            return False
        self._check(column.attribute, done[1])
        return True

    def _keys(self, column: PlainColumn, pad: Pad, noise: CuratorsNoise) -> tuple[bytes, bytes]:
        """Draw the key of a column's pad and that of its replaced symbols, which is empty if there is no noise."""
        replacement_key = b"" if noise.mechanism is None else os.urandom(32)
        match pad:
            case Pad.CHACHA20:
                return os.urandom(32), replacement_key
            case Pad.OTP:
                length = len(column.symbols) + len(noise.places)
                self._draw_one_time_pad(column.attribute, length, column.size)
                # A short pad may repeat, or it would not be uniform; a long one that repeats tells of a bad generator.
                is_long = length >= _DISTINCT
                return file_digest(self.pad_file(column.attribute)) if is_long else os.urandom(32), replacement_key

    def _ciphertext(
        self, column: PlainColumn, pad: Pad, key: bytes, replacement_key: bytes, noise: CuratorsNoise
    ) -> Iterable[Symbols]:
        """Return the ciphertext of a column chunk by chunk."""
        source = CipherStream(key) if pad is Pad.CHACHA20 else None
        if source is not None and not isinstance(column.symbols, SampledColumn | np.ndarray):
            from veiltab.curator.columns.encryption_tasks import encrypted_in_tasks  # noqa: PLC0415 - not for tables that fit in memory

            return encrypted_in_tasks(column, key, replacement_key, noise)
        rows = noise.with_noise_and_canaries(column, replacement_key)
        return (self._encrypted(column, chunk, source, number) for number, chunk in enumerate(rows))

    def forget_ciphertext(self) -> None:
        """Delete the ciphertexts, and those of canaries for other holders: the server is tested, or never will be."""
        for path in self._folder.glob("*"):
            if path.suffix in {".ciphertext", ".canaries"}:
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

    def _write(self, attribute: str, chunks: Iterable[Symbols], advance: Callable[[int], None]) -> bytes:
        """Write the ciphertext of a column; return its SHA-256. The name of the file is not durable yet."""
        digest = hashlib.sha256()
        with written_whole(self.ciphertext(attribute), is_folder_synced=False) as file:
            for ciphertext in chunks:
                file.write(ciphertext.data)
                digest.update(ciphertext.data)
                advance(len(ciphertext))
        return digest.digest()

    def _encrypted(self, column: PlainColumn, chunk: Symbols, source: CipherStream | None, number: int) -> Symbols:
        size = column.size
        out: Symbols = np.empty(len(chunk), symbol_dtype(size))
        if source is None:
            check_symbols(chunk, size)
            pad: Symbols = np.empty_like(out)
            with self.pad_file(column.attribute).open("rb") as file:
                file.seek(number * CHUNK * out.itemsize)
                file.readinto(pad.data)
            add(chunk, pad, size, out)
        else:
            encrypt(chunk, size, source, out, first_chunk=number)
        column.share.add_to(out, size, first_chunk=number)
        return out

    def _draw_one_time_pad(self, attribute: str, rows: int, size: int) -> None:
        source = SystemSource()
        with written_whole(self.pad_file(attribute)) as file:
            for number, part in enumerate(row_slices(rows)):
                symbols: Symbols = np.empty(part.stop - part.start, symbol_dtype(size))
                fill_uniform(symbols, size, source, label=PAD, chunk=number)
                file.write(symbols.data)
