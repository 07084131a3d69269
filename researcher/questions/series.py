"""One question put to several waves: what each answers side by side, or how it changed from wave to wave.

Releases draw samples and noise of their own, so their errors are independent. With estimates a, b and intervals
[l_a, u_a], [l_b, u_b] the change d = b - a has the interval (Zou and Donner 2008)

    d - sqrt((b - l_b)^2 + (u_a - a)^2)   to   d + sqrt((u_b - b)^2 + (a - l_a)^2),

which is the usual one where both are symmetric. It is about the respondents of both waves as they are, whether some are
the same or not; how much two waves of other people would differ by chance is not in it.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.researcher.analysis.result import Analysis
from veiltab.researcher.analysis.shares import Floats
from veiltab.researcher.estimates.table import free_name

WAVE = "wave"
_CHANGES = (
    "Each row is the change since the wave before. The interval is about the respondents of both waves as they are,"
    " whether some are the same or not; it counts noise and sampling of both."
)


def series(waves: Mapping[str, Analysis], *, as_changes: bool = False) -> Analysis:
    """Put the answers of several waves to one question side by side.

    Args:
        waves: name of the wave -> its answer, in order; at least two.
        as_changes: how each differs from the one before, instead of what it is.

    Returns:
        The rows of every wave, which is a label of each; of changes the first wave has none.

    Raises:
        InvalidInputError: fewer than two waves, answers to different questions, or ratios, which have no change.
    """
    if len(waves) < 2:
        raise InvalidInputError("a series has one wave", where="releases", remedy="Name at least two.")
    first, *others = waves.values()
    for name, one in zip(list(waves)[1:], others, strict=True):
        if (one.title, one.unit, one.confidence, one.labels) != (
            first.title,
            first.unit,
            first.confidence,
            first.labels,
        ):
            raise InvalidInputError(
                "the waves answer different questions, or have other categories",
                where=name,
                remedy="Ask each the same, of the same study's attributes.",
            )
    if as_changes and first.neutral == 1:
        raise InvalidInputError(
            "the change of a ratio is not shown", where="changes", remedy="Ask for differences or coefficients."
        )
    ends = (
        [_changes(one, other) for one, other in pairwise(waves.values())]
        if as_changes
        else [(one.estimate, one.low, one.high) for one in waves.values()]
    )
    remarks = [remark for one in waves.values() for remark in one.remarks]
    names = list(waves)[1:] if as_changes else list(waves)
    value, low, high = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    wave = free_name(WAVE, first.labels, ())
    return Analysis(
        title=f"change of the {first.title}" if as_changes else first.title,
        labels={
            **{name: texts * len(names) for name, texts in first.labels.items()},
            wave: tuple(np.repeat(names, len(first.estimate)).tolist()),
        },
        unit=first.unit,
        estimate=value,
        low=low,
        high=high,
        neutral=0.0 if as_changes else first.neutral,
        confidence=first.confidence,
        is_measured=all(one.is_measured for one in waves.values()),
        remarks=tuple(dict.fromkeys([*([_CHANGES] if as_changes else []), *remarks])),
        along="" if first.along else wave,
        study_digest=first.study_digest if len({one.study_digest for one in waves.values()}) == 1 else "",
    )


def _changes(first: Analysis, second: Analysis) -> tuple[Floats, Floats, Floats]:
    """Return the changes from one wave to the next, and the ends of their intervals."""
    change = second.estimate - first.estimate
    down = np.hypot(np.maximum(second.estimate - second.low, 0.0), np.maximum(first.high - first.estimate, 0.0))
    up = np.hypot(np.maximum(second.high - second.estimate, 0.0), np.maximum(first.estimate - first.low, 0.0))
    return change, change - down, change + up
