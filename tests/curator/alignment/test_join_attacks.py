"""What hub and spoke gain by deviating, and what a crash leaves of a session: no more than docs/join.md says."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.conftest import refuses
from tests.curator.alignment.circle import ABSENT, Curator, Killed, align, circle, symbol_of
from tests.curator.alignment.test_oblivious_join import distinct
from veiltab.common.errors import DeniedError, IntegrityError, NotReadyError
from veiltab.common.oblivious.code import COLUMNS, Bits, encode
from veiltab.common.oblivious.store import fill
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.alignment.joining import join_hub, join_spoke
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message, SessionFiles, Standing
from veiltab.curator.alignment.joining.sessions import Sessions
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.join_sessions import JoinSession, JoinSessions

SLOTS = 12_288
ROWS = 128 + SLOTS
"""Rows of the columns of each session here."""

CHALLENGE = Message(kind=JoinKind.CHALLENGE)

HUB, SPOKE = distinct(40), distinct(60)[20:]


@contextmanager
def two(folder: Path) -> Iterator[tuple[Curator, Curator]]:
    with circle(folder, [HUB, SPOKE]) as (alice, bob):
        yield alice, bob


def session(curator: Curator) -> JoinSession:
    (peer,) = curator.exchange.sessions.others
    own = curator.store.joins.session(name_of(curator), peer)
    assert own is not None
    return own


def name_of(curator: Curator) -> str:
    """Return the alignment in which a curator has a session."""
    (name,) = {row["alignment_id"] for row in curator.store.connection.execute("SELECT * FROM join_session")}
    return str(name)


def recorded(curator: Curator, column: str) -> bytes | None:
    """Return what is recorded of the pass of a session."""
    row = curator.store.connection.execute("SELECT * FROM join_pass").fetchone()
    return None if row is None else bytes(row[column])


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
        with refuses(IntegrityError, where="curator bob") as refusal:
            align(alice, bob, until=alice)
        remedy = "Find out what runs there; then `veiltab curator repair alignment bob` joins with it again."
        assert refusal.value.remedy == remedy
        own = session(alice)
        assert (own.has_failed, own.secret, own.finished) == (True, b"", "")
        assert alice.store.joins.failed_with() == ("bob",)
        assert alice.store.joins.sessions_of() == {"bob": 1}
        assert events(alice)[-1] == "alignment failed"
        assert not [path for path in alice.folder.rglob("*") if own.name in str(path) and path.is_file()]
        with pytest.raises(NotReadyError):
            alice.exchange.sessions.message_file(
                alice.alignment._current, own.name, Message(kind=JoinKind.VALUES), "bob"
            )
        bob.tampering = lambda _message, data: data
        alice.close()
        alice.open()
        with pytest.raises(IntegrityError, match=r"sent columns that no honest|check of what it was sent"):
            align(alice, bob)
        assert session(alice).name == own.name


def test_columns_that_are_cut_short_are_fetched_again(tmp_path: Path) -> None:
    """No columns of unequal length are taken, and no challenge is drawn before all of them are here."""
    with two(tmp_path) as (alice, bob):
        sent = list[bytes]()

        def cut(data: bytes) -> bytes:
            with pytest.raises(NotReadyError, match="has not made this part of the join yet"):
                alice.exchange.sessions.message_file(name_of(alice), session(alice).name, CHALLENGE, "bob")
            assert recorded(alice, "challenge") in {b"", None}
            sent.append(data)
            return data[: -len(data) // 512] if len(sent) == 1 else data

        bob.tampering = only(JoinKind.COLUMNS, cut)
        with pytest.raises(IntegrityError, match="curator bob: sent columns of a size that no store has"):
            align(alice, bob, until=alice)
        align(alice, bob)
        check_joined(alice, bob)
        assert sent[0] == sent[1]


def lose(curator: Curator, name: str) -> None:
    """Delete a file of a session."""
    (path,) = curator.folder.rglob(name)
    path.unlink()


@pytest.mark.parametrize("later", [bytes, between])
def test_a_hub_that_lost_the_columns_takes_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[bytes], bytes]
) -> None:
    """The spoke knows the challenge by then, and could fit other columns to it."""
    with two(tmp_path) as (alice, bob):

        def sent(message: Message, data: bytes) -> bytes:
            if message.kind is JoinKind.ANSWER:
                lose(alice, "from-columns-0.bin")
            return later(data) if message.kind is JoinKind.COLUMNS and recorded(alice, "challenge") else data

        bob.tampering = sent
        monkeypatch.setattr(join_hub, "_rows", once(join_hub._rows, Killed()))
        monkeypatch.setattr(join_hub, "holds", lambda *_: True)
        if later is bytes:
            align(alice, bob)
            check_joined(alice, bob)
        else:
            with refuses(IntegrityError, where="curator bob"):
                align(alice, bob, until=alice)
            assert session(alice).has_failed


def test_one_answer_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that is killed before it records that an answer is wrong takes no better one."""
    with two(tmp_path) as (alice, bob):
        answers = list[bytes]()

        def wrong_once(data: bytes) -> bytes:
            answers.append(data)
            return bytes(len(data)) if len(answers) == 1 else data

        bob.tampering = only(JoinKind.ANSWER, wrong_once)
        monkeypatch.setattr(Sessions, "fail", once(Sessions.fail, Killed()))
        with refuses(IntegrityError, where="curator bob"):
            align(alice, bob, until=alice)
        assert len(answers) == 1


