"""Rows that miss a value of an attribute are linked as all others, and left out then: no attribute decides a link."""

from collections.abc import Collection
from decimal import Decimal
from pathlib import Path

import pytest

from tests.curator.alignment.circle import ABSENT, align
from tests.curator.linking.registers import Curator, identity, people, registers, symbol, table_of, wanted_links
from veiltab.curator.linkage.linkage_text import linkage_text

COMMON, ALONE = people(60, 1), people(460, 2)
HUB, SPOKE = [*COMMON, *ALONE[20:]], [*COMMON[::-1], *ALONE[:20]]
RULE = identity(cap=Decimal("0.1"))
TWIN = 7
"""Of the common people, who stands twice in one of the tables."""


def missing(curator: Curator, rows: Collection[int]) -> None:
    """Let some rows of a curator miss their value."""
    curator.table = table_of(curator.rows, f"content of {curator.name}", rows)


@pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])
def test_rows_are_the_hub_s_complete_ones_and_other_links_of_nobody(tmp_path: Path, *, is_private: bool) -> None:
    at_hub, at_spoke = {*range(5), *range(60, 70)}, {*range(10), *range(60, 66)}
    links = wanted_links(RULE, HUB, SPOKE)
    joint = {mine: theirs for mine, theirs in links.items() if mine not in at_hub and theirs not in at_spoke}
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=is_private) as (alice, bob):
        missing(alice, at_hub)
        missing(bob, at_spoke)
        align(alice, bob)
        rows = [
            (symbol(one), symbol(SPOKE[joint[row]]) if row in joint else ABSENT)
            for row, one in enumerate(HUB)
            if row not in at_hub
        ]
        assert sorted(zip(alice.column, bob.column, strict=True)) == sorted(rows)
        mine = bob.report
        assert (mine.rows, mine.hub_rows, alice.report.rows) == (len(SPOKE), len(HUB), len(HUB))
        assert (mine.links, mine.incomplete, mine.pairs) == (len(joint), len(links) - len(joint), len(joint))
        (rate,) = mine.rates
        odd = sum(symbol(SPOKE[row]) % 2 for row in joint.values())
        assert (sum(rate.rows), rate.linked) == (len(SPOKE) - len(at_spoke), (len(joint) - odd, odd))
        # People of both tables are estimated from all links: the pairs that are compared stand for those left out.
        assert mine.quality is not None
        wrong, found = mine.quality
        assert found is not None
        assert len(links) * (1 - wrong.share) / found.value == pytest.approx(len(COMMON))
        assert f"{mine.incomplete} more rows link, and are left out" in linkage_text(mine, {})


@pytest.mark.parametrize("is_hub", [True, False], ids=["hub", "spoke"])
@pytest.mark.parametrize("misses", [False, True])
def test_a_twin_that_misses_a_value_decides_as_one_that_has_it(tmp_path: Path, *, is_hub: bool, misses: bool) -> None:
    """At the hub it makes the key ambiguous, at the spoke it ties."""
    hub, spoke = ([*HUB, HUB[TWIN]], SPOKE) if is_hub else (HUB, [*SPOKE, HUB[TWIN]])
    with registers(tmp_path, [hub, spoke], RULE, is_private=False) as (alice, bob):
        if misses:
            missing(alice if is_hub else bob, [len(HUB) if is_hub else len(SPOKE)])
        align(alice, bob)
        assert bob.report.links == len(COMMON) - 1
        assert bob.column.count(ABSENT) == len(alice.column) - (len(COMMON) - 1)
