"""Linking in one process: by tokens and privately, two and three curators link whom the rule links."""

import asyncio
import secrets
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import product, starmap
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import (
    FIELDS,
    Curator,
    Person,
    identity,
    people,
    registers,
    symbol,
    table_of,
    wanted_links,
    with_errors,
)
from veiltab.common.errors import DeniedError, InvalidInputError
from veiltab.common.linkage.ladder import default_ladder
from veiltab.curator.alignment.linking import hub_work, link_exchange, spoke_work
from veiltab.curator.alignment.linking.leg import COMPARED
from veiltab.curator.alignment.linking.link_messages import LinkKind
from veiltab.curator.alignment.linking.linked_rows import linked_rows
from veiltab.curator.alignment.linking.spoke_work import SpokeWork
from veiltab.curator.linkage.linkage_report import LegCount, LinkageReport, PassCount
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text, wrong_links_json
from veiltab.curator.peers.calls import Peers
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.curator.table.table_rows import LostTableError, TableRows
from veiltab.curator.table.workplace import Workplace
from veiltab.researcher.linkage_errors.linkage_error import read_report

COMMON, ALONE = people(120, 1), people(90, 2)
HUB = [*COMMON, *ALONE[:40]]
SPOKE = [*with_errors(COMMON, 3)[::-1], *ALONE[40:60], COMMON[0]]
"""The last row of the spoke is one of a pair that ties."""

WAYS = pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])


def pairs(links: dict[int, int], hub: list[Person], spoke: list[Person]) -> list[tuple[int, int]]:
    return sorted((symbol(hub[mine]), symbol(spoke[theirs])) for mine, theirs in links.items())


@WAYS
def test_two_curators_link_what_the_rule_links(tmp_path: Path, *, is_private: bool) -> None:
    rule = identity(keys=default_ladder(dict(FIELDS), 2))
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(rule, HUB, SPOKE)
        assert 105 <= len(links) < 120
        assert sorted(zip(alice.column, bob.column, strict=True)) == pairs(links, HUB, SPOKE)
        assert alice.alignment.result() == bob.alignment.result()
        check_reports(alice, bob, len(links), is_private=is_private)
        # A spoke cannot have a pass repeated: the hub asks for each message once a session.
        assert {*alice.fetched.values(), *bob.fetched.values()} == {1}


