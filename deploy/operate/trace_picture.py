"""The picture of a trace: a lane a party, its states pale, what it did in them dark."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.deploy.operate.spans import Span
from veiltab.researcher.drawing.style import INK, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROLES = ("researcher", "curator", "server")
_COLOURS = {"researcher": "#c2571a", "curator": INK, "server": "#3d7a4b"}
_PALE, _HEIGHT = "#d7dde4", 0.72
_SHORTEST = 0.004
"""Least width of a bar, as a share of the picture, so that the shortest step is visible."""
_EDGED = 0.012
"""Width above which a bar has an edge, as a share of the picture: the edges of many narrow bars would hide one
another."""


def draw(spans: Sequence[Span], path: Path) -> None:
    """Write the picture.

    Raises:
        InvalidInputError: another suffix, or the file cannot be written.
    """
    rows = [row for party in _parties(spans) for row in _rows(party, spans)]
    size = (10, 0.9 + 0.21 * len(rows))
    write_picture(path, size, lambda figure: _paint(figure.subplots(), rows, spans), option="--out")


def _parties(spans: Sequence[Span]) -> list[str]:
    """Return the parties of a trace: researcher, curators, server."""
    known = {span.party for span in spans}
    return sorted(known, key=lambda party: (_place(party), party))


def _place(party: str) -> int:
    role = party.partition(" ")[0]
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the picture: a party with its states, or one of its steps."""

    label: str
    spans: tuple[Span, ...]
    head: bool


def _rows(party: str, spans: Sequence[Span]) -> list[_Row]:
    """Return the rows of a party: its states first, then its steps, ordered by their first start."""
    own = [span for span in spans if span.party == party]
    names = dict.fromkeys(span.name for span in own if not _encloses(span))
    head = _Row(party, tuple(span for span in own if _encloses(span)), head=True)
    return [head, *(_Row(name, tuple(span for span in own if span.name == name), head=False) for name in names)]


def _encloses(span: Span) -> bool:
    """Return whether a span is a state, in which steps and waiting alternate."""
    return span.name.startswith("state ") or span.name == "release"


def _paint(axes: "Axes", rows: Sequence[_Row], spans: Sequence[Span]) -> None:
    began = min(span.start for span in spans)
    whole = max((max(span.end for span in spans) - began) / 1e9, 1e-6)
    for place, row in enumerate(rows):
        if place and row.head:
            axes.axhline(place - 0.5, color="#8a949e", linewidth=0.8)
        for span in row.spans:
            _paint_bar(axes, place, span, (span.start - began) / 1e9, whole)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8.5)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.head else "normal")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.02 * whole)
    axes.set_xlabel("seconds, by each party's own clock", fontsize=9)
    axes.set_title(spans[0].trace, loc="left", fontsize=9)
    axes.grid(visible=True, axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _paint_bar(axes: "Axes", place: int, span: Span, start: float, whole: float) -> None:
    pale = _encloses(span)
    colour = _PALE if pale else _COLOURS.get(span.party.partition(" ")[0], "#444444")
    width = max(span.seconds, _SHORTEST * whole)
    edge = "white" if width > _EDGED * whole else "none"
    axes.barh(place, width, left=start, height=_HEIGHT, color=colour, edgecolor=edge, linewidth=0.5)
    text = span.name.removeprefix("state ")
    if pale and width > 0.011 * len(text) * whole:
        axes.text(start + 0.005 * whole, place, text, va="center", fontsize=7.5, color=INK, clip_on=True)
