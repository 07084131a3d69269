"""The oblivious join of curators in one process: who has whom, and that nothing else depends on it."""

import asyncio
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import refuses
from tests.curator.alignment.circle import ABSENT, Curator, align, circle, symbol_of
from tests.curator.disk_use import disk_use
from veiltab.common.errors import DeniedError, InvalidInputError, NotReadyError
from veiltab.common.oblivious.store import slots_for
from veiltab.common.storage.disk import DiskReservations
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.joining.join_hub import SHOWN_BYTES
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message, Standing
from veiltab.curator.alignment.joining.join_spoke import first_rows
from veiltab.curator.alignment.joining.row_numbers import NOBODY, commitment_to, own_numbers

PEOPLE = [f"person {n}" + "x" * (n % 40) for n in range(400)]


def rows_of_people(hub: Curator) -> list[str]:
    """Return the person of each row of every table, of people who all have symbols of their own."""
    people = {symbol_of(name): name for name in hub.ids}
    assert len(people) == len(hub.ids)
    return [people[symbol] for symbol in hub.column]


def distinct(count: int) -> list[str]:
    """Return people with different symbols."""
    return list({symbol_of(name): name for name in PEOPLE}.values())[:count]


@pytest.mark.parametrize("shares", [(1.0,), (0.5,), (0.0,), (0.5, 0.9)], ids=["all", "half", "nobody", "three"])
def test_every_spoke_fills_the_rows_of_the_hub(tmp_path: Path, shares: tuple[float, ...]) -> None:
    hub = distinct(100)
    spokes = [[*hub[: int(share * 100)], *(f"other {n}" for n in range(30))][::-1] for share in shares]
    with circle(tmp_path, [hub, *spokes]) as (alice, *others):
        align(alice, *others)
        people = rows_of_people(alice)
        assert sorted(people) == sorted(hub)
        assert len({one.alignment.result() for one in (alice, *others)}) == 1
        assert len({one.tokens_file() for one in (alice, *others)}) == 1
        for one in others:
            assert one.column == [symbol_of(name) if name in one.ids else ABSENT for name in people]
            assert one.store.alignments.matched() == len({*hub} & {*one.ids})


def test_rows_have_an_order_that_no_spoke_chooses(tmp_path: Path) -> None:
    orders = []
    for number in range(2):
        with circle(tmp_path / str(number), [distinct(60), distinct(60)]) as (alice, bob):
            align(alice, bob)
            orders.append(alice.column)
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_spoke_with_people_of_the_hub_and_one_with_none_look_alike(tmp_path: Path) -> None:
    """What the hub receives has the same sizes, and its own tables, states and sessions say the same."""
    hub, seen = distinct(60), []
    for name, people in (("all", hub), ("none", [f"stranger {n}" for n in range(60)])):
        with circle(tmp_path / name, [hub, people]) as (alice, bob):
            align(alice, bob)
            sizes = {kind: len(data) for (_, kind), data in alice.received.items()}
            own = alice.store.joins.session(alice.alignment._current, "bob")
            assert own is not None
            tables = ("coin", "alignment", "join_part")
            counts = [alice.store.connection.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in tables]  # noqa: S608 - tables of the schema
            files = sorted(
                path.name for path in alice.folder.rglob("*") if path.is_file() and path.parent != alice.folder
            )
            seen.append((sizes, bool(own.finished), counts, len(files), alice.alignment.result()[0]))
    assert seen[0] == seen[1]


def test_what_two_spokes_show_is_as_long_as_their_tables_alone_say(tmp_path: Path) -> None:
    with circle(tmp_path, [distinct(50), distinct(20), PEOPLE]) as (alice, bob, carol):
        align(alice, bob, carol)
        sizes = {curator: len(alice.message(JoinKind.COLUMNS, curator)) for curator in ("bob", "carol")}
        assert sizes["bob"] == sizes["carol"] == 64 * (slots_for(400) + 128)
        assert len(bob.message(JoinKind.VALUES, "alice")) == 50 * SHOWN_BYTES


def test_the_hub_lets_a_spoke_see_each_message_and_nobody_else(tmp_path: Path) -> None:
    with circle(tmp_path, [distinct(20), distinct(20), distinct(20)]) as (alice, bob, carol):
        align(alice, bob, carol)
        name = alice.alignment._current
        own = alice.store.joins.session(name, "bob")
        assert own is not None
        sessions = alice.exchange.sessions
        with pytest.raises(NotReadyError, match="not in this session"):
            sessions.message_file(name, own.name, Message(kind=JoinKind.VALUES), "carol")
        for path in (f"../{own.name}", ""):
            with pytest.raises(NotReadyError):
                sessions.message_file(name, path, Message(kind=JoinKind.VALUES), "bob")
        with refuses(DeniedError, where="curator carol"):
            bob.exchange.sessions.standing(name, "carol")
        with refuses(DeniedError, where="curator alice"):
            alice.alignment.shared_tokens(name)


