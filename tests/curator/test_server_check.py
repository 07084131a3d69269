"""A curator's test of servers that are honest, and of others that are not."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tracemalloc import get_traced_memory, start, stop

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import request_with, spec_with
from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT, GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK, row_slices
from veiltab.common.errors import ConflictError, IntegrityError, NotReadyError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.canary_changes import lists_digest
from veiltab.common.release.receipts.families import Family
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise import canary_key, coin_key, curators_noise
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck, canary_width, published_canaries

SEED = bytes(range(32))
ROWS = 4000
COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="age", owner="alice", size=300),
    Column(attribute="salary", owner="bob", size=3),
)


def spec_of(**changes: object) -> TableSpec:
    """Return a spec with noise on both sides, half of it the server's, and canaries."""
    fields = {
        "columns": COLUMNS,
        "population": ROWS,
        "sample": ROWS,
        "curator_replacement": UNIT // 2,
        "server_replacement": UNIT // 2,
        "canaries": 4000,
    } | changes
    return spec_with(**fields)


@dataclass(kw_only=True)
class Played:
    """A server that got alice's columns, and publishes and shows them as `perturbed` says.

    Args:
        spec: of the release.
        uploaded: attribute -> alice's ciphertext.
        perturbed: what becomes of the columns.
    """

    spec: TableSpec
    uploaded: dict[str, Symbols]
    perturbed: "Callable[[Played], dict[str, Symbols]]"
    name: str = "server cloud"
    is_published: bool = True
    keys: list[bytes] = field(default_factory=list)
    sampled: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the sample of a server that samples."""
        rows, spec = np.arange(self.spec.uploaded_rows), self.spec
        if spec.sampling.is_by_server:
            rows = np.sort(np.random.default_rng(1).permutation(rows)[: spec.sample])
        self.sampled = rows
        self.published = self.perturbed(self)

    async def publication(self, spec: TableSpec) -> PublicationDigests:
        """Return the digests."""
        if not self.is_published:
            raise NotReadyError("has not published the release yet", where=self.name)
        mine = {attribute: hashlib.sha256(column.data).digest() for attribute, column in self.published.items()}
        return PublicationDigests(
            columns={column.attribute: mine.get(column.attribute, bytes(32)) for column in spec.columns},
            places=hashlib.sha256(self.sampled.data).digest() if spec.sampling.is_by_server else b"",
        )

    async def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Return the canaries as they are published, in pieces that end anywhere."""
        self.keys.append(places_key)
        places = CanaryPlaces.of(places_key, rows=spec.uploaded_rows, canaries=spec.canaries).all()
        is_drawn = np.isin(places, self.sampled)
        rows = np.searchsorted(self.sampled, places[is_drawn])
        numbers = np.flatnonzero(is_drawn).astype("<i8").tobytes() if spec.sampling.is_by_server else b""
        data = numbers + b"".join(column[rows].tobytes() for column in self.published.values())
        for begin in range(0, len(data), 1001):
            yield data[begin : begin + 1001]


def noisy(server: Played, replacement: int) -> dict[str, Symbols]:
    """Run the product's mechanism with some replacement probability on alice's columns."""
    names = list(server.uploaded)
    sizes = [server.spec.column(name).size for name in names]
    law = GammaDiagonal(cells=int(np.prod(sizes)), replacement=replacement)
    inputs = [server.uploaded[name][server.sampled] for name in names]
    outputs = [np.empty_like(column) for column in inputs]
    perturb(inputs, sizes, law, CipherStream(derive(SEED, "server")), outputs)
    return dict(zip(names, outputs, strict=True))


def honest(server: Played) -> dict[str, Symbols]:
    return noisy(server, server.spec.server_replacement)


def without_noise(server: Played) -> dict[str, Symbols]:
    return {name: column[server.sampled] for name, column in server.uploaded.items()}


