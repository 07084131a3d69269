"""Rows with moved dates in a linkage: counted as the rule proposes for them, seen by nobody, and part of no link."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.common.linkage.linked_registers import linked_tables
from tests.curator.linking.registers import (
    FIELDS,
    Curator,
    Person,
    align,
    identity,
    people,
    registers,
    wanted_links,
    with_errors,
)
from veiltab.common.errors import InvalidInputError
from veiltab.common.linkage.ladder import default_ladder
from veiltab.common.linkage.linked_identity import Identity
from veiltab.common.linkage.quality import wrong_links
from veiltab.common.linkage.row_keys import NormalRows, normal_rows, pass_keys
from veiltab.curator.alignment.linking import leg
from veiltab.curator.alignment.linking.leg import COMPARED
from veiltab.curator.alignment.linking.link_messages import LinkKind
from veiltab.curator.alignment.private.ristretto import hashed
from veiltab.curator.commands.linkage_text import linkage_json, linkage_text

COMMON, ALONE = people(120, 1), people(90, 2)


def moved(person: Person) -> Person:
    """Return a person as the run with moved dates has it, whose date is before the 29th."""
    given, family, birth, sex, postcode = person
    year, month, day = (int(part) for part in birth.split("-"))
    return given, family, f"{year + 3}-{(month + 4) % 12 + 1:02}-{(day + 10) % 28 + 1:02}", sex, postcode


FOUND = [*ALONE[50:55], *COMMON[:4]]
"""Rows of the spoke whom the hub has with another date: four of them are also there with their own."""

HUB = [*COMMON, *ALONE[:40], *map(moved, FOUND[:6]), *((*moved(one)[:4], "x") for one in FOUND[6:])]
"""Of those four the hub has one with its postcode, and three without."""

SPOKE = [*with_errors(COMMON, 3)[::-1], *ALONE[40:60]]
RULE = identity(placebo=True)
WAYS = pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])


def normal(rows: list[Person]) -> NormalRows:
    return normal_rows(RULE, "ymd", list(zip(*rows, strict=True)))


def asked_keys(rule: Identity, hub: list[Person], spoke: list[Person], run: list[list[Person]]) -> dict[int, int]:
    """Return pass -> how many different keys rows without a candidate have, of all these runs, by the rule."""
    left, counts = [(number, row) for number, rows in enumerate(run) for row in range(len(rows))], {}
    for step in rule.ladder:
        held = [key for keys in pass_keys(step, normal(hub)) for key in keys]
        theirs = [pass_keys(step, normal(rows)) for rows in run]
        counts[step.number] = len({key for number, row in left for key in theirs[number][row]})
        owners = {key: [row for row, keys in enumerate(pass_keys(step, normal(hub))) if key in keys] for key in held}
        left = [
            (number, row)
            for number, row in left
            if len({other for key in theirs[number][row] for other in owners.get(key, [])}) != 1
        ]
    return counts


@WAYS
def test_rows_with_moved_dates_are_counted_and_change_no_link(tmp_path: Path, *, is_private: bool) -> None:
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=is_private) as (alice, bob):
        align(alice, bob)
        links = wanted_links(RULE, HUB, SPOKE)
        symbols = [sorted(sum(map(ord, rows[row][2])) % 251 for row in chosen) for rows, chosen in
                   ((HUB, links), (SPOKE, links.values()))]
        assert [sorted(one.column) for one in (alice, bob)] == symbols
        report = bob.report
        oracle = linked_tables(
            RULE, [list(zip(*rows, strict=True)) for rows in (HUB, SPOKE)], [range(len(HUB)), range(len(SPOKE))], ["ymd"] * 2
        )
        wanted = oracle.placebo()
        assert [one.placebo for one in report.passes] == [one.proposals for one in wanted]
        assert sum(one.proposals for one in wanted) >= 5
        assert report.placebo_rows == len(SPOKE)
        assert report.placebo == wanted
