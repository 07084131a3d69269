"""A desk's course of a published release, over the real kernels of every party."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import request_with
from tests.power import FailingPower, PowerFailure
from tests.researcher.made_release import SALT, MadeRelease, Perturb, honest
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.errors import (
    DeniedError,
    FailedReleaseError,
    NotReadyError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.observe.progress import Stage
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.study.file import Study
from veiltab.researcher.parties.curators_test import CuratorsTest
from veiltab.researcher.parties.parties import PartyLinks
from veiltab.researcher.receiving.decryption import CanaryTest, EncryptedColumn, PublishedRows, count_rows
from veiltab.researcher.receiving.receiving import Receiver
from veiltab.researcher.records.store import ResearcherStore

Make = Callable[..., Any]
ID = "0" * 31 + "1"
COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="age", owner="alice", size=3),
    Column(attribute="salary", owner="bob", size=300),
)
HALF = 2**63


@pytest.fixture
def store(tmp_path: Path, study: Study, make_request: Make) -> Iterator[ResearcherStore]:
    store = ResearcherStore(tmp_path, study)
    store.start(make_request(), "", 100)
    yield store
    store.close()


@pytest.fixture
def made(make_spec: Make) -> Callable[..., MadeRelease]:
    def make(perturb_rows: Perturb = honest, **changes: object) -> MadeRelease:
        fields: dict[str, Any] = {
            "columns": COLUMNS,
            "population": 4000,
            "sample": 4000,
            "server_replacement": HALF // 2,
            "curator_replacement": HALF // 4,
            "canaries": 2000,
        }
        spec: TableSpec = make_spec(**(fields | changes))
        return MadeRelease(spec, table_of(spec), perturb_rows)

    return make


def table_of(spec: TableSpec) -> dict[str, Symbols]:
    """Return skewed rows: every symbol is 0 or 1."""
    source, table = np.random.default_rng(5), {}
    for column in spec.columns:
        symbols: Symbols = np.zeros(spec.data_rows, symbol_dtype(column.size))
        symbols[:] = source.random(spec.data_rows) < 0.2
        table[column.attribute] = symbols
    return table


def receive(store: ResearcherStore, release: MadeRelease) -> None:
    asyncio.run(Receiver("rosa", "cloud", store).receive(release.spec, SALT, cast("PartyLinks", release)))


def receive_sent(store: ResearcherStore, release: MadeRelease, columns: dict[str, bytes]) -> None:
    """Receive a release whose columns came with the server's answer."""
    receiver = Receiver("rosa", "cloud", store)
    asyncio.run(receiver.receive(release.spec, SALT, cast("PartyLinks", release), columns=columns))


def counts(store: ResearcherStore) -> Any:  # noqa: ANN401 - an array
    return np.frombuffer(store.histogram(ID).read_bytes(), "<i8")


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
        first.delete_columns(ID)
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
    store.delete_columns(ID)
    monkeypatch.setattr(release, "fetch_column", None)
    receive_sent(store, release, {name: column.tobytes() for name, column in release.served.items()})
    assert np.array_equal(counts(store), fetched)
    assert store.release(ID).receipts == receipts
    assert not list(store.folder.rglob("*.noisy"))


@pytest.mark.parametrize(
    ("attributes", "excess"), [((), 0), (("sex", "age"), -1), (("sex", "age"), 1), (("sex", "age", "more"), 0)]
)
def test_columns_that_came_must_be_all_those_of_the_release(
    store: ResearcherStore, made: Callable[..., MadeRelease], attributes: tuple[str, ...], excess: int
) -> None:
    release = made()
    columns = {name: bytes(6000) for name in attributes} | {"salary": bytes(12_000 + excess)}
    with pytest.raises(TransferError, match="server cloud: it sent other columns than the release has"):
        receive_sent(store, release, columns)
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
    receiver, tests = Receiver("rosa", "cloud", store), {"bob": release.tests["bob"]}
    asyncio.run(receiver.receive(release.spec, SALT, cast("PartyLinks", release), tests=tests))
    assert asked == ["alice"]
    assert [receipt.tester for receipt in store.release(ID).receipts] == ["alice", "bob", ""]


