"""Rows that miss a value of an attribute are linked as all others, and leave then: no attribute decides a link."""

import secrets
from collections.abc import Collection, Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import Curator, Person, identity, people, registers, symbol, table_of, wanted_links
from veiltab.common.errors import InvalidInputError
from veiltab.curator.alignment.linking import link_exchange
from veiltab.curator.alignment.linking.link_messages import LinkKind
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text

COMMON, ALONE = people(60, 1), people(460, 2)
HUB, SPOKE = [*COMMON, *ALONE[20:]], [*COMMON[::-1], *ALONE[:20]]
RULE = identity(cap=Decimal("0.1"))
TWIN = 7
"""Of the common people, who stands twice in one of the tables."""


def missing(curator: Curator, rows: Collection[int]) -> None:
    """Let some rows of a curator miss their value."""
    curator.table = table_of(curator.rows, f"content of {curator.name}", rows)


def linked(
    folder: Path, hub: Sequence[Person], spoke: Sequence[Person], at_hub: Collection[int], at_spoke: Collection[int]
) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the tokens of the linked people, and their values at both curators."""
    with registers(folder, [hub, spoke], RULE, is_private=True) as (alice, bob):
        missing(alice, at_hub)
        missing(bob, at_spoke)
        align(alice, bob)
        assert alice.tokens_file() == bob.tokens_file()
        return alice.tokens_file(), list(zip(alice.column, bob.column, strict=True))


@pytest.fixture
def same_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the hub draw the key of its handles alike in each world; sessions stay random."""
    fixed = SimpleNamespace(token_hex=secrets.token_hex, token_bytes=bytes)
    monkeypatch.setattr(link_exchange, "secrets", fixed)


@pytest.mark.usefixtures("same_handles")
@pytest.mark.parametrize("is_hub", [True, False], ids=["hub", "spoke"])
def test_a_twin_that_misses_a_value_decides_as_one_that_has_it(tmp_path: Path, *, is_hub: bool) -> None:
    """At the hub it makes the key ambiguous, at the spoke it ties; the linked tables agree byte for byte."""
    hub, spoke = ([*HUB, HUB[TWIN]], SPOKE) if is_hub else (HUB, [*SPOKE, HUB[TWIN]])
    row = [len(HUB) if is_hub else len(SPOKE)]
    worlds = [
        linked(tmp_path / str(number), hub, spoke, rows if is_hub else (), () if is_hub else rows)
        for number, rows in enumerate(([], row))
    ]
    assert worlds[0] == worlds[1]
    assert len(worlds[0][1]) == len(COMMON) - 1


@pytest.mark.usefixtures("same_handles")
def test_a_linked_row_that_misses_a_value_leaves_and_no_other_changes(tmp_path: Path) -> None:
    place = SPOKE.index(HUB[TWIN])
    whole, at_hub, at_spoke = (
        linked(tmp_path / str(number), HUB, SPOKE, *rows)
        for number, rows in enumerate((((), ()), ([TWIN], ()), ((), [place])))
    )
    assert at_hub == at_spoke
    tokens = [{text[at : at + 16] for at in range(0, len(text), 16)} for text in (whole[0], at_hub[0])]
    assert (len(tokens[0]), len(tokens[0] - tokens[1]), tokens[1] - tokens[0]) == (len(COMMON), 1, set())


def test_counts_are_of_rows_that_stay_and_estimates_of_all_links(tmp_path: Path) -> None:
    """Nobody hears of a handle whose row misses a value at the spoke; the hub leaves out its own."""
    at_hub, at_spoke = {*range(5), *range(60, 70)}, {*range(10), *range(60, 66)}
    links = wanted_links(RULE, HUB, SPOKE)
    named = {mine: theirs for mine, theirs in links.items() if theirs not in at_spoke}
    joint = {mine: theirs for mine, theirs in named.items() if mine not in at_hub}
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=True) as (alice, bob):
        missing(alice, at_hub)
        missing(bob, at_spoke)
        align(alice, bob)
        sent = {message.kind: len(data) for message, data in {**alice.received, **bob.received}.items()}
        assert (sent[LinkKind.ACCEPTED], sent[LinkKind.JOINT]) == (16 * len(named), 32 * len(joint))
        mine, theirs = bob.report, alice.report
        assert (mine.rows, mine.hub_rows, theirs.rows) == (len(SPOKE), len(HUB), len(HUB))
        assert (mine.links, mine.leg, mine.incomplete) == (len(joint), len(named), len(links) - len(named))
        assert (theirs.links, theirs.legs[0].links, theirs.incomplete) == (
            len(joint),
            len(named),
            len(named) - len(joint),
        )
        assert mine.pairs == len(named)
        values = sorted((symbol(HUB[one]), symbol(SPOKE[other])) for one, other in joint.items())
        assert sorted(zip(alice.column, bob.column, strict=True)) == values
        for report, rows in ((mine, len(SPOKE) - len(at_spoke)), (theirs, len(HUB) - len(at_hub))):
            (rate,) = report.rates
            odd = sum(value[0 if report.is_hub else 1] % 2 for value in values)
            assert (sum(rate.rows), rate.linked) == (rows, (len(joint) - odd, odd))
        # People of both tables are estimated from all links: the pairs that are compared stand for those that leave.
        assert mine.quality is not None
        wrong, found = mine.quality
        assert found is not None
        assert len(links) * (1 - wrong.share) / found.value == pytest.approx(len(COMMON))
        assert f"{mine.incomplete} more rows of this table link, and leave" in linkage_text(mine, {})
        assert linkage_json(theirs, {})["incomplete"] == theirs.incomplete > 0


def test_three_curators_leave_out_who_misses_a_value_anywhere(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE, COMMON], RULE, is_private=False) as (alice, bob, carol):
        missing(alice, range(3))
        missing(bob, [SPOKE.index(one) for one in COMMON[3:5]])
        missing(carol, range(5, 9))
        align(alice, bob, carol)
        assert {alice.report.links, bob.report.links, carol.report.links} == {len(COMMON) - 9}
        assert (alice.report.incomplete, bob.report.incomplete, carol.report.incomplete) == (3, 2, 4)
        # A sample for clerks is of those that stay, the same and in one order at all three.
        samples = [[one.rows[row] for row in one.sample.rows.tolist()] for one in (alice, bob, carol)]
        assert samples[0] == samples[1] == samples[2]
        assert sorted(samples[0]) == sorted(COMMON[9:]) != samples[0]


def test_a_linkage_of_incomplete_people_alone_is_refused(tmp_path: Path) -> None:
    with registers(tmp_path, [HUB, SPOKE], RULE, is_private=False) as (alice, bob):
        missing(alice, range(len(COMMON)))
        with pytest.raises(InvalidInputError, match="no row is linked"):
            align(alice, bob)