def test_one_challenge_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spoke that is killed between its record of a challenge and its answer answers that one."""
    with two(tmp_path) as (alice, bob):
        challenges = list[bytes]()

        def another_later(data: bytes) -> bytes:
            challenges.append(data)
            return data if len(challenges) == 1 else bytes(16)

        def killed_without_the_message(*_: object) -> None:
            lose(bob, "from-challenge-0.bin")
            monkeypatch.setattr(join_spoke, "_sums", sums)
            raise Killed

        sums = join_spoke._sums
        alice.tampering = only(JoinKind.CHALLENGE, another_later)
        monkeypatch.setattr(join_spoke, "_sums", killed_without_the_message)
        align(alice, bob)
        check_joined(alice, bob)
        assert len(challenges) == 2
        # Nor after the session: its secrets are gone.
        assert (session(bob).secret, [*bob.folder.rglob("seeds.bin"), *bob.folder.rglob("store-*")]) == (b"", [])


def flip(curator: Curator, name: str) -> None:
    """Change a bit of a file of a session."""
    (path,) = curator.folder.rglob(name)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("change", [flip, lose])
def test_another_store_than_the_recorded_one_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Curator, str], None]
) -> None:
    with two(tmp_path) as (alice, bob):
        write, begun = join_spoke._write_columns, list[str]()

        def another(digests: Bits, *rest: Any) -> object:  # noqa: ANN401 - those of the function
            monkeypatch.setattr(join_spoke, "fill", fill)
            return fill(digests ^ np.uint8(1), *rest)

        def written(path: Path, *rest: Any) -> None:  # noqa: ANN401 - as above
            begun.append(path.parent.name)
            if len(begun) == 1:
                change(bob, "store-0.bin")
                monkeypatch.setattr(join_spoke, "fill", another if change is lose else fill)
                raise Killed
            write(path, *rest)

        monkeypatch.setattr(join_spoke, "_write_columns", written)
        align(alice, bob)
        check_joined(alice, bob)
        assert len({*begun}) == len(begun) == 2
        assert alice.store.joins.sessions_of() == {"bob": 2}


def test_a_session_that_another_alignment_ended_begins_with_another_challenge(tmp_path: Path) -> None:
    """As when a third curator takes its new table back; the spoke has heard the first challenge."""
    with two(tmp_path) as (alice, _):
        joins = alice.store.joins
        for drawn, alignment in enumerate(("first", "second", "first")):
            joins.begin(alignment, "bob", "version", bytes(16))
            joins.enter(alignment, "bob", f"session of {alignment}", bytes(32))
            assert joins.challenge(f"session of {alignment}", 0, bytes([drawn])) == bytes([drawn])
            if alignment == "second":
                joins.finish(alignment, "bob")


def test_a_session_whose_files_are_deleted_stays_failed_and_gives_later_ones_no_part(tmp_path: Path) -> None:
    """Else a spoke would cheat again unseen, and be counted for another table of the hub."""
    with two(tmp_path) as (alice, _):
        joins = alice.store.joins
        for name in ("failed", "begun"):
            joins.begin(name, "bob", "version", bytes(16))
            joins.enter(name, "bob", f"session of {name}", bytes(32))
        joins.fail("failed", "bob")
        for name in ("failed", "begun", "later"):
            joins.renew(name, "bob", b"another part....")
        joins.begin("later", "bob", "version", b"a fresh part....")
        sessions = [joins.session(name, "bob") for name in ("failed", "begun", "later")]
        assert [(one.has_failed, one.part) for one in sessions if one] == [
            (True, bytes(16)),
            (False, b"another part...."),
            (False, bytes(16)),
        ]


# Who begins sessions


def enter(alice: Curator, *, hub: str = "", version: str = "first", size: int = SLOTS, part: int = 0) -> None:
    """Let the hub enter the session of what a spoke says of itself, and of its own table."""

    peers = SimpleNamespace(versions={"bob": version})
    sessions = alice.exchange.sessions
    sessions.begin(alignment_id({"alice": hub, "bob": version}), alice.table, len(HUB), bytes(16))
    asyncio.run(sessions.entered("bob", Standing(part=bytes([part]) * 16, size=size), cast("Peers", peers)))


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
        alice.store.joins.fail("alignment", "bob")
        assert alice.store.joins.allow("bob", bytes(16), person="Ann") == 1
        enter(alice, hub="one more", **{what: values[3]})
        assert alice.store.joins.sessions_of() == {"bob": 1}


# What a hub may show


X, Y, Z, *OTHERS = HUB
LISTS = {
    "repeated": [X, X, X, Y, *OTHERS[2:], Z],
    "exchanged": [Y, X, *OTHERS[1:], Z, Z],
    "a chain": [X, Y, Y, Z, Z, X, *OTHERS[3:]],
    "one person alone": [X] * len(HUB),
}
"""The people whom a hub names in its rows."""


@pytest.mark.parametrize("rows", LISTS.values(), ids=LISTS)
def test_one_person_changes_one_row_whatever_the_hub_shows(rows: list[str]) -> None:
    """Nobody's row depends on other people, and nobody who is named again has a second one."""
    chance, every = np.random.default_rng(3), sorted({*HUB, *SPOKE})
    value = dict(zip(every, chance.integers(0, 256, (len(every), join_hub.SHOWN_BYTES), np.uint8), strict=True))

    def column(people: Sequence[str]) -> dict[int, str]:
        numbers = join_spoke.first_rows(np.stack([value[name] for name in people]), np.stack([value[n] for n in rows]))
        return {int(row): name for row, name in zip(numbers, people, strict=True) if row >= 0}

    people = [Z, Y, X, *SPOKE]
    everybody = column(people)
    for person in {*people} & {*rows}:
        without = column([name for name in people if name != person])
        assert everybody.items() ^ without.items() == {(rows.index(person), person)}


