"""What hub and spoke gain by deviating, and what a crash leaves of a session: no more than docs/join.md says."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.curator.alignment.circle import ABSENT, Curator, align, circle, symbol_of
from tests.curator.alignment.test_oblivious_join import distinct
from veiltab.common.errors import DeniedError, IntegrityError, NotReadyError
from veiltab.common.oblivious import store
from veiltab.common.oblivious.code import COLUMNS, Bits, encode
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.join_sessions import JoinSession
from veiltab.v1 import curator_peer_pb2

SLOTS = 12_288
ROWS = 128 + SLOTS
"""Rows of the columns of each session here."""

HUB, SPOKE = distinct(40), distinct(60)[20:]


@pytest.fixture(autouse=True)
def small_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LEAST_THIRD", SLOTS // 3)


@contextmanager
def two(folder: Path) -> Iterator[tuple[Curator, Curator]]:
    with circle(folder, [HUB, SPOKE]) as (alice, bob):
        yield alice, bob


def session(curator: Curator) -> JoinSession:
    (peer,) = curator.exchange.legs.others
    (name,) = {row["alignment_id"] for row in curator.store.connection.execute("SELECT * FROM join_session")}
    own = curator.store.joins.session(name, peer)
    assert own is not None
    return own


def events(curator: Curator) -> list[str]:
    return [entry.event for entry in curator.store.audit.entries()]


def only(kind: JoinKind, changed: Callable[[bytes], bytes]) -> Callable[[Message, bytes], bytes]:
    """Change the messages of one kind."""
    return lambda message, data: changed(data) if message.kind is kind else data


def once(point: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """Return a function that raises the first time."""
    left = [error]

    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        if left:
            raise left.pop()
        return point(*args, **kwargs)

    return called


def check_joined(alice: Curator, bob: Curator) -> None:
    people = {symbol_of(name): name for name in alice.ids}
    rows = [people[symbol] for symbol in alice.column]
    assert bob.column == [symbol_of(name) if name in bob.ids else ABSENT for name in rows]


def matrix(data: bytes) -> Bits:
    """Return the columns of a message, to be changed."""
    return np.frombuffer(data, np.uint8).reshape(COLUMNS, ROWS // 8).copy()


# A spoke that shows other columns


def between(data: bytes) -> bytes:
    """Put a row halfway between the code words of two people in the place of a slot."""
    one, other = encode(np.random.default_rng(1).integers(0, 256, (2, 9), np.uint8))
    differing = np.flatnonzero(np.unpackbits(one ^ other, bitorder="little"))[::2]
    columns = matrix(data)
    columns[differing, 1000] ^= 1
    return columns.tobytes()


def replaced(data: bytes) -> bytes:
    """Replace some columns: as one of them matters only where the hub chose it, 64."""
    columns = matrix(data)
    columns[:64] = np.random.default_rng(2).integers(0, 256, columns[:64].shape, np.uint8)
    return columns.tobytes()


def shifted(data: bytes) -> bytes:
    """Show the rows of another place."""
    return np.roll(matrix(data), 16, axis=1).tobytes()


@pytest.mark.parametrize("change", [between, replaced, shifted])
def test_columns_that_are_not_of_code_words_end_the_session(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    with two(tmp_path) as (alice, bob):
        bob.tampering = only(JoinKind.COLUMNS, change)
        with pytest.raises(IntegrityError, match="sent columns that no honest spoke sends") as refusal:
            align(alice, bob)
        assert (refusal.value.where, refusal.value.remedy) == (
            "curator bob",
            "Find out what runs there; then `veiltab curator repair alignment bob` joins with it again.",
        )
        own = session(alice)
        assert (own.has_failed, own.secret, own.finished) == (True, b"", "")
        assert alice.store.joins.failed_with() == ("bob",)
        assert alice.store.joins.sessions_of() == {"bob": 1}
        assert events(alice)[-1] == "alignment failed"
        assert not [path for path in alice.folder.rglob("*") if own.name in str(path) and path.is_file()]
        with pytest.raises(NotReadyError):
            alice.exchange.legs.message_file(alice.alignment._current, own.name, Message(kind=JoinKind.VALUES), "bob")
        bob.tampering = lambda _message, data: data
        alice.close()
        alice.open()
        with pytest.raises(IntegrityError, match=r"sent columns that no honest|check of what it was sent"):
            align(alice, bob)
        assert session(alice).name == own.name


# Who begins sessions


def enter(alice: Curator, *, hub: str = "", version: str = "first", size: int = SLOTS, part: int = 0) -> None:
    """Let the hub enter the session of what a spoke says of itself, and of its own table."""

    async def ask(*_: object) -> curator_peer_pb2.GetSessionResponse:
        return curator_peer_pb2.GetSessionResponse(part=bytes([part]) * 16, size=size)

    peer = SimpleNamespace(ask=ask, stub=SimpleNamespace(GetSession=None))
    peers = SimpleNamespace(curators={"bob": peer}, versions={"bob": version})
    legs = alice.exchange.legs
    legs.begin(alignment_id({"alice": hub, "bob": version}), alice.table, len(HUB), bytes(16))
    asyncio.run(legs.entered("bob", cast("Peers", peers)))


@pytest.mark.parametrize(
    ("what", "values"),
    [("size", (SLOTS, 2 * SLOTS, SLOTS, 2 * SLOTS)), ("version", ("a", "b", "c", "d")), ("part", (0, 1, 2, 3))],
)
def test_a_spoke_cannot_begin_sessions_uncounted(tmp_path: Path, what: str, values: tuple[Any, ...]) -> None:
    """Another size, version or part is another session, with as many guesses again; a new table of the hub is not."""
    with circle(tmp_path, [HUB, SPOKE], {"bob": 10**6}) as (alice, _):
        for value in values[:3]:
            enter(alice, **{what: value})
        enter(alice, hub="another", **{what: values[2]})
        assert alice.store.joins.sessions_of() == {"bob": 3}
        with pytest.raises(DeniedError, match="had 3 joins since a person here allowed more"):
            enter(alice, **{what: values[3]})
        assert alice.store.joins.allow("bob", bytes(16), person="Ann") == 3
        enter(alice, **{what: values[3]})
        assert alice.store.joins.sessions_of() == {"bob": 1}