def test_a_peer_that_offers_to_wait_gets_a_message_once_it_is_made_or_hears_that_it_is_not(tmp_path: Path) -> None:
    with circle(tmp_path, [distinct(20), distinct(20)]) as (alice, bob):
        align(alice, bob)
        sessions, name, message = alice.exchange.sessions, alice.alignment._current, Message(kind=JoinKind.CHALLENGE)
        session = sessions.records.session(name, "bob")
        assert session is not None
        path = sessions.folder(name, session.name) / message.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)

        async def asked() -> Path:
            with pytest.raises(NotReadyError, match="not made this part"):
                await sessions.made_file(name, session.name, message, "bob", seconds=0.1)
            asyncio.get_running_loop().call_later(0.1, path.touch)
            return await sessions.made_file(name, session.name, message, "bob", seconds=60)

        assert asyncio.run(asked()) == path


def test_a_spoke_with_more_rows_than_the_study_says_is_refused(tmp_path: Path) -> None:
    many = [f"person {n}" for n in range(10_000)]  # more than the least store has room for
    with circle(tmp_path, [distinct(20), many], {}) as (alice, bob):
        with pytest.raises(InvalidInputError, match=r"shows more rows than the 40 that it may have here") as refusal:
            align(alice, bob)
        assert "most_ids" in (refusal.value.remedy or "")
    with circle(tmp_path / "more", [distinct(20), many], {"bob": 10_000}) as (alice, bob):
        align(alice, bob)


def test_an_alignment_writes_no_more_than_is_kept_for_it(tmp_path: Path) -> None:
    with circle(tmp_path, [PEOPLE, PEOPLE[::-1]]) as (alice, bob):
        with disk_use(alice.folder) as of_alice, disk_use(bob.folder) as of_bob:
            align(alice, bob)
        for use, one in ((of_alice, alice), (of_bob, bob)):
            assert use.most <= one.exchange.most_bytes(one.table) <= 3 * use.most


def test_a_spoke_keeps_room_for_the_rows_of_a_wider_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, room = dict[str, int](), DiskReservations.keep

    def noted(self: DiskReservations, name: str, size: int) -> None:
        kept[name] = max(size, kept.get(name, 0))
        room(self, name, size)

    with circle(tmp_path, [PEOPLE, PEOPLE[:100]]) as (alice, bob):
        monkeypatch.setattr(DiskReservations, "keep", noted)
        with disk_use(bob.folder) as use:
            align(alice, bob)
        more = alignment_bytes(300, bob.table.respondents.types.values(), 2)
        assert kept["rows of a hub that has more of them"] == more
        assert use.most <= bob.exchange.most_bytes(bob.table) + more


def test_a_changed_table_of_the_hub_is_joined_anew_without_counting_a_spoke(tmp_path: Path) -> None:
    with circle(tmp_path, [distinct(30), distinct(30)]) as (alice, bob):
        align(alice, bob)
        for number in range(4):
            alice.table = Curator("alice", ("alice", "bob"), tmp_path / f"new {number}", distinct(40), {}).table
            object.__setattr__(alice.table, "content_digest", f"content {number}")
            align(alice, bob)
            assert alice.alignment.result()[0] == 40
        assert alice.store.joins.sessions_of() == {"bob": 1}


@pytest.mark.parametrize(
    ("who", "lost", "sessions"),
    [(1, ("numbers.bin", "column-*", "own-*"), 2), (1, ("column-*",), 1), (0, ("column-*", "own-*"), 1)],
    ids=["spoke: another session", "spoke: table alone", "hub"],
)
def test_lost_files_are_made_again(tmp_path: Path, who: int, lost: tuple[str, ...], sessions: int) -> None:
    with circle(tmp_path, [distinct(30), distinct(20)]) as curators:
        align(*curators)
        before = [(one.column, one.tokens_file()) for one in curators]
        for path in (path for pattern in lost for path in curators[who].folder.rglob(pattern)):
            path.unlink()
        curators[who].close()
        curators[who].open()
        align(*curators)
        assert [(one.column, one.tokens_file()) for one in curators] == before
        assert curators[0].store.joins.sessions_of() == {"bob": sessions}


