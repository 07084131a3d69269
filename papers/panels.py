"""Draws one panel: lines, points, bars and marks, on linear or logarithmic scales with plain numbers."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from veiltab.papers.experiment import Curve, Panel
from veiltab.papers.looks import DASHES, GRID, MARK, Looks, needs_markers
from veiltab.researcher.drawing.style import logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_panel(axes: "Axes", panel: Panel, looks: Looks) -> None:
    """Draw the curves and marks of a panel, and label it.

    Args:
        looks: those of the whole figure.
    """
    bars = [curve for curve in panel.curves if curve.style == "bars"]
    for order, curve in enumerate(panel.curves):
        if curve.style == "bars":
            _bars(axes, curve, bars, looks)
        elif curve.style == "points":
            _points(axes, curve, panel, looks)
        else:
            _line(axes, curve, panel, looks, order)
    axes.set_title(fill(panel.title, 52), pad=16 if panel.marks else 7)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    _scale(axes.xaxis, "x", axes, is_logarithmic=panel.x_log)
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), panel.x_names)
    _scale(axes.yaxis, "y", axes, is_logarithmic=panel.y_log)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    _marks(axes, panel, looks)


def _line(axes: "Axes", curve: Curve, panel: Panel, looks: Looks, order: int) -> None:
    markers: dict[str, Any] = {}
    if needs_markers(curve, panel) and len(curve.x) > 1:
        # Each line has its markers at other places, so that coinciding lines show both.
        step = max(1, len(curve.x) // 6)
        markers = {"marker": looks.marker(curve), "mfc": "white", "ms": 5, "markevery": (order % step, step)}
    colour = looks.colour(curve)
    axes.plot(curve.x, curve.y, color=colour, linestyle=DASHES[curve.style], lw=1.6, label=curve.label, **markers)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.14, linewidth=0)


def _points(axes: "Axes", curve: Curve, panel: Panel, looks: Looks) -> None:
    """Draw markers: those of the last curve full, of the others open and the larger the earlier, so that all show."""
    others = [other for other in panel.curves if other.style == "points"]
    behind = len(others) - 1 - others.index(curve)
    colour = looks.colour(curve)
    shape: dict[str, Any] = {
        "marker": looks.marker(curve),
        "ms": 4.5 + 2.2 * behind,
        "mfc": "none" if behind else colour,
        "mew": 1.3,
    }
    axes.plot(curve.x, curve.y, linestyle="none", color=colour, label=curve.label, zorder=3, **shape)
    if curve.low is not None and curve.high is not None:
        axes.vlines(curve.x, curve.low, curve.high, color=colour, linewidth=1.1, zorder=2.5)


def _bars(axes: "Axes", curve: Curve, bars: Sequence[Curve], looks: Looks) -> None:
    places = np.unique(np.concatenate([other.x for other in bars]))
    width = 0.84 * float(np.diff(places).min(initial=np.inf) if len(places) > 1 else 1.0) / len(bars)
    x = np.asarray(curve.x) + (bars.index(curve) - (len(bars) - 1) / 2) * width
    axes.bar(
        x, curve.y, width, color=looks.colour(curve), hatch=looks.hatch(curve), edgecolor="white", label=curve.label
    )
    if curve.low is not None and curve.high is not None:
        axes.vlines(x, curve.low, curve.high, color="black", linewidth=1.1)


def _scale(axis: Any, name: str, axes: "Axes", *, is_logarithmic: bool) -> None:  # noqa: ANN401 - either axis
    """Set the scale, with plain numbers at its ticks."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - not where the extra is missing

    if is_logarithmic:
        logarithmic(axes, name)
    else:
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))


def _marks(axes: "Axes", panel: Panel, looks: Looks) -> None:
    """Draw vertical lines with a letter above; where two are close the second letter stands aside."""
    for mark in panel.marks:
        axes.axvline(mark.x, **MARK)
    axes.set_xlim(axes.get_xlim())
    to_axes = axes.transData + axes.transAxes.inverted()
    last = -1.0
    for mark in sorted(panel.marks, key=lambda mark: mark.x):
        last = max(float(to_axes.transform((mark.x, 1.0))[0]), last + 0.04)
        letter = looks.letters[mark.label]
        axes.text(last, 1.012, letter, transform=axes.transAxes, ha="center", va="bottom", fontweight="bold")
