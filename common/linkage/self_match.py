"""Which passes run: decided from the hub's table alone, before a session.

The self-match share s of a pass is the share of the hub's rows, without a self-match in an earlier pass that runs, that
agree with exactly one other row of the hub. A row of a spoke whose partner is absent would wrongly propose there about
as often: chance and kin together, at the hub's own size. Nothing here may look at a spoke's rows: one of them could
switch a pass then, and with it any number of links.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from veiltab.common.dataclass import dataclass
from veiltab.common.linkage.hub_rule import only_rows
from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import Pass
from veiltab.common.linkage.row_keys import Keys, NormalRows, pass_keys

MOST_SHARE = Fraction(5, 1000)
"""Largest self-match share of a pass that runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfMatch:
    """One pass in the hub's table.

    Args:
        foreseen: share of wrong links of this pass and of those before it that run.
    """

    step: Pass
    share: Fraction
    foreseen: Fraction
    does_run: bool


def self_matches(identity: IdentityRule, hub: NormalRows) -> tuple[SelfMatch, ...]:
    """Return the self-match share of each pass of the ladder, and whether it runs.

    A pass runs if s <= .005 and the foreseen share of wrong links, u (1 - c) / (1 - u) times the sum of s, stays at or
    below the cap; see `IdentityRule.wrong_a_match`.
    """
    return decide_passes(identity, ((step, pass_keys(step, hub)) for step in identity.ladder), len(hub))


def decide_passes(
    identity: IdentityRule, passes: Iterable[tuple[Pass, Sequence[Keys]]], hub_rows: int
) -> tuple[SelfMatch, ...]:
    """Decide as `self_matches`, given the keys of all rows of the hub in each pass."""
    rows, total = set(range(hub_rows)), Fraction(0)
    counts: list[SelfMatch] = []
    for step, keys in passes:
        matching = rows & set(_matching(keys))
        share = Fraction(len(matching), max(hub_rows, 1))
        foreseen = identity.wrong_a_match * (total + share)
        does_run = share <= MOST_SHARE and foreseen <= Fraction(identity.cap)
        counts.append(SelfMatch(step=step, share=share, foreseen=foreseen, does_run=does_run))
        if does_run:
            total += share
            rows -= matching
    return tuple(counts)


def _matching(keys: Sequence[Keys]) -> Iterable[int]:
    """Yield the rows that agree with exactly one other row."""
    shared = {key for key, row in only_rows(keys).items() if row < 0}
    groups: dict[bytes, list[int]] = {}
    for row, own in enumerate(keys):
        for key in own:
            if key in shared:
                groups.setdefault(key, []).append(row)
    for row, own in enumerate(keys):
        others = {other for key in own if key in groups for other in groups[key]}
        if len(others) == 2:
            yield row
