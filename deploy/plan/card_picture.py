"""The picture of an epsilon card: a bar a coalition, the longer the less protection, on a logarithmic scale."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from veiltab.common.privacy.cards.card import Bound, EpsilonCard
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, logarithmic, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 0.58
_ROOM = 0.55
"""Length of the scale beyond the largest epsilon, as a share of what is before it."""


def draw_card(card: EpsilonCard, path: Path) -> None:
    """Write the picture.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """
    size = (9.6, 1.2 + 0.46 * len(card.bounds))
    write_picture(path, size, lambda figure: _paint(figure.subplots(), card), option="--card")


def _paint(axes: "Axes", card: EpsilonCard) -> None:
    low, high = _scale(card)
    axes.set_xlim(low, high)
    logarithmic(axes, "x")
    for place, bound in enumerate(card.bounds):
        _paint_bound(axes, place, bound, low, high)
    axes.set_yticks(range(len(card.bounds)), [bound.name for bound in card.bounds])
    axes.set_ylim(len(card.bounds) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=SOFT, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("epsilon that it faces (nats): the longer the bar, the less protection")
    axes.set_title("Who faces which epsilon", loc="left", fontsize=11, fontweight="bold", color=INK)


def _scale(card: EpsilonCard) -> tuple[float, float]:
    """Return the ends of the scale: every epsilon of the card that is neither 0 nor missing, and room for words."""
    values = [float(bound.epsilon) for bound in card.bounds if bound.epsilon] or [1.0]
    low = min(values) / 3
    return low, max(values) * (max(values) / low) ** _ROOM


def _paint_bound(axes: "Axes", place: int, bound: Bound, low: float, high: float) -> None:
    """Draw one coalition; what differs in colour differs in words too."""
    if bound.epsilon is None:
        axes.barh(place, high - low, left=low, height=_HEIGHT, color="white", edgecolor=ACCENT, hatch="///")
        _write(axes, (low, place), "no protection", ACCENT)
    elif bound.epsilon == 0:
        _write(axes, (low, place), "nothing", INK)
    else:
        length = float(bound.epsilon)
        axes.barh(place, length - low, left=low, height=_HEIGHT, color=ACCENT if bound.per_row else INK)
        _write(axes, (length, place), bound.guarantee, INK)


def _write(axes: "Axes", place: tuple[float, float], text: str, colour: str) -> None:
    box: Any = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.annotate(text, place, xytext=(8, 0), textcoords="offset points", va="center", color=colour, bbox=box, zorder=4)
