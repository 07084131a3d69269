"""How good links are, from counts that curators have at home, without anybody knowing the truth.

Wrong links a link (precision is 1 - lambda):

    W_self = max(n_A - N, 0) (1 - c) sum_i s_i           what the hub's own self-matches foresee
    W_plac = sum_i w_i g_i, g_i = (left_i / left'_i) (1 - c)   what a run with moved dates linked, as wrong as can be
    s = 2 sqrt(W_self + g (W_plac + g)),  g = max(1, g_1, g_2, ...)
    lambda = (W_self + W_plac + d / 2) / links,  sd = sqrt(s^2 + d^2 / 12) / links

n_A are the spoke's rows, N the people of both tables, c the linked share of the hub, s_i the self-match share of pass
i, w_i the proposals of pass i in the run with moved dates (`placebo.py`), left_i and left'_i the rows that entered the
pass in the real run and in that one. That one may be of some rows alone; g_i is how many wrong links a proposal of it
stands for. W_self counts chance within the hub too, so the sum counts chance twice: that errs on the side of more wrong
links. d links are by a key with a value that far more rows share than others, such as one name for the unnamed: no run
shows how many are wrong, so their number is taken as uniform from 0 to d. Without such a run W_plac is taken as 3, and
3 are added where a pass has nothing to move. The factor 2 is for kin that the law does not know.

People of both tables (capture and recapture), by counts over linked pairs of what agrees, of given name g, family name
f, birth date b and postcode p:

    qp = n1/#(g f b), qb = n1/#(g f p), r10 = #(g, not f, b, p)/n1, r01 = #(not g, f, b, p)/n1, rs = #(swapped, b, p)/n1
    N = n1 / (qp qb) (1 + r10 + r01 + rs + r10 r01) / (1 - mb),  recall = links (1 - lambda) / N

with n1 = #(g f b p), and mb = 1 - the share of rows with a birth date in one table times that in the other. This takes
errors of names, date and postcode as independent given the person; people who move and change their name at once make
the recall look too high.
"""

from collections.abc import Callable, Sequence
from math import hypot, sqrt

from veiltab.common.core.binomial import binomial_tail
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

_UNSEEN = 3.0
"""Wrong links by chance where no run with moved dates was made."""

_FOR_KIN = 2.0
"""Factor of the standard deviation, for kin of whom neither count knows."""

_BISECTIONS = 60

