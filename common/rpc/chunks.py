"""Byte streams as chunks: each with its offset and its SHA-256, so that a stream resumes anywhere and hides no damage.

Tokens have no digests, which would cost as much as sending them: TLS keeps them from being altered on their way, and
curators compare the digest of all respondents whom they find by them.

A sender states the stream's total with every chunk, or once without a chunk when nothing is left to send. It sends long
chunks but for the last of a column or a file: reading a chunk costs more than its bytes do.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path

from veiltab.common.errors import InvalidInputError, NotFoundError, TransferError
from veiltab.v1.release_pb2 import Chunk

MAX_MESSAGE = (1 << 20) + (1 << 16)
"""Longest message in bytes: a chunk of 1 MiB and what surrounds it."""

READ_AHEAD = (
    # Else gRPC guesses what a connection needs, and keeps up to hundreds of MiB for a reader that waits for its disk.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 22),
)
"""gRPC's channel arguments for what it takes of a stream before it is read: 4 MiB, besides the message that comes.

That is more than 1 Gbit/s delivers in the 20 ms until a peer hears that something was read.
"""

MAX_CHUNK = 1 << 20
"""Most bytes of data that a chunk may carry."""

CHUNK = MAX_CHUNK - 4096
"""Bytes of data that a chunk is sent with: the message around it stays below 1 MiB too."""


_SHORT = 1 << 16
"""Fewer bytes of data than this make a short chunk."""

_MOST_SHORT = 128
"""Most short chunks of a stream: the end of each column of a release is one, where columns follow one another."""


def chunk_of(offset: int, data: bytes, *, has_digest: bool = True) -> Chunk:
    """Return the chunk of 1 to MAX_CHUNK bytes that begins at byte `offset` of its stream."""
    if offset < 0 or not 1 <= len(data) <= MAX_CHUNK:
        raise InvalidInputError(f"the chunk has {len(data)} bytes, not 1 to {MAX_CHUNK}, or an offset below 0")
    return Chunk(offset=offset, data=data, digest=sha256(data).digest() if has_digest else b"")


class ShortChunks:
    """The short chunks of a stream, counted: one of nothing else takes its reader a core for few bytes."""

    def __init__(self) -> None:
        self._count = 0

    def take(self, data: bytes) -> None:
        """Count a chunk's bytes.

        Raises:
            TransferError: it is one short chunk too many.
        """
        self._count += len(data) < _SHORT
        if self._count > _MOST_SHORT:
            raise TransferError(f"the stream has more than {_MOST_SHORT} chunks of fewer than {_SHORT:,} bytes")


def data_of(chunk: Chunk, *, has_digest: bool = True) -> bytes:
    """Return a chunk's bytes, or raise TransferError: it is empty, too long, or its digest is wrong."""
    data = chunk.data  # a copy each time
    if not 1 <= len(data) <= MAX_CHUNK:
        raise TransferError(f"the chunk has {len(data)} bytes, not 1 to {MAX_CHUNK}")
    if has_digest and sha256(data).digest() != chunk.digest:
        raise TransferError("a chunk is not what its digest says", remedy="Send it again.")
    return data


def verify(chunk: Chunk, expected_offset: int, *, has_digest: bool = True) -> bytes:
    """Return the bytes of the chunk that must come next.

    Args:
        expected_offset: bytes of the stream that are here already.
        has_digest: whether its digest is checked.

    Raises:
        TransferError: the chunk is damaged, or begins elsewhere.
    """
    data = data_of(chunk, has_digest=has_digest)
    if chunk.offset != expected_offset:
        raise TransferError(
            f"a chunk begins at byte {chunk.offset}, not at {expected_offset}", remedy="Resume at the byte expected."
        )
    return data


async def streamed(pieces: Iterator[Chunk], total: int, offset: int) -> AsyncIterator[tuple[int, Chunk | None]]:
    """Yield (total, chunk) for the messages of a stream, with room for other calls between them."""
    if offset == total:
        yield total, None
    for chunk in pieces:
        yield total, chunk
        await asyncio.sleep(0)


def chunk_messages(data: bytes, offset: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of some bytes from byte `offset` on; raise InvalidInputError if it lies beyond them."""
    check_offset(offset, len(data))
    for start in range(offset, len(data), CHUNK):
        yield chunk_of(start, data[start : start + CHUNK])


def file_chunks(path: Path, offset: int = 0, *, part: slice | None = None, has_digests: bool = True) -> Iterator[Chunk]:
    """Yield the chunks of a file, or of a part of its bytes, from byte `offset` of that on.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: the offset lies beyond the end.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFoundError("a file to be sent is not there", where=path.name) from None
    with file:
        first, end = (0, path.stat().st_size) if part is None else (part.start, part.stop)
        check_offset(offset, end - first)
        file.seek(first + offset)
        while data := file.read(min(CHUNK, end - first - offset)):
            yield chunk_of(offset, data, has_digest=has_digests)
            offset += len(data)


def check_offset(offset: int, total: int) -> None:
    """Refuse to begin outside a stream."""
    if not 0 <= offset <= total:
        raise InvalidInputError(f"offset {offset} lies outside a stream of {total} bytes")
