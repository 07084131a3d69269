"""Ends overdue releases at the server, and deletes the columns that nobody needs any more.

A release that is published or ended never changes back, so its columns may be deleted by any process at any time.
"""

from contextlib import suppress

from veiltab.common.release.state import ReleaseState
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.sharing.leases import BusyError, Lease


def sweep(store: ServerStore, now: int, retention: int) -> None:
    """End overdue releases, and delete the files of processes that were killed or replaced.

    Args:
        now: Unix seconds.
        retention: seconds for which a published release is kept after its deadline.
    """
    for session in store.sessions():
        deadline = session.spec.deadline
        if session.state is ReleaseState.UPLOADING and now > deadline:
            missing = ", ".join(f"attribute {name}" for name in session.waiting_for)
            _expire(store, session, f"not all columns came before the deadline: {missing} is missing")
        elif session.state is ReleaseState.READY and now > deadline + retention:
            _expire(store, session, "the release is no longer kept")
        elif session.state.finished:
            _tidy(store, session)


def _expire(store: ServerStore, session: Session, reason: str) -> None:
    with suppress(BusyError):
        lease = store.leases.take(session.spec.release_id)
        end(store, session, ReleaseState.EXPIRED, reason, lease)
        store.leases.give_back(lease)


def end(store: ServerStore, session: Session, state: ReleaseState, failure: str, lease: Lease) -> None:
    """End a release and delete its columns, unless its state has changed since the session was read.

    Raises:
        LostLeaseError: another process took over; nothing is deleted.
    """
    session = store.end(session, state, failure, lease)
    if session.state.unsuccessful:
        _tidy(store, session)


def _tidy(store: ServerStore, session: Session) -> None:
    store.delete_ciphertext(session.spec.release_id)
    store.delete_unpublished(session)
