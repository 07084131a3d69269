"""What curators get of their canaries: the published symbols at their places, after the publication, for one key."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import refuses
from tests.server.publishing import complete, perturb, published_by, spec_ahead
from veiltab.common.core.canaries import CanaryPlaces, CanaryRows
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
)
from veiltab.common.release.modes import Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.chunks import data_of
from veiltab.common.study.file import Study
from veiltab.server.records.store import ServerStore
from veiltab.server.release import canaries as module
from veiltab.server.release.canaries import Canaries, CanaryStream, canary_rows
from veiltab.server.release.perturbation import PLACES
from veiltab.server.release.releases import Releases

ID = "0" * 31 + "1"
KEY = bytes(range(32))
COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="salary", owner="bob", size=2),
    Column(attribute="age", owner="alice", size=300),
)


def uploaded(spec: TableSpec) -> list[Symbols]:
    rng = np.random.default_rng(3)
    columns: list[Symbols] = [np.empty(spec.uploaded_rows, symbol_dtype(column.size)) for column in spec.columns]
    for column, symbols in zip(spec.columns, columns, strict=True):
        symbols[:] = rng.integers(0, column.size, len(symbols))
    return columns


def release(store: ServerStore, **changes: object) -> TableSpec:
    """Publish a release of 400 rows, or of 400 of 1000, with 100 canaries."""
    spec: TableSpec = spec_ahead(**({"columns": COLUMNS, "canaries": 100, "sample": 400} | changes))
    complete(store, spec, *uploaded(spec))
    perturb(store, spec)
    return spec


def fetched(store: ServerStore, curator: str, key: bytes = KEY, release_id: str = ID) -> bytes:
    stream = asyncio.run(Canaries(store).of(release_id, curator, key))
    data = b"".join(data_of(chunk) for chunk in stream.chunks())
    assert len(data) == stream.total
    return data


def expected(parts: Mapping[str, bytes], attributes: tuple[str, ...], rows: list[int]) -> bytes:
    """Return the symbols of some columns in some rows, as they travel."""
    kinds = {attribute: "<u2" if attribute == "age" else "u1" for attribute in attributes}
    return b"".join(np.frombuffer(parts[name], kind)[rows].tobytes() for name, kind in kinds.items())


# What is answered


def test_each_curator_gets_its_own_published_symbols_at_the_places(store: ServerStore) -> None:
    spec = release(store)
    places = CanaryPlaces.of(KEY, rows=500, canaries=100).all().tolist()
    parts = published_by(store, ID)
    assert fetched(store, "alice") == expected(parts, ("sex", "age"), places)
    assert fetched(store, "bob") == expected(parts, ("salary",), places)
    ciphertext = dict(zip((c.attribute for c in spec.columns), uploaded(spec), strict=True))
    assert fetched(store, "bob") != ciphertext["salary"][places].tobytes()


def test_where_the_server_samples_the_sampled_canaries_come_with_their_numbers(store: ServerStore) -> None:
    release(store, sampling=Sampling.SERVER)
    parts = published_by(store, ID)
    sampled = np.frombuffer(parts[PLACES], "<i8").tolist()
    places = CanaryPlaces.of(KEY, rows=1100, canaries=100).all().tolist()
    numbers = [number for number, place in enumerate(places) if place in sampled]
    rows = [sampled.index(places[number]) for number in numbers]
    assert 0 < len(numbers) < 100
    head = b"".join(number.to_bytes(8, "little") for number in numbers)
    assert fetched(store, "alice") == head + expected(parts, ("sex", "age"), rows)
    assert fetched(store, "bob") == head + expected(parts, ("salary",), rows)


def test_the_stream_is_part_of_the_format(tmp_path: Path) -> None:
    """The places under this key among 20 rows are 2, 5, 6, 11, 12, 16."""
    key = bytes.fromhex("43e500d4b34f811062591723c2413ab762792d0c4f82b478e747e9bac87e595d")
    sex, age = (np.arange(20) % 2).astype(np.uint8), (np.arange(20) * 15).astype("<u2")

    spec = spec_ahead(columns=COLUMNS, population=20, sample=14, canaries=6, epsilon=Decimal(4))
    stream = CanaryStream(canary_rows(spec, key, {}, tmp_path), [sex, age])
    data = b"".join(data_of(chunk) for chunk in stream.chunks())
    assert data.hex() == "000100010000" + "1e00" + "4b00" + "5a00" + "a500" + "b400" + "f000"

    # The server drew these of the 20 rows: of the canaries it has the first, the second, the fourth and the last.
    parts = {PLACES: np.array([1, 2, 3, 5, 9, 11, 16], "<i8").view(np.uint8)}
    spec = spec_ahead(
        columns=COLUMNS, population=14, sample=7, canaries=6, epsilon=Decimal(4), sampling=Sampling.SERVER
    )
    stream = CanaryStream(canary_rows(spec, key, parts, tmp_path), [sex[:7], age[:7]])
    data = b"".join(data_of(chunk) for chunk in stream.chunks())
    numbers = "0000000000000000" + "0100000000000000" + "0300000000000000" + "0500000000000000"
    assert data.hex() == numbers + "01010100" + "0f00" + "2d00" + "4b00" + "5a00"


@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_without_canaries_the_stream_is_empty(store: ServerStore, sampling: Sampling) -> None:
    release(store, canaries=0, sampling=sampling)
    stream = asyncio.run(Canaries(store).of(ID, "alice", KEY))
    assert stream.total == 0
    assert list(stream.chunks()) == []


def test_no_canary_may_be_sampled(tmp_path: Path) -> None:
    spec = spec_ahead(sampling=Sampling.SERVER, canaries=3, sample=2)
    taken = set(CanaryPlaces.of(KEY, rows=1003, canaries=3).all().tolist())
    for others in ([0, 1, 2, 3, 4], [1002, 1001, 1000, 999, 998]):
        drawn = sorted([place for place in others if place not in taken][:2])
        found = canary_rows(spec, KEY, {PLACES: np.array(drawn, "<i8").view(np.uint8)}, tmp_path)
        assert found.sampled is not None
        assert (found.rows.tolist(), found.sampled.tolist()) == ([], [])


@given(
    count=st.integers(0, 20),
    widths=st.lists(st.sampled_from([np.uint8, np.uint16]), min_size=1, max_size=3),
    numbered=st.booleans(),
    chunk=st.integers(1, 40),
    start=st.floats(0, 1),
)
def test_a_stream_begins_anywhere_and_is_the_same(
    count: int, widths: list[Any], chunk: int, start: float, *, numbered: bool
) -> None:
    rng = np.random.default_rng(count)
    columns = [rng.integers(0, 256, 50).astype(width) for width in widths]
    rows = np.sort(rng.choice(50, count, replace=False))
    numbers = np.arange(count) * 3 if numbered else None
    head = b"" if numbers is None else numbers.astype("<i8").tobytes()
    whole = head + b"".join(column[rows].astype(column.dtype.newbyteorder("<")).tobytes() for column in columns)
    stream = CanaryStream(CanaryRows(rows=rows, sampled=numbers), columns)
    assert stream.total == len(whole)
    offset = int(start * len(whole))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "CHUNK", chunk)
        chunks = list(stream.chunks(offset))
    assert b"".join(data_of(one) for one in chunks) == whole[offset:]
    position = offset
    for one in chunks:
        assert one.offset == position
        assert 1 <= len(one.data) <= chunk
        position += len(one.data)
    for outside in (-1, stream.total + 1):
        with pytest.raises(InvalidInputError, match="outside a stream"):
            next(stream.chunks(outside))


# What is refused


def test_nothing_is_answered_before_the_publication_nor_after_its_time(study: Study, store: ServerStore) -> None:
    releases = Releases(study, store, retention_days=1)
    spec: TableSpec = spec_ahead(columns=COLUMNS, canaries=100)
    complete(store, spec, *uploaded(spec))
    assert releases.publication_of(ID, "bob") == store.session(ID)
    perturb(store, spec)
    session = releases.publication_of(ID, "bob")
    parts = published_by(store, ID)
    assert session.state is ReleaseState.READY
    assert releases.places_digest_of(session) == b""
    assert session.digests == {name: sha256(session.salt + data).digest() for name, data in parts.items()}
    assert len(fetched(store, "alice")) == 300
    releases._sweep(spec.deadline + 86_401)
    with pytest.raises(FailedReleaseError, match="no longer kept"):
        fetched(store, "alice")
    session = releases.publication_of(ID, "bob")
    assert (session.state, session.failure) == (ReleaseState.EXPIRED, "the release is no longer kept")
    assert (session.digests, session.salt) == ({}, b"")


def test_the_digest_of_the_sampled_places_is_stated_with_the_publication(study: Study, store: ServerStore) -> None:
    releases = Releases(study, store)
    spec: TableSpec = spec_ahead(columns=COLUMNS, canaries=100, sampling=Sampling.SERVER)
    complete(store, spec, *uploaded(spec))
    assert releases.places_digest_of(store.session(ID)) == b""
    perturb(store, spec)
    parts = published_by(store, ID)
    stated = sha256(store.session(ID).salt + parts[PLACES]).digest()
    assert releases.places_digest_of(store.session(ID)) == stated


def test_columns_that_go_while_they_are_asked_for_are_not_found(store: ServerStore) -> None:
    release(store)
    path = store.published_file(store.session(ID))
    path.write_bytes(path.read_bytes()[:-1])
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        fetched(store, "bob")
    path.unlink()
    with refuses(NotFoundError, where="release 00000000000000000000000000000001"):
        fetched(store, "alice")


def test_a_curator_without_columns_and_a_wrong_key_are_refused(study: Study, store: ServerStore) -> None:
    spec: TableSpec = spec_ahead(columns=COLUMNS[:1], canaries=100)
    complete(store, spec, *uploaded(spec))
    perturb(store, spec)
    with refuses(DeniedError, where="curator bob"):
        fetched(store, "bob")
    with refuses(DeniedError, where="curator bob"):
        Releases(study, store).publication_of(ID, "bob")
    for short in (b"", KEY[:31], KEY + b"x"):
        with pytest.raises(InvalidInputError, match=r"the key has [0-9]+ bytes, not 32"):
            fetched(store, "alice", short)
    assert len(fetched(store, "alice")) == 100


async def test_the_places_are_found_once_for_all_who_ask_at_a_time(
    store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(store)
    calls: list[str] = []

    def counted(spec: TableSpec, *rest: Any) -> CanaryRows:  # noqa: ANN401 - those of the function
        calls.append(spec.release_id)
        return canary_rows(spec, *rest)

    monkeypatch.setattr(module, "canary_rows", counted)
    canaries = Canaries(store)
    streams = await asyncio.gather(*(canaries.of(ID, curator, KEY) for curator in ("alice", "bob") * 5))
    assert (calls, {stream.total for stream in streams}) == ([ID], {300, 100})
    # Nothing is kept in memory for those who may ask again; a thread lets the last stream go after its answer.
    del streams
    await asyncio.get_running_loop().shutdown_default_executor()
    assert not canaries._rows


async def test_the_releases_of_one_curator_do_not_go_before_all_others(
    store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = list[str]()
    canaries = Canaries(store)
    monkeypatch.setattr(canaries, "_stream", lambda release_id, _curator, _key: answered.append(release_id))
    asked = [("one", "mallory"), ("two", "mallory"), ("three", "mallory"), ("mine", "alice")]
    await asyncio.gather(*(canaries.of(release_id, curator, KEY) for release_id, curator in asked))
    assert answered == ["one", "mine", "two", "three"]
