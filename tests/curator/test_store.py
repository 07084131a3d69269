from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import refuses, request_with, spec_with
from tests.curator.made_records import decision
from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.release.spec import release_of
from veiltab.common.release.state import ReleaseState
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"


def test_a_request_is_recorded_once(store: CuratorStore) -> None:
    request = request_with()
    assert not store.releases.knows(ID)
    first = store.releases.add(request, 100)
    assert store.releases.add(request, 200) == first
    assert (first.request, first.state, first.created, first.spec) == (request, ReleaseState.REQUESTED, 100, None)
    assert (first.failure, first.waiting_for, first.sample_check, first.seconds) == ("", "", b"", {})
    assert store.releases.knows(ID)
    assert store.releases.unfinished() == (ID,)


def test_another_request_under_the_same_id_is_refused(store: CuratorStore) -> None:
    request = request_with()
    store.releases.add(request, 100)
    for other in (
        replace(request, researcher="rita"),
        replace(request, partial=True),
        replace(request, deadline=1),
        replace(request, sample=1),
    ):
        with pytest.raises(ConflictError, match="another request is recorded under this release id"):
            store.releases.add(other, 100)
    assert store.releases.release(ID).request == request


@pytest.mark.parametrize("end", [ReleaseState.DENIED, ReleaseState.FAILED, ReleaseState.EXPIRED])
def test_a_release_that_ended_never_moves_again(store: CuratorStore, end: ReleaseState) -> None:
    store.releases.add(request_with(), 100)
    store.releases.set_state(ID, ReleaseState.APPROVED)
    store.releases.set_state(ID, end, "why")
    for state in ReleaseState:
        store.releases.set_state(ID, state, "another reason")
    assert (store.releases.release(ID).state, store.releases.release(ID).failure) == (end, "why")
    assert store.releases.unfinished() == ()


def test_a_step_ends_the_waiting(store: CuratorStore) -> None:
    store.releases.add(request_with(), 100)
    store.releases.set_waiting(ID, "for bob")
    assert store.releases.release(ID).waiting_for == "for bob"
    store.releases.set_state(ID, ReleaseState.APPROVED)
    assert store.releases.release(ID).waiting_for == ""


def test_what_is_known_of_a_release_outlives_the_process(path: Path) -> None:
    store, spec = CuratorStore(path), spec_with()
    store.releases.add(request_with(), 100)
    store.releases.set_state(ID, ReleaseState.PLANNED, seconds=1.5)
    store.releases.set_planned(release_of(spec))
    store.releases.set_sample_check(ID, b"check", has_columns=True)
    store.releases.end(ID, ReleaseState.FAILED, "why", seconds=0.5)
    store.releases.set_state(ID, ReleaseState.CHARGED, seconds=2.5)
    store.releases.set_bytes_uploaded(ID, 77)
    store.close()
    again = CuratorStore(path)
    (read,) = again.releases.releases()
    assert (read.spec, read.sample_check, read.bytes_uploaded) == (spec, b"check", 77)
    assert read.seconds == {"requested": 1.5, "planned": 0.5}
    again.close()


@pytest.mark.parametrize("final", [APPROVED, DENIED])
def test_what_is_held_may_be_decided_and_what_is_decided_stays(store: CuratorStore, final: str) -> None:
    store.releases.add(request_with(), 100)
    store.decisions.decide(ID, (decision("sex", HELD), decision("age", final)))
    store.decisions.decide(ID, (decision("sex", final, expires=7), decision("age", HELD)))
    store.decisions.decide(ID, (decision("sex", HELD), decision("age", APPROVED if final == DENIED else DENIED)))
    assert set(store.decisions.decisions(ID)) == {decision("sex", final, expires=7), decision("age", final)}


def test_own_share_is_drawn_once(path: Path) -> None:
    store = CuratorStore(path)
    assert store.coins.own_share("coin", b"first") == b"first"
    store.close()
    again = CuratorStore(path)
    assert again.coins.own_share("coin", b"second") == b"first"
    assert again.coins.own_share("another", b"second") == b"second"
    again.close()


