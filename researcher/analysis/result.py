"""What an analysis says: a row for each quantity, with its interval or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.domain import Attribute
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.common.web.document import table
from veiltab.researcher.drawing.drawable import Quantities, Unit, at_level
from veiltab.researcher.estimates.table import free_name

if TYPE_CHECKING:
    import pandas as pd

    from veiltab.researcher.drawing.style import Picture

CANNOT_BE_SAID = "cannot be said"
NO_INTERVAL = "from a model, no interval"

NO_UPPER_LIMIT = "no upper limit"
NO_LOWER_LIMIT = "no lower limit"

_ROWS_SHOWN = 60
"""Rows of a notebook's table; `frame` has all."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Analysis(Quantities):
    """The result of an analysis.

    Args:
        title: what was asked, such as "share of wage given education".
        labels: name of a column -> its text in each row, such as the categories that a row is about.
        estimate: shape (r,), float64; NaN where it cannot be said.
        low: lower ends of the intervals, shape (r,); -inf where there is no limit, NaN where there is no interval.
        high: upper ends, likewise.
        projected: of shares the nearest distribution of each group, shape (r,): the raw shares where all of them lie
            within 0 and 1, biased elsewhere; of a survival curve one that never rises; None of other quantities.
        neutral: the value that stands for "no difference"; None if there is none.
        confidence: probability that one interval holds its true value.
        is_measured: whether the table was measured; one from a model gives values without intervals.
        remarks: what the reader must know, a sentence each.
        facts: numbers about all rows together, such as a test of them, by name.
        along: the label that is a time or a wave, if the rows are drawn along it; "" if not.
        begins: the share before the first time, from which curves step down; None if the values are those of waves.
        study_digest: SHA-256 of the study file, or empty.

    Raises:
        InvalidInputError: columns of different lengths.
    """

    facts: Mapping[str, float] = field(default_factory=dict)
    study_digest: str = ""

    def __post_init__(self) -> None:
        lengths = {len(texts) for texts in self.labels.values()}
        if lengths != {len(self.estimate)} or not self.estimate.shape == self.low.shape == self.high.shape:
            raise InvalidInputError("the columns of an analysis differ in length")

    @property
    def notes(self) -> tuple[str, ...]:
        """Of each row: why a number is missing; empty where none is."""
        return tuple(map(self._note, self.estimate, self.low, self.high))

    def frame(self) -> pd.DataFrame:
        """Return one row a quantity: the labels, then estimate, low, high, of shares projected, and note.

        Labels that are whole numbers one after the other, such as years, are numbers. A label that is called like one
        of these columns gets underscores after its name. The frame's `attrs` name the title, the confidence, whether
        the table was measured, and the study file.
        """
        with importing("researcher", "a data frame"):
            import pandas as pd  # noqa: PLC0415 - not where the extra is missing

        numbers: dict[str, Any] = {**self._numbers, "note": self.notes}
        others = [*numbers, "study_digest"]
        columns = {free_name(name, others, self.labels): _as_numbers(texts) for name, texts in self.labels.items()}
        frame = pd.DataFrame(columns | numbers)
        frame.attrs |= {
            "title": self.title,
            "confidence": self.confidence,
            "measured": self.is_measured,
            "study_digest": self.study_digest,
        }
        return frame

    def records(self) -> list[dict[str, Any]]:
        """Return one plain dictionary a row, ready for JSON: what is not a finite number is None."""
        rows = zip(
            zip(*self.labels.values(), strict=True), zip(*self._numbers.values(), strict=True), self.notes, strict=True
        )
        return [
            {
                "labels": dict(zip(self.labels, texts, strict=True)),
                **{name: _plain(value) for name, value in zip(self._numbers, values, strict=True)},
                "note": note,
            }
            for texts, values, note in rows
        ]

    def text(self) -> str:
        """Return the analysis as lines of a terminal."""
        headings, cells = self.columns()
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        first = len(self.labels)

        def line(texts: tuple[str, ...]) -> str:
            pairs = list(zip(texts, widths, strict=True))
            sides = [text.ljust(width) for text, width in pairs[:first]]
            return "  ".join(sides + [text.rjust(width) for text, width in pairs[first:]]).rstrip()

        return "\n".join([self.title, "", line(headings), *map(line, cells), "", *self.footnotes()])

    def plot(self) -> Picture:
        """Draw the estimates with their intervals; a notebook shows the picture, and `save` writes it."""
        from veiltab.researcher.drawing.pictures import analysis_picture  # noqa: PLC0415 - not for results in text

        return analysis_picture(self)

    def __repr__(self) -> str:
        return f"<Analysis: {self.title}, {len(self.estimate):,} rows>"

    def __str__(self) -> str:
        """Return the text table."""
        return self.text()

    def _repr_html_(self) -> str:
        headings, cells = self.columns()
        more = len(cells) - _ROWS_SHOWN
        listed = table(headings, cells[:_ROWS_SHOWN], numeric=set(range(len(self.labels), len(headings))))
        notes = [*self.footnotes(), *([f"{more:,} more rows; frame() has all."] if more > 0 else [])]
        below = "".join(f"<p>{escape(one)}</p>" for one in notes)
        return f"<p><strong>{escape(self.title)}</strong></p>{listed}{below}"

    def footnotes(self) -> list[str]:
        """Return what stands below the numbers, a sentence each."""
        measured = f"Intervals {at_level(self.confidence, self.remarks)}, each on its own."
        modelled = "Values of a model, not of a measurement: no intervals."
        facts = "; ".join(f"{name} {value:.4g}" for name, value in self.facts.items())
        return [measured if self.is_measured else modelled, *([f"{facts}."] if facts else []), *self.remarks]

    def columns(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the headings and the rows as texts: labels and numbers, and notes where there are any.

        Projected shares stand there only if they differ from the estimates.
        """
        numbers, digits = self._numbers, self._digits
        if not self.leaves_range:
            numbers.pop("projected", None)
        cells = [[self._text(float(x), digits) for x in column] for column in numbers.values()]
        rows = list(zip(*self.labels.values(), *cells, self.notes, strict=True))
        headings = (*self.labels, *numbers, "note")
        if not any(self.notes):
            return headings[:-1], [row[:-1] for row in rows]
        return headings, rows

    @property
    def _numbers(self) -> dict[str, NDArray[np.float64]]:
        """The columns of numbers, in the order in which they are shown."""
        numbers = {"estimate": self.estimate, "low": self.low, "high": self.high}
        return numbers if self.projected is None else numbers | {"projected": self.projected}

    @property
    def _digits(self) -> int:
        """Digits after the point that the widths of the intervals, or else the values, allow."""
        widths = self.high - self.low
        finite = widths[np.isfinite(widths) & (widths > 0)]
        # Coefficients of one model may have different units.
        middle = np.min if self.unit is Unit.NUMBER else np.median
        typical = float(middle(finite)) if finite.size else 0.01
        match self.unit:
            case Unit.SHARE:
                scale = 100.0
            case Unit.ROWS:
                return 0
            case Unit.NUMBER:
                scale = 1.0
            case _:
                assert_never(self.unit)
        return int(np.clip(1 - np.floor(np.log10(scale * typical)), 1, 8))

    def _text(self, value: float, digits: int) -> str:
        if np.isnan(value):
            return "-"
        if np.isinf(value):
            return "no limit"
        match self.unit:
            case Unit.SHARE:
                return f"{round(100 * value, digits) + 0.0:.{digits}f}%"
            case Unit.ROWS:
                return f"{round(value) + 0:,}"
            case Unit.NUMBER:
                return f"{round(value, digits) + 0.0:.{digits}f}"

    def _note(self, estimate: float, low: float, high: float) -> str:
        if np.isnan(low) or np.isnan(high):
            return NO_INTERVAL if not self.is_measured and not np.isnan(estimate) else CANNOT_BE_SAID
        has_low, has_high = np.isfinite(low) and (low > 0 or self.neutral != 1.0), np.isfinite(high)
        match bool(has_low), bool(has_high):
            case False, False:
                return CANNOT_BE_SAID
            case True, False:
                return NO_UPPER_LIMIT
            case _:
                return "" if np.isfinite(low) else NO_LOWER_LIMIT


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _as_numbers(texts: Sequence[str]) -> Sequence[str] | list[int]:
    """Return the whole numbers that different texts are, one after the other; the texts, if they are others."""
    kinds = tuple(dict.fromkeys(texts))
    is_whole = bool(kinds) and Attribute(name="label", categories=kinds).integers is not None
    return list(map(int, texts)) if is_whole else texts
