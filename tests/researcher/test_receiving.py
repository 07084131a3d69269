"""A desk's course of a published release, over the real kernels of every party."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import refuses, request_with
from tests.power import FailingPower, PowerFailure
from tests.researcher.made_release import MadeRelease
from tests.researcher.received_releases import (  # noqa: F401 - fixtures
    COLUMNS,
    ID,
    counts,
    made_fixture,
    receive,
    receiving,
    store_fixture,
    table_of,
)
from veiltab.common.errors import NotReadyError, TransferError, UnavailableError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.parties.server_findings import CuratorsTest
from veiltab.researcher.receiving.decryption import CanaryTest, EncryptedColumn, PublishedRows, count_rows
from veiltab.researcher.records.store import ResearcherStore


@pytest.mark.parametrize("pad", Pad)
@pytest.mark.parametrize("sampling", Sampling)
@pytest.mark.parametrize("canaries", [0, 2000])
def test_rows_of_data_alone_are_counted_whatever_the_modes(
    store: ResearcherStore, made: Callable[..., MadeRelease], sampling: Sampling, pad: Pad, canaries: int
) -> None:
    release = made(sampling=sampling, pad=pad, canaries=canaries, curator_replacement=0, server_replacement=1)
    receive(store, release)
    stored = store.release(ID)
    data = ~np.isin(release.places, release.noise.places.all())
    # The server replaces a row in 2^64: the counts are those of the rows themselves.
    table, whole = table_of(release.spec), np.zeros(release.spec.uploaded_rows, np.int64)
    cells = np.ravel_multi_index([table[c.attribute] for c in COLUMNS], [c.size for c in COLUMNS])
    whole[~np.isin(np.arange(len(whole)), release.noise.places.all())] = cells
    expected = np.bincount(whole[release.places[data]], minlength=release.spec.cells)
    assert np.array_equal(counts(store), expected)
    assert (stored.state, stored.granted) == (ReleaseState.READY, ("sex", "age", "salary"))
    keys = [64, 32] if pad is Pad.CHACHA20 else [2 * release.spec.uploaded_rows] * 2
    assert list(stored.bytes.values()) == [4 * release.spec.published_rows, *keys]
    assert [receipt.changed for receipt in stored.receipts] == [0, 0, 0][: 3 if canaries else 0]


def outlives(folder: Path, study: Study, release: MadeRelease, at: int, *, seed: int) -> bool:
    """Let the power fail before a step of a desk, and go on; return whether there was such a step."""
    stores = {name: ResearcherStore(folder / name, study) for name in ("first", "calm")}
    for store in stores.values():
        store.start(request_with(), "", 100)
    first = stores["first"]
    with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
        power = FailingPower(watching, folder / "first", first.connection, at=at, seed=seed)
        receive(first, release)
        first.files.delete_columns(ID)
    power.close()
    first.close()
    with closing(stores["calm"]) as calm:
        receive(calm, release)
        expected = counts(calm), calm.release(ID).receipts
    if power.left is None:
        return False
    power.restore(folder / "later")
    with closing(ResearcherStore(folder / "later", study)) as later:
        later.delete_leftovers()
        if not later.release(ID).state.finished:
            receive(later, release)
        assert later.release(ID).state is ReleaseState.READY
        assert np.array_equal(counts(later), expected[0])
        assert later.release(ID).receipts == expected[1]
    return True


@pytest.mark.parametrize("at", [1, 4, 7])
def test_a_desk_s_release_outlives_a_power_that_fails(
    tmp_path: Path, study: Study, made: Callable[..., MadeRelease], at: int
) -> None:
    assert outlives(tmp_path, study, made(pad=Pad.OTP, sampling=Sampling.SERVER, sample=3000), at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_desk_s_release_outlives_a_power_that_fails_at_any_step(
    tmp_path: Path, study: Study, made: Callable[..., MadeRelease], seed: int
) -> None:
    at, release = 0, made(pad=Pad.OTP, sampling=Sampling.SERVER, sample=3000)
    while outlives(tmp_path / str(at), study, release, at, seed=1000 * seed + at):
        at += 1
    assert at > 7


@pytest.mark.parametrize("sampling", Sampling)
def test_columns_that_came_with_the_server_s_answer_are_not_fetched(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch, sampling: Sampling
) -> None:
    release = made(sampling=sampling, pad=Pad.OTP)
    receive(store, release)
    fetched, receipts = counts(store).copy(), store.release(ID).receipts
    store.files.delete_columns(ID)
    monkeypatch.setattr(release, "fetch_column", None)
    receive(store, release, columns={name: column.tobytes() for name, column in release.served.items()})
    assert np.array_equal(counts(store), fetched)
    assert store.release(ID).receipts == receipts
    assert not list(store.files.folder.rglob("*.noisy"))


@pytest.mark.parametrize(
    ("attributes", "excess"), [((), 0), (("sex", "age"), -1), (("sex", "age"), 1), (("sex", "age", "more"), 0)]
)
def test_columns_that_came_must_be_all_those_of_the_release(
    store: ResearcherStore, made: Callable[..., MadeRelease], attributes: tuple[str, ...], excess: int
) -> None:
    release = made()
    columns = {name: bytes(6000) for name in attributes} | {"salary": bytes(12_000 + excess)}
    with refuses(TransferError, where="server cloud"):
        receive(store, release, columns=columns)
    assert not release.asked


@pytest.mark.parametrize("refusal", [NotReadyError("not yet"), UnavailableError("away")])
def test_a_curator_that_is_not_ready_while_columns_come_is_asked_again(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch, refusal: VeiltabError
) -> None:
    release, asked = made(), list[str]()
    fetch_test = release.fetch_test

    async def refused_at_first(spec: TableSpec, curator: str) -> CuratorsTest:
        asked.append(curator)
        if curator == "bob" and asked.count("bob") < 2:
            raise refusal
        return await fetch_test(spec, curator)

    monkeypatch.setattr(release, "fetch_test", refused_at_first)
    receive(store, release)
    assert store.release(ID).state is ReleaseState.READY
    assert asked.count("bob") == 2


def test_a_curator_that_has_said_what_its_test_showed_is_not_asked(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, asked = made(), list[str]()
    fetch_test = release.fetch_test

    async def question(spec: TableSpec, curator: str) -> CuratorsTest:
        asked.append(curator)
        return await fetch_test(spec, curator)

    monkeypatch.setattr(release, "fetch_test", question)
    receive(store, release, tests={"bob": release.tests["bob"]})
    assert asked == ["alice"]
    assert [receipt.tester for receipt in store.release(ID).receipts] == ["alice", "bob", ""]


def test_what_is_received_says_how_far_it_is(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, stage, said = made(pad=Pad.OTP), Stage(), list[str]()
    fetch_column, fetch_pad = release.fetch_column, release.fetch_pad
    # An attempt before this one has fetched a column.
    asyncio.run(
        fetch_column(release.spec, COLUMNS[0], store.files.noisy_column(ID, COLUMNS[0].attribute), lambda _: None)
    )

    async def fetched(spec: TableSpec, column: Column, path: Path, advance: Callable[[int], None]) -> None:
        if not path.exists():
            await fetch_column(spec, column, path, advance)
        said.append(str(stage))

    def counted(
        columns: Sequence[EncryptedColumn], rows: PublishedRows, test: CanaryTest, advance: Callable[[int], None]
    ) -> NDArray[np.int64]:
        said.append(str(stage))
        found = count_rows(columns, rows, test, advance)
        said.append(str(stage))
        return found

    async def pad(*args: Any) -> None:  # noqa: ANN401 - as for a desk
        said.append(str(stage))
        await fetch_pad(*args)

    monkeypatch.setattr("veiltab.researcher.receiving.receiving.count_rows", counted)
    monkeypatch.setattr(release, "fetch_column", fetched)
    monkeypatch.setattr(release, "fetch_pad", pad)
    receive(store, release, stage=stage)
    fetching = [f"fetching columns: {share} %" for share in (25, 50, 100)]
    assert said == [*fetching, "", "", "", "decrypting and counting: 0 %", "decrypting and counting: 100 %"]
    assert not str(stage)


async def test_a_desk_asks_curators_and_the_server_at_once(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made()
    fetch_column, fetch_test = release.fetch_column, release.fetch_test
    asked = asyncio.Event()

    async def after_the_question(spec: TableSpec, column: Column, path: Path, advance: Callable[[int], None]) -> None:
        await asked.wait()
        await fetch_column(spec, column, path, advance)

    async def question(spec: TableSpec, curator: str) -> CuratorsTest:
        asked.set()
        return await fetch_test(spec, curator)

    monkeypatch.setattr(release, "fetch_column", after_the_question)
    monkeypatch.setattr(release, "fetch_test", question)
    async with asyncio.timeout(20):
        await receiving(store, release)
    assert store.release(ID).state is ReleaseState.READY
