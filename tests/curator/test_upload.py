import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

import grpc
import pytest

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

Make = Callable[..., Any]
DIGESTS = {"sex": b"a" * 32, "salary": b"b" * 32}
PLACES = b"p" * 32
NOISE = b"n" * 32
NO_LEDGER = cast("Any", SimpleNamespace(chain=SimpleNamespace(head=(0, b"h" * 32), verify_against=lambda *_: None)))


@pytest.mark.parametrize("sampling", Sampling)
def test_what_a_server_states_of_a_publication_is_read_whole(make_spec: Make, sampling: Sampling) -> None:
    places = PLACES if sampling.is_by_server else b""
    message = ingest_pb2.GetPublicationResponse(digests=DIGESTS, places_digest=places)
    digests = publication_from_proto(message, make_spec(sampling=sampling), "server cloud")
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
    make_spec: Make, sampling: Sampling, digests: dict[str, bytes], places: bytes, lacking: str
) -> None:
    message = ingest_pb2.GetPublicationResponse(digests=digests, places_digest=places)
    with pytest.raises(InvalidInputError, match=f"server cloud: does not state the digest of {lacking}"):
        publication_from_proto(message, make_spec(sampling=sampling), "server cloud")


Answer = Callable[[], Awaitable[ingest_pb2.UploadColumnResponse]]


class Upload(Protocol):
    async def __call__(self, answer: Answer) -> PublicationDigests | None: ...


@pytest.fixture
def upload(make_spec: Make, tmp_path: Path) -> Upload:
    """Return what uploads alice's column to a server that answers its stream."""

    async def uploaded(answer: Answer) -> PublicationDigests | None:
        async def ask(*_: object, **__: object) -> ingest_pb2.OpenReleaseResponse:
            return ingest_pb2.OpenReleaseResponse(
                state=release_pb2.RELEASE_STATE_UPLOADING, received={"sex": 0}, noise_digest=NOISE
            )

        stub = SimpleNamespace(OpenRelease=None, UploadColumn=lambda *_, **__: answer())
        link = object.__new__(ServerLink)
        link._name, link._server = "alice", cast("Any", SimpleNamespace(party=CLOUD, stub=stub, ask=ask))
        link._room, link._noise_digest, link._ledger = asyncio.Semaphore(1), lambda _: NOISE, NO_LEDGER
        return await link.upload(make_spec(), {"sex": (tmp_path / "sex", b"digest")})

    return uploaded


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_column_is_sent_once_the_server_has_it_whole(upload: Upload, *, is_complete: bool) -> None:
    async def answer() -> ingest_pb2.UploadColumnResponse:
        return ingest_pb2.UploadColumnResponse(complete=is_complete)

    async def scenario() -> None:
        if is_complete:
            assert await upload(answer) is None
            return
        with pytest.raises(TransferError, match="attribute sex: the server does not have the whole column"):
            await upload(answer)

    asyncio.run(scenario())


@pytest.mark.parametrize("state", [None, ReleaseState.PERTURBING, ReleaseState.READY, ReleaseState.FAILED])
@pytest.mark.parametrize("most", [399, 400])
@pytest.mark.parametrize("is_there", [False, True])
def test_short_columns_whose_files_are_there_are_sent_together(  # noqa: PLR0913 - what they depend on
    make_spec: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    state: ReleaseState | None,
    *,
    is_there: bool,
) -> None:
    monkeypatch.setattr("veiltab.curator.release.upload.TOGETHER", most)
    spec, path, sent = make_spec(), tmp_path / "sex", list[ingest_pb2.UploadColumnsRequest]()
    stated = {column.attribute: bytes(32) for column in spec.columns}
    is_together = is_there and most == 400
    if is_there:
        path.write_bytes(bytes(400))

    async def upload_columns(request: ingest_pb2.UploadColumnsRequest, **_: object) -> ingest_pb2.UploadColumnsResponse:
        sent.append(request)
        if state is None:
            return ingest_pb2.UploadColumnsResponse()
        publication = ingest_pb2.GetPublicationResponse(state=state_to_proto(state), digests=stated, noise_digest=NOISE)
        return ingest_pb2.UploadColumnsResponse(publication=publication)

    async def one_by_one(*_: object) -> None:
        assert not is_together

    link = object.__new__(ServerLink)
    stub = SimpleNamespace(UploadColumns=upload_columns)
    link._name, link._server = "alice", cast("Any", SimpleNamespace(party=CLOUD, stub=stub))
    link._noise_digest, link._ledger = lambda _: NOISE, NO_LEDGER
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


