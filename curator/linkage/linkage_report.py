"""What a curator knows after a linkage: links pass by pass, sizes, estimates of how good they are, match rates.

It holds counts alone, which the curator has anyway, and stays with it: none of it leaves with a release.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.texts.canonical import canonical_text
from veiltab.common.dataclass import dataclass
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
from veiltab.curator.table.table_rows import TableRows

_FEW_PAIRS, _NEARLY_ALL = 10, 0.9

MOST_CATEGORIES = 50
"""Categories of an attribute whose match rates are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCount:
    """One pass.

    Args:
        key: as in the study file.
        matches: rows of the hub that agree with exactly one other one, without an earlier such pass.
        linked: links by this key; None at the hub, which does not learn it.
        left: rows of one's own without a candidate after it; None at the hub.
        placebo: rows with moved dates that proposed; None if none ran, or the key has neither date nor postcode.
    """

    key: str
    runs: bool
    matches: int
    linked: int | None = None
    left: int | None = None
    placebo: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormCount:
    """Of the compared pairs that both have a number, those in which it is written in one form here, such as 99999.

    Args:
        tested: pairs.
        differ: of them those whose numbers differ.
    """

    form: str
    tested: int
    differ: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRate:
    """One attribute of one's own: rows of each category, and those of them that are linked."""

    attribute: str
    rows: tuple[int, ...]
    linked: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageReport:
    """The record.

    Args:
        is_hub: whether this curator is the hub.
        rows: one's own.
        links: those that are linked with a row of the hub; None at the hub, which does not learn it.
        agreed: counts in the order of `quality.Agreement`; None where pairs are not compared.
        pairs: linked pairs that were compared.
        by_number: of them those in which both rows have a number that no key takes, and of these where it differs.
        crowd: links by a key with a value that far more rows share than others; of the compared pairs among them, which
            are not in `by_number`, those that both have a number, and of these where it differs.
        by_form: that of `by_number` by how the number is written here.
        dated: rows with a birth date, here and at the hub.
        ties: rows that tie with another one of the table at a row of the hub, which accepts none of them; 0 at the hub.
        tied: rows of the hub where they tie.
        incomplete: rows that the rule links and that are left out, because they, or those of the hub, miss a value of
            an attribute; not among the links.
        placebo_rows: rows of one's own that ran with moved dates too.
    """

    is_hub: bool
    rows: int
    hub_rows: int
    passes: tuple[PassCount, ...]
    links: int | None = None
    agreed: tuple[int, ...] | None = None
    pairs: int = 0
    by_number: tuple[int, ...] = (0, 0)
    by_form: tuple[FormCount, ...] = ()
    crowd: tuple[int, ...] = (0, 0, 0)
    dated: tuple[int, ...] = ()
    rates: tuple[MatchRate, ...] = ()
    ties: int = 0
    tied: int = 0
    incomplete: int = 0
    placebo_rows: int = 0

    @property
    def written_otherwise(self) -> tuple[FormCount, ...]:
        """The forms of the number in which nearly all pairs differ, if most pairs that differ are of such forms."""
        forms = tuple(one for one in self.by_form if one.tested >= _FEW_PAIRS and one.differ > _NEARLY_ALL * one.tested)
        return forms if 2 * sum(one.differ for one in forms) > self.by_number[1] else ()

    @property
    def placebo(self) -> list[PlaceboPass | None]:
        """The passes that ran with moved dates, None for one with nothing to move; none if no rows ran so."""
        passes, start, rest = list[PlaceboPass | None](), self.placebo_rows, self.rows
        for one in self.passes:
            if self.placebo_rows and one.runs:
                w = one.placebo
                passes.append(None if w is None else PlaceboPass(proposals=w, entered=start, entered_real=rest))
                start, rest = start - (w or 0), one.left or 0
        return passes

    @property
    def text(self) -> str:
        """The canonical text."""
        return canonical_text(self)

    @property
    def quality(self) -> tuple[WrongLinks, Estimate | None] | None:
        """The estimated share of wrong links, and the estimated recall if pairs are compared.

        Pairs stand for links, of incomplete rows too, and for hub rows where rows tie: people of both tables. None at
        the hub or without links.
        """
        if not self.links:
            return None
        shares = float(sum(Fraction(one.matches, self.hub_rows) for one in self.passes if one.runs))
        linked = self.links + self.incomplete
        own, hub = self.rows, self.hub_rows
        counts = Links(links=linked, spoke_rows=own, hub_rows=hub, self_match=shares, crowd=self.crowd[0])
        people = None
        if self.agreed is not None:
            dated = self.dated[0] / self.rows * self.dated[1] / self.hub_rows
            people = common_people(Agreement(**dict(zip(_AGREED, self.agreed, strict=True)), dated=dated))
            if people is not None:
                scale = (linked + self.tied) / self.pairs
                people = Estimate(value=people.value * scale, sd=people.sd * scale)
        wrong = wrong_links(counts, people, self.placebo)
        return wrong, recall(counts, wrong, people)


_AGREED = ("all_four", "without_postcode", "without_birth", "family_differs", "given_differs", "names_swapped")


def match_rates(rows: NDArray[np.int64], table: TableRows) -> tuple[MatchRate, ...]:
    """Count the rows of each category of one's own attributes, and those of them that are linked.

    Args:
        rows: that are linked, by their places among the respondents.
    """
    counts = {name: np.zeros((2, MOST_CATEGORIES), np.int64) for name in table.types}
    is_linked, start = np.zeros(len(table), np.bool_), 0
    is_linked[rows] = True
    for batch in table.batches():
        mask = is_linked[start : start + len(batch.ids)]
        start += len(batch.ids)
        for name in list(counts):
            symbols = batch.columns[name]
            if symbols.size and symbols.max() >= MOST_CATEGORIES:
                del counts[name]
                continue
            for place, some in enumerate((symbols, symbols[mask])):
                counts[name][place] += np.bincount(some, minlength=MOST_CATEGORIES)
    rates = []
    for name, (all_, linked) in counts.items():
        size = int(np.flatnonzero(all_)[-1]) + 1 if all_.any() else 0
        rates.append(MatchRate(attribute=name, rows=tuple(all_[:size].tolist()), linked=tuple(linked[:size].tolist())))
    return tuple(rates)