def test_a_hub_that_repeats_people_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal would say that the spoke has a person; its own log says what the hub shows, whoever is there."""
    write = join_hub._write_values
    shown = {number: LISTS["repeated"].index(name) for number, name in enumerate(LISTS["repeated"])}

    def repeated(path: Path, *rest: Any) -> None:  # noqa: ANN401 - those of the function
        made = path.with_suffix(".made")  # the spoke fetches what is there
        write(made, *rest)
        rows = np.fromfile(made, np.uint8).reshape(-1, join_hub.SHOWN_BYTES)
        made.write_bytes(rows[[shown[number] for number in range(len(rows))]].tobytes())
        made.rename(path)

    monkeypatch.setattr(join_hub, "_write_values", repeated)
    for name, people in (("all", HUB), ("none", [f"stranger {number}" for number in range(len(HUB))])):
        caplog.clear()
        with circle(tmp_path / name, [HUB, people]) as (alice, bob):
            align(alice, bob)
            assert bob.store.alignments.matched() == (len({*LISTS["repeated"]}) if name == "all" else 0)
        (warned,) = [record for record in caplog.records if record.levelname == "WARNING"]
        assert warned.name == join_spoke.__name__
        assert warned.getMessage() == "the hub shows people in several rows, of which the first counts: 2 more"


# Kills


POINTS = [
    (join_hub, "_rows"),
    (join_hub, "_write_values"),
    (join_hub.HubPass, "end"),
    (JoinSessions, "finish"),
    (JoinSessions, "challenge"),
    (JoinSessions, "asked_digest"),
    (join_spoke, "answer"),
    (join_spoke, "write_whole"),
    (join_spoke, "_write_columns"),
    (join_spoke, "_sums"),
    (join_spoke, "first_rows"),
    (SessionFiles, "make"),
]
"""Something of a session is durable before and after: choices, seeds, store, columns, challenge, answer, values."""


@pytest.mark.parametrize(("holder", "point"), POINTS, ids=[f"{name}" for _, name in POINTS])
def test_a_session_outlives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: object, point: str) -> None:
    """Some calls are killed before or after them; each message has the same bytes each time."""
    function, calls, sent = getattr(holder, point), list[int](), dict[tuple[str, Message], set[bytes]]()

    def killed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        calls.append(len(calls))
        if calls[-1] in {0, 3}:
            raise Killed
        result = function(*args, **kwargs)
        if calls[-1] in {1, 4} and not asyncio.iscoroutine(result):
            raise Killed
        return result

    def kept(name: str) -> Callable[[Message, bytes], bytes]:
        def keep(message: Message, data: bytes) -> bytes:
            sent.setdefault((name, message), set()).add(data)
            return data

        return keep

    monkeypatch.setattr(holder, point, killed)
    with two(tmp_path) as (alice, bob):
        alice.tampering, bob.tampering = kept("alice"), kept("bob")
        align(alice, bob)
        check_joined(alice, bob)
        assert {message.kind for _, message in sent} == {*list(JoinKind)[:6]}
        assert {len(each) for each in sent.values()} == {1}
        assert calls
        assert alice.store.joins.sessions_of() == {"bob": 1}


def test_a_hub_may_show_two_spokes_different_people_in_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can see it: who reads results with the hub faces a group of as many people as there are spokes."""
    write, shown = join_hub._write_values, list[int]()

    def turned(path: Path, ids: Any, numbers: Any, value: Any) -> None:  # noqa: ANN401 - those of the function
        shown.append(len(numbers))
        write(path, ids, np.roll(numbers, len(shown) - 1), value)

    monkeypatch.setattr(join_hub, "_write_values", turned)
    with circle(tmp_path, [HUB, HUB, HUB]) as (alice, bob, carol):
        align(alice, bob, carol)
        assert sorted(bob.column) == sorted(carol.column) == sorted(alice.column) == sorted(map(symbol_of, HUB))
        assert alice.column in (bob.column, carol.column)
        assert all(one != other for one, other in zip(bob.column, carol.column, strict=True))
        assert len({one.alignment.result() for one in (alice, bob, carol)}) == 1
