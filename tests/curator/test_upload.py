import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import grpc
import pytest

from tests.conftest import refuses, spec_with
from tests.worlds.parties import CLOUD
from veiltab.common.errors import (
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    TransferError,
    UnavailableError,
)
from veiltab.common.observe.progress import Stage
from veiltab.common.release.messages.release_messages import spec_from_proto, state_to_proto
from veiltab.common.release.modes import Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.release.upload import ServerLink, publication_from_proto
from veiltab.v1 import ingest_pb2, release_pb2

DIGESTS = {"sex": b"a" * 32, "salary": b"b" * 32}
PLACES = b"p" * 32
NOISE = b"n" * 32
NO_LEDGER = cast("Any", SimpleNamespace(chain=SimpleNamespace(head=(0, b"h" * 32), verify_against=lambda *_: None)))


@pytest.mark.parametrize("sampling", Sampling)
def test_what_a_server_states_of_a_publication_is_read_whole(sampling: Sampling) -> None:
    places = PLACES if sampling.is_by_server else b""
    message = ingest_pb2.GetPublicationResponse(digests=DIGESTS, places_digest=places)
    digests = publication_from_proto(message, spec_with(sampling=sampling), "server cloud")
    assert (digests.columns, digests.places) == (DIGESTS, places)


@pytest.mark.parametrize(
    ("sampling", "digests", "places", "lacking"),
    [
        (Sampling.SEED, {}, b"", "every published column"),
        (Sampling.SEED, {"sex": b"a" * 32}, b"", "every published column"),
        (Sampling.SEED, DIGESTS | {"age": b"c" * 32}, b"", "every published column"),
        (Sampling.SEED, DIGESTS | {"sex": b"a" * 31}, b"", "every published column"),
        (Sampling.SEED, DIGESTS, PLACES, "the places that it sampled"),
        (Sampling.SERVER, DIGESTS, b"", "the places that it sampled"),
        (Sampling.SERVER, DIGESTS, PLACES + b"p", "the places that it sampled"),
    ],
)
def test_a_server_that_states_less_or_more_is_refused(
    sampling: Sampling, digests: dict[str, bytes], places: bytes, lacking: str
) -> None:
    message = ingest_pb2.GetPublicationResponse(digests=digests, places_digest=places)
    with pytest.raises(InvalidInputError, match=f"server cloud: does not state the digest of {lacking}"):
        publication_from_proto(message, spec_with(sampling=sampling), "server cloud")


Answer = Callable[..., Awaitable[Any]]
Upload = Callable[[Answer], Awaitable[PublicationDigests | None]]


def away(*_: object, **__: object) -> NoReturn:
    raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "away")


def link_to(ask: Answer = away, *, noise: bytes = NOISE, **methods: Answer) -> ServerLink:
    """Return alice's link to a server that answers what she asks, and her calls of some methods."""
    link = object.__new__(ServerLink)
    stub = SimpleNamespace(
        **(dict.fromkeys(("OpenRelease", "UploadColumn", "UploadColumns", "GetPublication")) | methods)
    )
    server = SimpleNamespace(party=CLOUD, stub=stub, ask=ask, error_of=lambda _: NotFoundError("no such release here"))
    link._name, link._server, link._room = "alice", cast("Any", server), asyncio.Semaphore(1)
    link._noise_digest, link._ledger = lambda _: noise, NO_LEDGER
    return link


def opened(noise: bytes = NOISE) -> Answer:
    """Return what answers that a release is open."""

    async def ask(*_: object, **__: object) -> ingest_pb2.OpenReleaseResponse:
        state = release_pb2.RELEASE_STATE_UPLOADING
        return ingest_pb2.OpenReleaseResponse(state=state, received={"sex": 0}, noise_digest=noise)

    return ask


@pytest.fixture
def upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upload:
    """Return what uploads alice's column to a server that answers its stream."""
    monkeypatch.setattr("veiltab.curator.release.upload.TOGETHER", 399)

    async def uploaded(answer: Answer) -> PublicationDigests | None:
        link = link_to(opened(), UploadColumn=lambda *_, **__: answer())
        return await link.upload(spec_with(), {"sex": (tmp_path / "sex", b"digest")})

    return uploaded


async def test_a_column_is_sent_once_the_server_has_it_whole(upload: Upload) -> None:
    async def answer(*, complete: bool) -> ingest_pb2.UploadColumnResponse:
        return ingest_pb2.UploadColumnResponse(complete=complete)

    assert await upload(partial(answer, complete=True)) is None
    with refuses(TransferError, where="attribute sex"):
        await upload(partial(answer, complete=False))


