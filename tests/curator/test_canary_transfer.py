"""How published canaries come to a curator."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tracemalloc import get_traced_memory, start, stop

import numpy as np
import pytest

from tests.conftest import request_with
from tests.curator.tested_server import NOBODY, ROWS, honest, sent, spec_of, store_fixture  # noqa: F401 - fixtures
from veiltab.common.core.symbols import CHUNK, row_slices
from veiltab.common.errors import IntegrityError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck, canary_width, published_canaries


class Zeros:
    """A server that publishes nothing but zeros, and every second canary if it samples."""

    name = "server cloud"

    async def publication(self, _spec: TableSpec) -> PublicationDigests:
        """Nobody asks."""
        raise AssertionError

    async def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        assert len(places_key) == 32
        step = 2 if spec.sampling.is_by_server else 1
        for part in row_slices(spec.canaries if spec.sampling.is_by_server else 0):
            yield np.arange(part.start, part.stop, step).astype("<i8").tobytes()
        for part in row_slices(spec.canaries):
            yield bytes((part.stop - part.start) // step)


@pytest.mark.long
@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_many_canaries_fill_no_memory(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: Sampling
) -> None:
    """A release of everybody with a delta has about as many as rows."""
    peaks = []
    monkeypatch.setattr("veiltab.curator.release.server_check.IN_MEMORY", CHUNK)
    for chunks in (4, 8):
        release_id, rows = f"{chunks:032x}", chunks * CHUNK
        store.releases.add(request_with(release_id=release_id), 1)
        store.tests.record_publication(release_id, PublicationDigests(columns={"salary": bytes(32)}, places=b""))
        store.keys.spend_shared_keys(release_id, bytes([chunks]) * 32, bytes([chunks + 1]) * 32)
        spec = spec_of(release_id=release_id, population=rows, sample=rows, canaries=rows, sampling=sampling)
        encryption = ColumnEncryption(store, tmp_path, release_id)
        encryption.ciphertext("salary").write_bytes(bytes(spec.uploaded_rows))
        check = ServerCheck("bob", store)
        start()
        with pytest.raises(IntegrityError, match="bob's columns fail: amount"):
            asyncio.run(check.run(spec, Zeros(), encryption, NOBODY, is_published=True))
        (receipt,) = store.tests.receipts(release_id)
        assert (receipt.canaries, receipt.changed) == (rows // (2 if sampling.is_by_server else 1), 0)
        peaks.append(get_traced_memory()[1])
        stop()
    assert peaks[1] < peaks[0] + CHUNK // 8


SAMPLED = spec_of(sampling=Sampling.SERVER, sample=3000, canaries=4)


PLAIN = spec_of(canaries=4)
MANY = spec_of(sampling=Sampling.SERVER, sample=3000)


def as_sent(numbers: list[int] | None, sex: list[int], age: list[int]) -> bytes:
    head = b"" if numbers is None else np.array(numbers, "<i8").tobytes()
    return head + np.array(sex, "u1").tobytes() + np.array(age, "<u2").tobytes()


def test_what_a_server_sends_is_read() -> None:
    assert (canary_width(PLAIN, "alice"), canary_width(SAMPLED, "alice"), canary_width(PLAIN, "bob")) == (3, 11, 1)
    plain = published_canaries(PLAIN, "alice", as_sent(None, [0, 1, 1, 0], [299, 0, 256, 7]))
    assert (plain.count, plain.numbers) == (4, None)
    assert {name: symbols.tolist() for name, symbols in plain.symbols.items()} == {
        "sex": [0, 1, 1, 0],
        "age": [299, 0, 256, 7],
    }
    sampled = published_canaries(SAMPLED, "alice", as_sent([0, 3], [1, 0], [299, 256]))
    assert sampled.numbers is not None
    assert (sampled.count, sampled.numbers.tolist()) == (2, [0, 3])
    assert {name: symbols.tolist() for name, symbols in sampled.symbols.items()} == {"sex": [1, 0], "age": [299, 256]}
    assert published_canaries(SAMPLED, "alice", b"").count == 0


@pytest.mark.parametrize(
    ("spec", "data", "problem"),
    [
        (PLAIN, b"", "0 bytes are not the symbols of 4 canaries"),
        (PLAIN, as_sent(None, [0, 1, 1], [0, 0, 0]), "9 bytes are not"),
        (PLAIN, as_sent(None, [0, 1, 1, 0], [0, 0, 0, 0])[:-1], "11 bytes are not"),
        (PLAIN, as_sent(None, [0] * 5, [0] * 5), "15 bytes are not"),
        (PLAIN, as_sent(None, [0, 2, 1, 0], [0, 0, 0, 0]), "1 of 4 symbols lie outside"),
        (PLAIN, as_sent(None, [0, 1, 1, 0], [300, 0, 0, 999]), "2 of 4 symbols lie outside"),
        (SAMPLED, as_sent([0], [0], [0])[:-1], "10 bytes are not"),
        (SAMPLED, as_sent([1, 1], [0, 0], [0, 0]), "are none of this release"),
        (SAMPLED, as_sent([2, 1], [0, 0], [0, 0]), "are none of this release"),
        (SAMPLED, as_sent([3, 4], [0, 0], [0, 0]), "are none of this release"),
        (SAMPLED, as_sent([-1, 0], [0, 0], [0, 0]), "are none of this release"),
        (SAMPLED, as_sent([0, 3], [0, 2], [0, 0]), "1 of 2 symbols lie outside"),
        (MANY, b"", "0 of 4000 canaries are sampled, "),
        (MANY, as_sent(list(range(4000)), [0] * 4000, [0] * 4000), "4000 of 4000 canaries are sampled, "),
    ],
)
def test_what_no_server_can_have_published_is_refused(spec: TableSpec, data: bytes, problem: str) -> None:
    with pytest.raises(IntegrityError, match=problem):
        published_canaries(spec, "alice", data)


def test_places_ascend_between_chunks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.common.core.symbols.CHUNK", 2)
    with pytest.raises(IntegrityError, match="are none of this release"):
        published_canaries(SAMPLED, "alice", as_sent([1, 2, 0, 3], [0] * 4, [0] * 4))


def test_a_column_follows_all_bytes_of_a_wider_one() -> None:
    wide_first = replace(PLAIN, columns=tuple(sorted(PLAIN.columns, key=lambda column: -column.size)))
    assert [column.attribute for column in wide_first.columns_of("alice")] == ["age", "sex"]
    data = np.array([299, 0, 256, 7], "<u2").tobytes() + bytes([0, 1, 1, 0])
    assert published_canaries(wide_first, "alice", data).symbols["sex"].tolist() == [0, 1, 1, 0]


def test_a_server_that_sends_something_else_is_named(store: CuratorStore, tmp_path: Path) -> None:
    alice = sent(store, tmp_path, spec_of())
    server = alice.server()
    server.published["sex"] = np.full_like(server.published["sex"], 7)
    with pytest.raises(IntegrityError, match=r"server cloud: 4000 of 4000 symbols lie outside .*; no key leaves"):
        alice.test(server)
    assert not store.tests.receipts(alice.spec.release_id)


def test_an_honest_sample_has_as_many_canaries_as_it_can_have() -> None:
    """The bounds hold for every one of many honest samples, at any share of the rows."""
    rng = np.random.default_rng(3)
    for share in (Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)):
        spec = spec_of(sampling=Sampling.SERVER, sample=int(ROWS * share))
        places = np.arange(spec.canaries)
        for _ in range(50):
            drawn = rng.permutation(spec.uploaded_rows)[: spec.sample]
            numbers = np.flatnonzero(np.isin(places, drawn))
            data = as_sent(numbers.tolist(), [0] * len(numbers), [0] * len(numbers))
            assert published_canaries(spec, "alice", data).count == len(numbers)
