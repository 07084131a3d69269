"""Encrypts the columns of a large sample in tasks: noise, canaries and pad of a range of chunks.

The key of the pad and that of replaced symbols are recorded as spent before any task begins; no task draws one. The
same chunks under the same keys give the same ciphertext, however often a task runs.
"""

import secrets
from collections.abc import Iterator
from typing import cast

import numpy as np

from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.pads import encrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.dataclass import dataclass, field, replace
from veiltab.common.storage.run_files import RunFiles
from veiltab.common.tasks.engine import in_order
from veiltab.curator.columns.draw_tasks import DrawnColumn, DrawnField
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn

CHUNKS = 4
"""Chunks of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encrypt:
    """Encrypts some chunks of a column.

    Args:
        column: its symbols are those of the drawn rows, at least those of the chunks.
        noise: the coins and the canaries.
        replacement_key: of replaced symbols.
        name: of the file to write.
    """

    column: PlainColumn
    noise: CuratorsNoise
    replacement_key: bytes = field(repr=False)
    key: bytes = field(repr=False)
    first: int
    run: RunFiles
    name: str

    def perform(self) -> tuple[tuple[int, int], ...]:
        """Write the chunks; return where each begins, and how many symbols it has."""
        some = slice(self.first, self.first + CHUNKS)
        chunks = self.noise.with_noise_and_canaries(self.column, self.replacement_key, chunks=some)
        size = self.column.size
        places, source = list[tuple[int, int]](), CipherStream(self.key)
        with self.run.writing(self.name) as file:
            for number, chunk in enumerate(chunks, self.first):
                ciphertext: Symbols = np.empty(len(chunk), symbol_dtype(size))
                encrypt(chunk, size, source, ciphertext, first_chunk=number)
                self.column.share.add_to(ciphertext, size, first_chunk=number)
                places.append((file.append(ciphertext), len(ciphertext)))
        return tuple(places)


def encrypted_in_tasks(
    column: PlainColumn, key: bytes, replacement_key: bytes, noise: CuratorsNoise
) -> Iterator[Symbols]:
    """Yield the ciphertext of a column chunk by chunk.

    Args:
        column: its symbols are a DrawnColumn.
        key: of the pad; spent.
        replacement_key: of replaced symbols; spent.
        noise: the coins and the canaries.
    """
    whole = cast("DrawnColumn", column.symbols)
    run, name = whole.symbols.run, f"{secrets.token_hex(8)}-encrypted"
    rows = len(whole) + len(noise.places)
    tasks = (
        _Encrypt(
            column=replace(
                column,
                symbols=_needed(whole.symbols, slice(first * CHUNK, min((first + CHUNKS) * CHUNK, rows)), noise.places),
            ),
            noise=noise,
            replacement_key=replacement_key,
            key=key,
            first=first,
            run=run,
            name=f"{name}-{number}",
        )
        for number, first in enumerate(range(0, -(-rows // CHUNK), CHUNKS))
    )
    try:
        for number, places in enumerate(in_order(whole.sample.engine.perform(tasks))):
            with run.file(f"{name}-{number}").opened() as file:
                for start, length in places:
                    type_ = symbol_dtype(column.size)
                    yield file.read(start, length * type_.itemsize).view(type_)
            run.delete(f"{name}-{number}")
    finally:
        run.delete_all(name)


def _needed(column: DrawnField, uploaded: slice, places: CanaryPlaces) -> DrawnField:
    """Return what some chunks of uploaded rows need of a column: whole chunks of its own."""
    first, last = (row - places.before(row) for row in (uploaded.start, uploaded.stop))
    first = min(first, len(column) - 1) // CHUNK * CHUNK
    return column.cut(first, min(max(-(-last // CHUNK) * CHUNK, first + CHUNK), len(column)))
