"""Two made registers linked in this process, as the parties do it, with the truth beside."""

from collections.abc import Sequence
from dataclasses import dataclass

from veiltab.common.linkage.hub_rule import accept, first_candidates
from veiltab.common.linkage.ladder import FieldKind, Pass, default_ladder, ladder_of
from veiltab.common.linkage.linked_identity import Identity
from veiltab.common.linkage.placebo import placebo_keys
from veiltab.common.linkage.quality import Agreement, Links, PlaceboPass, common_people, recall, wrong_links
from veiltab.common.linkage.row_keys import Keys, NormalRows, normal_rows, pass_keys
from veiltab.common.linkage.self_match import SelfMatch, decided
from veiltab.play.registers.people import FIELDS, Registers, Row


@dataclass(frozen=True, kw_only=True)
class Linked:
    """What was linked."""

    registers: Registers
    identity: Identity
    hub: NormalRows
    spoke: NormalRows
    hub_keys: Sequence[Sequence[Keys]]
    spoke_keys: Sequence[Sequence[Keys]]
    decisions: Sequence[SelfMatch]

    @property
    def run(self) -> list[tuple[Pass, Sequence[Keys], Sequence[Keys]]]:
        keys = zip(self.decisions, self.hub_keys, self.spoke_keys, strict=True)
        return [(one.step, hub, spoke) for one, hub, spoke in keys if one.does_run]

    def proposals(self) -> list[tuple[int, int] | None]:
        return list(first_candidates([(step.number, hub, spoke) for step, hub, spoke in self.run], len(self.spoke)))

    def links(self) -> dict[int, int]:
        return accept(self.proposals())

    def wrong(self, links: dict[int, int]) -> int:
        people, others = self.registers.hub_people, self.registers.spoke_people
        return sum(int(people[hub] != others[spoke]) for hub, spoke in links.items())

    def placebo(self) -> list[PlaceboPass]:
        """The same run with moved dates; a pass without dates and postcodes is left out."""
        moved = [(step, hub, placebo_keys(step, self.spoke)) for step, hub, _ in self.run]
        steps = [(step.number, hub, keys) for step, hub, keys in moved if keys is not None]
        real, placebo = self.proposals(), first_candidates(steps, len(self.spoke))
        return [
            PlaceboPass(
                proposals=sum(one is not None and one[0] == number for one in placebo),
                entered=sum(one is None or one[0] >= number for one in placebo),
                entered_real=sum(one is None or one[0] >= number for one in real),
            )
            for number, _, _ in steps
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

    def estimates(self) -> tuple[float, float, float, float]:
        """Return precision and recall as they are estimated, and as they are."""
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
        found = recall(counts, wrong, people)
        assert found is not None
        right = len(links) - self.wrong(links)
        return wrong.precision.value, found.value, right / len(links), right / self.registers.common()


def linked(registers: Registers, fields: Sequence[str] = FIELDS, deletions: int = 0) -> Linked:
    """Link two registers by the default ladder of some fields."""
    kinds = {name: FieldKind(name) for name in fields}
    ladder = ladder_of(default_ladder(kinds, deletions))
    identity = Identity(fields=tuple(kinds.items()), hub="hub", ladder=ladder)
    hub, spoke = (rows_of(identity, rows) for rows in (registers.hub, registers.spoke))
    hub_keys, spoke_keys = ([pass_keys(step, rows) for step in ladder] for rows in (hub, spoke))
    return Linked(
        registers=registers,
        identity=identity,
        hub=hub,
        spoke=spoke,
        hub_keys=hub_keys,
        spoke_keys=spoke_keys,
        decisions=decided(identity, zip(ladder, hub_keys, strict=True), len(hub)),
    )


def rows_of(identity: Identity, rows: Sequence[Row]) -> NormalRows:
    """Return the rows of a made register, normalised."""
    return normal_rows(identity, "ymd", [[row[FIELDS.index(name)] for row in rows] for name in identity.names])