_OUTWARDS = 1e-8
"""Part by which the ends of an exact interval move outwards: more than the error of `binomial_tail` can do to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboPass:
    """One pass with and without moved dates.

    Args:
        proposals: w, rows of the spoke with moved dates that proposed in the pass.
        entered: left', rows that entered it in that run.
        entered_real: left, rows that entered it in the real run.
    """

    proposals: int
    entered: int
    entered_real: int

    def __post_init__(self) -> None:
        if not 0 <= self.proposals <= self.entered or self.entered_real < 0:
            raise InvalidInputError("the counts of a pass with moved dates contradict one another")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Linked pairs by what agrees of given name, family name, birth date and postcode, and dates that are there.

    Args:
        all_four: n1, pairs in which all four agree.
        without_postcode: pairs in which given, family and birth agree, whatever the postcode.
        without_birth: pairs in which given, family and postcode agree, whatever the date.
        family_differs: given, birth and postcode agree, family does not.
        given_differs: family, birth and postcode agree, given does not.
        names_swapped: birth and postcode agree, and each name is the other's other name; none counts in two of these.
        dated: share of rows with a birth date in one table times that in the other.
    """

    all_four: int
    without_postcode: int
    without_birth: int
    family_differs: int
    given_differs: int
    names_swapped: int
    dated: float

    def __post_init__(self) -> None:
        least = min(self.without_postcode, self.without_birth)
        if not 0 <= self.all_four <= least or min(self.family_differs, self.given_differs, self.names_swapped) < 0:
            raise InvalidInputError("the counts of what agrees in linked pairs contradict one another")
        if not 0 <= self.dated <= 1:
            raise InvalidInputError("the share of rows with a birth date is not from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What is counted of the links between a spoke and the hub.

    Args:
        links: links, at least one.
        self_match: sum of the self-match shares of the passes that ran.
        crowd: links by a key with a value that far more rows share than others: a run with moved dates sees no chance
            of theirs.
    """

    links: int
    spoke_rows: int
    hub_rows: int
    self_match: float
    crowd: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.links <= min(self.spoke_rows, self.hub_rows):
            raise InvalidInputError(
                "there is no link, or more of them than rows", remedy="Without links nothing can be said of them."
            )
        if self.self_match < 0:
            raise InvalidInputError("the self-match shares are below 0")

    @property
    def unlinked_hub(self) -> float:
        """1 - c, the share of the hub's rows without a link."""
        return 1 - self.links / self.hub_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimated share and its standard deviation."""

    value: float
    sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLinks:
    """The estimated share of wrong links.

    Args:
        sd: its standard deviation.
        chance: the part of chance alone; the rest are kin and namesakes within the hub.
        precision: of the links that no crowd shares a value of.
    """

    share: float
    sd: float
    chance: float
    precision: Estimate
    by_self_match: float
    by_chance: float


def common_people(agreement: Agreement) -> Estimate | None:
    """Return N, the people of both tables, and its standard deviation by the delta method; None if no pair agrees."""
    n1 = agreement.all_four
    if not n1 or not agreement.dated:
        return None
    qp, qb = n1 / agreement.without_postcode, n1 / agreement.without_birth
    r10, r01, rs = (
        count / n1 for count in (agreement.family_differs, agreement.given_differs, agreement.names_swapped)
    )
    names = 1 + r10 + r01 + rs + r10 * r01
    people = n1 / (qp * qb) * names / agreement.dated
    share = min(n1 / people, 1.0)
    relative = (1 - qp) / n1 + (1 - qb) / n1 + (r10 + r01 + rs) / n1 / names**2 + (1 - share) / n1
    return Estimate(value=people, sd=people * sqrt(relative))


def wrong_links(counts: Links, people: Estimate | None, placebo: Sequence[PlaceboPass | None]) -> WrongLinks:
    """Return lambda.

    Args:
        people: N; None if it is unknown, then the links stand for it, which are fewer: the safe side.
        placebo: the passes of a run with moved dates, None for one that has nothing to move; none if there was no run.
    """
    common = float(counts.links) if people is None else max(people.value, counts.links)
    by_self = max(counts.spoke_rows - common, 0.0) * counts.unlinked_hub * counts.self_match
    by_chance, most = 0.0 if placebo and None not in placebo else _UNSEEN, 1.0
    for one in placebo:
        if one is not None and one.entered:
            worth = one.entered_real / one.entered * counts.unlinked_hub
            by_chance, most = by_chance + one.proposals * worth, max(most, worth)
    wrong, spread = by_self + by_chance, _FOR_KIN * sqrt(by_self + most * (by_chance + most))
    half, others = counts.crowd / 2, max(counts.links - counts.crowd, 1)
    return WrongLinks(
        share=min((wrong + half) / counts.links, 1.0),
        sd=hypot(spread, half / sqrt(3)) / counts.links,
        chance=min((by_chance + half) / counts.links, 1.0),
        precision=Estimate(value=1 - min(wrong / others, 1.0), sd=spread / others),
        by_self_match=by_self,
        by_chance=by_chance,
    )


def recall(counts: Links, wrong: WrongLinks, people: Estimate | None) -> Estimate | None:
    """Return the share of the people of both tables that are linked with themselves; None if N is unknown."""
    if people is None:
        return None
    right = counts.links * (1 - wrong.share)
    value = right / people.value
    relative = (people.sd / people.value) ** 2 + (counts.links * wrong.sd / max(right, 1.0)) ** 2
    return Estimate(value=min(value, 1.0), sd=value * sqrt(relative))


def wrong_in_sample(wrong: int, tested: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the share of wrong links among those that a number, or a clerk, could test, with its exact interval.

    Args:
        wrong: tested links that are wrong.
        tested: links that were tested, at least one; chosen without a look at attributes.
        confidence: of the interval, which has at least this coverage.

    Returns:
        The share, and the lower and the upper end (Clopper and Pearson 1934), rounded outwards.

    Raises:
        InvalidInputError: the counts contradict one another.
    """
    if not 0 <= wrong <= tested or not tested or not 0 < confidence < 1:
        raise InvalidInputError(
            "there are more wrong links than tested ones, or none was tested", remedy="Count links that were tested."
        )
    tail = (1 - confidence) / 2
    low = _crossing(lambda p: binomial_tail(wrong, tested, p) <= tail)[0] if wrong else 0.0
    high = _crossing(lambda p: binomial_tail(wrong + 1, tested, p) < 1 - tail)[1] if wrong < tested else 1.0
    return wrong / tested, low * (1 - _OUTWARDS), min(high * (1 + _OUTWARDS), 1.0)


def _crossing(is_below: Callable[[float], bool]) -> tuple[float, float]:
    """Return two points close to one another, between which a condition ends that holds from 0 on."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high
