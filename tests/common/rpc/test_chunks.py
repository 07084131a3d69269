from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from tests.worlds.loops import blocking
from tests.worlds.parties import CLOUD
from veiltab.common.errors import IntegrityError, InvalidInputError, NotFoundError, TransferError, UnavailableError
from veiltab.common.rpc.chunks import (
    _SHORT,
    CHUNK,
    MAX_CHUNK,
    MAX_MESSAGE,
    chunk_messages,
    chunk_of,
    data_of,
    file_chunks,
    verify,
)
from veiltab.common.rpc.peer import Peer
from veiltab.v1.release_pb2 import Chunk
from veiltab.v1.server_release_pb2 import FetchColumnResponse

Response = FetchColumnResponse
PARTS = (b"first", b"second", b"third")
WHOLE = b"".join(PARTS)


def responses(parts: Sequence[bytes] = PARTS, total: int = len(WHOLE)) -> list[Response]:
    offsets = [sum(map(len, parts[:index])) for index in range(len(parts))]
    return [Response(total=total, chunk=chunk_of(offset, part)) for offset, part in zip(offsets, parts, strict=True)]


async def streamed(messages: Iterable[Response]) -> AsyncIterator[Response]:
    for message in messages:
        yield message


class Call:
    """A call of which the answers are there."""

    def __init__(self, messages: AsyncIterator[Response]) -> None:
        self._messages = messages
        self.is_cancelled = False

    def __aiter__(self) -> AsyncIterator[Response]:
        return self._messages

    def cancel(self) -> None:
        self.is_cancelled = True


async def received(messages: AsyncIterator[Response], total: int | None = None, **how: Any) -> AsyncIterator[bytes]:  # noqa: ANN401 - keywords of a stream
    """Read what a server streams, as any party does; the call ends with it."""
    call, nothing = Call(messages), cast("Any", None)
    cloud: Peer[None] = Peer(CLOUD, nothing, lambda _: None)
    try:
        async for data in cloud.stream(cast("Any", lambda _, timeout: call), nothing, total, **how):  # noqa: ARG005 - gRPC's keyword
            yield data
    finally:
        assert call.is_cancelled


@blocking
async def read(
    messages: Iterable[Response], offset: int = 0, total: int | None = None, *, has_digests: bool = True
) -> bytes:
    pieces = received(streamed(messages), total, offset=offset, has_digests=has_digests)
    return b"".join([data async for data in pieces])


def test_the_digest_is_sha256_of_the_data() -> None:
    # SHA-256 of "abc", FIPS 180-4.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert chunk_of(7, b"abc") == Chunk(offset=7, data=b"abc", digest=bytes.fromhex(expected))


def test_a_full_chunk_fits_its_message() -> None:
    full = chunk_of(2**62, bytes(CHUNK))
    assert len(Response(total=2**63, chunk=full).SerializeToString()) < 1 << 20
    assert len(Response(total=2**63, chunk=chunk_of(2**62, bytes(MAX_CHUNK))).SerializeToString()) < MAX_MESSAGE


