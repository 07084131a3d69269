"""Answers the curators who test this server: the published symbols of a release's canaries.

The server learns the places of the canaries after it has published, as a key. The first key that any curator sends is
recorded with the release and is the only one that is ever answered: a curator who could ask for other places would see
which rows of data the noise replaced.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, CanaryRows
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import check_key
from veiltab.common.dataclass import dataclass
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.chunks import CHUNK, check_offset, chunk_of
from veiltab.common.storage.mapped import mapped_rows
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import PLACES, published_parts
from veiltab.v1.release_pb2 import Chunk


def canary_rows(spec: TableSpec, key: bytes, parts: Mapping[str, NDArray[np.uint8]], folder: Path) -> CanaryRows:
    """Find the canaries in the published columns of a release.

    Args:
        parts: with the places that the server sampled, if it samples.
        folder: of the release, for what is long.
    """
    places = CanaryPlaces.of(key, rows=spec.uploaded_rows, canaries=spec.canaries)
    sample = parts[PLACES].view("<i8") if spec.sampling.is_by_server else None
    return CanaryRows.of(places, sample, partial(mapped_rows, folder=folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One array of a stream: the source's values, or those of some rows."""

    source: NDArray[Any]
    rows: NDArray[np.int64] | None = None

    @property
    def width(self) -> int:
        """Length of a value in bytes."""
        return self.source.itemsize

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes of the array."""
        first = start // self.width
        window = slice(first, -(-end // self.width))
        values = self.source[window if self.rows is None else self.rows[window]]
        return values.tobytes()[start - first * self.width : end - first * self.width]


class CanaryStream:
    """The bytes that a curator gets: which canaries were sampled, if the server samples, then its columns' symbols.

    Args:
        columns: the curator's published columns in study order; may be memory-mapped.
    """

    def __init__(self, canaries: CanaryRows, columns: Sequence[Symbols]) -> None:
        self._canaries = canaries
        self._parts = [_Part(source=column, rows=canaries.rows) for column in columns]
        if canaries.sampled is not None:
            self._parts.insert(0, _Part(source=canaries.sampled.astype("<i8", copy=False)))

    @property
    def total(self) -> int:
        """Length of the whole stream in bytes."""
        return len(self._canaries.rows) * sum(part.width for part in self._parts)

    def chunks(self, offset: int = 0) -> Iterator[Chunk]:
        """Yield the chunks from byte `offset` on, each read from the columns when its turn comes.

        Raises:
            InvalidInputError: the offset lies beyond the end.
        """
        check_offset(offset, self.total)
        position = offset
        for data in self._pieces(offset):
            yield chunk_of(position, data)
            position += len(data)

    def _pieces(self, offset: int) -> Iterator[bytes]:
        for part in self._parts:
            length = part.width * len(self._canaries.rows)
            for start in range(min(offset, length), length, CHUNK):
                yield part.read(start, min(start + CHUNK, length))
            offset = max(offset - length, 0)


class Canaries:
    """The canaries of published releases."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        # The places of many canaries take time and room: one release at a time, and once for all who ask meanwhile.
        # Of each curator one at a time stands in line for that, so that none of them waits for all releases of another.
        self._turn = asyncio.Lock()
        self._first_of = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._rows = WeakValueDictionary[str, CanaryRows]()

    async def of(self, release_id: str, curator: str, key: bytes) -> CanaryStream:
        """Return what a curator may see of a release's canaries.

        Args:
            key: that of the places, 32 bytes; it is recorded before anything is answered.

        Raises:
            InvalidInputError: the key has another length.
            OtherKeyError: another key came first.
            DeniedError: the curator has no column in the release.
            NotFoundError, NotReadyError, FailedReleaseError: there is no such publication, not yet or no longer.
        """
        check_key(key)
        async with self._first_of[curator], self._turn:
            return await asyncio.to_thread(self._stream, release_id, curator, key)

    def _stream(self, release_id: str, curator: str, key: bytes) -> CanaryStream:
        session = self._store.record_places_key(release_id, curator, key)
        spec, path = session.spec, self._store.published_file(session)
        parts, rows = published_parts(path, spec), self._rows.get(release_id)
        if rows is None:
            rows = self._rows[release_id] = canary_rows(spec, key, parts, path.parent)
        columns = [parts[one.attribute].view(symbol_dtype(one.size)) for one in spec.columns_of(curator)]
        return CanaryStream(rows, columns)
