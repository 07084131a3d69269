"""A number that no key takes tells how many of the linked pairs are wrong, where both curators have it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.curator.alignment.circle import align
from tests.curator.linking.registers import FIELDS, SHORT, Person, people, registers, wanted_links, with_errors
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import FieldKind, default_ladder, ladder_of
from veiltab.curator.alignment.joining.join_messages import JoinKind
from veiltab.curator.alignment.linking.link_session import COMPARED
from veiltab.curator.linkage.linkage_text import linkage_json, linkage_text

COMMON, ALONE = people(60, 1), people(30, 2)
COMPARISON = JoinKind.COLUMNS, COMPARED
KEYS = ("given family birth sex", "given~ family birth sex")


def with_number(rows: Sequence[Person], numbers: Sequence[str]) -> Any:  # noqa: ANN401 - people of one field more
    return [(*row, number) for row, number in zip(rows, numbers, strict=True)]


def numbers_of(count: int) -> list[str]:
    return [f"{number * 7919 % 100_000:05}" for number in range(1, count + 1)]


OWN = numbers_of(90)
HUB = with_number([*COMMON, *ALONE], ["" if number % 7 == 0 else one for number, one in enumerate(OWN)])
SPOKE = with_number(
    with_errors(COMMON, 3)[::-1],
    [
        "" if number % 5 == 0 else "77-" + one if number % 11 == 0 else f"{one[:2]} {one[2:]}"
        for number, one in enumerate(OWN[:60])
    ][::-1],
)
RULE = IdentityRule(fields=(*FIELDS, ("card", FieldKind.NUMBER)), hub="alice", ladder=ladder_of(SHORT))
WITHOUT_POSTCODE = IdentityRule(fields=(*FIELDS[:4], ("card", FieldKind.NUMBER)), hub="alice", ladder=ladder_of(KEYS))


def known(rule: IdentityRule, hub: Any, spoke: Any) -> tuple[int, int]:  # noqa: ANN401 - of any kind
    """Return the linked pairs in which both have a number, and those of them in which the digits differ."""
    pairs = [(hub[mine][-1], spoke[theirs][-1]) for mine, theirs in wanted_links(rule, hub, spoke).items()]
    both = [[one.replace(" ", "").replace("-", "") for one in pair] for pair in pairs if all(pair)]
    return len(both), sum(one != other for one, other in both)


def without_postcode(rows: Any) -> Any:  # noqa: ANN401 - of any kind
    return [(*row[:4], row[5]) for row in rows]


@pytest.mark.parametrize("is_private", [False, True], ids=["tokens", "private"])
@pytest.mark.parametrize("has_all", [True, False], ids=["all fields", "no postcode"])
def test_pairs_that_both_have_a_number_are_tested(tmp_path: Path, *, is_private: bool, has_all: bool) -> None:
    rule = RULE if has_all else WITHOUT_POSTCODE
    hub, spoke = (HUB, SPOKE) if has_all else (without_postcode(HUB), without_postcode(SPOKE))
    with registers(tmp_path, [hub, spoke], rule, is_private=is_private) as (alice, bob):
        align(alice, bob)
        report = bob.report
        count, wrong = known(rule, hub, spoke)
        assert (report.by_number, wrong > 2, report.pairs - count > 10) == ((count, wrong), True, True)
        assert report.pairs == len(wanted_links(rule, hub, spoke))
        said: Any = linkage_json(report, {})["precision_by_number"]
        assert (said["tested"], said["wrong"], said["value"]) == (count, wrong, 1 - wrong / count)
        assert 0.5 < said["low"] < said["value"] < said["high"] < 1
        assert f"both have one: {wrong} of {count} are wrong" in linkage_text(report, {})
        assert linkage_json(alice.report, {})["precision_by_number"] is None
        assert (linkage_json(report, {})["recall_estimated"] is not None) is has_all
        if is_private:
            sizes = [len(data) for (_, one), data in alice.received.items() if (one.kind, one.number) == COMPARISON]
            assert sizes == [64 * (3 * 4096 + 128)], "which no pair decides"


def test_a_number_with_a_name_of_its_own_is_beside_the_usual_keys() -> None:
    usual = IdentityRule(fields=RULE.fields, hub="alice", ladder=ladder_of(default_ladder(RULE.kinds)))
    taken = IdentityRule(fields=RULE.fields, hub="alice", ladder=ladder_of(("card", *SHORT)))
    assert (RULE.number_beside, usual.number_beside, taken.number_beside) == ("card", "card", "")
