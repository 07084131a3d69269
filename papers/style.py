"""Draws a figure: panels side by side, their legend below, the same bytes for the same numbers."""

import re
from collections.abc import Collection, Sequence
from io import BytesIO, StringIO
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

from veiltab.papers.experiment import Figure, Panel
from veiltab.papers.looks import MARK, STYLE, Looks
from veiltab.papers.panels import draw_panel
from veiltab.researcher.drawing.style import INK, house_style, own_ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

DOTS_PER_INCH = 140

_SIDE_BY_SIDE = {1: 1, 2: 2, 3: 3, 4: 2}
"""Panels in a row, if not three."""

_WIDTH, _HEIGHT = 4.4, 3.6
"""Of a panel, inches."""

_LEGEND: Any = {"frameon": False, "handlelength": 2.6, "columnspacing": 1.6, "labelspacing": 0.35}


def draw(figure: Figure) -> tuple[str, bytes]:
    """Return a figure as SVG and as PNG.

    Returns:
        A whole SVG document, whose ids begin with the figure's name so that it can also stand in a page; PNG bytes.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - not without pictures

    with house_style(STYLE):
        canvas = _canvas(figure)
        FigureCanvasAgg(canvas)
        canvas.draw_without_rendering()
        # Lay out once for both formats: that takes most of the time.
        canvas.set_layout_engine("none")
        text, picture = StringIO(), BytesIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        canvas.savefig(picture, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    # Metadata would differ from run to run.
    bare = re.sub(r"\s*<metadata>.*?</metadata>", "", text.getvalue(), flags=re.DOTALL)
    return own_ids(bare, figure.name), picture.getvalue()


def element(svg: str) -> str:
    """Return the <svg> element of a document, to stand in a page."""
    return svg[svg.index("<svg") :].rstrip()


def _canvas(figure: Figure) -> "Canvas":
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415 - not where the extra is missing
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - not where the extra is missing

    count = len(figure.panels)
    columns = _SIDE_BY_SIDE.get(count, 3)
    rows = ceil(count / columns)
    width = max(columns * _WIDTH, 6.6)
    canvas = Canvas(layout=ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.07))
    canvas.suptitle(fill(figure.title, int(width * 10)), x=0.012, ha="left", fontweight="bold", fontsize=12, color=INK)
    looks = Looks(figure.panels)
    grid = list(canvas.subplots(rows, columns, squeeze=False, sharey=figure.shared_y).flat)
    for axes in grid[count:]:
        axes.remove()
    for axes, panel in zip(grid, figure.panels, strict=False):
        draw_panel(axes, panel, looks)
        if figure.shared_y and not axes.get_subplotspec().is_first_col():
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
    lines = _legends(canvas, figure.panels, looks, width)
    canvas.set_size_inches(width, rows * _HEIGHT + 0.5 + 0.19 * lines)
    return canvas


def _legends(canvas: "Canvas", panels: Sequence[Panel], looks: Looks, width: float) -> int:
    """Put one legend below all panels if one of them has every label, or else one below each; return their lines."""
    entries = [_entries(axes, panel, looks) for axes, panel in zip(canvas.axes, panels, strict=True)]
    together = {label: handle for one in entries for label, handle in one.items()}
    if len(together) == max(map(len, entries)):
        columns = _columns(together, width)
        canvas.legend(together.values(), together, loc="outside lower left", ncols=columns, **_LEGEND)
        return ceil(len(together) / columns)
    for axes, one in zip(canvas.axes, entries, strict=True):
        # Below the axes' label; the layout makes room for it.
        place = (-0.02, -0.15)
        axes.legend(one.values(), one, loc="upper left", bbox_to_anchor=place, ncols=_columns(one, _WIDTH), **_LEGEND)
    rows = ceil(len(panels) / _SIDE_BY_SIDE.get(len(panels), 3))
    return rows * max(ceil(len(one) / _columns(one, _WIDTH)) for one in entries)


def _entries(axes: "Axes", panel: Panel, looks: Looks) -> dict[str, Any]:
    """Return label -> what the legend shows for it."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - not where the extra is missing

    handles, labels = axes.get_legend_handles_labels()
    marks = {f"{looks.letters[mark.label]}: {mark.label}": Line2D([], [], **MARK) for mark in panel.marks}
    return dict(zip(labels, handles, strict=True)) | marks


def _columns(entries: Collection[str], width: float) -> int:
    """Return how many columns of a legend fit a width in inches."""
    return max(1, min(len(entries), int(width * 12 / (max(map(len, entries)) + 8))))
