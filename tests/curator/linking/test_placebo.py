"""Rows with moved dates in a linkage: counted as the rule proposes for them, seen by nobody, and part of no link."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.common.linkage.linked_registers import Linked, linked_tables
from tests.curator.alignment.circle import align
from tests.curator.linking.registers import (
    FIELDS,
    Person,
    identity,
    people,
    registers,
    wanted_links,
    with_errors,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.linkage.row_keys import NormalRows, normal_rows, pass_keys
from veiltab.curator.alignment.linking import leg, spoke_work
from veiltab.curator.alignment.linking.leg import COMPARED
from veiltab.curator.alignment.linking.link_messages import LinkKind, LinkMessage
from veiltab.curator.alignment.linking.spoke_work import _FOUND, SpokeWork
from veiltab.curator.alignment.private import masking
from veiltab.curator.alignment.private.ristretto import hashed
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text, wrong_links_json
from veiltab.curator.records.private_sessions import PrivateSession
from veiltab.play.registers.people import made_registers

COMMON, ALONE = people(120, 1), people(90, 2)


def moved(person: Person) -> Person:
    """Return a person as the run with moved dates has it; what is no date stays so."""
    given, family, birth, sex, postcode = person
    year, month, day = (int(part) for part in birth.split("-"))
    if month > 12:
        return person
    return given, family, f"{year + 3}-{(month + 4) % 12 + 1:02}-{(day + 10) % 28 + 1:02}", sex, postcode


BY_CHANCE = [
    *map(moved, ALONE[50:55]),
    *((one[0], one[1], f"{moved(one)[2][:4]}-01-30", one[3], one[4]) for one in ALONE[55:58]),
    *((one[0][1:], "another", *moved(one)[2:]) for one in ALONE[58:60]),
]
"""Rows of the hub whom rows of the spoke find with a moved date: five, three and two by the keys of the ladder."""

HUB = [*COMMON, *ALONE[:40], *BY_CHANCE]
SPOKE = [*with_errors(COMMON, 3)[::-1], *ALONE[40:60]]
RULE = identity(placebo=True)


def oracle(rule: IdentityRule, hub: Sequence[Person], spoke: Sequence[Person]) -> Linked:
    """Return the same linkage by the rule itself, over all keys in memory."""
    tables = [list(zip(*rows, strict=True)) for rows in (hub, spoke)]
    return linked_tables(rule, tables, [range(len(hub)), range(len(spoke))], ["ymd", "ymd"])


def asked_keys(rule: IdentityRule, hub: Sequence[Person], runs: Sequence[Sequence[Person]]) -> dict[int, int]:
    """Return pass -> how many different keys the rows of all runs have that are without a candidate, one by one."""

    def normal(rows: Sequence[Person]) -> NormalRows:
        return normal_rows(rule, "ymd", list(zip(*rows, strict=True)))

    left = [(number, row) for number, rows in enumerate(runs) for row in range(len(rows))]
    counts = dict[int, int]()
    for step in rule.ladder:
        mine, theirs = pass_keys(step, normal(hub)), [pass_keys(step, normal(rows)) for rows in runs]
        counts[step.number] = len({key for number, row in left for key in theirs[number][row]})
        agree = [{other for other, keys in enumerate(mine) if {*keys} & {*theirs[run][row]}} for run, row in left]
        left = [one for one, others in zip(left, agree, strict=True) if len(others) != 1]
    return counts


@pytest.mark.parametrize(("is_private", "placebo"), [(False, False), (True, False), (True, True)])
def test_rows_with_moved_dates_are_counted_and_change_no_link(
    tmp_path: Path, *, is_private: bool, placebo: bool
) -> None:
    rule = replace(RULE, placebo=placebo)
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(rule, HUB, SPOKE)
        chosen = [HUB[row] for row in links], [SPOKE[row] for row in links.values()]
        held = [sorted(sum(map(ord, row[2])) % 251 for row in rows) for rows in chosen]
        assert [sorted(one.column) for one in (alice, bob)] == held
        report, runs = bob.report, placebo or not is_private
        wanted = oracle(rule, HUB, SPOKE).placebo()
        assert [one.proposals for one in wanted] == [5, 3, 2], "the hub has nobody with a moved date"
        assert (report.placebo_rows, report.placebo) == ((len(SPOKE), wanted) if runs else (0, []))
        asked = {m.number: len(data) // 32 for m, data in alice.received.items() if m.kind is LinkKind.ASKED}
        asked.pop(COMPARED, None)
        every = [SPOKE, [*map(moved, SPOKE)]] if placebo else [SPOKE]
        assert asked == (asked_keys(rule, HUB, every) if is_private else {})
        assert report.quality is not None
        wrong, said = report.quality[0], linkage_text(report, {})
        shown: Any = linkage_json(report, {})
        assert shown["chance_estimated"] == wrong.by_chance / len(links)
        assert shown["placebo_rows"] == report.placebo_rows
        assert [one["placebo"] for one in shown["passes"]] == ([5, 3, 2] if runs else [None] * 3)
        assert f'"lambda_chance": {wrong.chance}' in wrong_links_json(report, "bob")
        if runs:
            shares = [one.entered_real / one.entered for one in wanted]
            assert wrong.by_chance == pytest.approx(
                sum(g * w for g, w in zip(shares, (5, 3, 2), strict=True)) * (1 - len(links) / len(HUB))
            )
            assert f"of {len(SPOKE)} rows with moved dates 10 found a row of the hub" in said
        else:
            assert wrong.by_chance == 3
            assert "3.0 of the links are taken as wrong by chance, as no rows ran with moved dates" in said


def test_whom_a_row_with_moved_dates_finds_is_not_kept_named_or_compared(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=True) as (alice, bob):
        kept = dict[str, Any]()

        def noted(message: LinkMessage, data: bytes) -> bytes:
            if message.kind is LinkKind.ACCEPTED:
                kept.update({path.name: np.fromfile(path, _FOUND) for path in bob.session_folder.glob("found-*.bin")})
                kept["accepted"] = data
            return data

        bob.tampering = noted
        align(alice, bob)
        links = wanted_links(RULE, HUB, SPOKE)
        assert len(kept.pop("accepted")) == 16 * len(links)
        found = np.concatenate([*kept.values()])
        is_moved = found["row"] >= len(SPOKE)
        named = found["handle"].astype("V16").view(np.uint8).reshape(-1, 16).any(axis=1)
        assert int(np.count_nonzero(is_moved)) == 10
        assert named.tolist() == (~is_moved).tolist()
        compared = next(d for m, d in alice.received.items() if m.kind is LinkKind.ASKED and m.number == COMPARED)
        assert len(compared) <= 32 * 6 * len(links)


@pytest.mark.parametrize("placebo", [False, True])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_hub_answers_for_rows_with_moved_dates_and_for_no_key_more(
    tmp_path: Path, *, placebo: bool, beyond: int
) -> None:
    """A spoke of 140 rows fills up with guesses; in the first pass each row has one key."""
    most = 32 * len(SPOKE) * (2 if placebo else 1)
    strangers = hashed(f"stranger {number}".encode() for number in range(999))
    with registers(tmp_path, [HUB, SPOKE], replace(RULE, placebo=placebo), is_private=True) as (alice, bob):

        def filled(message: LinkMessage, data: bytes) -> bytes:
            return data + strangers[: most - len(data) + 32 * beyond] if message.kind is LinkKind.ASKED else data

        bob.tampering = filled
        said = "alice: sends {:,} bytes (answered, pass 1)", "bob: sends {:,} bytes (asked, pass 1), more than the {:,}"
        with pytest.raises(InvalidInputError, match=re.escape(said[beyond].format(most + 32 * beyond, most))):
            align(alice, bob)


@pytest.mark.parametrize("at", [7, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 3, 12, 17))])
def test_a_spoke_that_ends_in_the_run_with_moved_dates_asks_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """It is killed as it has written some batches; all that it sends, it sends as before, and it counts the same."""
    monkeypatch.setattr(masking, "BATCH", 64)
    monkeypatch.setattr(spoke_work, "secret_order", lambda count, _key: np.arange(count)[::-1])
    monkeypatch.setattr(leg, "MOST_PLACEBO_ROWS", 100)
    write, written, sent = masking._write_all, list[str](), dict[LinkMessage, bytes]()

    def ending(path: Path, pieces: Sequence[bytes]) -> None:
        write(path, pieces)
        if "asked-bob" in path.name or "values" in path.name:
            written.append(path.name)
            if len(written) == at:
                raise KeyboardInterrupt

    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=True) as (alice, bob):

        def noted(message: LinkMessage, data: bytes) -> bytes:
            assert sent.setdefault(message, data) == data, "a message is not made again as it was"
            return data

        bob.tampering = noted
        with monkeypatch.context() as patched:
            patched.setattr(masking, "_write_all", ending)
            with pytest.raises(KeyboardInterrupt):
                align(alice, bob)
        before = {path.name: path.read_bytes() for path in bob.session_folder.glob("asked-*")}
        for curator in (alice, bob):
            curator.close()
            curator.open()
        align(alice, bob)
        everything = b"".join(sent[message] for message in sent if message.kind is LinkKind.ASKED)
        assert before
        assert not [name for name, data in before.items() if data not in everything]
        wanted = oracle(RULE, HUB, SPOKE[40:]).placebo()
        assert [one.placebo for one in bob.report.passes] == [one.proposals for one in wanted]
        assert bob.report.placebo_rows == 100
        assert alice.alignment.result()[0] == len(wanted_links(RULE, HUB, SPOKE))


def test_the_rows_that_run_with_moved_dates_are_drawn_under_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leg, "MOST_PLACEBO_ROWS", 30)
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=True) as (_, bob):

        def drawn(secret: bytes) -> tuple[int, ...]:
            own = PrivateSession(part=bytes(16), name="b" * 32, scalar=bytes(32), seed=secret, suspects=())
            work = bob.exchange._work_in("a" * 32, own, bob.table, bytes(32), cast("Any", bob))
            assert isinstance(work, SpokeWork)
            return tuple(np.flatnonzero(work._moved == 0).tolist())

        first, again, other = (drawn(bytes(31) + bytes([number])) for number in (0, 0, 1))
        assert (len(first), first) == (30, again)
        assert first != other


def test_a_key_with_nothing_to_move_counts_as_unseen(tmp_path: Path) -> None:
    rule = identity(keys=("given family sex", "given family birth:year postcode"), placebo=True)
    hub = [*COMMON, *ALONE[:40], *BY_CHANCE[5:8]]
    with registers(tmp_path, [hub, SPOKE], rule, is_private=True) as (alice, bob):
        align(alice, bob)
        report = bob.report
        assert report.quality is not None
        assert [one.placebo for one in report.passes] == [None, 3]
        second = report.placebo[1]
        assert second is not None
        assert (second.entered, second.entered_real) == (len(SPOKE), report.passes[0].left)
        assert report.quality[0].by_chance > 3
        asked = {m.number: len(data) // 32 for m, data in alice.received.items() if m.kind is LinkKind.ASKED}
        assert asked[1] <= len(SPOKE) < asked[2]


@pytest.mark.long
@pytest.mark.parametrize(("seed", "deletions"), [("a", 0), ("b", 0), ("c", 3)])
def test_a_session_estimates_precision_without_the_truth(tmp_path: Path, seed: str, deletions: int) -> None:
    """Made registers of 20,000 rows with twins, by the parties' own code; the truth is the registers'."""
    made = made_registers(20_000, seed)
    rule = identity(keys=default_ladder(dict(FIELDS), deletions))
    truth = linked_tables(
        rule,
        [list(zip(*rows, strict=True)) for rows in (made.hub, made.spoke)],
        [made.hub_people.tolist(), made.spoke_people.tolist()],
        ["ymd", "ymd"],
    )
    with registers(tmp_path, [made.hub, made.spoke], rule, is_private=False) as (alice, bob):
        align(alice, bob, seconds=600)
        assert bob.report.leg == len(truth.links())
        assert bob.report.placebo == truth.placebo()
        assert bob.report.quality is not None
        assert abs(bob.report.quality[0].precision.value - truth.found()[1]) < 0.0005
