"""Linking in one process: by tokens and obliviously, spokes link whom the rule links, and the hub learns of nobody."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.curator.alignment.circle import ABSENT, align
from tests.curator.disk_use import disk_use
from tests.curator.linking.registers import (
    FIELDS,
    Curator,
    Person,
    identity,
    people,
    registers,
    symbol,
    wanted_links,
    with_errors,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.oblivious import store
from veiltab.common.oblivious.extension import pass_name
from veiltab.common.storage.files import write_whole
from veiltab.curator.alignment.joining import join_hub, join_spoke, sessions
from veiltab.curator.alignment.joining.join_messages import JoinKind, Message
from veiltab.curator.alignment.linking import link_join, link_session
from veiltab.curator.linkage.linkage_report import LinkageReport, PassCount
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text, wrong_links_json
from veiltab.researcher.linkage_errors.linkage_error import read_report

COMMON, ALONE = people(120, 1), people(90, 2)
HUB = [*COMMON, *ALONE[:40]]
SPOKE = [*with_errors(COMMON, 3)[::-1], *ALONE[40:60], COMMON[0]]
"""The last row of the spoke is one of a pair that ties."""

WAYS = pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])


def rows_of(links: dict[int, int], hub: Sequence[Person], spoke: Sequence[Person]) -> list[tuple[int, int]]:
    """Return the values of all rows at both curators, given the links."""
    return sorted((symbol(one), symbol(spoke[links[row]]) if row in links else ABSENT) for row, one in enumerate(hub))


@WAYS
def test_two_curators_link_what_the_rule_links(tmp_path: Path, *, is_private: bool) -> None:
    rule = identity(keys=default_ladder(dict(FIELDS), 1))
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(rule, HUB, SPOKE)
        assert 105 <= len(links) < 120
        assert sorted(zip(alice.column, bob.column, strict=True)) == rows_of(links, HUB, SPOKE)
        assert alice.alignment.result() == bob.alignment.result()
        assert bob.store.alignments.matched() == len(links)
        check_reports(alice, bob, len(links))


def check_reports(hub: Curator, spoke: Curator, links: int) -> None:
    mine, theirs = spoke.report, hub.report
    assert (mine.links, theirs.links) == (links, None)
    assert sum(one.linked or 0 for one in mine.passes) == links
    assert [one.left for one in mine.passes] == sorted((one.left or 0 for one in mine.passes), reverse=True)
    assert mine.passes[0].left is not None
    assert 0 < mine.passes[0].left < len(SPOKE)
    assert all(one.linked is None for one in theirs.passes)
    assert mine.agreed is not None
    assert 0 < mine.agreed[0] < min(mine.agreed[1:3]) < links
    assert mine.agreed[5] > 0, "nobody whose names are swapped"
    said: Any = linkage_json(mine, {"length": [str(number) for number in range(251)]})
    assert said["links"] == links
    assert said["precision_estimated"]["value"] > 0.9
    assert 0.8 < said["recall_estimated"]["value"] <= 1
    assert set(said["passes"][0]) == {"key", "runs", "self_match", "linked", "left", "placebo", "lacks"}


def test_rows_that_stand_twice_are_counted_and_lower_the_recall(tmp_path: Path) -> None:
    """A third of the people stands twice at the spoke; one of them a third time, by a later key alone."""
    given, _, birth, sex, postcode = COMMON[0]
    spoke = [*COMMON, *COMMON[:40], *ALONE[60:], (given, "nobody", birth, sex, postcode)]
    with registers(tmp_path, [[*COMMON, *ALONE[:40]], spoke], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        report = bob.report
        assert (report.links, report.ties, report.tied) == (80, 80, 40)
        assert alice.report.ties == 0
        assert report.quality is not None
        wrong, found = report.quality
        assert found is not None
        assert found.value == pytest.approx(80 * (1 - wrong.share) / 120)
        assert "80 rows tied with another one of this table and are not linked" in linkage_text(report, {})
        assert linkage_json(report, {})["ties"] == 80
        assert linkage_json(alice.report, {})["ties"] is None


def test_a_researcher_reads_what_clerks_counted(tmp_path: Path) -> None:
    """Of 200 pairs none was wrong: the share is 0, and 1.96 standard deviations reach the end of the exact interval."""
    passes = (PassCount(key="given family birth sex", runs=True, matches=0, linked=900, left=9),)
    report = LinkageReport(is_hub=False, rows=950, hub_rows=990, links=900, passes=passes)
    path = tmp_path / "links.json"
    for wrong, chance in ((0, 0.0), (1, 3 / 900)):
        path.write_text(wrong_links_json(report, "bob", (200, wrong)), "utf-8")
        error = read_report(path)
        assert isinstance(error, dict)
        assert (error["bob"].share, error["bob"].least) == (wrong / 200, chance)
    with pytest.raises(InvalidInputError, match="no row is linked"):
        wrong_links_json(replace(report, links=0), "bob")
    path.write_text(wrong_links_json(report, "bob", (200, 0)), "utf-8")
    error = read_report(path)
    assert isinstance(error, dict)
    assert 1.96 * error["bob"].sd == pytest.approx(1 - 0.025 ** (1 / 200), rel=1e-4)


def test_some_pairs_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hub and spoke compare the same rows, and estimates are those of all links, but for chance."""
    monkeypatch.setattr(link_session, "MOST_PAIRS", 60)
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        report = bob.report
        assert report.links is not None
        assert (report.pairs, report.links > 90) == (60, True)
        assert report.agreed is not None
        assert 30 < report.agreed[0] < 60
        assert report.quality is not None
        wrong, found = report.quality
        assert found is not None
        people_estimated = report.links * (1 - wrong.share) / found.value
        assert 90 < people_estimated < 150


