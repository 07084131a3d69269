"""Masks columns of ids or elements batch by batch, on all cores, never on the event loop.

Every batch is durable before the next begins, so a party that is killed goes on where it was. libsodium computes
outside of Python's interpreter lock, so threads use every core; they take short pieces, so they end soon when the party
ends.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veiltab.common.command.cli import note
from veiltab.common.errors import IntegrityError
from veiltab.common.oblivious.ristretto import load
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.process.cores import cores
from veiltab.common.storage.files import written_whole
from veiltab.common.storage.mapped import mapped_array
from veiltab.curator.alignment.intersection import slices
from veiltab.curator.alignment.private.ristretto import (
    ELEMENT_BYTES,
    PAIR_BYTES,
    are_elements,
    hashed,
    masked,
    summed,
    weighted_sum,
)
from veiltab.curator.table.table import Table
from veiltab.curator.table.texts import string_buffers

BATCH = 2**16
"""Ids or elements between two moments at which the work is durable."""

MAX_IDS = 2**24
"""Most ids of one curator: masking them takes a quarter of an hour of one core, their elements 512 MiB."""

PIECE = 2**9
"""Ids or elements that a thread takes at once: some 50 ms."""

Elements = NDArray[np.bytes_]
"""(n,) encodings of 32 bytes, compared as bytes."""

T = TypeVar("T", bytes, list[bytes])
R = TypeVar("R")


class Masking:
    """The threads that mask.

    Args:
        folder: an existing folder from which libsodium may be loaded.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="mask")
        self.stage = Stage(note)
        """What is done with masked ids, for people."""

    def close(self) -> None:
        """End the threads after the pieces that they have."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def load(self) -> None:
        """Load libsodium."""
        await asyncio.to_thread(load, self._folder)

    async def mask_ids(self, table: Table, scalar: bytes, path: Path) -> None:
        """Write H(id) times a scalar for every respondent of a table, in its order; the file is there whole or not."""
        await self.write(
            path,
            table.rows,
            lambda start: ids_of(table.respondents.ids(start, BATCH)),
            lambda ids: masked(hashed(ids), scalar),
            "masking one's own ids",
            size=1,
        )

    async def mask_elements(self, source: Path, scalar: bytes, path: Path, what: str) -> None:
        """Write every element of a file times a scalar, in its order."""
        await self.write(
            path, count(source), lambda start: _elements(source, start), lambda data: masked(data, scalar), what
        )

    async def weigh(self, keys: Path, elements: Path, seed: bytes, path: Path, what: str) -> bytes:
        """Return the sum of a file's elements, each times the weight of its key; see `weighted_sum`.

        Args:
            elements: a file of as many elements.
            path: keeps the sum of each batch.
        """

        def of_batch(sums: list[bytes]) -> list[bytes]:
            return [summed(b"".join(sums))]

        await self.write(
            path,
            count(keys),
            lambda start: _pairs(keys, elements, start),
            lambda pairs: weighted_sum(pairs, seed),
            what,
            size=PAIR_BYTES,
            of_batch=of_batch,
        )
        return await asyncio.to_thread(lambda: summed(path.read_bytes()))

    async def check(self, source: Path, who: str) -> None:
        """Check every element of a file.

        Raises:
            IntegrityError: one of them is no element, or the identity; `who` sent it.
        """
        with self.stage.of(f"checking masked ids of {who}", count(source)) as progress:
            for start in range(0, count(source), BATCH):
                data = await asyncio.to_thread(_elements, source, start)
                if not all(await self._pieces(data, ELEMENT_BYTES, are_elements)):
                    raise IntegrityError("sent what is no element of the group, or the identity", where=who)
                progress.advance(BATCH)

    async def write(  # noqa: PLR0913 - what is read, computed and written
        self,
        path: Path,
        total: int,
        read: Callable[[int], T],
        compute: Callable[[T], bytes],
        what: str,
        *,
        size: int = ELEMENT_BYTES,
        of_batch: Callable[[list[bytes]], list[bytes]] = list,
    ) -> None:
        """Write what is computed of each of `total` parts, which have a length of `size`, batch by batch."""
        if path.exists():
            return
        batches = {start: path.with_name(f"{path.name}.{start}") for start in range(0, total, BATCH)}
        left = [start for start, batch in batches.items() if not batch.exists()]
        with self.stage.of(what, total, done=BATCH * (len(batches) - len(left))) as progress:
            for start in left:
                with step("mask", size=ELEMENT_BYTES * min(BATCH, total - start)):
                    data = await asyncio.to_thread(read, start)
                    out = await self._pieces(data, size, compute)
                    await asyncio.to_thread(_write_all, batches[start], of_batch(out))
                progress.advance(BATCH)
        await asyncio.to_thread(_join, tuple(batches.values()), path)

    async def _pieces(self, data: T, size: int, compute: Callable[[T], R]) -> list[R]:
        """Compute a batch piece by piece on all threads; `size` is the length of one id or element in it."""
        loop, span = asyncio.get_running_loop(), PIECE * size
        pieces = [data[start : start + span] for start in range(0, len(data), span)]
        return await asyncio.gather(*(loop.run_in_executor(self._threads, compute, piece) for piece in pieces))


def count(path: Path) -> int:
    """Return the number of elements in a file."""
    return path.stat().st_size // ELEMENT_BYTES


def elements_of(path: Path) -> Elements:
    """Return the elements of a file, mapped from disk."""
    if path.stat().st_size == 0:
        return np.empty(0, f"S{ELEMENT_BYTES}")
    return mapped_array(path, f"S{ELEMENT_BYTES}")


def sort(source: Path, path: Path, *more: bytes) -> None:
    """Write the elements of a file and more in ascending order: an order that says nothing about the one before."""
    ordered = np.concatenate([elements_of(source), np.array(more, f"S{ELEMENT_BYTES}")])
    ordered.sort()
    with written_whole(path) as file:
        file.write(ordered.data)


def is_ascending(elements: Elements) -> bool:
    """Whether elements are in strictly ascending order, so that no two are equal."""
    return bool(np.all(elements[1:] > elements[:-1]))


def among(elements: Elements, ascending: Elements) -> NDArray[np.bool_]:
    """Return which elements are among others that are in ascending order."""
    found = np.zeros(len(elements), np.bool_)
    for piece in slices(len(elements) if len(ascending) else 0):
        places = np.minimum(np.searchsorted(ascending, elements[piece]), len(ascending) - 1)
        found[piece] = ascending[places] == elements[piece]
    return found


def ids_of(ids: pa.ChunkedArray) -> list[bytes]:
    """Return ids as UTF-8."""
    texts: list[bytes] = []
    for chunk in ids.chunks:
        edges, text = string_buffers(chunk)
        texts += [text[first:last].tobytes() for first, last in pairwise(edges)]
    return texts


def _elements(path: Path, start: int) -> bytes:
    """Return a batch of elements."""
    with path.open("rb") as file:
        file.seek(start * ELEMENT_BYTES)
        return file.read(BATCH * ELEMENT_BYTES)


def _pairs(keys: Path, elements: Path, start: int) -> bytes:
    """Return a batch of keys and elements in turn."""
    both = [np.frombuffer(_elements(path, start), f"V{ELEMENT_BYTES}") for path in (keys, elements)]
    return np.stack(both, axis=1).tobytes()


def _write_all(path: Path, pieces: Sequence[bytes]) -> None:
    with written_whole(path) as file:
        file.writelines(pieces)


def _join(batches: Sequence[Path], path: Path) -> None:
    """Write the batches as one file, and delete them."""
    with written_whole(path) as file:
        for batch in batches:
            file.write(batch.read_bytes())
    for batch in batches:
        batch.unlink()