def check_reports(hub: Curator, spoke: Curator, links: int, *, is_private: bool) -> None:
    mine, theirs = spoke.report, hub.report
    assert (mine.links, mine.leg, theirs.links) == (links, links, links)
    assert sum(one.linked or 0 for one in mine.passes) == links
    assert [one.left for one in mine.passes] == sorted((one.left or 0 for one in mine.passes), reverse=True)
    assert mine.passes[0].left is not None
    assert 0 < mine.passes[0].left < len(SPOKE)
    assert all(one.linked is None for one in theirs.passes)
    (leg,) = theirs.legs
    asked = [len(data) // 32 for message, data in hub.received.items() if message.kind is LinkKind.ASKED]
    assert (leg.curator, leg.links, leg.elements) == ("bob", links, sum(asked))
    assert (mine.legs[0].curator, mine.legs[0].elements) == ("alice", leg.elements)
    assert bool(asked) is is_private
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
        assert (report.leg, report.ties, report.tied) == (80, 80, 40)
        assert alice.report.ties == 0
        assert report.quality is not None
        wrong, found = report.quality
        assert found is not None
        assert found.value == pytest.approx(80 * (1 - wrong.share) / 120)
        assert "80 rows tied with another one of this table and are not linked" in linkage_text(report, {})
        assert linkage_json(report, {})["ties"] == 80
        assert linkage_json(alice.report, {})["ties"] is None


def test_a_report_names_absent_fields_swapped_dates_and_why_nobody_is_linked() -> None:
    keys = {"given family birth sex": 3, "given+family birth:year birth:month+birth:day": 40, "birth postcode": 0}
    passes = tuple(PassCount(key=key, runs=True, matches=0, linked=n, left=9) for key, n in keys.items())
    leg = LegCount(curator="alice", links=43, elements=0)
    report = LinkageReport(is_hub=False, rows=50, hub_rows=60, links=43, passes=passes, legs=(leg,))
    text = linkage_text(report, {}, {"birth postcode": "needs postcode, which bob lacks"})
    assert "birth postcode                                     0.000%  not here: needs postcode, which bob" in text
    assert "The key 'given+family birth:year birth:month+birth:day', which swaps names, or day and month" in text
    assert "blinded" not in text
    usual = tuple(replace(one, linked=50 - (one.linked or 0)) for one in passes)
    assert "swaps" not in linkage_text(replace(report, passes=usual), {})
    for is_hub in (False, True):
        none = replace(report, is_hub=is_hub, links=0, legs=(replace(leg, links=0),))
        said = linkage_text(none, {})
        assert said.startswith("No people are linked by all curators.")
        assert "No row is linked. Compare the identity columns and date_order" in said
        assert "The hub does not learn" not in said
    with pytest.raises(InvalidInputError, match="no row is linked"):
        wrong_links_json(replace(report, links=0, legs=(replace(leg, links=0),)), "bob")


def test_a_researcher_reads_what_clerks_counted(tmp_path: Path) -> None:
    """Of 200 pairs none was wrong: the share is 0, and 1.96 standard deviations reach the end of the exact interval."""
    passes = (PassCount(key="given family birth sex", runs=True, matches=0, linked=900, left=9),)
    leg = LegCount(curator="alice", links=900, elements=0)
    report = LinkageReport(is_hub=False, rows=950, hub_rows=990, links=900, passes=passes, legs=(leg,))
    path = tmp_path / "links.json"
    for wrong, chance in ((0, 0.0), (1, 3 / 900)):
        path.write_text(wrong_links_json(report, "bob", (200, wrong)), "utf-8")
        error = read_report(path)
        assert isinstance(error, dict)
        assert (error["bob"].share, error["bob"].least) == (wrong / 200, chance)
    path.write_text(wrong_links_json(report, "bob", (200, 0)), "utf-8")
    error = read_report(path)
    assert isinstance(error, dict)
    assert 1.96 * error["bob"].sd == pytest.approx(1 - 0.025 ** (1 / 200), rel=1e-4)


def test_some_pairs_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hub and spoke compare the same pairs, and estimates are those of all links, but for chance."""
    for module in (hub_work, spoke_work):
        monkeypatch.setattr(module, "MOST_PAIRS", 60)
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        report = bob.report
        assert report.leg is not None
        assert (report.pairs, report.leg > 90) == (60, True)
        assert report.agreed is not None
        assert 30 < report.agreed[0] < 60
        assert report.quality is not None
        wrong, found = report.quality
        assert found is not None
        people_estimated = report.leg * (1 - wrong.share) / found.value
        assert 90 < people_estimated < 150


@WAYS
def test_three_curators_link_whom_both_spokes_link(tmp_path: Path, *, is_private: bool) -> None:
    rule, other = identity(hub="bob"), [*with_errors(COMMON[30:], 5), *ALONE[60:]]
    with registers(tmp_path, [SPOKE, HUB, other], rule, is_private=is_private) as (alice, bob, carol):
        align(alice, bob, carol)
        first, second = wanted_links(rule, HUB, SPOKE), wanted_links(rule, HUB, other)
        both = first.keys() & second.keys()
        assert 60 < len(both) < min(len(first), len(second))
        wanted = sorted((symbol(SPOKE[first[b]]), symbol(HUB[b]), symbol(other[second[b]])) for b in both)
        assert sorted(zip(alice.column, bob.column, carol.column, strict=True)) == wanted
        # Nobody but the hub can compare the handles of two spokes, before the joint ones.
        sent = [{bytes(data[at : at + 16]) for at in range(0, len(data), 16)} for data in accepted(bob)]
        assert len(sent) == 2
        assert not sent[0] & sent[1]
        tables = [
            b"".join(data for message, data in spoke.received.items() if message.kind is LinkKind.TABLE)
            for spoke in (alice, carol)
        ]
        tags = [{table[at : at + 16] for at in range(0, len(table), 32)} for table in tables]
        assert bool(tags[0] & tags[1]) is not is_private, "two spokes can compare what the hub shows them"


def accepted(hub: Curator) -> list[bytes]:
    return [data for message, data in hub.received.items() if message.kind is LinkKind.ACCEPTED]


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
        assert sorted(zip(alice.column, bob.column, strict=True)) == pairs(wanted, hub, spoke)
        assert wanted_links(identity(), hub, spoke) == wanted


def test_each_pass_session_and_spoke_has_secrets_of_its_own(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        spokes = list(product(("bob", "carol"), (1, 2, COMPARED)))

        def secrets_of(one: Curator, session: str) -> list[object]:
            own = PrivateSession(part=bytes(16), name=session, scalar=bytes(32), seed=session.encode(), suspects=())
            work = one.exchange._work_in("a" * 32, own, one.table, bytes(32), cast("Peers", one))
            if isinstance(work, SpokeWork):
                return [*map(work._blind, (1, 2, COMPARED)), *map(work._order_key, (1, 2, COMPARED))]
            names = [work._handles(*each).of(np.zeros(1, np.int64)).tobytes() for each in spokes if each[1] != 2]
            return [*starmap(work._scalar, spokes), *names]

        made = [key for one in (alice, bob) for session in ("b" * 32, "c" * 32) for key in secrets_of(one, session)]
        assert (len(made), len(set(made))) == (32, 32)
        keys = {alice.exchange._linkages.handle_key(name, secrets.token_bytes(32)) for name in ("x", "y", "x")}
        assert len(keys) == 2


def test_a_curator_whose_linked_rows_are_deleted_reads_its_table_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=False) as (alice, bob):

        def deleted(
            table: TableRows, rows: NDArray[np.int64], handles: bytes, agreed: str, workplace: Workplace
        ) -> TableRows:
            linked = linked_rows(table, rows, handles, agreed, workplace)
            if table is first.respondents:
                next((alice.folder / "run").rglob("linked-*")).unlink()
            return linked

        first = alice.table
        monkeypatch.setattr(link_exchange, "linked_rows", deleted)

        async def lost() -> None:
            other = asyncio.create_task(bob.alignment.run(bob.table, cast("Peers", bob)))
            try:
                with pytest.raises(LostTableError):
                    await asyncio.wait_for(alice.alignment.run(first, cast("Peers", alice)), 60)
            finally:
                other.cancel()

        asyncio.run(lost())
        alice.table = table_of(HUB, "content of alice")
        align(alice, bob)
        assert len(alice.column) == len(wanted_links(identity(), HUB, SPOKE))


@pytest.mark.parametrize("at", [8, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 4, 11))])
def test_curators_that_end_at_any_time_link_the_same(tmp_path: Path, at: int) -> None:
    """Both lose what is in memory at some message; they begin again on their folders and send the same bytes."""
    rule = identity()
    with registers(tmp_path / "whole", [HUB, SPOKE], rule, is_private=True) as whole:
        align(*whole)
        counts = whole[0].alignment.result()[0]
    with registers(tmp_path / "broken", [HUB, SPOKE], rule, is_private=True) as (alice, bob):
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
        first = {path.name: path.read_bytes() for path in alice.session_folder.glob("table*.bin")}
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        assert sorted(zip(alice.column, bob.column, strict=True)) == pairs(wanted_links(rule, HUB, SPOKE), HUB, SPOKE)
        assert alice.alignment.result()[0] == counts
        assert at == 1 or first


def test_the_same_tables_are_not_linked_again(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        before, result = dict(alice.received), alice.alignment.result()
        alice.received.clear()
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        assert before
        assert alice.received == {}
        assert alice.alignment.result() == result


def test_a_curator_that_lost_its_files_gets_the_same_handles(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
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
        assert alice.received, "no new session"
        assert (bob.alignment.result(), bob.tokens_file()) == (result, tokens)
        assert alice.store.private.parts()["bob"][1] == 2, "the session is not counted"
        alice.store.connection.execute("UPDATE private_part SET sessions = 3 WHERE curator = 'bob'")
        with pytest.raises(DeniedError, match="had 3 private alignments since a person here allowed more"):
            alice.exchange._check_may_begin({"alice": alice.store.private.parts()["alice"][0], "bob": bytes(16)})


def test_one_more_row_of_a_spoke_changes_one_link_and_no_other_element(tmp_path: Path) -> None:
    """Passes are those of the hub alone, and every other row asks what it asked before."""
    rule = identity()
    more = [*SPOKE, (COMMON[5][0], COMMON[7][1], COMMON[7][2], "m", COMMON[5][4])]
    counts, agreements, linked = [], [], []
    for number, rows in enumerate((SPOKE, more)):
        with registers(tmp_path / str(number), [HUB, rows], rule, is_private=True) as (alice, bob):
            align(alice, bob)
            asked = {m.number: len(data) for m, data in alice.received.items() if m.kind is LinkKind.ASKED}
            counts.append({step: length for step, length in asked.items() if step != COMPARED})
            agreements.append([d for m, d in bob.received.items() if m.kind is LinkKind.AGREEMENT])
            linked.append(set(wanted_links(rule, HUB, rows).items()))
            assert alice.alignment.result()[0] == len(linked[-1])
    assert agreements[0] == agreements[1]
    assert len(linked[0] ^ linked[1]) <= 2
    for step, length in counts[0].items():
        variants = 13 if rule.ladder[step - 1].deletion else 1
        assert 0 <= counts[1][step] - length <= 32 * variants


def test_files_of_a_linkage_hold_no_key_and_no_secret_in_clear(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], identity(), is_private=True) as (alice, bob):
        align(alice, bob)
        for curator in (alice, bob):
            data = b"".join(path.read_bytes() for path in curator.folder.rglob("*") if path.is_file())
            assert not [person for person in curator.rows if person[1].encode() in data]
            (own,) = [curator.store.private.session(path.name) for path in (curator.folder / "alignments").iterdir()]
            assert own is not None
            assert (own.scalar, own.seed) == (b"", b"")
            assert not asyncio.run(curator.exchange.is_wanted(curator.alignment._current, cast("Any", curator)))
            (key,) = curator.store.connection.execute("SELECT handle_key FROM linkage").fetchone()
            assert key == b"", "once all have finished"