def test_the_order_of_rows_is_a_permutation_that_its_commitment_names() -> None:
    numbers = own_numbers(bytes(32), 1000)
    assert sorted(numbers.tolist()) == list(range(1000))
    assert numbers.tolist() != list(range(1000))
    assert np.array_equal(numbers, own_numbers(bytes(32), 1000))
    assert not np.array_equal(numbers, own_numbers(bytes([1] * 32), 1000))
    assert commitment_to(bytes(32)) != commitment_to(bytes([1] * 32))


def test_the_first_row_that_names_an_id_counts() -> None:
    chance = np.random.default_rng(1)
    shown = chance.integers(0, 256, (50, SHOWN_BYTES), np.uint8)
    shown[[7, 30]] = shown[3]
    shown[40, :8] = shown[20, :8]  # alike in the bytes that are compared first
    own = np.concatenate([shown[[30, 3, 20, 40, 49]], chance.integers(0, 256, (5, SHOWN_BYTES), np.uint8)])
    assert first_rows(own, shown).tolist() == [3, 3, 20, 40, 49, *(5 * [NOBODY])]
    assert first_rows(own[:0], shown).tolist() == []
    assert first_rows(own, shown[:0]).tolist() == 10 * [NOBODY]
    largest = np.full((1, SHOWN_BYTES), 255, np.uint8)
    assert first_rows(largest, shown).tolist() == [NOBODY]
    assert first_rows(largest, np.concatenate([shown, largest])).tolist() == [50]


def test_a_spoke_finishes_while_another_is_away(tmp_path: Path) -> None:
    with circle(tmp_path, [distinct(30), distinct(20), distinct(10)]) as (alice, bob, carol):
        carol.alignment.table_version = carol.store.alignments.table_version("content of carol", "c" * 32)
        align(alice, bob, until=bob)
        assert bob.store.alignments.matched() == 20
        assert bob.column.count(ABSENT) == 10
        with pytest.raises(NotReadyError):
            alice.alignment.result()
        align(alice, bob, carol)
        assert carol.store.alignments.matched() == 10
        assert alice.store.joins.sessions_of() == {"bob": 1, "carol": 1}


def test_a_hub_that_lost_its_state_joins_anew(tmp_path: Path) -> None:
    """Its new order of rows would not be that of the spoke's numbers, so the alignment has another name."""
    with circle(tmp_path, [distinct(30), distinct(20)]) as (alice, bob):
        align(alice, bob)
        before = alice.alignment.result()
        with alice.store.connection.transaction() as database:
            for table in ("join_session", "row_order", "alignment"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 - tables of the schema
        align(alice, bob)
        align(alice, bob)  # bob may have had the old one once more
        after = alice.alignment.result()
        assert after == bob.alignment.result()
        assert after != before
        people = rows_of_people(alice)
        assert bob.column == [symbol_of(name) if name in bob.ids else ABSENT for name in people]


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_third_curator_gives_nobody_more_guesses(tmp_path: Path, *, is_silent: bool) -> None:
    """Each of its tables names another alignment, with another session of everybody: after three nobody joins."""
    columns = "bob", Message(kind=JoinKind.COLUMNS)
    with circle(tmp_path, [distinct(30), distinct(20), distinct(10)]) as (alice, bob, carol):
        for number in range(4):
            before, carol.alignment.table_version = alice.received.get(columns), f"{number}" * 32
            object.__setattr__(carol.table, "content_digest", f"content {number}")
            with pytest.raises(DeniedError, match="curator carol: had 3 joins") if number == 3 else nullcontext():
                align(alice, bob, *([] if is_silent else [carol]), until=alice if number == 3 else bob)
        assert alice.received[columns] == before
        assert len(alice.store.connection.execute("SELECT * FROM row_order").fetchall()) == 3


def test_a_curator_that_says_it_has_finished_gives_nobody_more_guesses(tmp_path: Path) -> None:
    """The hub then aligns its table anew, and with everybody."""
    with circle(tmp_path, [distinct(30), distinct(20), distinct(10)]) as (alice, bob, carol):
        carol.alignment.table_version, sent = "c" * 32, set[bytes]()

        def standing(alignment: str, _: str) -> Standing:
            own = bob.store.joins.session(alignment, "alice")
            if own is None or not own.finished:
                raise NotReadyError("waits until Bob has finished")
            return Standing(part=bytes(16), size=slots_for(1), finished=own.finished)

        def noted(message: Message, data: bytes) -> bytes:
            sent.update([data] if message.kind is JoinKind.COLUMNS else [])
            return data

        carol.exchange.sessions.standing, bob.tampering = standing, noted  # type: ignore[assignment, method-assign]
        with pytest.raises(DeniedError, match="curator carol: had 3 joins"):
            align(alice, bob, until=alice)
        assert len(sent) == 3
