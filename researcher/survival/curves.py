"""Survival curves (Kaplan and Meier 1958), and restricted means under them.

    S_gi = prod over j <= i of (1 - D_gj / N_gj)

is the share of group g without the event after time i, among those who were followed so long. S is a smooth function of
the table, so to first order S_hat - S = T_hat(c), c its gradient, with the variance of a contrast of the table: of
noise and of the sample, as the true curve is that of all n respondents. Of bins the lower end is that of the curve with
w = 1, and the upper one that of the curve with w = 0 (see `follow_up`): the interval holds whatever the order within.

An estimated curve may rise where noise is large. The projected one has its values in falling order, which are never
farther from the true curve, at all times together (Chernozhukov, Fernandez-Val and Galichon 2009, Biometrika 96).
"""

from collections.abc import Sequence

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.comparisons import Table, analysis_of, given_text, quantile
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.drawing.drawable import Unit
from veiltab.researcher.estimates.estimation import TableEstimate
from veiltab.researcher.numbers.means import groups_of
from veiltab.researcher.numbers.points import deviations
from veiltab.researcher.survival.follow_up import Ending, FollowUp, follow_up
from veiltab.researcher.survival.log_rank import log_rank

_NOISY_TEST = (
    "Noise and sampling are in the variance of the log-rank statistic: as a rule it is smaller than that of the rows"
    " themselves, and its p-value larger."
)
_BETWEEN = "The ends hold whatever the order of events and censorings within a bin; the estimate takes half before."


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The curve of one group for one order within bins.

    Args:
        share: S, shape (K,).
        by_event: slopes of S in D, shape (K, K); by_censored: in C.
    """

    share: Floats
    by_event: Floats
    by_censored: Floats


def curve(followed: FollowUp, group: int, gone_first: float) -> Curve:
    """Return the curve of a group; it is 0 from the first time at which nobody is left, a lower one if none surely."""
    events, risk = followed.events[group], followed.at_risk(gone_first)[group]
    size = len(events)
    is_over = np.cumsum(risk <= (np.maximum(events, 0.0) if gone_first == 1 else 0.0)) > 0
    hazard = np.divide(events, risk, out=np.ones(size), where=~is_over)
    stays = 1.0 - hazard
    # Slope of S_i in the hazard at j: minus the product of the others up to i.
    others = np.zeros((size, size))
    for j in np.flatnonzero(~is_over):
        others[j:, j] = -np.cumprod(np.where(np.arange(size) == j, 1.0, stays))[j:]
    inverse = np.divide(1.0, risk, out=np.zeros(size), where=~is_over)
    by_event, by_censored = followed.through_risk(others * inverse, -others * hazard * inverse, gone_first)
    return Curve(share=np.cumprod(stays), by_event=by_event, by_censored=by_censored)


def survival(table: Table, ending: Ending, given: Sequence[str] = (), until: float | None = None) -> Analysis:
    """Estimate the share without an event after each time, by group, or the mean time without it.

    Args:
        table: with all attributes concerned.
        ending: the time and the event.
        given: attributes whose combinations of categories are the groups; none is all respondents.
        until: asks for the restricted mean: the mean of the time without an event up to this one.

    Returns:
        A row a group and time, or a row a group; NaN after the last time at which surely somebody is at risk. With
        groups, the log-rank test that their hazards are equal is among the facts.

    Raises:
        InvalidInputError: a time that was rounded at random, or an end that is not a time.
    """
    followed = follow_up(table, ending, given)
    if until is not None:
        return _restricted_means(followed, until, quantile(table))
    times, z = followed.times, quantile(table)
    rows = [_ends(followed, group, np.eye(len(times.labels)), z) for group in range(len(followed.events))]
    value, low, high = (np.clip(np.concatenate(parts), 0.0, 1.0) for parts in zip(*rows, strict=True))
    falling = [-np.sort(-one) for one in np.split(value, len(rows))]
    tested = log_rank(followed)
    labels = {
        name: tuple(np.repeat(texts, len(times.labels))) for name, texts in groups_of(followed.part, given).items()
    }
    column = ending.time if times.are_exact or not times.are_numbers else f"{ending.time} up to"
    texts = [f"{end:.15g}" for end in times.ends] if times.are_numbers else list(times.labels)
    return analysis_of(
        [followed.part],
        f"share without {ending.text} by {ending.time}{given_text(given)}",
        {**labels, column: tuple(texts) * len(followed.events)},
        (value, low, high),
        (*(() if times.are_exact else (_BETWEEN,)), *((_NOISY_TEST,) if tested else ())),
        unit=Unit.SHARE,
        projected=np.concatenate(falling),
        facts=tested,
        along=column,
        begins=1.0,
    )


def _ends(followed: FollowUp, group: int, weights: Floats, z: float) -> tuple[Floats, Floats, Floats]:
    """Return estimates and ends of sums of a curve, shape (r,), NaN where it does not reach.

    Args:
        weights: of the shares at each time, not negative, shape (r, K).
        z: standard deviations.
    """
    orders = (0.0,) if followed.times.are_exact else (1.0, 0.5, 0.0)
    curves = [curve(followed, group, gone_first) for gone_first in orders]
    value = weights @ curves[len(curves) // 2].share
    if not isinstance(followed.part, TableEstimate):
        return value, np.full(len(value), np.nan), np.full(len(value), np.nan)
    low, high = (
        weights @ one.share + side * z * deviations(followed.part, _contrasts(followed, group, weights, one))
        for side, one in ((-1, curves[0]), (1, curves[-1]))
    )
    reached = (weights[:, ~followed.reached[group]] == 0).all(axis=1)
    value, low, high = (np.where(reached, one, np.nan) for one in (value, low, high))
    return value, low, high


def _contrasts(followed: FollowUp, group: int, weights: Floats, one: Curve) -> Floats:
    """Return contrasts of the table for sums of a curve, shape (r, cells)."""
    slopes = np.zeros((2, len(weights), *followed.events.shape))
    slopes[0, :, group], slopes[1, :, group] = weights @ one.by_event, weights @ one.by_censored
    return followed.contrasts(*slopes)


def _restricted_means(followed: FollowUp, until: float, z: float) -> Analysis:
    times, ending = followed.times, followed.ending
    if not times.are_numbers or not float(times.starts[0]) >= 0:
        raise InvalidInputError(
            f"the times of {ending.time} are not numbers from 0 on", where="until", remedy="Ask for the curve."
        )
    if times.are_exact:
        # S is S_i from time i to the next one, and 1 before the first.
        inner = np.clip(np.append(times.starts[1:], until), None, until) - np.clip(times.starts, None, until)
        before = after = inner
        first = min(float(times.starts[0]), until)
        reaches = 0 < until <= times.ends[-1]
    else:
        # Within a bin S lies between its shares at both ends.
        widths = np.where(times.ends <= until, np.diff(times.ends, prepend=times.starts[0]), 0.0)
        before, after, first = widths, np.append(widths[1:], 0.0), float(times.starts[0])
        reaches = until in times.ends
    if not reaches:
        raise InvalidInputError(
            f"{until:g} is not a time up to which a mean can be taken",
            where="until",
            remedy=f"Take {'one of ' + ', '.join(f'{end:g}' for end in times.ends)}."
            if not times.are_exact
            else f"Take a time above 0 and up to {times.ends[-1]:g}.",
        )
    opening = 0.0 if times.are_exact else float(widths[0])
    rows = []
    for group in range(len(followed.events)):
        least, low, _ = _ends(followed, group, before[None], z)
        most, _, high = _ends(followed, group, after[None], z)
        rows.append((first + (least + most + opening) / 2, first + low, first + opening + high))
    value, low, high = (np.clip(np.concatenate(parts), 0.0, until) for parts in zip(*rows, strict=True))
    return analysis_of(
        [followed.part],
        f"mean {ending.time} without {ending.text} up to {until:g}{given_text(followed.given)}",
        groups_of(followed.part, followed.given),
        (value, low, high),
        () if times.are_exact else (_BETWEEN,),
    )
