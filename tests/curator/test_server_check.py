"""A curator's test of servers that are honest, and of others that are not."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import refuses
from tests.curator.tested_server import COLUMNS, NOBODY, SEED, Played, honest, noisy, sent, spec_of, store_fixture  # noqa: F401 - fixtures
from tests.worlds.columns import read
from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.core.domain import Symbols
from veiltab.common.core.symbols import add_holders
from veiltab.common.errors import ConflictError, IntegrityError, NotReadyError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.canary_changes import lists_digest
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.testing import is_right
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.curator.columns.noise_and_canaries import canary_key, curators_noise
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck


def without_noise(server: Played) -> dict[str, Symbols]:
    return {name: column[server.sampled] for name, column in server.uploaded.items()}


def half_of_it(server: Played) -> dict[str, Symbols]:
    return noisy(server, server.spec.server_replacement // 2)


def other_rows(server: Played) -> dict[str, Symbols]:
    return {name: np.roll(column, 1) for name, column in honest(server).items()}


@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("sampling", Sampling)
def test_an_honest_server_passes(store: CuratorStore, tmp_path: Path, sampling: Sampling, pad: Pad) -> None:
    spec = spec_of(sampling=sampling, pad=pad, sample=3000)
    alice = sent(store, tmp_path, spec)
    server = alice.server()
    alice.test(server)
    receipt = alice.receipt
    assert (receipt.passed, is_right(receipt, spec)) == (True, True)
    places = curators_noise(spec, SEED).places.all()
    assert receipt.canaries == np.isin(places, server.sampled).sum()
    assert (receipt.canaries == 4000) is not sampling.is_by_server
    assert server.keys == [places_key(canary_key(SEED))]
    for column in spec.columns_of("alice"):
        tested, published = store.tests.tested(spec.release_id, column.attribute), server.published[column.attribute]
        assert tested is not None
        assert tested.published == hashlib.sha256(published.data).digest()
        assert tested.canaries == hashlib.sha256(published[np.isin(server.sampled, places)].data).digest()
    assert store.tests.tested(spec.release_id, "salary") is None
    alice.test(server)
    assert len(server.keys) == 1, "what was tested is not tested again"


@pytest.mark.parametrize("sampling", Sampling)
@pytest.mark.parametrize("perturbed", [without_noise, half_of_it, other_rows])
def test_another_server_fails(
    store: CuratorStore, tmp_path: Path, sampling: Sampling, perturbed: Callable[[Played], dict[str, Symbols]]
) -> None:
    spec = spec_of(sampling=sampling)
    alice = sent(store, tmp_path, spec)
    server = alice.server(perturbed)
    for _ in range(2):  # a crash may come before the end is recorded
        with pytest.raises(IntegrityError) as refused:
            alice.test(server)
        receipt = alice.receipt
        assert is_right(receipt, spec)
        assert receipt.failures[0].test is Family.AMOUNT
        assert str(refused.value) == (
            f"server cloud: it did not add the noise of the release: {receipt.sentence()}; no key leaves"
        )
        assert receipt.sentence().startswith(f"alice's columns fail: {receipt.failures[0].sentence()}")
    assert len(server.keys) == 1


@pytest.mark.parametrize("sampling", Sampling)
def test_what_is_published_is_recorded_before_a_key_leaves(
    store: CuratorStore, tmp_path: Path, sampling: Sampling
) -> None:
    alice = sent(store, tmp_path, spec_of(sampling=sampling, sample=3000))
    server = alice.server()
    server.is_published = False
    with pytest.raises(NotReadyError, match="has not published"):
        alice.test(server)
    assert (server.keys, store.tests.publication(alice.spec.release_id).columns) == ([], {})
    seen: list[PublicationDigests] = []
    server.is_published, show = True, server.canaries

    def observed(spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        seen.append(store.tests.publication(spec.release_id))
        return show(spec, places_key)

    server.canaries = observed  # type: ignore[method-assign]
    alice.test(server)
    assert seen == [asyncio.run(server.publication(alice.spec))]


ANEW = [({"columns": {"sex": bytes(32)}}, "published other columns"), ({"places": bytes(32)}, "sampled other places")]


@pytest.mark.parametrize(("before", "words"), ANEW)
def test_a_server_that_publishes_or_samples_anew_is_refused(
    store: CuratorStore, tmp_path: Path, before: dict[str, Any], words: str
) -> None:
    alice = sent(store, tmp_path, spec_of(sampling=Sampling.SERVER, sample=3000))
    server = alice.server()
    stated = asyncio.run(server.publication(alice.spec))
    store.tests.record_publication(alice.spec.release_id, replace(stated, **before))
    with pytest.raises(ConflictError, match=f"the server has {words} before"):
        alice.test(server)
    assert not server.keys


def test_without_canaries_nobody_learns_a_place(store: CuratorStore, tmp_path: Path) -> None:
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
    assert not store.tests.publication(alice.spec.release_id).columns
    assert not store.tests.receipts(alice.spec.release_id)
    with refuses(NotReadyError, where="curator carol"):
        ServerCheck("carol", store).changes(alice.spec)


@pytest.mark.parametrize("sampling", Sampling)
@pytest.mark.parametrize("goes_on", [True, False], ids=["one process", "another process"])
def test_all_columns_are_tested_on_the_lists_of_their_owners(
    store: CuratorStore, tmp_path: Path, sampling: Sampling, *, goes_on: bool
) -> None:
    """A process that lacks the places of a server's sample asks for them again."""
    alice = sent(store, tmp_path, spec_of(columns=COLUMNS[:2], sampling=sampling, sample=3000))
    server, check = alice.server(), ServerCheck("alice", store)
    asyncio.run(check.run(alice.spec, server, alice.encryption, NOBODY))
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


