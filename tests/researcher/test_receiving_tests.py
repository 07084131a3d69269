"""What a desk finds out about the server before any key, and whom it names."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.made_release import MadeRelease, Perturb, honest
from tests.researcher.received_releases import COLUMNS, ID, counts, made_fixture, receive, store_fixture  # noqa: F401 - fixtures
from veiltab.common.core.domain import Symbols
from veiltab.common.core.texts.canonical import read_canonical
from veiltab.common.errors import DeniedError, FailedReleaseError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.researcher.records.store import ResearcherStore


@pytest.mark.parametrize("sampling", Sampling)
def test_receipts_are_those_of_the_curators_and_the_desk_s_own(
    store: ResearcherStore, made: Callable[..., MadeRelease], sampling: Sampling
) -> None:
    release = made(sampling=sampling)
    receive(store, release)
    alice, bob, desk = store.release(ID).receipts
    for receipt in (alice, bob):
        assert (receipt.text, desk.text) == release.tests[receipt.tester].receipts
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
    assert stored.receipts[-1].text == release.tests["alice"].receipts[1]
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
    assert not store.files.histogram(ID).exists()
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
        receive(store, release, columns={name: column.tobytes() for name, column in release.served.items()})
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


# What bob states; each lie changes the tests of a release.


def with_bobs_list(release: MadeRelease, **changes: Any) -> None:  # noqa: ANN401 - any field of a list
    lists = release.changes()
    release.tests = release.tests_of(lists | {"bob": replace(lists["bob"], **changes)})


def another_offset(release: MadeRelease) -> None:
    with_bobs_list(release, offsets=(other_offsets(release),))


def other_offsets(release: MadeRelease) -> NDArray[np.int64]:
    (offsets,) = release.changes()["bob"].offsets
    return np.where(offsets == 299, 1, offsets + 1)


def another_symbol(release: MadeRelease) -> None:
    with_bobs_list(release, symbols=((release.changes()["bob"].symbols[0] + 1) % 300,))


def another_symbol_and_offset(release: MadeRelease) -> None:
    """State other offsets and other symbols that give what was published."""
    true, other = release.changes()["bob"], other_offsets(release)
    with_bobs_list(release, offsets=(other,), symbols=((true.symbols[0] + true.offsets[0] - other) % 300,))


def a_change_fewer(release: MadeRelease) -> None:
    true = release.changes()["bob"]
    fewer = {"offsets": (true.offsets[0][:-1],), "symbols": (true.symbols[0][:-1],), "is_listed": true.is_listed[:-1]}
    with_bobs_list(release, numbers=true.numbers[:-1], **fewer)


def a_change_more(release: MadeRelease) -> None:
    true = release.changes()["bob"]
    unchanged = int(np.setdiff1d(np.arange(release.is_canary.sum()), true.numbers)[-1])
    published = int(release.published["salary"][release.is_canary][unchanged])
    numbers = np.append(true.numbers, unchanged)
    order = np.argsort(numbers)
    with_bobs_list(
        release,
        numbers=numbers[order],
        offsets=(np.append(true.offsets[0], 1)[order],),
        symbols=(np.append(true.symbols[0], (published - 1) % 300)[order],),
        is_listed=np.ones(len(numbers), np.bool_),
    )


def another_list_for_alice(release: MadeRelease) -> None:
    shown = dict(release.tests)
    another_symbol_and_offset(release)
    release.tests["bob"] = shown["bob"]


def no_list(release: MadeRelease) -> None:
    for name, test in release.tests.items():
        release.tests[name] = replace(test, changes=dict(test.changes) | {"bob": b"none"})


def another_canary_key(release: MadeRelease) -> None:
    release.tests["bob"] = replace(release.tests["bob"], canary_key=bytes(32))


def another_column(release: MadeRelease) -> None:
    digests = dict(release.tests["bob"].digests) | {"age": bytes(32)}
    release.tests["bob"] = replace(release.tests["bob"], digests=digests)


NOT_PUBLISHED = "canaries: curator bob stated changes of canaries that do not give what the server published"
NOT_DECRYPTED = "canaries: curator bob stated other changes of canaries than this desk decrypts"
LIES: dict[Callable[[MadeRelease], None], tuple[str, bool]] = {
    another_offset: (NOT_PUBLISHED, True),
    another_symbol: (NOT_PUBLISHED, True),
    another_symbol_and_offset: (NOT_DECRYPTED, False),
    a_change_fewer: (NOT_DECRYPTED, False),
    a_change_more: (NOT_DECRYPTED, False),
    another_list_for_alice: ("alice and bob state different lists of the changed canaries in bob's columns", True),
    no_list: ("curator bob: its list of changed canaries is not one of this release", True),
    another_canary_key: ("canaries: curators alice and bob state different canary keys", True),
    another_column: ("another column of age to this desk than to curator bob", True),
}
"""Lie -> the words with which it is refused, and whether that is before any key."""


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_a_curator_that_lies_is_named(
    store: ResearcherStore,
    made: Callable[..., MadeRelease],
    sampling: Sampling,
    lie: Callable[[MadeRelease], None],
) -> None:
    words, before_any_key = LIES[lie]
    release = made(sampling=sampling)
    lie(release)
    check_failed(store, release, words)
    assert not (before_any_key and release.asked)


@pytest.mark.parametrize("place", [0, 1], ids=["own", "together"])
@pytest.mark.parametrize(
    "changes",
    [{"changed": 1}, {"canaries": 1999}, {"changes": "0" * 64}, {"counts": ()}, {"tester": "carol"}, "", "[" * 100_000],
    ids=lambda changes: str(changes)[:20],
)
def test_a_curator_that_states_another_result_than_the_lists_show_is_named(
    store: ResearcherStore, made: Callable[..., MadeRelease], place: int, changes: dict[str, Any] | str
) -> None:
    release = made()
    receipts = list(release.tests["bob"].receipts)
    if isinstance(changes, str):
        receipts[place] = changes
    else:
        receipts[place] = replace(read_canonical(Receipt, receipts[place]), **changes).text
    release.tests["bob"] = replace(release.tests["bob"], receipts=tuple(receipts))
    check_failed(store, release, "curator bob states another result of the tests than the lists of changed canaries")
    assert not release.asked


def test_it_may_be_repeated(store: ResearcherStore, made: Callable[..., MadeRelease]) -> None:
    release = made(pad=Pad.OTP)
    receive(store, release)
    first, receipts = counts(store).copy(), store.release(ID).receipts
    receive(store, release)
    assert np.array_equal(counts(store), first)
    assert store.release(ID).receipts == receipts