@pytest.mark.parametrize(("offset", "data"), [(0, b""), (0, bytes(MAX_CHUNK + 1)), (-1, b"x")])
def test_no_chunk_is_made_empty_overlong_or_before_the_start(offset: int, data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        chunk_of(offset, data)


@given(st.binary(min_size=1, max_size=64), st.data())
def test_any_flipped_bit_is_noticed(data: bytes, draw: st.DataObject) -> None:
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    good = chunk_of(5, data)
    assert verify(good, 5) == data
    with pytest.raises(IntegrityError, match="digest"):
        verify(Chunk(offset=5, data=bytes(flipped), digest=good.digest), 5)


CORRUPTIONS: dict[str, Callable[[Chunk], Chunk]] = {
    "truncated": lambda chunk: Chunk(offset=chunk.offset, data=chunk.data[:-1], digest=chunk.digest),
    "lengthened": lambda chunk: Chunk(offset=chunk.offset, data=chunk.data + b"\0", digest=chunk.digest),
    "digest cut": lambda chunk: Chunk(offset=chunk.offset, data=chunk.data, digest=chunk.digest[:31]),
    "no digest": lambda chunk: Chunk(offset=chunk.offset, data=chunk.data),
    "empty": lambda chunk: Chunk(offset=chunk.offset, digest=sha256(b"").digest()),
    "overlong": lambda chunk: Chunk(
        offset=chunk.offset, data=bytes(MAX_CHUNK + 1), digest=sha256(bytes(MAX_CHUNK + 1)).digest()
    ),
    "later": lambda chunk: Chunk(offset=chunk.offset + 1, data=chunk.data, digest=chunk.digest),
    "earlier": lambda chunk: Chunk(offset=chunk.offset - 1, data=chunk.data, digest=chunk.digest),
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_corrupted_chunk_is_refused(corruption: str) -> None:
    bad = CORRUPTIONS[corruption](chunk_of(5, b"second"))
    with pytest.raises(IntegrityError):
        verify(bad, 5)
    if corruption not in {"later", "earlier"}:
        with pytest.raises(IntegrityError):
            data_of(bad)


def bare(message: Response) -> Response:
    """Return a message whose chunk has no digest."""
    chunk = Chunk(offset=message.chunk.offset, data=message.chunk.data)
    return Response(total=message.total, chunk=chunk if message.HasField("chunk") else None)


@pytest.mark.parametrize("corruption", ["empty", "overlong", "later", "earlier"])
def test_a_chunk_without_a_digest_has_a_length_and_a_place(corruption: str) -> None:
    good = chunk_of(5, b"second", has_digest=False)
    assert not good.digest
    assert verify(good, 5, has_digest=False) == b"second"
    with pytest.raises(IntegrityError):
        verify(CORRUPTIONS[corruption](good), 5, has_digest=False)


def test_a_stream_arrives_whole_and_resumes_anywhere() -> None:
    assert read(responses()) == WHOLE
    assert read(responses(), total=len(WHOLE)) == WHOLE
    assert read(responses()[1:], offset=5) == WHOLE[5:]


def test_nothing_left_is_said_without_a_chunk() -> None:
    assert read([Response(total=5)], offset=5) == b""
    assert read([Response(total=0)]) == b""
    assert read([], offset=5, total=5) == b""


def altered(index: int, total: int) -> list[Response]:
    messages = responses()
    messages[index] = Response(total=total, chunk=messages[index].chunk)
    return messages


BROKEN = {
    "nothing": [],
    "end missing": responses()[:2],
    "start missing": responses()[1:],
    "middle missing": [responses()[0], responses()[2]],
    "first twice": [responses()[0], *responses()],
    "last twice": [*responses(), responses()[2]],
    "total grows": altered(2, len(WHOLE) + 1),
    "total shrinks": altered(1, len(WHOLE) - 1),
    "past the total": responses(total=len(WHOLE) - 1),
    "short of the total": responses(total=len(WHOLE) + 1),
    "total without data": [Response(total=3)],
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_stream_is_refused(case: str) -> None:
    with pytest.raises(IntegrityError):
        read(BROKEN[case])
    with pytest.raises(IntegrityError):
        read(map(bare, BROKEN[case]), has_digests=False)


@pytest.mark.parametrize(("short", "is_taken"), [(127, True), (128, False)])
def test_a_stream_of_short_chunks_alone_is_refused(short: int, *, is_taken: bool) -> None:
    long, last = [bytes(_SHORT)] * 3, [b"end"]
    parts = [*long, *[b"x"] * short, *long, *last]
    messages = responses(parts, sum(map(len, parts)))
    for has_digests in (True, False):
        with nullcontext() if is_taken else pytest.raises(TransferError, match="more than 128 chunks"):
            assert read(messages, has_digests=has_digests) == b"".join(parts)


def test_a_stream_without_digests_is_taken_only_where_none_are_expected() -> None:
    messages = list(map(bare, responses()))
    assert read(messages, has_digests=False) == WHOLE
    with pytest.raises(IntegrityError, match="digest"):
        read(messages)


async def test_nothing_past_the_total_is_handed_on() -> None:
    stream = received(streamed(responses(total=len(WHOLE) - 1)))
    assert [await anext(stream) for _ in range(2)] == [b"first", b"second"]
    with pytest.raises(IntegrityError):
        await anext(stream)


def test_a_total_known_beforehand_must_be_met() -> None:
    for total in (len(WHOLE) - 1, len(WHOLE) + 1):
        with pytest.raises(IntegrityError):
            read(responses(), total=total)
    with pytest.raises(IntegrityError):
        read([], offset=4, total=5)


async def test_a_broken_connection_leaves_what_came_and_names_the_peer() -> None:
    async def breaking() -> AsyncIterator[Response]:
        yield responses()[0]
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "")

    stream = received(breaking())
    assert await anext(stream) == b"first"
    with refuses(UnavailableError, where="server cloud"):
        await anext(stream)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
@pytest.mark.parametrize("offset", [0, 1, CHUNK])
def test_files_and_bytes_are_cut_alike(size: int, offset: int, tmp_path: Path) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    path = tmp_path / "column"
    path.write_bytes(data)
    if offset > size:
        for refused in (file_chunks(path, offset), chunk_messages(data, offset)):
            with pytest.raises(InvalidInputError):
                list(refused)
        return
    pieces = list(file_chunks(path, offset))
    assert pieces == list(chunk_messages(data, offset))
    assert list(file_chunks(path, offset, has_digests=False)) == [Chunk(offset=p.offset, data=p.data) for p in pieces]
    sent = [Response(total=size, chunk=piece) for piece in pieces] or [Response(total=size)]
    assert read(sent, offset=offset) == data[offset:]


def test_a_missing_file_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as refusal:
        list(file_chunks(tmp_path / "column"))
    assert refusal.value.where == "column"