@WAYS
def test_three_curators_have_the_rows_of_the_hub(tmp_path: Path, *, is_private: bool) -> None:
    rule, other = identity(), [*with_errors(COMMON[30:], 5), *ALONE[60:]]
    with registers(tmp_path, [HUB, SPOKE, other], rule, is_private=is_private) as (alice, bob, carol):
        align(alice, bob, carol)
        columns = [alice.column, bob.column, carol.column]
        for spoke, column in ((SPOKE, columns[1]), (other, columns[2])):
            links = wanted_links(rule, HUB, spoke)
            assert sorted(zip(columns[0], column, strict=True)) == rows_of(links, HUB, spoke)
        # Not even together do two spokes see which of the hub's keys are the same.
        tables = [
            b"".join(data for (_, message), data in spoke.received.items() if message.kind is JoinKind.TABLE)
            for spoke in (bob, carol)
        ]
        tags = [{table[at : at + 10] for at in range(0, len(table), 16)} for table in tables]
        assert not tags[0] & tags[1]


def test_two_similar_rows_of_the_hub_are_candidates_of_nobody(tmp_path: Path) -> None:
    """A row between two siblings is linked with neither, nor one whose key two rows have; one beside one row is."""
    rest = people(600, 4)
    hub: list[Person] = [
        ("marta", "silva", "1960-05-05", "f", "10001"),
        ("marty", "silva", "1960-05-05", "f", "10001"),
        ("ann", "lee", "1970-01-02", "f", "10002"),
        ("ann", "lee", "1970-01-02", "f", "10003"),
        ("carola", "stone", "1980-03-04", "m", "10004"),
        *rest,
    ]
    spoke: list[Person] = [
        ("mart", "nobody", "1960-05-05", "f", "10001"),
        ("ann", "lee", "1970-01-02", "f", "10009"),
        ("carol", "nobody", "1980-03-04", "m", "10004"),
        *rest[:50],
    ]
    with registers(tmp_path, [hub, spoke], identity(cap=Decimal("0.01")), is_private=True) as (alice, bob):
        align(alice, bob)
        assert all(one.runs for one in bob.report.passes)
        assert [one.linked for one in bob.report.passes] == [50, 0, 1]
        wanted = {4: 2} | {number + 5: number + 3 for number in range(50)}
        assert sorted(zip(alice.column, bob.column, strict=True)) == rows_of(wanted, hub, spoke)
        assert wanted_links(identity(), hub, spoke) == wanted


