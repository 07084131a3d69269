"""Respondents who were followed until an event or until they were censored, as a table of them tells.

D_gi is the share of all respondents that are in group g and had the event at time i, C_gi the share that was last seen
then without it. At risk are N_gi = sum over j >= i of D_gj + C_gj, less w C_gi. Of exact times w = 0: an event comes
before a censoring of the same time. Within a bin of times nobody knows the order, and a curve lies between w = 1,
where the censored went first, and w = 0; a single number takes w = 1/2, as life tables do.
"""

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute, Domain
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table
from veiltab.researcher.analysis.formula import Formula, parse_event, parse_formula
from veiltab.researcher.analysis.names import Reader
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.points import check_given, deviations, number_of

_SURE = 4.0
"""Standard errors by which a number at risk exceeds 0 where a curve goes on."""

_WORD = r"(?i)(?<![^\W_])({})(?![^\W\d_])"
_TIME = re.compile(_WORD.format("time|days?|weeks?|months?|years?|dauer|zeit|tage|wochen|monate|jahre"))
_EVENT = re.compile(_WORD.format("dea(th|d)|died|deceased|event|relapsed?|to[dt]|gestorben|verstorben|ereignis"))
"""Words of a name; an underscore or a digit ends a word."""

_EXAMPLE = 'Write for example "months:died=yes", or for a Cox regression "months:died=yes ~ arm".'
_BIN = re.compile(r"\[(.+), (.+)[)\]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the follow-up of a respondent ends.

    Args:
        time: the attribute of the time that passed until the event or the censoring.
        event: the attribute that says whether there was an event.
        categories: its categories that are the event; every other one is a censoring.
        formula: what explains the hazard of the event; None asks for curves.
    """

    time: str
    event: str
    categories: tuple[str, ...]
    formula: Formula | None = None

    @property
    def text(self) -> str:
        """The event, as it is written."""
        return f"{self.event}={'|'.join(self.categories)}"


def read_ending(reader: Reader, domain: Domain) -> Ending:
    """Read "time:event=category|..." and perhaps "~ term + term"; something else may follow one without a formula.

    Raises:
        InvalidInputError: it does not parse, names an attribute in two places, or an event of all categories.
    """
    time = reader.attribute()
    if not reader.takes(":"):
        raise reader.refusal(":", _EXAMPLE)
    rest, explained = reader.rest, reader.attribute()
    if explained.size > 2 and _are_times(explained) and not _are_times(time):
        raise InvalidInputError(
            f"time and event seem to be swapped: {explained.name} has times, and {time.name} has none",
            where="survival",
            remedy=f"Write {explained.name}:{time.name}=CATEGORY.",
        )
    categories = parse_event(reader, explained)
    formula = None
    if reader.takes("~"):
        formula = parse_formula(rest, domain)
        reader.all()
    if time.name == explained.name or (formula and time.name in formula.attributes):
        raise InvalidInputError(f"{time.name} stands twice", where="survival", remedy=_EXAMPLE)
    return Ending(time=time.name, event=explained.name, categories=categories, formula=formula)


def seeming_ending(domain: Domain) -> Ending | None:
    """Return the time and the event that two attributes seem to be by their names, such as months and died.

    A time begins at 0 or 1, and an event has two categories: the one that is named like it, or "yes" and its like.
    """
    times = [one.name for one in domain.attributes if _TIME.search(one.name) and _are_times(one)]
    times = [name for name in times if 0 <= times_of(domain.subset([name]).attributes[0]).starts[0] <= 1]
    for event in domain.attributes:
        named = [one for one in event.categories if _EVENT.search(one)]
        if _EVENT.search(event.name):
            named = named or [one for one in event.categories if one.casefold() in {"yes", "ja", "true", "1"}]
        if times and event.size == 2 and len(named) == 1 and event.name != times[0]:
            return Ending(time=times[0], event=event.name, categories=(named[0],))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times of an attribute, in order.

    Args:
        labels: (K,), the categories.
        starts: (K,), where a bin begins, or the time itself; NaN of categories that are just in an order.
        ends: (K,), where a bin ends, or the time itself.
    """

    labels: tuple[str, ...]
    starts: Floats
    ends: Floats

    @property
    def are_exact(self) -> bool:
        """Whether a category is one time."""
        return bool((self.starts == self.ends).all())

    @property
    def are_numbers(self) -> bool:
        """Whether the times are known as numbers."""
        return not bool(np.isnan(self.ends).any())


def _are_times(attribute: Attribute) -> bool:
    """Return whether the categories of an attribute are numbers or bins that increase."""
    try:
        return times_of(attribute).are_numbers
    except InvalidInputError:
        return False


def times_of(attribute: Attribute) -> Times:
    """Return the times of an attribute: whole numbers, bins, or categories in their order.

    A last category that is not a number after numbers or bins stands for missing times, and is left out, as are people
    who are absent.

    Raises:
        InvalidInputError: numbers that were rounded at random, or that do not increase.
    """
    attribute = attribute.without_absent
    if attribute.number:
        raise InvalidInputError(
            f"{attribute.name} was rounded at random, so an event may seem to come after its censoring",
            where=attribute.name,
            remedy="Give the study an attribute with `integers` or `bins` of the same column.",
        )
    pairs = np.array([_bounds(category) for category in attribute.categories])
    is_number = ~np.isnan(pairs[:, 0])
    size = attribute.size - 1 if is_number[:-1].all() and not is_number[-1] else attribute.size
    starts, ends = pairs[:size].T
    if is_number[:size].any() and not (
        is_number[:size].all() and (starts[1:] >= ends[:-1]).all() and (np.diff(ends) > 0).all()
    ):
        raise InvalidInputError(f"the times of {attribute.name} do not increase", where=attribute.name)
    return Times(labels=attribute.categories[:size], starts=starts, ends=ends)


def _bounds(category: str) -> tuple[float, float]:
    """Return where a category begins and ends; NaN for a text."""
    if match := _BIN.fullmatch(category):
        return number_of(match[1]), number_of(match[2])
    return number_of(category), number_of(category)


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A table of groups, times and events; G groups, K known times.

    Args:
        part: the table: the attributes of the groups, the time, the event.
        given: the attributes of the groups.
    """

    part: Table
    ending: Ending
    given: tuple[str, ...]

    @cached_property
    def times(self) -> Times:
        """The times."""
        return times_of(self.part.domain.attributes[-2])

    @cached_property
    def _is_event(self) -> Floats:
        return np.array([name in self.ending.categories for name in self.part.domain.attributes[-1].categories], float)

    @cached_property
    def _cells(self) -> Floats:
        size, events = self.part.domain.shape[-2:]
        return self.part.raw.reshape(-1, size, events)[:, : len(self.times.labels)]

    @cached_property
    def events(self) -> Floats:
        """D, shape (G, K)."""
        return self._cells @ self._is_event

    @cached_property
    def censored(self) -> Floats:
        """C, shape (G, K)."""
        return self._cells @ (1.0 - self._is_event)

    def at_risk(self, gone_first: float) -> Floats:
        """Return N, shape (G, K), if this share of those censored in a bin went before its events."""
        everybody = np.cumsum((self.events + self.censored)[:, ::-1], axis=1)[:, ::-1]
        risk: Floats = everybody - gone_first * self.censored
        return risk

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """At which times, and all before, surely somebody of each group is at risk, shape (G, K)."""
        return np.array([self.is_followed(slice(group, group + 1)) for group in range(len(self.events))])

    def is_followed(self, groups: slice) -> NDArray[np.bool_]:
        """Return at which times, and all before, surely somebody of some groups is at risk, shape (K,)."""
        size = len(self.times.labels)
        if not isinstance(self.part, TableEstimate):
            return np.ones(size, bool)
        slopes = np.zeros((size, *self.events.shape))
        slopes[:, groups] = np.tri(size).T[:, None]
        errors = deviations(self.part, self.contrasts(slopes, slopes))
        sure: NDArray[np.bool_] = np.cumprod(self.at_risk(0.0)[groups].sum(axis=0) > _SURE * errors) > 0
        return sure

    def contrasts(self, by_event: Floats, by_censored: Floats) -> Floats:
        """Return contrasts of the table, shape (c, cells), from their slopes in D and C, each of shape (c, G, K)."""
        size, events = self.part.domain.shape[-2:]
        cells = np.zeros((*by_event.shape[:2], size, events))
        by_outcome = by_event[..., None] * self._is_event + by_censored[..., None] * (1.0 - self._is_event)
        cells[:, :, : by_event.shape[2]] = by_outcome
        return cells.reshape(len(cells), -1)

    def through_risk(self, by_event: Floats, by_risk: Floats, gone_first: float) -> tuple[Floats, Floats]:
        """Return slopes in D and C from slopes in D, and in N which depends on both; shapes (..., K)."""
        earlier = np.cumsum(by_risk, axis=-1)
        return by_event + earlier, earlier - gone_first * by_risk


def follow_up(table: Table, ending: Ending, given: Sequence[str]) -> FollowUp:
    """Take what a question is about out of a table.

    Raises:
        InvalidInputError: an attribute in two places, or groups of rounded numbers.
    """
    for name in (ending.time, ending.event):
        check_given(table.domain, given, name)
    part = table.marginal([*given, ending.time, ending.event])
    return FollowUp(part=part, ending=ending, given=tuple(given))
