"""What no honest hub or spoke sends is refused, fetched again, and keeps nobody else from the join."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.curator.alignment.circle import Curator, Killed, align, circle, outcome, process, table_of
from tests.curator.alignment.test_join_attacks import (
    HUB,
    SLOTS,
    SPOKE,
    between,
    check_joined,
    enter,
    name_of,
    only,
    two,
)
from veiltab.common.errors import IntegrityError, InvalidInputError, NotReadyError, VeiltabError
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message, Standing


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (JoinKind.BASE_CHOICES, lambda data: b"\xff" * len(data), "the message is not 1024 elements of the group"),
        (JoinKind.BASE_CHOICES, lambda data: data[:-1], "sent a message that is cut short"),
        (JoinKind.CHALLENGE, lambda data: data[:-1], "sent a message that is cut short"),
        (JoinKind.VALUES, lambda data: data[:-1], "sent a message that is cut short"),
        (JoinKind.VALUES, lambda data: data + data, "sends 800 bytes (values), more than the 400 that follow"),
    ],
)
def test_what_no_hub_sends_is_refused_and_fetched_again(
    tmp_path: Path, kind: JoinKind, change: Callable[[bytes], bytes], said: str
) -> None:
    """The spoke says who sent it, and goes on once the hub sends what it should: it lost nothing."""
    with two(tmp_path) as (alice, bob):
        alice.tampering = only(kind, change)
        with pytest.raises(VeiltabError, match=re.escape(f"curator alice: {said}")):
            align(alice, bob)
        alice.tampering = lambda _message, data: data
        align(alice, bob)
        check_joined(alice, bob)
        assert alice.store.joins.sessions_of() == {"bob": 1}


def test_what_no_spoke_answers_is_refused_and_fetched_again(tmp_path: Path) -> None:
    with two(tmp_path) as (alice, bob):
        for answer in (b"\xff" * 32, bytes(32)):
            bob.tampering = only(JoinKind.BASE_ANSWER, lambda _, answer=answer: answer)  # type: ignore[misc]
            with pytest.raises(
                IntegrityError, match=r"curator bob: the (message is not 1 elements|answer is the identity)"
            ):
                align(alice, bob)
        bob.tampering = lambda _message, data: data
        align(alice, bob)
        check_joined(alice, bob)


@pytest.mark.parametrize("size", [0, SLOTS - 1, 2**63])
def test_a_size_that_no_store_has_is_refused(tmp_path: Path, size: int) -> None:
    with two(tmp_path) as (alice, _):
        with pytest.raises(VeiltabError, match=r"curator bob: (states a size that no store|shows more)"):
            enter(alice, size=size)
        assert alice.store.joins.sessions_of() == {}


def test_a_hub_of_more_rows_than_the_study_allows_is_refused(tmp_path: Path) -> None:
    with two(tmp_path) as (_, bob):
        said = Standing(part=bytes(16), size=10**9 + 1)
        bob.exchange.sessions.begin("a" * 32, bob.table, SLOTS)
        with pytest.raises(InvalidInputError, match="curator alice: shows 1,000,000,001 rows; it may have 1,0"):
            asyncio.run(bob.exchange.sessions.entered("alice", said, bob.peers))


def test_a_hub_that_commits_to_no_order_is_refused(tmp_path: Path) -> None:
    """A spoke that starts again would read its numbers from another place of their file."""
    with two(tmp_path) as (alice, bob):
        alice.exchange.sessions.standing = lambda *_: Standing(part=bytes(16), size=40)  # type: ignore[method-assign]
        with pytest.raises(InvalidInputError, match="curator alice: the part of a session does not have 16 bytes"):
            align(alice, bob, until=bob)


def test_a_refused_spoke_keeps_no_other_from_its_leg(tmp_path: Path) -> None:
    async def until_carol_has_finished(*curators: Curator) -> None:
        running = [asyncio.create_task(process(curator)) for curator in curators]
        async with asyncio.timeout(60):
            await outcome(curators[-1])
        for task in running:
            task.cancel()

    with circle(tmp_path, [HUB, SPOKE, SPOKE]) as (alice, bob, carol):

        def after_bob(_message: Message, data: bytes) -> bytes:
            if not alice.store.joins.failed_with():
                raise NotReadyError("waits until the other spoke is refused")
            return data

        bob.tampering, carol.tampering = only(JoinKind.COLUMNS, between), after_bob
        asyncio.run(until_carol_has_finished(alice, bob, carol))
        assert alice.store.joins.failed_with() == ("bob",)
        assert carol.store.alignments.matched() == len({*HUB} & {*SPOKE})
        with pytest.raises(IntegrityError, match="curator bob: sent columns that no honest spoke sends"):
            alice.alignment.result()


def test_a_hub_that_begins_sessions_without_end_gets_columns_of_other_secrets(tmp_path: Path) -> None:
    """It learns nothing in any of them, and the spoke keeps the files of one."""
    with two(tmp_path) as (alice, bob):
        sent = list[bytes]()

        def begin_another(data: bytes) -> bytes:
            sent.append(data)
            if len(sent) < 4:
                alice.exchange.sessions.renew(name_of(alice))
                raise Killed
            return data

        bob.tampering = only(JoinKind.COLUMNS, begin_another)
        align(alice, bob)
        check_joined(alice, bob)
        assert len({*sent}) == 4
        assert len([*bob.folder.rglob("columns-0.bin")]) <= 1
        assert alice.store.joins.sessions_of() == {"bob": 1}


def away(_: bytes) -> NoReturn:
    raise IntegrityError("is away")


@pytest.mark.parametrize(("last", "sessions"), [(9, 1), (1, 2)])
def test_a_hub_that_begins_joins_of_many_tables_fills_no_disk(tmp_path: Path, last: int, sessions: int) -> None:
    """The spoke keeps the files of eight and goes on in them; of the others it keeps no secret and begins anew."""
    with two(tmp_path) as (alice, bob):
        begun, bob.tampering = list[str](), only(JoinKind.COLUMNS, away)
        for number in range(11):
            alice.table = table_of(HUB, f"table {number}")
            with pytest.raises(IntegrityError, match="is away"):
                align(alice, bob)
            begun.append(alignment_id(alice.versions | bob.versions))
        kept = {path.parents[1].name for path in bob.folder.rglob("columns-0.bin")}
        assert kept == {*begun[-8:]}
        secrets = bob.store.connection.execute("SELECT alignment_id FROM join_session WHERE secret <> x''").fetchall()
        assert {row["alignment_id"] for row in secrets} == kept
        bob.tampering, alice.table = lambda _message, data: data, table_of(HUB, f"table {last}")
        align(alice, bob)
        check_joined(alice, bob)
        assert alice.store.joins.sessions_of() == {"bob": sessions}