@WAYS
def test_whoever_is_linked_the_hub_sees_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_private: bool
) -> None:
    """Of a spoke all of whose rows match, and of one of whom none does: sizes, records, files and logs are alike.

    Stores are small here, so that fewer keys would make a smaller one.
    """
    for module in (store, join_hub, sessions):
        monkeypatch.setattr(module, "THIRD_STEP", 128)
    monkeypatch.setattr(store, "LEAST_THIRD", 128)
    seen = list[object]()
    for name, rows in (("all", COMMON), ("none", people(120, 7))):
        with registers(tmp_path / name, [HUB, rows], identity(placebo=True), is_private=is_private) as (alice, bob):
            align(alice, bob)
            assert bob.report.links is not None
            assert (bob.report.links > 110) is (name == "all")
            sizes = {message: len(data) for (_, message), data in alice.received.items()}
            asked = [message for (_, message) in bob.received]
            tables = [
                (table, alice.store.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - of the schema
                for (table,) in alice.store.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            events = [(one.event, one.facts) for one in alice.store.audit.entries()]
            files = sorted(path.name for path in alice.folder.glob("alignments/**/*") if path.is_file())
            seen.append((sizes, asked, tables, events, len(files), replace(alice.report, passes=())))
    assert seen[0] == seen[1]


def test_each_pass_has_its_own_name_store_and_challenge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One store under the words, or the seeds, of another pass would show the hub how they differ."""
    masks = list[bytes]()

    def noted(path: Path, data: memoryview) -> None:
        if path.name.startswith("store-"):
            masks.append(np.asarray(data)[:128].tobytes())
        write_whole(path, data)

    monkeypatch.setattr(join_spoke, "write_whole", noted)
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        passes = len(identity().ladder) + 1
        for kind, received in ((JoinKind.CHALLENGE, bob.received), (JoinKind.COLUMNS, alice.received)):
            assert len({data for (_, message), data in received.items() if message.kind is kind}) == passes
    assert len({*masks}) == len(masks) == passes
    names = {pass_name(bytes([session] * 32), number) for session in (0, 1) for number in (0, 1, 100)}
    assert len(names) == 6


def test_a_hub_shows_a_number_that_no_row_has_and_no_spoke_says_so(tmp_path: Path) -> None:
    """Every other entry of a table names a row at random, or none: it counts as nobody's, or as that row."""
    chance = np.random.default_rng(1)

    def garbled(message: Any, data: bytes) -> bytes:  # noqa: ANN401 - of a join
        if message.kind is not JoinKind.TABLE:
            return data
        entries = np.frombuffer(data, np.uint8).reshape(-1, 16).copy()
        entries[::2, 10:] = chance.integers(0, 256, entries[::2, 10:].shape, np.uint8)
        return entries.tobytes()

    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        alice.tampering = garbled
        align(alice, bob)
        assert alice.alignment.result() == bob.alignment.result()
        assert bob.report.links is not None
        assert 20 < bob.report.links < 110


def test_a_hub_gives_all_rows_one_number_and_no_spoke_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows that have a candidate tie at that row."""
    monkeypatch.setattr(link_join, "hub_numbers", lambda _key, complete: np.zeros(len(complete), np.int64))
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        assert bob.column == [ABSENT] * len(HUB)
        assert (bob.report.links, bob.report.tied) == (0, 1)


def test_a_spoke_that_lost_its_store_links_the_same_in_another_session(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):

        def lost(message: Message, data: bytes) -> bytes:
            if (message.kind, message.number) == (JoinKind.CHALLENGE, 2):
                alice.tampering = lambda _message, data: data
                next(bob.folder.rglob("store-2.bin")).unlink()
            return data

        alice.tampering = lost
        align(alice, bob)
        links = wanted_links(identity(), HUB, SPOKE)
        assert sorted(zip(alice.column, bob.column, strict=True)) == rows_of(links, HUB, SPOKE)
        assert alice.store.joins.sessions_of() == {"bob": 2}


@pytest.mark.parametrize("at", [9, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 4, 14))])
def test_curators_that_end_at_any_time_link_the_same(tmp_path: Path, at: int) -> None:
    """Both lose what is in memory at some message; they begin again on their folders and send the same bytes."""
    rule = identity()
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=True) as (alice, bob):
        broken, sent = [], dict[object, bytes]()

        def ending(name: str, message: object, data: bytes) -> bytes:
            assert sent.setdefault((name, message), data) == data, "a message is not made again as it was"
            broken.append(message)
            if len(broken) == at:
                raise KeyboardInterrupt
            return data

        for curator in (alice, bob):
            curator.tampering = partial(ending, curator.name)
        with pytest.raises(KeyboardInterrupt):
            align(alice, bob)
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        links = wanted_links(rule, HUB, SPOKE)
        assert sorted(zip(alice.column, bob.column, strict=True)) == rows_of(links, HUB, SPOKE)
        assert alice.store.joins.sessions_of() == {"bob": 1}


def test_the_same_tables_are_not_linked_again(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        before, result = dict(bob.received), alice.alignment.result()
        bob.received.clear()
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        assert before
        assert bob.received == {}
        assert alice.alignment.result() == result


def test_a_curator_that_lost_its_files_gets_the_same_rows(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        result, tokens = alice.alignment.result(), bob.tokens_file()
        for path in bob.folder.glob("alignments/*/*"):
            if path.is_file():
                path.unlink()
        for curator in (alice, bob):
            curator.close()
            curator.open()
            curator.received.clear()
        align(alice, bob)
        assert bob.received, "no new session"
        assert (bob.alignment.result(), bob.tokens_file()) == (result, tokens)
        assert alice.store.joins.sessions_of() == {"bob": 2}, "the session is not counted"


def test_a_spoke_without_a_person_of_the_hub_says_nothing(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, people(30, 8)], identity(), is_private=False) as (alice, bob):
        align(alice, bob)
        assert bob.column == [ABSENT] * len(HUB)
        assert "No row is linked" in linkage_text(bob.report, {})


def test_files_of_a_linkage_hold_no_key_and_no_secret_in_clear(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        for curator, other in ((alice, "bob"), (bob, "alice")):
            data = b"".join(path.read_bytes() for path in curator.folder.rglob("*") if path.is_file())
            assert not [person for person in curator.rows if person[1].encode() in data]
            own = curator.store.joins.session(curator.alignment._current, other)
            assert own is not None
            assert own.secret == b""


@WAYS
def test_a_linkage_writes_no_more_than_is_kept_for_it(tmp_path: Path, *, is_private: bool) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(placebo=True), is_private=is_private) as (alice, bob):
        with disk_use(alice.folder) as of_alice, disk_use(bob.folder) as of_bob:
            align(alice, bob)
        for use, one in ((of_alice, alice), (of_bob, bob)):
            assert use.most <= one.exchange.most_bytes(one.table)
            assert not is_private or one.exchange.most_bytes(one.table) <= 3 * use.most
