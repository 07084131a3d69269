from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import PlayedDisk, refuses
from tests.server.publishing import spec_ahead
from veiltab.common.errors import (
    ConflictError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    UnavailableError,
)
from veiltab.common.release.modes import Sampling
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.disk import LEAST_RESERVE, RESERVE_PART
from veiltab.server.records.store import ServerStore, room_of
from veiltab.server.sharing.leases import Lease
from veiltab.server.sharing.quota import Quota

ID = "0" * 31 + "1"
DIGESTS = {"sex": b"s" * 32, "salary": b"t" * 32}


@pytest.fixture
def lease(store: ServerStore) -> Lease:
    return store.leases.take(ID)


def complete(store: ServerStore, lease: Lease) -> None:
    """Complete both columns of the release."""
    for attribute in ("sex", "salary"):
        store.complete_columns(ID, {attribute: (b"1", lease)})


def test_a_release_is_recorded_once(store: ServerStore) -> None:
    with refuses(NotFoundError, where="release 00000000000000000000000000000001"):
        store.session(ID)
    first = store.open_session(spec_ahead(), "bob")
    assert store.open_session(spec_ahead(), "alice") == first
    assert (first.spec, first.state, first.complete) == (spec_ahead(), ReleaseState.UPLOADING, frozenset())
    with refuses(ConflictError, where="curator bob, release 00000000000000000000000000000001"):
        store.open_session(spec_ahead(sample=399))
    assert store.sessions() == (first,)


def test_a_curator_announces_no_more_than_its_quota(store: ServerStore) -> None:
    quota = Quota(releases=2, gibibytes=1)
    for number in (1, 1, 2):
        store.open_session(spec_ahead(release_id=f"{number:032x}"), "alice", quota)
    with pytest.raises(UnavailableError, match="a curator may have 2 releases of 1 GiB together open here"):
        store.open_session(spec_ahead(release_id=f"{3:032x}"), "alice", quota)
    store.open_session(spec_ahead(release_id=f"{4:032x}"), "bob", quota)
    large = spec_ahead(release_id=f"{5:032x}", population=2**30, sample=2**30)
    with pytest.raises(UnavailableError, match="of 1 GiB together"):
        store.open_session(large, "bob", quota)
    assert len(store.sessions()) == 3


def test_a_release_without_room_is_not_opened(store: ServerStore, disk: PlayedDisk) -> None:
    def spec(number: int, **changes: object) -> TableSpec:
        made: TableSpec = spec_ahead(release_id=f"{number:032x}", population=2**20, sample=2**20, **changes)
        return made

    size = 4 * (2**20 + spec(1).canaries)  # two columns, as they come and as they are published
    assert room_of(spec(1)) == size
    disk.free = size + size // RESERVE_PART + LEAST_RESERVE
    store.open_session(spec(1))
    with pytest.raises(UnavailableError, match=r"disk is full but for 1\.5 MiB, and this takes 4\.0 MiB"):
        store.open_session(spec(2))
    assert len(store.sessions()) == 1
    assert store.open_session(spec(1)).state is ReleaseState.UPLOADING
    # What the first release has written takes no more room.
    ciphertext = store.folder(spec(1).release_id).ciphertext
    ciphertext.mkdir(parents=True)
    for name in ("sex", "salary"):
        (ciphertext / name).write_bytes(bytes(2**20))
    disk.free += 2**21 - 1
    with pytest.raises(UnavailableError):
        store.open_session(spec(2))
    disk.free += 1
    store.open_session(spec(2))


def test_sampled_places_take_room_too() -> None:
    spec = spec_ahead(sampling=Sampling.SERVER, population=1000, sample=400)
    assert room_of(spec) == 2 * (1000 + spec.canaries + 400) + 8 * 400


def test_the_last_column_begins_the_perturbation(store: ServerStore, lease: Lease) -> None:
    store.open_session(spec_ahead())
    assert store.complete_columns(ID, {"sex": (b"1", lease)}).state is ReleaseState.UPLOADING
    assert store.complete_columns(ID, {"salary": (b"2", lease)}).state is ReleaseState.PERTURBING
    assert store.session(ID).state is ReleaseState.PERTURBING
    with refuses(ConflictError, where="release 00000000000000000000000000000001"):
        store.complete_columns(ID, {"sex": (b"1", lease)})


def test_a_release_is_published_once(store: ServerStore, lease: Lease) -> None:
    store.open_session(spec_ahead())
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        store.publish(ID, bytes(32), DIGESTS, 1.0, lease)
    complete(store, lease)
    store.publish(ID, bytes(32), DIGESTS, 1.5, lease)
    assert (store.session(ID).state, store.session(ID).perturbation_seconds) == (ReleaseState.READY, 1.5)
    with refuses(IntegrityError, where="release 00000000000000000000000000000001"):
        store.publish(ID, bytes(32), DIGESTS, 2.5, lease)
    assert store.session(ID).perturbation_seconds == 1.5


KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def test_the_first_key_of_the_canaries_places_is_the_only_one(
    store: ServerStore, lease: Lease, tmp_path: Path, database: str
) -> None:
    spec = store.open_session(spec_ahead()).spec
    for attribute in ("sex", "salary"):
        with refuses(NotReadyError, where="release 00000000000000000000000000000001"):
            store.record_places_key(ID, "bob", OTHER)
        store.complete_columns(ID, {attribute: (b"1", lease)})
    with refuses(NotReadyError, where="release 00000000000000000000000000000001"):
        store.record_places_key(ID, "bob", OTHER)
    store.publish(ID, bytes(32), DIGESTS, 1.0, lease)
    # Nothing was recorded by those who were refused.
    assert store.record_places_key(ID, "alice", KEY).spec == spec
    again = ServerStore(tmp_path, database)
    for other in (store, again):
        assert other.record_places_key(ID, "bob", KEY).spec == spec
        for curator in ("alice", "bob"):
            with pytest.raises(ConflictError, match="curator alice sent another key"):
                other.record_places_key(ID, curator, OTHER)
    again.close()
    store.end(store.session(ID), ReleaseState.EXPIRED, "the release is no longer kept", lease)
    with pytest.raises(FailedReleaseError, match="no longer kept"):
        store.record_places_key(ID, "alice", KEY)


def test_of_two_keys_at_once_one_is_recorded(store: ServerStore, lease: Lease) -> None:
    store.open_session(spec_ahead())
    complete(store, lease)
    store.publish(ID, bytes(32), DIGESTS, 1.0, lease)

    def ask(number: int) -> int | None:
        with suppress(ConflictError):
            store.record_places_key(ID, "alice", bytes([number] * 32))
            return number
        return None

    with ThreadPoolExecutor(8) as threads:
        answered = set(threads.map(ask, [number for _ in range(4) for number in range(8)])) - {None}
    assert len(answered) == 1


@pytest.mark.parametrize("end", [ReleaseState.EXPIRED, ReleaseState.FAILED])
def test_a_release_that_ended_stays_so(store: ServerStore, lease: Lease, end: ReleaseState) -> None:
    store.open_session(spec_ahead())
    store.complete_columns(ID, {"sex": (b"1", lease)})
    assert store.end(store.session(ID), end, "why", lease).state is end
    with pytest.raises(FailedReleaseError, match="why"):
        store.complete_columns(ID, {"salary": (b"2", lease)})
    with pytest.raises(IntegrityError):
        store.publish(ID, bytes(32), DIGESTS, 1.0, lease)
    store.end(store.session(ID), ReleaseState.FAILED, "another reason", lease)
    assert (store.session(ID).state, store.session(ID).failure) == (end, "why")
    assert store.open_session(spec_ahead()).state is end


def test_what_has_gone_on_since_it_was_looked_at_is_not_ended(store: ServerStore, lease: Lease) -> None:
    seen = store.open_session(spec_ahead())
    complete(store, lease)
    assert store.end(seen, ReleaseState.EXPIRED, "late", lease).state is ReleaseState.PERTURBING
    assert store.session(ID).state is ReleaseState.PERTURBING
    seen = store.session(ID)
    store.publish(ID, bytes(32), DIGESTS, 1.0, lease)
    assert store.end(seen, ReleaseState.FAILED, "the release was published before", lease).state is ReleaseState.READY
    assert store.session(ID).state is ReleaseState.READY


def test_sessions_are_found_by_what_is_to_be_done(store: ServerStore) -> None:
    for number in (1, 2):
        release_id = f"{number:032x}"
        lease = store.leases.take(release_id)
        store.open_session(spec_ahead(release_id=release_id))
        for attribute in ("sex", "salary")[:number]:
            store.complete_columns(release_id, {attribute: (b"1", lease)})
    assert [session.spec.release_id for session in store.perturbing()] == [f"{2:032x}"]
    assert store.sessions() == tuple(store.session(f"{number:032x}") for number in (1, 2))
    assert store.counts() == {"uploading": 1, "perturbing": 1}
    assert [session.spec.release_id for session, _ in store.latest(1)] == [f"{1:032x}", f"{2:032x}"]


def test_a_text_that_no_database_keeps_is_no_release(store: ServerStore) -> None:
    with pytest.raises((NotFoundError, InvalidInputError)):
        store.session("a\0b")


def test_files_are_deleted_one_by_one(store: ServerStore, lease: Lease) -> None:
    store.open_session(spec_ahead())
    complete(store, lease)
    store.publish(ID, bytes(32), DIGESTS, 1.0, lease)
    session, other = store.session(ID), store.folder(ID).published(lease.fence + 1)
    ciphertext = store.folder(ID).ciphertext
    ciphertext.mkdir(parents=True)
    for path in (ciphertext / "sex", store.published_file(session), other):
        path.write_bytes(b"x")

    def left() -> list[bool]:
        return [path.exists() for path in (ciphertext, store.published_file(session), other)]

    store.delete_ciphertext(ID)
    assert left() == [False, True, True]
    store.delete_unpublished(session)
    assert left() == [False, True, False]
    store.delete_unpublished(store.end(store.session(ID), ReleaseState.EXPIRED, "", lease))
    assert left() == [False, False, False]
    store.delete_ciphertext(ID)
    store.delete_unpublished(store.session(ID))


def test_a_release_is_read_without_any_accounting(store: ServerStore, forbid_accounting: Callable[[], None]) -> None:
    session = store.open_session(spec_ahead(delta=Decimal("1e-6")))
    forbid_accounting()
    assert store.session(ID) == session
    assert store.sessions() == (session,)
    assert [session for session, _ in store.latest(1)] == [session]
