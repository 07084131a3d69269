from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import ConflictError, FailedReleaseError, IntegrityError, NotFoundError
from common.release import ReleaseState
from server.store import ServerStore

Make = Callable[..., Any]
ID = "0" * 31 + "1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServerStore]:
    store = ServerStore(tmp_path)
    yield store
    store.close()


def test_a_release_is_recorded_once(store: ServerStore, make_spec: Make) -> None:
    with pytest.raises(NotFoundError, match="no such release here"):
        store.session(ID)
    first = store.open_session(make_spec())
    assert store.open_session(make_spec()) == first
    assert (first.spec, first.state, first.complete) == (make_spec(), ReleaseState.UPLOADING, frozenset())
    with pytest.raises(ConflictError, match="another spec is announced"):
        store.open_session(make_spec(sample=399))
    assert store.sessions() == (first,)


def test_a_release_outlives_the_process(tmp_path: Path, make_spec: Make) -> None:
    store = ServerStore(tmp_path)
    store.open_session(make_spec())
    store.complete_column(ID, "sex", b"digest")
    store.close()
    again = ServerStore(tmp_path)
    session = again.session(ID)
    assert (session.complete, session.waiting_for) == (frozenset({"sex"}), ("salary",))
    again.close()


def test_the_last_column_begins_the_perturbation(store: ServerStore, make_spec: Make) -> None:
    store.open_session(make_spec())
    assert store.complete_column(ID, "sex", b"1").state is ReleaseState.UPLOADING
    assert store.complete_column(ID, "salary", b"2").state is ReleaseState.PERTURBING
    assert store.session(ID).state is ReleaseState.PERTURBING
    with pytest.raises(ConflictError, match="takes no more data"):
        store.complete_column(ID, "sex", b"1")


def test_a_complete_column_stays_what_it_is(store: ServerStore, make_spec: Make) -> None:
    store.open_session(make_spec())
    store.complete_column(ID, "sex", b"1")
    store.check_column_digest(ID, "sex", b"1")
    with pytest.raises(ConflictError, match="other bytes were taken for this column"):
        store.check_column_digest(ID, "sex", b"2")


def test_a_release_is_published_once(store: ServerStore, make_spec: Make) -> None:
    store.open_session(make_spec())
    with pytest.raises(IntegrityError, match="published once"):
        store.publish(ID, 1.0)
    store.complete_column(ID, "sex", b"1")
    store.complete_column(ID, "salary", b"2")
    store.publish(ID, 1.5)
    assert (store.session(ID).state, store.perturbation_seconds(ID)) == (ReleaseState.READY, 1.5)
    with pytest.raises(IntegrityError, match="published once"):
        store.publish(ID, 2.5)
    assert store.perturbation_seconds(ID) == 1.5


@pytest.mark.parametrize("end", [ReleaseState.EXPIRED, ReleaseState.FAILED])
def test_a_release_that_ended_stays_so(store: ServerStore, make_spec: Make, end: ReleaseState) -> None:
    store.open_session(make_spec())
    store.complete_column(ID, "sex", b"1")
    store.end(ID, end, "why")
    with pytest.raises(FailedReleaseError, match="why"):
        store.complete_column(ID, "salary", b"2")
    with pytest.raises(IntegrityError):
        store.publish(ID, 1.0)
    store.end(ID, ReleaseState.FAILED, "another reason")
    assert (store.session(ID).state, store.session(ID).failure) == (end, "why")
    assert store.open_session(make_spec()).state is end


def test_folders_are_deleted_one_by_one(store: ServerStore) -> None:
    folders = (store.ciphertext_folder(ID), store.published_folder(ID))
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "sex").write_bytes(b"x")
    store.delete_ciphertext(ID)
    assert [folder.exists() for folder in folders] == [False, True]
    store.delete_published(ID)
    assert [folder.exists() for folder in folders] == [False, False]
    store.delete_ciphertext(ID)
    store.delete_published(ID)
