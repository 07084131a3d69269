"""What a desk finds out about the server before any key, and whom it names."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.researcher.made_release import MadeRelease, Perturb, honest
from tests.researcher.received_releases import COLUMNS, ID, counts, made_fixture, receive, receive_sent, store_fixture  # noqa: F401 - fixtures
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import DeniedError, FailedReleaseError
from veiltab.common.release.modes import Pad, Sampling
from veiltab.common.release.receipts.canary_changes import CanaryChanges
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
    check_failed(store, release, "curator bob: its list of changed canaries is not one of this release")
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
