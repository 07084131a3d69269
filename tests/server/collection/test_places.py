"""Places for connections: each wait has an end, and who has few connections keeps them, however many another makes."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import pytest

from veiltab.server.https.places import Places, client_of


@dataclass(eq=False)
class Made:
    """A connection without a network."""

    places: Places
    is_open: bool = field(default=True, init=False)

    def abort(self) -> None:
        self.is_open = False
        self.places.leave(self)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock: Clock) -> Places:
    return Places(4, clock)


def made(places: Places, client: Hashable, seconds: float = 5.0) -> Made:
    connection = Made(places)
    places.take(connection, client, seconds)
    return connection


def test_what_waits_too_long_is_closed_and_what_works_is_not(places: Places, clock: Clock) -> None:
    short, long, worker = made(places, "a", 5), made(places, "a", 20), made(places, "b", 5)
    places.work(worker)
    clock.now += 6
    places.sweep()
    assert (short.is_open, long.is_open, worker.is_open) == (False, True, True)
    places.wait(worker, 5)
    clock.now += 15
    places.sweep()
    assert (long.is_open, worker.is_open) == (False, False)
    assert list(places) == []


def test_each_step_of_a_client_gives_its_connection_time_again(places: Places, clock: Clock) -> None:
    connection = made(places, "a", 5)
    for _ in range(3):
        clock.now += 4
        places.sweep()
        places.wait(connection, 5)
    assert connection.is_open


def test_the_client_with_most_that_wait_makes_way_with_the_one_that_waited_longest(places: Places) -> None:
    first, *others = [made(places, client) for client in ("few", "many", "many", "many")]
    new = made(places, "few")
    assert [one.is_open for one in (first, *others, new)] == [True, False, True, True, True]
    places.wait(others[1], 5)  # took a step: now the other one has waited longer
    made(places, "many")
    assert [one.is_open for one in (first, *others, new)] == [True, False, True, False, True]


def test_who_has_few_connections_keeps_them_however_many_another_makes(places: Places) -> None:
    honest = made(places, "honest")
    flood = [made(places, "flood") for _ in range(1000)]
    assert honest.is_open
    assert [one.is_open for one in flood] == 997 * [False] + 3 * [True]


def test_of_clients_with_as_many_each_the_one_that_waited_longest_gives_way(places: Places) -> None:
    connections = [made(places, number) for number in range(6)]
    assert [one.is_open for one in connections] == [False, False, True, True, True, True]


def test_there_is_no_room_where_every_connection_works(places: Places) -> None:
    connections = [made(places, "a") for _ in range(4)]
    for one in connections:
        assert places.has_room()
        places.work(one)
    assert not places.has_room()
    places.give_way()
    assert all(one.is_open for one in connections)
    connections[2].abort()
    assert places.has_room()


def test_a_connection_that_has_left_stays_away(places: Places, clock: Clock) -> None:
    connection = made(places, "a")
    connection.abort()
    places.wait(connection, 5)
    places.work(connection)
    places.leave(connection)
    clock.now += 6
    places.sweep()
    assert list(places) == []
    assert not places._waiting


def test_what_waits_is_open_and_no_client_is_remembered_beyond_its_connections(places: Places, clock: Clock) -> None:
    rng, connections = np.random.default_rng(1), [made(places, 0)]
    for _ in range(1000):
        one = connections[rng.integers(len(connections))]
        match rng.integers(5):
            case 0 | 1 if places.has_room():
                connections.append(made(places, rng.integers(3), float(rng.integers(9))))
            case 2:
                places.work(one)
            case 3:
                places.wait(one, float(rng.integers(9)))
            case _:
                clock.now += 1
                places.sweep()
        is_open = {one for one in connections if one.is_open}
        assert set(places) == is_open
        assert len(is_open) <= 4
        waiting = [one for some in places._waiting.values() for one in some]
        assert len(set(waiting)) == len(waiting)
        assert set(waiting) <= is_open
        assert all(places._waiting.values())


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_client_is_an_address_or_the_network_of_a_line(one: str, other: str, *, is_same: bool) -> None:
    assert (client_of(one) == client_of(other)) is is_same
