"""Draws a figure: panels side by side, their legend below, the same bytes for the same numbers."""

import re
import warnings
from collections.abc import Collection, Sequence
from io import BytesIO, StringIO
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from researcher.experiments.replay.experiment import Curve, Figure, Panel
from researcher.experiments.replay.looks import DASHES, GRID, INK, STYLE, Looks, needs_markers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

DOTS_PER_INCH = 140

_COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}
_WIDTH, _HEIGHT = 4.4, 3.7
_SHARED_LEGEND = 12
"""Labels that one legend below all panels holds; with more each panel has its own."""

_MARK: Any = {"color": "#444c55", "linewidth": 1.0, "linestyle": (0, (7, 2, 1.5, 2)), "zorder": 1}
_LEGEND: Any = {"frameon": False, "handlelength": 2.6, "columnspacing": 1.6, "labelspacing": 0.35}


def draw(figure: Figure) -> tuple[str, bytes]:
    """Return a figure as SVG and as PNG.

    Args:
        figure: what to draw.

    Returns:
        A whole SVG document, whose ids begin with the figure's name so that it can also stand in a page; PNG bytes.
    """
    import matplotlib as mpl  # noqa: PLC0415 - only pictures pay for it
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # The reader's viewer has fonts for scripts that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = _canvas(figure)
        FigureCanvasAgg(canvas)
        text, picture = StringIO(), BytesIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        canvas.savefig(picture, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return _own_ids(text.getvalue(), figure.name), picture.getvalue()


def element(svg: str) -> str:
    """Return the <svg> element of a document, to stand in a page."""
    return svg[svg.index("<svg") :].rstrip()


def _own_ids(svg: str, prefix: str) -> str:
    """Return a document without metadata, its ids numbered: some of matplotlib's own are addresses in memory."""
    numbers: dict[str, int] = {}

    def numbered(tag: re.Match[str]) -> str:
        return re.sub(
            r'(\bid="|\bhref="#|url\(#)([^")]+)',
            lambda found: f"{found.group(1)}{prefix}-{numbers.setdefault(found.group(2), len(numbers))}",
            tag.group(),
        )

    return re.sub(r"<[^>]*>", numbered, re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL))


def _canvas(figure: Figure) -> "Canvas":
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415

    count = len(figure.panels)
    columns = _COLUMNS.get(count, 3)
    rows = ceil(count / columns)
    width = max(columns * _WIDTH, 6.6)
    canvas = Canvas(figsize=(width, rows * _HEIGHT + 1.2), layout="constrained")
    canvas.get_layout_engine().set(w_pad=0.09, h_pad=0.07)  # type: ignore[union-attr]
    canvas.suptitle(fill(figure.title, int(width * 10)), x=0.012, ha="left", fontweight="bold", fontsize=12, color=INK)
    looks = Looks(figure.panels)
    grid = list(canvas.subplots(rows, columns, squeeze=False, sharey=figure.shared_y).flat)
    for axes in grid[count:]:
        axes.remove()
    for axes, panel in zip(grid, figure.panels, strict=False):
        _panel(axes, panel, looks)
    _legends(canvas, figure.panels, looks, width)
    return canvas


def _panel(axes: "Axes", panel: Panel, looks: Looks) -> None:
    bars = [curve for curve in panel.curves if curve.style == "bars"]
    for order, curve in enumerate(panel.curves):
        if curve.style == "bars":
            _bars(axes, curve, bars, looks)
        elif curve.style == "points":
            _points(axes, curve, looks)
        else:
            _line(axes, curve, panel, looks, order)
    axes.set_title(fill(panel.title, 52), pad=16 if panel.marks else 7)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    _scale(axes.xaxis, "x", axes, logarithmic=panel.x_log)
    _scale(axes.yaxis, "y", axes, logarithmic=panel.y_log)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    _marks(axes, panel, looks)


def _line(axes: "Axes", curve: Curve, panel: Panel, looks: Looks, order: int) -> None:
    markers: dict[str, Any] = {}
    if needs_markers(curve, panel) and len(curve.x) > 1:
        # Each line has its markers elsewhere, so that lines that coincide show both.
        step = max(1, len(curve.x) // 6)
        markers = {"marker": looks.marker(curve), "mfc": "white", "ms": 5, "markevery": (order % step, step)}
    colour = looks.colour(curve)
    axes.plot(curve.x, curve.y, color=colour, linestyle=DASHES[curve.style], lw=1.6, label=curve.label, **markers)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.14, linewidth=0)


def _points(axes: "Axes", curve: Curve, looks: Looks) -> None:
    colour, marker = looks.colour(curve), looks.marker(curve)
    axes.plot(curve.x, curve.y, linestyle="none", marker=marker, ms=5, color=colour, label=curve.label, zorder=3)
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


def _scale(axis: Any, name: str, axes: "Axes", *, logarithmic: bool) -> None:  # noqa: ANN401 - either axis
    """Set the scale, with plain numbers at its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter  # noqa: PLC0415

    if not logarithmic:
        axis.set_major_locator(MaxNLocator(nbins=6))
        return
    axes.set(**{f"{name}scale": "log"})
    low, high = sorted(getattr(axes, f"get_{name}lim")())
    narrow = high < 30 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def number(value: float) -> str:
    """Return a number as a person writes it."""
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e7 or value == 0 else f"{value:.3g}"


def _marks(axes: "Axes", panel: Panel, looks: Looks) -> None:
    """Draw vertical lines with a letter above; where two are close the second letter stands aside."""
    for mark in panel.marks:
        axes.axvline(mark.x, **_MARK)
    axes.set_xlim(axes.get_xlim())
    to_axes = axes.transData + axes.transAxes.inverted()
    last = -1.0
    for mark in sorted(panel.marks, key=lambda mark: mark.x):
        last = max(float(to_axes.transform((mark.x, 1.0))[0]), last + 0.04)
        letter = looks.letters[mark.label]
        axes.text(last, 1.012, letter, transform=axes.transAxes, ha="center", va="bottom", fontweight="bold")


def _legends(canvas: "Canvas", panels: Sequence[Panel], looks: Looks, width: float) -> None:
    """Put one legend below all panels, or, where that would be too long, one below each."""
    entries = [_entries(axes, panel, looks) for axes, panel in zip(canvas.axes, panels, strict=True)]
    together = {label: handle for one in entries for label, handle in one.items()}
    if len(together) <= _SHARED_LEGEND:
        canvas.legend(together.values(), together, loc="outside lower left", ncols=_columns(together, width), **_LEGEND)
        return
    for axes, one in zip(canvas.axes, entries, strict=True):
        # Below the axes' label; the layout makes room for it.
        place = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.15)}
        axes.legend(one.values(), one, ncols=_columns(one, _WIDTH), **place, **_LEGEND)


def _entries(axes: "Axes", panel: Panel, looks: Looks) -> dict[str, Any]:
    """Return label -> what the legend shows for it."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    handles, labels = axes.get_legend_handles_labels()
    marks = {f"{looks.letters[mark.label]}: {mark.label}": Line2D([], [], **_MARK) for mark in panel.marks}
    return dict(zip(labels, handles, strict=True)) | marks


def _columns(entries: Collection[str], width: float) -> int:
    """Return how many columns of a legend fit a width in inches."""
    return max(1, min(len(entries), int(width * 12 / (max(map(len, entries)) + 8))))
