"""Two processes on one state: who holds a lease, and that whoever lost it changes nothing any more."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain

import pytest

from tests.server.held_leases import ID, Make, Two, complete, taken_over, two_fixture, url_fixture  # noqa: F401 - fixtures
from tests.server.publishing import spec_ahead
from veiltab.common.release.state import ReleaseState
from veiltab.server.records.store import ServerStore
from veiltab.server.sharing.leases import BusyError, Lease, Leases, LostLeaseError
from veiltab.server.sharing.shared_leases import SharedLeases

DIGESTS = {"sex": b"s" * 32, "salary": b"t" * 32}


def test_one_holds_a_lease_until_it_is_given_back(two: Two) -> None:
    first, second = two
    lease = first.leases.take("a")
    assert lease.fence == 1
    for store in two:
        with pytest.raises(BusyError, match="another server process works on this now"):
            store.leases.take("a")
    assert second.leases.take("b").fence == 1
    first.leases.give_back(lease)
    assert second.leases.take("a").fence == 2


def test_whoever_lost_a_lease_cannot_renew_it_nor_give_it_back(two: Two) -> None:
    first, second = two
    old = first.leases.take("a")
    new = taken_over(second, "a")
    assert (old.fence, new.fence) == (1, 2)
    assert isinstance(first.leases, SharedLeases)
    with pytest.raises(LostLeaseError, match="another server process has taken over"):
        first.leases.renew(old)
    first.leases.give_back(old)
    with pytest.raises(BusyError):
        first.leases.take("a")
    # A fence alone is not enough: it must be the holder's own.
    forged = Lease(resource="a", holder=old.holder, fence=new.fence)
    with pytest.raises(LostLeaseError), first.connection.transaction():
        first.leases.check(forged)
    with second.connection.transaction():
        second.leases.check(new)


def test_a_lease_runs_out_by_the_clock_of_the_database(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two
    monkeypatch.setattr(first.leases, "seconds", 0.2)
    lease = first.leases.take("a")
    # What the processes' own clocks say does not matter.
    monkeypatch.setattr("time.time", lambda: 4e9)
    with pytest.raises(BusyError):
        second.leases.take("a")
    threading.Event().wait(0.25)
    assert isinstance(first.leases, SharedLeases)
    first.leases.renew(lease)
    with pytest.raises(BusyError):
        second.leases.take("a")
    threading.Event().wait(0.25)
    assert second.leases.take("a").fence == 2


async def test_a_lease_that_is_held_is_renewed_and_given_back(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two
    monkeypatch.setattr(first.leases, "seconds", 0.3)
    async with first.leases.hold("a"):
        for _ in range(8):
            await asyncio.sleep(0.1)
            with pytest.raises(BusyError):
                second.leases.take("a")
    assert second.leases.take("a").fence == 2
    with pytest.raises(ZeroDivisionError):
        async with first.leases.hold("b"):
            raise ZeroDivisionError
    assert second.leases.take("b").fence == 2
    with pytest.raises(BusyError):
        async with first.leases.hold("b"):
            raise AssertionError


async def test_a_lease_that_was_given_back_is_not_renewed(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two
    monkeypatch.setattr(first.leases, "seconds", 0.3)
    async with first.leases.hold("a"):
        pass
    # Long enough for a renewal, and not for what it would have renewed to run out.
    await asyncio.sleep(0.2)
    assert second.leases.take("a").fence == 2


def test_a_process_that_takes_a_lease_again_holds_the_new_one_alone(two: Two) -> None:
    first, second = two
    old = first.leases.take("a")
    new = taken_over(first, "a")
    assert (old.holder, old.fence, new.fence) == (new.holder, 1, 2)
    assert isinstance(first.leases, SharedLeases)
    with pytest.raises(LostLeaseError):
        first.leases.renew(old)
    first.leases.give_back(old)
    with pytest.raises(BusyError):
        second.leases.take("a")
    first.leases.give_back(new)
    assert second.leases.take("a").fence == 3


def test_of_many_that_want_a_lease_at_once_one_gets_it(two: Two) -> None:
    gate = threading.Barrier(8)

    def want(number: int) -> list[str]:
        gate.wait()
        won = list[str]()
        for name in "abcde":
            with suppress(BusyError):
                won.append(two[number % 2].leases.take(name).resource)
        return won

    with ThreadPoolExecutor(8) as threads:
        assert sorted(chain(*threads.map(want, range(8)))) == list("abcde")


def test_a_lease_cannot_be_taken_while_a_change_under_it_is_committed(two: Two) -> None:
    first, second = two
    lease = first.leases.take(ID)
    first.open_session(spec_ahead())
    taken: list[Lease] = []
    thread = threading.Thread(target=lambda: taken.append(taken_over(second)))
    with first.connection.transaction():
        first.leases.check(lease)
        thread.start()
        thread.join(0.2)
        assert taken == []
    thread.join(10)
    assert [new.fence for new in taken] == [2]


async def test_one_process_holds_whatever_it_wants() -> None:
    leases = Leases()
    lease = leases.take("a")
    assert lease == leases.take("a") == Lease(resource="a", holder="", fence=0)
    leases.check(lease)
    leases.give_back(lease)
    async with leases.hold("a") as held:
        assert held == lease


CHANGES: dict[str, Callable[[ServerStore, Lease], object]] = {
    "complete_column": lambda store, lease: store.complete_columns(ID, {"sex": (b"1", lease)}),
    "publish": lambda store, lease: store.publish(ID, bytes(32), DIGESTS, 1.0, lease),
    "end": lambda store, lease: store.end(store.session(ID), ReleaseState.FAILED, "late", lease),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_under_a_lost_lease_is_refused(two: Two, change: str) -> None:
    first, second = two
    first.open_session(spec_ahead())
    if change == "publish":
        complete(first, spec_ahead())
    lease = first.leases.take(ID)
    new = taken_over(second)
    before = second.session(ID)
    for stale in (lease, Lease(resource=ID), Lease(resource=f"{ID}/sex", holder=new.holder, fence=new.fence)):
        with pytest.raises(LostLeaseError):
            CHANGES[change](first, stale)
        assert second.session(ID) == before
    with pytest.raises(ValueError, match="another release"):
        CHANGES[change](second, second.leases.take("0" * 32))
    CHANGES[change](second, new)
    assert second.session(ID) != before
