"""The picture of a round: estimated frequencies with intervals, beside the truth where it is known."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veiltab.researcher.drawing.pictures import largest, shorten
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, WIDE, Sheet, draw
from veiltab.researcher.frequency.frequencies import Frequencies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES_SHOWN = 300
"""Largest number of values in the picture; of more, it shows those with the largest estimates."""


def frequencies_picture(result: Frequencies, truth: NDArray[np.float64] | None = None, sheet: Sheet = WIDE) -> str:
    """Draw the share of nodes that hold each value: estimate, interval, projection, truth.

    Args:
        truth: true counts, shape (d,) (nodes), or None.
        sheet: what it is drawn on.

    Returns:
        An <svg> element, the same bytes for the same numbers.
    """
    values = largest(result.counts, VALUES_SHOWN)
    return draw((sheet.width, 4.6), lambda axes: _paint(axes, result, values, truth, sheet))


def _paint(
    axes: "Axes", result: Frequencies, values: NDArray[np.intp], truth: NDArray[np.float64] | None, sheet: Sheet
) -> None:
    at = np.arange(len(values))
    raw, low, high, projected = (
        100 * result.shares(part)[values] for part in (result.counts, result.low, result.high, result.projected)
    )
    axes.axhline(0, color="#8a949e", linewidth=0.9, zorder=1)
    small = len(values) > 60
    bars = axes.vlines(
        at,
        low,
        high,
        color=INK,
        linewidth=0.9 if small else 1.7,
        zorder=3,
        label=f"{100 * result.confidence:g}% interval",
    )
    marks = axes.plot(at, raw, "o", color=INK, ms=2.6 if small else 4.6, zorder=3, label=str(result.estimator))
    marks += axes.plot(
        at, projected, "D", mfc="white", mec=ACCENT, mew=0.9, ms=3.4 if small else 6.5, zorder=2, label="projected"
    )
    if truth is not None:
        marks += axes.step(
            at, 100 * result.shares(truth)[values], where="mid", color="black", linewidth=1.4, zorder=4, label="truth"
        )
    _name_values(axes, [shorten(result.labels[int(place)], sheet.letters) for place in values], sheet)
    axes.grid(axis="y", color=SOFT, linewidth=0.6)
    axes.set_ylabel("share of all nodes, %")
    axes.legend(
        handles=[bars, *marks],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=max(sheet.letters // 15, 2),
        frameon=False,
    )


def _name_values(axes: "Axes", labels: list[str], sheet: Sheet) -> None:
    """Label every value if there is room, else every fifth, tenth, and so on."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if len(labels) <= sheet.letters * step / 2)
    upright = sum(len(label) for label in labels[::step]) > 1.5 * sheet.letters
    axes.set_xticks(np.arange(0, len(labels), step), labels[::step], rotation=90 if upright else 0)
    axes.set_xlim(-0.8, len(labels) - 0.2)
    axes.set_xlabel("value")
