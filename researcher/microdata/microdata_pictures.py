"""The pictures of a linked release: who depends on whom, and the measured pairs beside those of the file."""

from collections.abc import Sequence
from math import atan, cos, degrees, pi, sin
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veiltab.researcher.drawing.pictures import shorten, wrapped
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, WIDE, Sheet, draw, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (INK, ACCENT, "#3b7a57", "#7a4f9a", "#8a6d1d", "#4a6d8c")
_SHAPES = ("o", "s", "D", "^", "v", "P")
"""One colour and one shape a curator, in turn."""

_MOST_UPRIGHT = 20
"""Names around a large circle that do not overlap."""

Floats = NDArray[np.float64]


def graph_picture(
    names: Sequence[str], owners: Sequence[str], edges: Sequence[tuple[int, int]], weights: Floats, sheet: Sheet = WIDE
) -> str:
    """Draw which attributes a model joins directly: the thicker the line, the farther the two are from independence.

    Args:
        edges: pairs of places in `names`.
        weights: of each edge, at least 0.
        sheet: what it is drawn on.

    Returns:
        An <svg> element.
    """
    order = sorted(range(len(names)), key=lambda place: (owners[place], place))
    angle = {place: pi / 2 - 2 * pi * rank / len(names) for rank, place in enumerate(order)}
    spots = np.array([(cos(angle[place]), sin(angle[place])) for place in range(len(names))])
    # Around a small circle texts beside each other would overlap: there they stand along the rays.
    radial, size = sheet is not WIDE or len(names) > _MOST_UPRIGHT, 12 if sheet is WIDE else 9
    labels = [wrapped(name, 24) for name in names]
    side = sheet.width if radial and sheet is not WIDE else 6.2
    longest = max(len(line) for label in labels for line in label.split("\n"))
    room = 1.9 if not radial else side / max(side - 2 * (0.62 * longest * size / 72 + 0.15), 0.3 * side)
    down = room if radial else 1.25
    curators = list(dict.fromkeys(owners[place] for place in order))

    def paint(axes: "Axes") -> None:
        largest = max(float(weights.max(initial=0.0)), 1e-9)
        for (one, other), weight in zip(edges, weights, strict=True):
            share = float(weight) / largest
            x, y = spots[[one, other]].T
            (line,) = axes.plot(x, y, color="#7d8a97", zorder=1, solid_capstyle="round")
            line.set(linewidth=0.6 + 7 * share, alpha=0.35 + 0.5 * share)
        for number, curator in enumerate(curators):
            own = [place for place in order if owners[place] == curator]
            colour, shape = _COLOURS[number % len(_COLOURS)], _SHAPES[number % len(_SHAPES)]
            x, y = spots[own].T
            axes.plot(x, y, shape, color=colour, ms=12 if sheet is WIDE else 8, zorder=2, label=wrapped(curator, 30))
        for place, label in enumerate(labels):
            x, y = (1.12 if not radial else 1 + 0.17 * room) * spots[place]
            beside = "center" if abs(x) < 0.2 and not radial else ("left" if x > -1e-9 else "right")
            turned = degrees(atan(y / x)) if abs(x) > 1e-9 else 90.0
            axes.text(
                x,
                y,
                label,
                ha=beside if x > 1e-9 or y > 0 or not radial else "right",
                va="center",
                fontsize=size,
                rotation=turned if radial else 0.0,
                rotation_mode="anchor",
            )
        axes.set(xlim=(-room, room), ylim=(-down, down), aspect="equal")
        axes.axis("off")
        axes.legend(
            title="held by",
            loc="upper left",
            bbox_to_anchor=(0.0, 0.0),
            ncols=3,
            frameon=False,
            fontsize=size - 1,
            title_fontsize=size - 1,
            alignment="left",
        )

    return draw((sheet.width, side + 0.6 if radial else 6.2), paint)


def pairs_picture(names: Sequence[str], measured: Floats, in_file: Floats, sheet: Sheet = WIDE) -> str:
    """Draw the distance of each pair from independence: measured above the diagonal, in the file below it.

    Args:
        measured: shape (attributes, attributes), symmetric; NaN where a pair was not measured.
        in_file: likewise, of the file.
        sheet: what it is drawn on.

    Returns:
        An <svg> element.
    """
    count = len(names)
    values = np.where(np.triu(np.ones((count, count), np.bool_), 1), measured, in_file)
    np.fill_diagonal(values, np.nan)
    side = min(0.5, (sheet.width - (2.0 if sheet is WIDE else 1.4)) / count)
    labels = [shorten(name, 24) for name in names]
    size = min(10.0, 72 * side)

    def paint(axes: "Axes") -> None:
        top = max(float(np.nanmax(values, initial=0.0)), 1e-9)
        axes.pcolormesh(np.ma.masked_invalid(values), cmap="Blues", vmin=0, vmax=1.15 * top, edgecolors="white", lw=1.5)
        axes.set_xticks(np.arange(count) + 0.5, labels, rotation=90, fontsize=size)
        axes.set_yticks(np.arange(count) + 0.5, labels, fontsize=size)
        axes.set(ylim=(count, 0), aspect="equal")
        axes.plot([0, count], [0, count], color=SOFT, lw=1.2)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for (row, column), value in np.ndenumerate(values):
            if side > 0.35 and np.isfinite(value):
                ink = "white" if value > 0.65 * top else "black"
                axes.text(
                    column + 0.5, row + 0.5, f"{100 * value:.1f}", ha="center", va="center", color=ink, fontsize=9
                )

    return draw((2.0 + side * count, 1.6 + side * count), paint)


def agreement_picture(expected: Floats, observed: Floats, truth: Floats | None, sheet: Sheet = WIDE) -> str:
    """Draw how far the file's pairs are from the measured ones, beside what the noise of the measurement alone shows.

    Args:
        expected: distance by the noise alone, one a pair.
        observed: distance of the file's table from the measured one.
        truth: distance of the file's table from the true one, where that is known.
        sheet: what it is drawn on.

    Returns:
        An <svg> element.
    """

    def paint(axes: "Axes") -> None:
        every = np.concatenate([expected, observed])
        ends = 100 * np.array([0.7 * float(every.min()), 1.4 * float(every.max())])
        axes.plot(ends, ends, color="#8a949e", lw=1, zorder=1, label="noise alone")
        axes.plot(100 * expected, 100 * observed, "o", color=INK, ms=5, label="from the measured pair", zorder=3)
        if truth is not None:
            axes.plot(
                100 * expected, 100 * truth, "D", mfc="none", mec=ACCENT, ms=5, label="from the true pair", zorder=2
            )
        logarithmic(axes, "x", "y")
        axes.set_xlabel("distance by the noise alone, %")
        axes.set_ylabel("distance of the file's pair, %")
        axes.grid(color=SOFT, lw=0.6)
        axes.legend(loc="upper left", frameon=False)

    return draw((min(7.6, sheet.width), 5.0), paint)
