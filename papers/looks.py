"""The look of curves: what distinguishes them, in colour and in black and white."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from veiltab.papers.experiment import Curve, Panel
from veiltab.researcher.drawing import style as drawing
from veiltab.researcher.drawing.style import INK

GRID = drawing.SOFT

STYLE: Any = drawing.STYLE | {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlecolor": INK,
    "hatch.linewidth": 0.7,
}
"""The style of the house, a little smaller."""

MARK: Any = {"color": "#444c55", "linewidth": 1.0, "linestyle": (0, (7, 2, 1.5, 2)), "zorder": 1}
"""A vertical line."""

DASHES: Any = {"line": "-", "dashed": (0, (5, 2)), "dotted": (0, (1.3, 1.5))}

_COLOURS = ("#16324f", "#c2571a", "#1c7c64", "#8a3fa0", "#a07d00", "#a3223b", "#3d86bd", "#5d6873")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")


class Looks:
    """Colour, marker and hatch of every group of a figure, and the letter of every mark, the same in all panels."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        marks = (mark.label for panel in panels for mark in panel.marks)
        self._groups = _places([[curve.group or curve.label for curve in panel.curves] for panel in panels])
        self.letters = {label: _letter(place) for place, label in enumerate(dict.fromkeys(marks))}

    def colour(self, curve: Curve) -> str:
        """Return a colour; two that follow each other differ in lightness too."""
        return _COLOURS[self._place(curve) % len(_COLOURS)]

    def marker(self, curve: Curve) -> str:
        """Return a marker's shape."""
        return _MARKERS[self._place(curve) % len(_MARKERS)]

    def hatch(self, curve: Curve) -> str:
        """Return the pattern of a bar."""
        return _HATCHES[self._place(curve) % len(_HATCHES)]

    def _place(self, curve: Curve) -> int:
        return self._groups[curve.group or curve.label]


def _places(panels: Sequence[Sequence[str]]) -> dict[str, int]:
    """Give each group the first place that no other group of its panels has: there are few looks."""
    places: dict[str, int] = {}
    for group in dict.fromkeys(group for panel in panels for group in panel):
        others = {places.get(other) for panel in panels if group in panel for other in panel}
        places[group] = next(place for place in count() if place not in others)
    return places


def _letter(place: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[place % 26]


def needs_markers(curve: Curve, panel: Panel) -> bool:
    """Return whether another line of the panel is dashed like this one: only a marker distinguishes them in print.

    Two curves of one group that are dashed alike share a marker; their labels must say how they differ.
    """
    return sum(other.style == curve.style for other in panel.curves) > 1
