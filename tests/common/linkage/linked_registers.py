"""Two made registers linked in this process, as the parties do it, with the truth beside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veiltab.common.linkage.identity_rule import IdentityRule
from veiltab.common.linkage.ladder import FieldKind, Pass, default_ladder, ladder_of
from veiltab.common.linkage.placebo import placebo_keys
from veiltab.common.linkage.quality import (
    Agreement,
    Estimate,
    Links,
    PlaceboPass,
    WrongLinks,
    common_people,
    recall,
    wrong_links,
)
from veiltab.common.linkage.row_keys import Keys, NormalRows, normal_rows, pass_keys
from veiltab.common.linkage.self_match import SelfMatch, self_matches
from veiltab.play.linkage.open_rule import first_candidates, resolve
from veiltab.play.registers.people import FIELDS, Registers, Row


@dataclass(frozen=True, kw_only=True)
class Linked:
    """What was linked. Keys are made pass by pass, as the parties do: those of all passes at once take much memory."""

    registers: Registers
    identity: IdentityRule
    hub: NormalRows
    spoke: NormalRows

    @cached_property
    def decisions(self) -> Sequence[SelfMatch]:
        return self_matches(self.identity, self.hub)

    @property
    def run(self) -> tuple[Pass, ...]:
        return tuple(one.step for one in self.decisions if one.does_run)

    @cached_property
    def proposals(self) -> Sequence[tuple[int, int] | None]:
        steps = ((step.number, pass_keys(step, self.hub), pass_keys(step, self.spoke)) for step in self.run)
        return first_candidates(steps, len(self.spoke))

    def links(self) -> dict[int, int]:
        return resolve(self.proposals)

    def wrong(self, links: dict[int, int]) -> int:
        people, others = self.registers.hub_people, self.registers.spoke_people
        return sum(int(people[hub] != others[spoke]) for hub, spoke in links.items())

    def placebo(self) -> list[PlaceboPass]:
        """The same run with moved dates, of all rows; a pass without dates and postcodes is left out."""
        numbers: list[int] = []

        def steps() -> Iterator[tuple[int, Sequence[Keys], Sequence[Keys]]]:
            for step in self.run:
                keys = placebo_keys(step, self.spoke)
                if keys is not None:
                    numbers.append(step.number)
                    yield step.number, pass_keys(step, self.hub), keys

        real, placebo = self.proposals, first_candidates(steps(), len(self.spoke))
        return [
            PlaceboPass(
                proposals=sum(one is not None and one[0] == number for one in placebo),
                entered=sum(one is None or one[0] >= number for one in placebo),
                entered_real=sum(one is None or one[0] >= number for one in real),
            )
            for number in numbers
        ]

    def agreement(self, links: dict[int, int]) -> Agreement:
        hub, spoke = (
            list(zip(*(rows.values(name) for name in ("given", "family", "birth", "postcode")), strict=True))
            for rows in (self.hub, self.spoke)
        )
        pairs = [(hub[one], spoke[other]) for one, other in links.items()]
        same = [tuple(a == b != "" for a, b in zip(one, other, strict=True)) for one, other in pairs]
        there = [[tuple(map(bool, one)) for one in rows] for rows in (hub, spoke)]
        dated = [sum(one[2] for one in rows) / len(rows) for rows in there]
        return Agreement(
            all_four=same.count((True, True, True, True)),
            without_postcode=sum(one[:3] == (True, True, True) for one in same),
            without_birth=sum((one[0], one[1], one[3]) == (True, True, True) for one in same),
            family_differs=same.count((True, False, True, True)),
            given_differs=same.count((False, True, True, True)),
            names_swapped=sum(
                a[:2] == (b[1], b[0]) and s == (False, False, True, True) for (a, b), s in zip(pairs, same, strict=True)
            ),
            dated=dated[0] * dated[1],
        )

    def found(self) -> tuple[float, float]:
        """Return recall and precision."""
        links = self.links()
        right = len(links) - self.wrong(links)
        return right / self.registers.common(), right / len(links)

    @cached_property
    def estimated(self) -> tuple[WrongLinks, Estimate]:
        """Return wrong links and recall as they are estimated without the truth."""
        links = self.links()
        agreement = self.agreement(links)
        counts = Links(
            links=len(links),
            spoke_rows=len(self.spoke),
            hub_rows=len(self.hub),
            self_match=float(sum(one.share for one in self.decisions if one.does_run)),
        )
        people = common_people(agreement)
        wrong = wrong_links(counts, people, self.placebo())
        estimate = recall(counts, wrong, people)
        assert estimate is not None
        return wrong, estimate

    def estimates(self) -> tuple[float, float, float, float]:
        """Return precision and recall as they are estimated, and as they are."""
        wrong, estimate = self.estimated
        true_recall, true_precision = self.found()
        return wrong.precision.value, estimate.value, true_precision, true_recall


def linked(registers: Registers, fields: Sequence[str] = FIELDS, deletions: int = 0) -> Linked:
    """Link two registers by the default ladder of some fields."""
    kinds = {name: FieldKind(name) for name in fields}
    ladder = ladder_of(default_ladder(kinds, deletions))
    identity = IdentityRule(fields=tuple(kinds.items()), hub="hub", ladder=ladder)
    hub, spoke = (rows_of(identity, rows) for rows in (registers.hub, registers.spoke))
    return Linked(registers=registers, identity=identity, hub=hub, spoke=spoke)


def linked_tables(
    identity: IdentityRule,
    tables: Sequence[Sequence[Sequence[str]]],
    people: Sequence[Sequence[int]],
    orders: Sequence[str],
) -> Linked:
    """Link two tables, the hub's first, by their columns in the order of the fields, their people and date orders."""
    hub, spoke = (normal_rows(identity, order, columns) for order, columns in zip(orders, tables, strict=True))
    hub_people, spoke_people = (np.array(one) for one in people)
    truth = Registers(
        hub=(), spoke=(), hub_people=hub_people, spoke_people=spoke_people, twins=np.full(len(hub_people), -1)
    )
    return Linked(registers=truth, identity=identity, hub=hub, spoke=spoke)


def rows_of(identity: IdentityRule, rows: Sequence[Row]) -> NormalRows:
    """Return the rows of a made register, normalised."""
    return normal_rows(identity, "ymd", [[row[FIELDS.index(name)] for row in rows] for name in identity.names])