async def test_a_server_that_is_away_is_asked_again(upload: Upload) -> None:
    async def answer() -> ingest_pb2.UploadColumnResponse:
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "away")

    with pytest.raises(UnavailableError):
        await upload(answer)


async def test_a_ciphertext_that_cannot_be_read_ends_the_release(upload: Upload) -> None:
    async def answer() -> ingest_pb2.UploadColumnResponse:
        raise asyncio.CancelledError  # as gRPC's, when the requests raise

    with pytest.raises(IntegrityError, match="attribute sex: the pad is spent and its ciphertext cannot be read"):
        await upload(answer)


async def test_an_upload_that_the_curator_itself_cancels_says_nothing_of_its_ciphertext(upload: Upload) -> None:
    begun = asyncio.Event()

    async def answer() -> ingest_pb2.UploadColumnResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def uploading() -> None:
        await upload(answer)

    task = asyncio.create_task(uploading())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


OTHER = b"o" * 32


@pytest.mark.parametrize("path", ["announced", "one by one", "published", "forgotten"])
def test_a_server_that_states_another_noise_gets_no_column_and_no_key_leaves(
    make_spec: Make, tmp_path: Path, path: str
) -> None:
    spec, file, sent = make_spec(), tmp_path / "sex", list[object]()
    file.write_bytes(bytes(400))
    recorded = NOISE

    async def ask(*_: object, **__: object) -> Any:  # noqa: ANN401 - either answer
        if path == "published":
            stated = {column.attribute: bytes(32) for column in spec.columns}
            return ingest_pb2.GetPublicationResponse(
                state=state_to_proto(ReleaseState.READY), digests=stated, noise_digest=OTHER
            )
        return ingest_pb2.OpenReleaseResponse(state=release_pb2.RELEASE_STATE_UPLOADING, noise_digest=OTHER)

    async def upload_columns(request: ingest_pb2.UploadColumnsRequest, **_: object) -> Any:  # noqa: ANN401 - as above
        assert request.noise_digest == recorded  # so that the server refuses it
        sent.append(request)
        raise grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, grpc.aio.Metadata(), grpc.aio.Metadata(), "no such")

    def refuse(_: grpc.aio.AioRpcError) -> NotFoundError:
        return NotFoundError("no such release here")

    link = object.__new__(ServerLink)
    stub = SimpleNamespace(UploadColumns=upload_columns, OpenRelease=None, GetPublication=None)
    link._name, link._noise_digest, link._ledger = "alice", lambda _: recorded, NO_LEDGER
    link._server = cast("Any", SimpleNamespace(party=CLOUD, stub=stub, ask=ask, error_of=refuse))
    work = {
        "announced": link.announce(spec),
        "one by one": link._upload_one_by_one(spec, {"sex": (file, b"digest")}, 400, Stage()),
        "published": link.publication(spec),
        "forgotten": link.upload(spec, {"sex": (file, b"digest")}),
    }
    with pytest.raises(IntegrityError, match="server cloud: states another noise for this release than before"):
        asyncio.run(work.pop(path))
    for other in work.values():
        other.close()
    assert len(sent) == (path == "forgotten")


@pytest.mark.parametrize("stated", [b"", NOISE[:31], NOISE + b"n"])
def test_a_server_that_states_no_noise_is_refused(make_spec: Make, stated: bytes) -> None:
    async def ask(*_: object, **__: object) -> ingest_pb2.OpenReleaseResponse:
        return ingest_pb2.OpenReleaseResponse(state=release_pb2.RELEASE_STATE_UPLOADING, noise_digest=stated)

    link = object.__new__(ServerLink)
    link._noise_digest, link._ledger = lambda _: b"", NO_LEDGER
    link._server = cast("Any", SimpleNamespace(party=CLOUD, stub=SimpleNamespace(OpenRelease=None), ask=ask))
    with pytest.raises(InvalidInputError, match="server cloud: does not state the digest of its noise"):
        asyncio.run(link.announce(make_spec()))