def test_a_forgotten_coin_is_gone_and_never_tossed_again(store: CuratorStore, path: Path) -> None:
    store.coins.own_share("coin", b"a share to be forgotten, 32 bytes")
    assert store.coins.coin_value("coin") is None
    store.coins.set_coin_value("coin", b"a value to be forgotten, 32 bytes")
    assert store.coins.coin_value("coin") == b"a value to be forgotten, 32 bytes"
    store.coins.commit("coin", "bob", b"one")
    store.coins.forget_coin("coin")
    assert store.coins.coin_value("coin") is None
    assert store.coins.own_share("coin", b"fresh") == b""
    assert store.coins.commitments("coin") == {"bob": b"one"}
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"to be forgotten" not in path.read_bytes()


def test_the_log_has_no_traces_of_a_forgotten_coin_once_they_are_erased(store: CuratorStore, path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    assert store.coins.has_traces  # perhaps of an earlier process
    store.coins.erase_traces()
    assert not store.coins.has_traces
    store.coins.own_share("coin", b"a share to be forgotten, 32 bytes")
    store.coins.forget_coin("coin")
    assert store.coins.has_traces
    assert b"to be forgotten" in log.read_bytes()
    store.coins.erase_traces()
    assert not store.coins.has_traces
    assert b"to be forgotten" not in log.read_bytes() + path.read_bytes()


def test_traces_that_cannot_be_erased_are_erased_later(store: CuratorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as reader:
        reader.setattr("veiltab.curator.records.coin_shares.erase_traces", lambda _: False)
        store.coins.erase_traces()
        assert store.coins.has_traces
    store.coins.erase_traces()
    assert not store.coins.has_traces


def test_a_release_is_unfinished_until_its_coin_is_forgotten(store: CuratorStore) -> None:
    store.releases.add(request_with(), 100)
    store.coins.own_share(f"release/{ID}", b"share")
    store.releases.set_state(ID, ReleaseState.READY)
    assert store.releases.unfinished() == (ID,)
    store.coins.forget_coin(f"release/{ID}")
    assert store.releases.unfinished() == ()


def test_a_key_is_spent_once_whatever_it_was_for(store: CuratorStore) -> None:
    store.keys.spend_keys(ID, "sex", b"digest 1", b"key 1", b"key 2")
    for column in ((ID, "sex", b"key 1"), (ID, "age", b"key 2"), ("f" * 32, "sex", b"key 3", b"key 1")):
        with pytest.raises(ConflictError, match="the pad was used before"):
            store.keys.spend_keys(*column[:2], b"digest 2", *column[2:])
    store.keys.forget_keys(ID)
    with refuses(ConflictError, where="attribute sex"):
        store.keys.spend_keys(ID, "sex", b"digest 1", b"key 1")


def test_a_column_has_one_ciphertext(store: CuratorStore) -> None:
    store.keys.spend_keys(ID, "sex", b"digest 1", b"key 1")
    with refuses(ConflictError, where="attribute sex"):
        store.keys.spend_keys(ID, "sex", b"digest 2", b"key 2")
    assert store.keys.pad(ID, "sex") == (b"key 1", b"digest 1")
    assert store.keys.ciphertext_digest(ID, "sex") == b"digest 1"
    with refuses(NotFoundError, where="attribute age"):
        store.keys.ciphertext_digest(ID, "age")


def test_a_refused_key_leaves_no_trace_of_itself(store: CuratorStore) -> None:
    store.keys.spend_keys(ID, "sex", b"digest", b"key 1")
    with pytest.raises(ConflictError):
        store.keys.spend_keys(ID, "age", b"digest", b"key 1")
    assert store.connection.execute("SELECT count(*) FROM pad").fetchone()[0] == 1


def test_forgotten_keys_are_gone_from_the_file(store: CuratorStore, path: Path) -> None:
    key = bytes(range(100, 132))
    store.keys.spend_keys(ID, "sex", b"digest", key)
    store.keys.spend_keys("f" * 32, "sex", b"digest", b"another")
    store.keys.forget_keys(ID)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert key not in path.read_bytes()
    assert store.keys.pad(ID, "sex") == (b"", b"digest")


def test_table_versions_and_alignments_stay(store: CuratorStore) -> None:
    assert store.alignments.table_version("content", "name") == "name"
    assert store.alignments.table_version("content", "other") == "name"
    assert store.alignments.table_version("content 2", "other") == "other"
    assert (store.alignments.alignment("a"), store.alignments.latest_alignment()) == (None, None)
    store.alignments.set_alignment("a", 10, "digest")
    store.alignments.set_alignment("a", 11, "other")
    store.alignments.set_alignment("b", 12, "digest b")
    assert store.alignments.alignment("a") == (10, "digest")
    assert store.alignments.latest_alignment() == (12, "digest b")