def test_what_is_received_says_how_far_it_is(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, stage, said = made(pad=Pad.OTP), Stage(), list[str]()
    fetch_column, fetch_pad = release.fetch_column, release.fetch_pad
    # An attempt before this one has fetched a column.
    asyncio.run(fetch_column(release.spec, COLUMNS[0], store.noisy_column(ID, COLUMNS[0].attribute), lambda _: None))

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
    receiver = Receiver("rosa", "cloud", store)
    asyncio.run(receiver.receive(release.spec, SALT, cast("PartyLinks", release), stage))
    fetching = [f"fetching columns: {share} %" for share in (25, 50, 100)]
    assert said == [*fetching, "", "", "", "decrypting and counting: 0 %", "decrypting and counting: 100 %"]
    assert not str(stage)


def test_a_desk_asks_curators_and_the_server_at_once(
    store: ResearcherStore, made: Callable[..., MadeRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = made()
    fetch_column, fetch_test = release.fetch_column, release.fetch_test

    async def scenario() -> None:
        asked = asyncio.Event()

        async def after_the_question(
            spec: TableSpec, column: Column, path: Path, advance: Callable[[int], None]
        ) -> None:
            await asked.wait()
            await fetch_column(spec, column, path, advance)

        async def question(spec: TableSpec, curator: str) -> CuratorsTest:
            asked.set()
            return await fetch_test(spec, curator)

        monkeypatch.setattr(release, "fetch_column", after_the_question)
        monkeypatch.setattr(release, "fetch_test", question)
        async with asyncio.timeout(20):
            await Receiver("rosa", "cloud", store).receive(release.spec, SALT, cast("PartyLinks", release))

    asyncio.run(scenario())
    assert store.release(ID).state is ReleaseState.READY


@pytest.mark.parametrize("sampling", Sampling)
def test_receipts_are_those_of_the_curators_and_the_desk_s_own(
    store: ResearcherStore, made: Callable[..., MadeRelease], sampling: Sampling
) -> None:
    release = made(sampling=sampling)
    receive(store, release)
    alice, bob, desk = store.release(ID).receipts
    for receipt in (alice, bob):
        assert receipt == release.tests[receipt.tester].receipts[0]
        assert desk == release.tests[receipt.tester].receipts[1]
    assert (desk.tester, desk.canaries) == ("", alice.canaries)
    assert max(alice.changed, bob.changed) <= desk.changed <= alice.changed + bob.changed
    assert float(desk.expected) == pytest.approx(desk.canaries * 0.25 * (1 - 1 / 1800), abs=0.001)
    assert all(receipt.passed for receipt in (alice, bob, desk))
    assert counts(store).sum() == np.isin(release.places, release.noise.places.all(), invert=True).sum()


@pytest.mark.parametrize(
    ("denied", "cells", "testers"),
    [({"sex"}, 900, ["alice", "bob", ""]), ({"salary"}, 6, ["alice", ""]), ({"sex", "age"}, 300, ["bob", ""])],
)
def test_all_columns_are_tested_together_whatever_is_granted(
    store: ResearcherStore, made: Callable[..., MadeRelease], denied: set[str], cells: int, testers: list[str]
) -> None:
    release = made()
    release.denied = denied
    receive(store, release)
    stored = store.release(ID)
    assert [receipt.tester for receipt in stored.receipts] == testers
    assert stored.receipts[-1] == release.tests["alice"].receipts[1]
    assert set(stored.granted) == {column.attribute for column in COLUMNS} - denied
    assert (len(counts(store)), counts(store).sum()) == (cells, 4000)


def test_without_any_key_it_is_denied(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made()
    release.denied = {"sex", "age", "salary"}
    with pytest.raises(DeniedError, match="expired"):
        receive(store, release)


def none(columns: list[Symbols], _spec: TableSpec) -> list[Symbols]:
    """Add no noise."""
    return columns


def half(columns: list[Symbols], spec: TableSpec) -> list[Symbols]:
    """Add half of the noise."""
    return honest(columns, replace(spec, server_replacement=spec.server_replacement // 2))


def apart(columns: list[Symbols], spec: TableSpec) -> list[Symbols]:
    """Replace the symbols of each curator's columns in other rows: every curator sees the noise that is due."""
    alike, other = honest(columns, spec), honest(columns, spec)
    return [other[i] if spec.columns[i].owner == "bob" else alike[i] for i in range(len(columns))]


def check_failed(store: ResearcherStore, release: MadeRelease, words: str) -> None:
    with pytest.raises(FailedReleaseError, match=words):
        receive(store, release)
    assert not store.histogram(ID).exists()
    assert (store.release(ID).granted, store.release(ID).state) == ((), ReleaseState.REQUESTED)


@pytest.mark.parametrize("cheat", [none, half])
def test_a_server_with_too_little_noise_gets_no_key_out(
    store: ResearcherStore, made: Callable[..., MadeRelease], cheat: Perturb
) -> None:
    release = made(cheat)
    check_failed(
        store, release, r"server cloud: the server did not add the noise of the release: alice's columns fail: amount "
    )
    assert not release.asked
    assert not store.release(ID).receipts[0].passed


def test_noise_that_the_curators_do_not_share_gets_no_key_out(
    store: ResearcherStore, made: Callable[..., MadeRelease]
) -> None:
    release = made(apart)
    check_failed(
        store, release, "server cloud: the server did not add the noise of the release: all columns together fail: amou"
    )
    alice, bob, desk = store.release(ID).receipts
    assert (alice.passed, bob.passed, desk.passed) == (True, True, False)
    assert not release.asked


@pytest.mark.parametrize("attribute", ["sex", "salary"])
def test_another_column_than_the_curators_recorded_is_named(
    store: ResearcherStore, made: Callable[..., MadeRelease], attribute: str
) -> None:
    release = made()
    release.served[attribute] = release.published[attribute][::-1].copy()
    words = f"server cloud: the server served another column of {attribute} to this desk than to curator alice"
    check_failed(store, release, words)
    with pytest.raises(FailedReleaseError, match=words):
        receive_sent(store, release, {name: column.tobytes() for name, column in release.served.items()})
    assert not release.asked


def test_other_places_than_the_curators_recorded_are_named(
    store: ResearcherStore, made: Callable[..., MadeRelease]
) -> None:
    release = made(sampling=Sampling.SERVER, sample=3000)
    # A row of data that was not sampled, in the place of a neighbour that was: the canaries fit as before.
    moved = next(
        place
        for place in release.places[1:]
        if not np.isin([place - 1, place], release.noise.places.all()).any() and place - 1 not in release.places
    )
    release.served_places = np.where(release.places == moved, moved - 1, release.places)
    words = "server cloud: the server claims other sampled places to this desk than to curator alice"
    check_failed(store, release, words)
    assert not release.asked


def test_a_curator_with_another_canary_key_is_found(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made()
    release.tests["bob"] = replace(release.tests["bob"], canary_key=bytes(32))
    check_failed(store, release, "canaries: curators alice and bob state different canary keys")
    assert not release.asked


def test_a_curator_that_tested_another_column_is_found(
    store: ResearcherStore, made: Callable[..., MadeRelease]
) -> None:
    release = made()
    digests = dict(release.tests["bob"].digests) | {"age": bytes(32)}
    release.tests["bob"] = replace(release.tests["bob"], digests=digests)
    check_failed(store, release, "another column of age to this desk than to curator bob")


# Curators that state what they did not see

Restated = Callable[[CanaryChanges], CanaryChanges]
STATED_OTHERS = "canaries: curator bob stated other changes of canaries than this desk decrypts"


def with_offsets(changes: CanaryChanges, offsets: NDArray[np.int64]) -> CanaryChanges:
    return replace(changes, offsets=(offsets,))


def another_offset(changes: CanaryChanges) -> CanaryChanges:
    return with_offsets(changes, np.where(changes.offsets[0] == 299, 1, changes.offsets[0] + 1))


def another_symbol(changes: CanaryChanges) -> CanaryChanges:
    return replace(changes, sent=((changes.sent[0] + 1) % 300,))


def both(changes: CanaryChanges) -> CanaryChanges:
    """State other offsets and other symbols that give what was published."""
    other = another_offset(changes)
    return replace(other, sent=((changes.sent[0] + changes.offsets[0] - other.offsets[0]) % 300,))


def without_the_last(changes: CanaryChanges) -> CanaryChanges:
    return replace(
        changes,
        numbers=changes.numbers[:-1],
        offsets=(changes.offsets[0][:-1],),
        sent=(changes.sent[0][:-1],),
        is_listed=changes.is_listed[:-1],
    )


@pytest.mark.parametrize("restated", [another_offset, another_symbol])
@pytest.mark.parametrize("sampling", Sampling)
def test_a_curator_whose_list_does_not_give_what_was_published_is_named_before_a_key_is_asked_for(
    store: ResearcherStore, made: Callable[..., MadeRelease], sampling: Sampling, restated: Restated
) -> None:
    release = made(sampling=sampling)
    lists = release.changes()
    release.tests = release.tests_of(lists | {"bob": restated(lists["bob"])})
    check_failed(
        store, release, "canaries: curator bob stated changes of canaries that do not give what the server published"
    )
    assert not release.asked


@pytest.mark.parametrize("restated", [both, without_the_last])
@pytest.mark.parametrize("sampling", Sampling)
def test_a_curator_that_states_other_changes_than_the_desk_decrypts_is_named(
    store: ResearcherStore, made: Callable[..., MadeRelease], sampling: Sampling, restated: Restated
) -> None:
    release = made(sampling=sampling)
    lists = release.changes()
    release.tests = release.tests_of(lists | {"bob": restated(lists["bob"])})
    check_failed(store, release, STATED_OTHERS)


def test_a_curator_that_states_a_change_more_is_named(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made()
    lists = release.changes()
    whole = lists["bob"]
    unchanged = int(np.setdiff1d(np.arange(2000), whole.numbers)[-1])
    published = int(release.published["salary"][release.is_canary][unchanged])
    numbers = np.append(whole.numbers, unchanged)
    order = np.argsort(numbers)
    more = CanaryChanges(
        columns=whole.columns,
        numbers=numbers[order],
        offsets=(np.append(whole.offsets[0], 1)[order],),
        sent=(np.append(whole.sent[0], (published - 1) % 300)[order],),
        is_listed=np.ones(len(numbers), np.bool_),
    )
    release.tests = release.tests_of(lists | {"bob": more})
    check_failed(store, release, STATED_OTHERS)


def test_who_shows_another_list_to_another_owner_is_named(
    store: ResearcherStore, made: Callable[..., MadeRelease]
) -> None:
    release = made()
    lists = release.changes()
    other = release.tests_of(lists | {"bob": both(lists["bob"])})
    release.tests = {"alice": other["alice"], "bob": release.tests["bob"]}
    check_failed(
        store,
        release,
        "canaries: curators alice and bob state different lists of the changed canaries in bob's columns",
    )
    assert not release.asked


def test_a_curator_whose_list_is_none_is_named(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made()
    for name, test in release.tests.items():
        release.tests[name] = replace(test, changes=dict(test.changes) | {"bob": b"none"})
    check_failed(store, release, "curator bob: its list of changed canaries is none of this release")
    assert not release.asked


@pytest.mark.parametrize("place", [0, 1], ids=["own", "together"])
@pytest.mark.parametrize(
    "changes", [{"changed": 1}, {"canaries": 1999}, {"changes": "0" * 64}, {"counts": ()}], ids=str
)
def test_a_curator_that_states_another_result_than_the_lists_show_is_named(
    store: ResearcherStore, made: Callable[..., MadeRelease], place: int, changes: dict[str, Any]
) -> None:
    release = made()
    receipts = list(release.tests["bob"].receipts)
    receipts[place] = replace(receipts[place], **changes)
    release.tests["bob"] = replace(release.tests["bob"], receipts=(receipts[0], receipts[1]))
    words = "curator bob states another result of the tests than the lists of changed canaries show here"
    check_failed(store, release, words)
    assert not release.asked


def test_it_may_be_repeated(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made(pad=Pad.OTP)
    receive(store, release)
    first, receipts = counts(store).copy(), store.release(ID).receipts
    receive(store, release)
    assert np.array_equal(counts(store), first)
    assert store.release(ID).receipts == receipts