def half_of_it(server: Played) -> dict[str, Symbols]:
    return noisy(server, server.spec.server_replacement // 2)


def too_much(server: Played) -> dict[str, Symbols]:
    return noisy(server, server.spec.server_replacement * 3 // 2)


def column_by_column(server: Played) -> dict[str, Symbols]:
    """Add the noise to each column apart, in other rows."""
    published = without_noise(server)
    for name, column in published.items():
        size = server.spec.column(name).size
        law = GammaDiagonal(cells=size, replacement=server.spec.server_replacement)
        perturb([column], [size], law, CipherStream(derive(SEED, name)), [column])
    return published


def other_rows(server: Played) -> dict[str, Symbols]:
    return {name: np.roll(column, 1) for name, column in honest(server).items()}


def old_columns(server: Played) -> dict[str, Symbols]:
    """Publish columns of another release."""
    rng = np.random.default_rng(5)
    published = without_noise(server)
    for name, column in published.items():
        column[:] = rng.integers(0, server.spec.column(name).size, len(column))
    return published


def one_more(server: Played) -> dict[str, Symbols]:
    """Add 1 to every symbol of a row that is to be drawn."""
    published, sent = honest(server), without_noise(server)
    changed = np.any([published[name] != sent[name] for name in sent], axis=0)
    for name, column in sent.items():
        size = server.spec.column(name).size
        published[name][:] = np.where(changed, (column.astype(np.int64) + 1) % size, column)
    return published


def raw_column(server: Played) -> dict[str, Symbols]:
    """Leave a column as it came, and replace the other as much more often."""
    published = without_noise(server)
    replaced = np.random.default_rng(7).random(len(server.sampled)) < server.spec.server_replacement / UNIT
    ages = np.random.default_rng(8).integers(0, 300, len(replaced))
    published["age"][:] = np.where(replaced, ages, published["age"])
    return published


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CuratorStore]:
    with closing(CuratorStore(tmp_path / "curator.sqlite")) as store:
        store.releases.add(request_with(), 1)
        yield store


@dataclass(frozen=True, kw_only=True)
class Alice:
    """A curator that has sent her columns."""

    store: CuratorStore
    encryption: ColumnEncryption
    spec: TableSpec
    uploaded: dict[str, Symbols]

    def server(self, perturbed: Callable[[Played], dict[str, Symbols]] = honest) -> Played:
        """Return a server that has her columns."""
        return Played(spec=self.spec, uploaded=self.uploaded, perturbed=perturbed)

    def test(self, server: Played, name: str = "alice") -> None:
        """Test a server on her own columns."""
        asyncio.run(ServerCheck(name, self.store).run(self.spec, server, self.encryption))

    @property
    def receipt(self) -> Receipt:
        """What the test of her own columns showed."""
        (receipt,) = self.store.tests.receipts(self.spec.release_id)
        return receipt


def sent(store: CuratorStore, folder: Path, spec: TableSpec) -> Alice:
    """Let alice encrypt her columns as the release says."""
    noise = curators_noise(spec, SEED)
    store.pads.spend_shared_keys(spec.release_id, coin_key(SEED), canary_key(SEED))
    encryption = ColumnEncryption(store, folder / "release", spec.release_id)
    uploaded: dict[str, Symbols] = {}
    for column in spec.columns_of("alice"):
        values: Symbols = np.zeros(spec.data_rows, symbol_dtype(column.size))
        encryption.encrypt(column.attribute, values, column.size, spec.pad, noise)
        uploaded[column.attribute] = np.empty(spec.uploaded_rows, symbol_dtype(column.size))
        ciphertext = encryption.ciphertext(column.attribute).read_bytes()
        uploaded[column.attribute].view(np.uint8)[:] = np.frombuffer(ciphertext, np.uint8)
    return Alice(store=store, encryption=encryption, spec=spec, uploaded=uploaded)


@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("sampling", Sampling)
def test_an_honest_server_passes(store: CuratorStore, tmp_path: Path, sampling: Sampling, pad: Pad) -> None:
    spec = spec_of(sampling=sampling, pad=pad, sample=3000)
    alice = sent(store, tmp_path, spec)
    server = alice.server()
    alice.test(server)
    receipt = alice.receipt
    assert receipt.passed
    assert is_right(receipt, spec)
    places = curators_noise(spec, SEED).places.all()
    assert receipt.canaries == np.isin(places, server.sampled).sum()
    assert (receipt.canaries == 4000) is not sampling.is_by_server
    assert server.keys == [places_key(canary_key(SEED))]
    for column in spec.columns_of("alice"):
        tested, published = store.tests.tested(spec.release_id, column.attribute), server.published[column.attribute]
        assert tested is not None
        assert tested.published == hashlib.sha256(published.data).digest()
        assert tested.canaries == hashlib.sha256(published[np.isin(server.sampled, places)].data).digest()
        assert not alice.encryption.canaries(column.attribute).exists()
    assert store.tests.tested(spec.release_id, "salary") is None
    alice.test(server)
    assert len(server.keys) == 1, "what was tested is not tested again"


# With so many canaries each of them is found but for less than once in a million tests.
SHAPES = [one_more, raw_column]
DISHONEST = [without_noise, half_of_it, too_much, column_by_column, other_rows, old_columns, *SHAPES]


@pytest.mark.parametrize("sampling", Sampling)
@pytest.mark.parametrize("perturbed", DISHONEST)
def test_another_server_fails(
    store: CuratorStore,
    tmp_path: Path,
    sampling: Sampling,
    perturbed: Callable[[Played], dict[str, Symbols]],
) -> None:
    spec = spec_of(sampling=sampling)
    alice = sent(store, tmp_path, spec)
    server = alice.server(perturbed)
    for _ in range(2):  # a crash may come before the end is recorded
        with pytest.raises(IntegrityError) as refused:
            alice.test(server)
        receipt = alice.receipt
        assert not receipt.passed
        assert is_right(receipt, spec)
        assert receipt.failures[0].test is Family.AMOUNT or perturbed in SHAPES
        assert str(refused.value) == (
            f"server cloud: it did not add the noise of the release: {receipt.sentence()}; no key leaves"
        )
        assert receipt.sentence().startswith(f"alice's columns fail: {receipt.failures[0].sentence()}")
    assert len(server.keys) == 1
    assert not alice.encryption.canaries("sex").exists()


@pytest.mark.parametrize("sampling", Sampling)
def test_what_is_published_is_recorded_before_the_places_key_leaves(
    store: CuratorStore, tmp_path: Path, sampling: Sampling
) -> None:
    alice = sent(store, tmp_path, spec_of(sampling=sampling, sample=3000))
    server = alice.server()
    server.is_published = False
    with pytest.raises(NotReadyError, match="has not published"):
        alice.test(server)
    assert (server.keys, store.tests.published_digests(alice.spec.release_id)) == ([], {})
    seen: list[PublicationDigests] = []
    server.is_published, show = True, server.canaries

    def observed(spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        seen.append(
            PublicationDigests(
                columns=store.tests.published_digests(spec.release_id),
                places=store.tests.places_digest(spec.release_id),
            )
        )
        return show(spec, places_key)

    server.canaries = observed  # type: ignore[method-assign]
    alice.test(server)
    assert seen == [asyncio.run(server.publication(alice.spec))]


def test_a_server_that_publishes_anew_is_refused(store: CuratorStore, tmp_path: Path) -> None:
    alice = sent(store, tmp_path, spec_of())
    first, second = alice.server(), alice.server(half_of_it)
    store.tests.record_publication(alice.spec.release_id, asyncio.run(first.publication(alice.spec)))
    with pytest.raises(ConflictError, match="the server has published other columns before"):
        alice.test(second)
    assert not second.keys
    alice.test(first)


def test_a_server_that_samples_anew_is_refused(store: CuratorStore, tmp_path: Path) -> None:
    alice = sent(store, tmp_path, spec_of(sampling=Sampling.SERVER, sample=3000))
    server = alice.server()
    stated = asyncio.run(server.publication(alice.spec))
    store.tests.record_publication(alice.spec.release_id, replace(stated, places=bytes(32)))
    with pytest.raises(ConflictError, match="the server has sampled other places before"):
        alice.test(server)
    assert not server.keys


def test_without_canaries_what_is_published_is_recorded_and_nobody_learns_a_place(
    store: CuratorStore, tmp_path: Path
) -> None:
    alice = sent(store, tmp_path, spec_of(canaries=0))
    server = alice.server(without_noise)
    alice.test(server)
    assert not server.keys
    assert (alice.receipt.canaries, alice.receipt.changed, alice.receipt.passed) == (0, 0, True)
    assert store.tests.canary_changes(alice.spec.release_id) == {"alice": b""}
    tested = store.tests.tested(alice.spec.release_id, "sex")
    assert tested is not None
    assert tested.canaries == hashlib.sha256().digest()
    assert tested.published == hashlib.sha256(server.published["sex"].data).digest()


def test_a_curator_without_columns_has_nothing_to_test(store: CuratorStore, tmp_path: Path) -> None:
    alice = sent(store, tmp_path, spec_of())
    server = alice.server(without_noise)
    alice.test(server, "carol")
    assert not server.keys
    assert not store.tests.published_digests(alice.spec.release_id)
    assert not store.tests.receipts(alice.spec.release_id)
    with pytest.raises(NotReadyError, match="has not tested the server yet"):
        ServerCheck("carol", store).changes(alice.spec)


@pytest.mark.parametrize("sampling", Sampling)
@pytest.mark.parametrize("goes_on", [True, False], ids=["one process", "another process"])
def test_all_columns_are_tested_on_the_lists_of_their_owners(
    store: CuratorStore, tmp_path: Path, sampling: Sampling, *, goes_on: bool
) -> None:
    """A process that lacks the places of a server's sample asks for them again."""
    alice = sent(store, tmp_path, spec_of(columns=COLUMNS[:2], sampling=sampling, sample=3000))
    server, check = alice.server(), ServerCheck("alice", store)
    asyncio.run(check.run(alice.spec, server, alice.encryption))
    assert not (check.is_passed(alice.spec) and len(store.tests.receipts(alice.spec.release_id)) > 1)
    if not goes_on:
        check = ServerCheck("alice", store)
    for _ in range(2):
        asyncio.run(check.run_together(alice.spec, server, {}, tmp_path))
    own, together = store.tests.receipts(alice.spec.release_id)
    assert (own.tester, together.tester) == ("alice", "")
    assert (own.counts[0].count, own.canaries) == (together.counts[0].count, together.canaries)
    assert all(is_right(one, alice.spec) and one.passed for one in (own, together))
    assert together.changes == lists_digest({"alice": store.tests.canary_changes(alice.spec.release_id)["alice"]})
    assert len(server.keys) == (2 if sampling.is_by_server and not goes_on else 1)
    assert check.is_passed(alice.spec)


def test_a_curator_without_columns_tests_nothing_together(store: CuratorStore, tmp_path: Path) -> None:
    alice = sent(store, tmp_path, spec_of())
    server = alice.server(without_noise)
    asyncio.run(ServerCheck("carol", store).run_together(alice.spec, server, {}, tmp_path))
    assert not store.tests.receipts(alice.spec.release_id)
    assert ServerCheck("carol", store).is_passed(alice.spec)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_without_its_own_ciphertext_a_curator_tests_nothing(
    store: CuratorStore, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    alice = sent(store, tmp_path, spec_of())
    damage(alice.encryption.canaries("age"))
    with pytest.raises(IntegrityError, match="attribute age: the ciphertext of the canaries is gone or cut off"):
        alice.test(alice.server())
    assert not store.tests.receipts(alice.spec.release_id)


class Zeros:
    """A server that publishes nothing but zeros, and every second canary if it samples."""

    name = "server cloud"

    async def publication(self, _spec: TableSpec) -> PublicationDigests:
        """Nobody asks."""
        raise AssertionError

    async def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Yield the canaries."""
        assert len(places_key) == 32
        step = 2 if spec.sampling.is_by_server else 1
        for part in row_slices(spec.canaries if spec.sampling.is_by_server else 0):
            yield np.arange(part.start, part.stop, step).astype("<i8").tobytes()
        for part in row_slices(spec.canaries):
            yield bytes((part.stop - part.start) // step)


@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_many_canaries_fill_no_memory(store: CuratorStore, tmp_path: Path, sampling: Sampling) -> None:
    """A release of everybody with a delta has about as many as rows."""
    peaks = []
    for chunks in (3, 6):
        release_id, rows = f"{chunks:032x}", chunks * CHUNK
        store.releases.add(request_with(release_id=release_id), 1)
        store.tests.record_publication(release_id, PublicationDigests(columns={"salary": bytes(32)}, places=b""))
        store.pads.spend_shared_keys(release_id, bytes([chunks]) * 32, bytes([chunks + 1]) * 32)
        spec = spec_of(release_id=release_id, population=rows, sample=rows, canaries=rows, sampling=sampling)
        encryption = ColumnEncryption(store, tmp_path, release_id)
        encryption.canaries("salary").write_bytes(bytes(rows))
        check = ServerCheck("bob", store)
        start()
        with pytest.raises(IntegrityError, match="bob's columns fail: amount"):
            asyncio.run(check.run(spec, Zeros(), encryption, is_published=True))
        (receipt,) = store.tests.receipts(release_id)
        assert (receipt.canaries, receipt.changed) == (rows // (2 if sampling.is_by_server else 1), 0)
        peaks.append(get_traced_memory()[1])
        stop()
    assert peaks[1] < peaks[0] + CHUNK // 8


# What a server may send

SAMPLED = spec_of(sampling=Sampling.SERVER, sample=3000, canaries=4)
PLAIN = spec_of(canaries=4)


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
        (spec_of(sampling=Sampling.SERVER, sample=3000), b"", "0 of 4000 canaries are sampled, "),
        (
            spec_of(sampling=Sampling.SERVER, sample=3000),
            as_sent(list(range(4000)), [0] * 4000, [0] * 4000),
            "4000 of 4000 canaries are sampled, ",
        ),
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