@pytest.mark.parametrize("state", [None, ReleaseState.PERTURBING, ReleaseState.READY, ReleaseState.FAILED])
@pytest.mark.parametrize("most", [399, 400])
def test_short_columns_are_sent_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, state: ReleaseState | None
) -> None:
    monkeypatch.setattr("veiltab.curator.release.upload.TOGETHER", most)
    spec, path, sent = spec_with(), tmp_path / "sex", list[ingest_pb2.UploadColumnsRequest]()
    stated = {column.attribute: bytes(32) for column in spec.columns}
    is_together = most == 400
    path.write_bytes(bytes(400))

    async def upload_columns(request: ingest_pb2.UploadColumnsRequest, **_: object) -> ingest_pb2.UploadColumnsResponse:
        sent.append(request)
        if state is None:
            return ingest_pb2.UploadColumnsResponse()
        publication = ingest_pb2.GetPublicationResponse(state=state_to_proto(state), digests=stated, noise_digest=NOISE)
        return ingest_pb2.UploadColumnsResponse(publication=publication)

    async def one_by_one(*_: object) -> None:
        assert not is_together

    link = link_to(UploadColumns=upload_columns)
    monkeypatch.setattr(link, "_upload_one_by_one", one_by_one)
    uploading = link.upload(spec, {"sex": (path, b"digest")})
    if is_together and state is ReleaseState.FAILED:
        with pytest.raises(FailedReleaseError):
            asyncio.run(uploading)
    else:
        is_published = is_together and state is ReleaseState.READY
        assert asyncio.run(uploading) == (PublicationDigests(columns=stated) if is_published else None)
    assert len(sent) == is_together
    for request in sent:
        assert (request.wait_milliseconds, request.noise_digest) == (2000, NOISE)
        assert spec_from_proto(request.spec) == spec
        assert [(one.attribute, one.data, one.digest) for one in request.columns] == [("sex", bytes(400), b"digest")]


async def test_what_ends_a_stream_is_waited_for_or_ends_the_release(upload: Upload) -> None:
    async def cancelled() -> NoReturn:
        raise asyncio.CancelledError  # as gRPC's, when the requests raise

    with pytest.raises(UnavailableError):
        await upload(away)
    with pytest.raises(IntegrityError, match="attribute sex: the pad is spent and its ciphertext cannot be read"):
        await upload(cancelled)


async def test_an_upload_that_the_curator_itself_cancels_says_nothing_of_its_ciphertext(upload: Upload) -> None:
    begun = asyncio.Event()

    async def answer() -> NoReturn:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.ensure_future(upload(answer))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


OTHER = b"o" * 32


@pytest.mark.parametrize("path", ["announced", "one by one", "published", "forgotten"])
def test_a_server_that_states_another_noise_gets_no_column_and_no_key_leaves(tmp_path: Path, path: str) -> None:
    spec, file, sent = spec_with(), tmp_path / "sex", list[object]()
    file.write_bytes(bytes(400))
    columns = {"sex": (file, b"digest")}

    async def published(*_: object, **__: object) -> ingest_pb2.GetPublicationResponse:
        stated = {column.attribute: bytes(32) for column in spec.columns}
        state = state_to_proto(ReleaseState.READY)
        return ingest_pb2.GetPublicationResponse(state=state, digests=stated, noise_digest=OTHER)

    async def upload_columns(request: ingest_pb2.UploadColumnsRequest, **_: object) -> None:
        assert request.noise_digest == NOISE  # so that the server refuses it
        sent.append(request)
        away()

    link = link_to(published if path == "published" else opened(OTHER), UploadColumns=upload_columns)
    work: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "announced": lambda: link.announce(spec),
        "one by one": lambda: link._upload_one_by_one(spec, columns, 400, Stage()),
        "published": lambda: link.publication(spec),
        "forgotten": lambda: link.upload(spec, columns),
    }
    with refuses(IntegrityError, where="server cloud"):
        asyncio.run(work[path]())
    assert len(sent) == (path == "forgotten")


@pytest.mark.parametrize("stated", [b"", NOISE[:31], NOISE + b"n"])
def test_a_server_that_states_no_noise_is_refused(stated: bytes) -> None:
    with pytest.raises(InvalidInputError, match="server cloud: does not state the digest of its noise"):
        asyncio.run(link_to(opened(stated), noise=b"").announce(spec_with()))