@pytest.mark.parametrize("left", [None, b"no", b"\2" * 16_000], ids=["nothing", "little", "no symbols"])
def test_lost_canaries_are_not_tested(store: CuratorStore, tmp_path: Path, left: bytes | None) -> None:
    alice = sent(store, tmp_path, spec_of())
    path = alice.encryption.ciphertext("age")
    path.unlink() if left is None else path.write_bytes(left)
    with pytest.raises(IntegrityError, match=r"attribute age: the ciphertext is (gone or cut off|damaged)"):
        alice.test(alice.server())
    assert not store.tests.receipts(alice.spec.release_id)


class Carol:
    """Another holder of alice's columns."""

    def __init__(self, part: Symbols) -> None:
        self.part = part
        self.is_ready = False

    async def canary_part(self, curator: str, spec: TableSpec, column: Column) -> AsyncIterator[bytes]:
        assert (curator, column) == ("carol", spec.columns[0])
        if not self.is_ready:
            raise NotReadyError("has not heard what the server published yet", where="curator carol")
        places = CanaryPlaces.of(places_key(canary_key(SEED)), rows=spec.uploaded_rows, canaries=spec.canaries)
        yield self.part[places.all()].tobytes()


@pytest.mark.parametrize(("perturbed", "passes"), [(honest, True), (without_noise, False)])
def test_a_column_of_several_holders_is_tested_by_each_of_them(
    store: CuratorStore, tmp_path: Path, perturbed: Callable[[Played], dict[str, Symbols]], *, passes: bool
) -> None:
    spec = spec_of(columns=(replace(COLUMNS[0], others=("carol",)), COLUMNS[2]))
    alice, check = sent(store, tmp_path, spec), ServerCheck("alice", store)
    carol = Carol(np.random.default_rng(3).integers(0, 2, spec.uploaded_rows).astype(np.uint8))
    alice.uploaded["sex"] = add_holders([alice.uploaded["sex"], carol.part], 2)
    server = alice.server(perturbed)
    with pytest.raises(NotReadyError, match="curator carol: has not heard"):
        asyncio.run(check.run(spec, server, alice.encryption, carol))
    assert store.tests.publication(spec.release_id).columns, "carol waits for that, as alice does"
    assert not server.keys
    carol.is_ready = True
    if passes:
        asyncio.run(check.run(spec, server, alice.encryption, carol))
        assert alice.receipt.passed
        left, whole = (read(path, 2) for path in (alice.encryption.canaries("sex"), alice.encryption.ciphertext("sex")))
        assert np.array_equal(left, whole[curators_noise(spec, SEED).places.all()]), "carol may not have it yet"
        return
    with pytest.raises(IntegrityError, match=r"^server cloud, or curator carol with its part: it did not add"):
        asyncio.run(check.run(spec, server, alice.encryption, carol))
