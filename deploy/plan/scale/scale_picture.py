"""The picture of a study's scale: stage after stage, a bar a party, in the colour of what it waits for."""

from pathlib import Path
from typing import TYPE_CHECKING

from veiltab.deploy.plan.scale.model import Resource, Scale
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {
    Resource.CPU: INK,
    Resource.SENDING: ACCENT,
    Resource.RECEIVING: ACCENT,
    Resource.DISK: "#3d7a4b",
    Resource.LATENCY: "#8a949e",
}
_LABELS = {
    Resource.CPU: "waits for its processor",
    Resource.SENDING: "waits for its link",
    Resource.DISK: "waits for its disk",
    Resource.LATENCY: "waits for answers",
}
_UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 0.0))
_HEIGHT = 0.62
_SHORTEST = 0.003
"""Least width of a bar, as a share of the picture."""


def draw(title: str, found: Scale, path: Path) -> None:
    """Write the picture.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """
    size = (9.6, 1.5 + 0.3 * len(found.works))
    write_picture(path, size, lambda figure: _paint(figure.subplots(), title, found), option="--picture")


def _paint(axes: "Axes", title: str, found: Scale) -> None:
    unit, size = next((name, size) for name, size in _UNITS if found.seconds >= 2 * size)
    begins, begun, factor = {}, 0.0, size or 1.0
    for stage, seconds in found.stages.items():
        begins[stage] = begun / factor
        begun += seconds
    whole = begun / factor
    for place, work in enumerate(found.works):
        slowest, seconds = work.slowest(found.machine)
        width = max(seconds / factor, _SHORTEST * whole)
        axes.barh(place, width, left=begins[work.stage], height=_HEIGHT, color=_COLOURS[slowest])
    axes.set_yticks(range(len(found.works)), [f"{work.stage}: {work.party}" for work in found.works])
    axes.set_ylim(len(found.works) - 0.4, -0.6)
    axes.set_xlim(0, 1.02 * whole)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left", fontsize=9.5, color=INK)
    axes.grid(axis="x", color=SOFT, linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    for resource, label in _LABELS.items():
        axes.barh(0, 0, color=_COLOURS[resource], label=label)
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
