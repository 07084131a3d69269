"""Rows with moved dates in a linkage: counted as the rule proposes for them, seen by nobody, and part of no link."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.common.linkage.linked_registers import Linked, linked_tables
from tests.curator.alignment.circle import ABSENT, align
from tests.curator.linking.registers import (
    FIELDS,
    Person,
    identity,
    people,
    registers,
    symbol,
    wanted_links,
    with_errors,
)
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.storage.files import write_whole
from veiltab.curator.alignment.joining.row_numbers import NOBODY
from veiltab.curator.alignment.linking import link_session, link_spoke
from veiltab.curator.alignment.linking.link_spoke import SpokeLinking
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text, wrong_links_json
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


@pytest.mark.parametrize(("is_private", "placebo"), [(False, False), (True, False), (True, True)])
def test_rows_with_moved_dates_count_and_change_no_link(tmp_path: Path, *, is_private: bool, placebo: bool) -> None:
    rule = replace(RULE, placebo=placebo)
    with registers(tmp_path, [HUB, SPOKE], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(rule, HUB, SPOKE)
        held = sorted(symbol(SPOKE[row]) for row in links.values())
        assert sorted(bob.column) == held + [ABSENT] * (len(HUB) - len(links))
        report, runs = bob.report, placebo or not is_private
        wanted = oracle(rule, HUB, SPOKE).placebo()
        assert [one.proposals for one in wanted] == [5, 3, 2], "the hub has nobody with a moved date"
        assert (report.placebo_rows, report.placebo) == ((len(SPOKE), wanted) if runs else (0, []))
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


def test_whom_a_row_with_moved_dates_finds_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = dict[str, Any]()

    def noted(path: Path, made: memoryview) -> None:
        kept[path.name] = np.asarray(made)
        write_whole(path, made)

    monkeypatch.setattr(link_spoke, "write_whole", noted)
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=False) as (alice, bob):
        align(alice, bob)
        found = np.concatenate([made for name, made in kept.items() if name.startswith("found-")])
        is_moved = found["row"] >= len(SPOKE)
        assert int(np.count_nonzero(is_moved)) == 10
        assert ((found["number"] == NOBODY) == is_moved).all()


def test_rows_with_moved_dates_are_drawn_under_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_session, "MOST_PLACEBO_ROWS", 30)
    drawn = list[tuple[int, ...]]()
    run = SpokeLinking.run

    async def noted(work: SpokeLinking) -> Any:  # noqa: ANN401 - as it returns
        drawn.append(tuple(np.flatnonzero(work._moved == 0).tolist()))
        return await run(work)

    monkeypatch.setattr(SpokeLinking, "run", noted)
    for number in range(2):
        with registers(tmp_path / str(number), [HUB, SPOKE], RULE, is_private=False) as (alice, bob):
            align(alice, bob)
            assert bob.report.placebo_rows == 30
    assert {len(one) for one in drawn if len(one) > 20} == {30}
    assert len({one for one in drawn if len(one) == 30}) == 2


def test_a_key_with_nothing_to_move_counts_as_unseen(tmp_path: Path) -> None:
    rule = identity(keys=("given family sex", "given family birth:year postcode"), placebo=True)
    hub = [*COMMON, *ALONE[:40], *BY_CHANCE[5:8]]
    with registers(tmp_path, [hub, SPOKE], rule, is_private=False) as (alice, bob):
        align(alice, bob)
        report = bob.report
        assert report.quality is not None
        assert [one.placebo for one in report.passes] == [None, 3]
        second = report.placebo[1]
        assert second is not None
        assert (second.entered, second.entered_real) == (len(SPOKE), report.passes[0].left)
        assert report.quality[0].by_chance > 3


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
        assert bob.report.links == len(truth.links())
        assert bob.report.placebo == truth.placebo()
        assert bob.report.quality is not None
        assert abs(bob.report.quality[0].precision.value - truth.found()[1]) < 0.0005
