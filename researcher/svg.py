"""Drawing to inline SVG: one style, the same bytes for the same numbers, ids that can stand beside others in a page."""

import re
import warnings
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

from veiltab.common.extras import importing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, SOFT = "#16324f", "#c2571a", "#d7dde4"
_STYLE: Any = {
    "svg.hashsalt": "veiltab",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a949e",
    "axes.axisbelow": True,
}


def draw(size: tuple[float, float], paint: "Callable[[Axes], None]", prefix: str) -> str:
    """Return the SVG of one panel."""
    return draw_figure(size, lambda figure: paint(figure.subplots()), prefix)


def draw_figure(size: tuple[float, float], paint: "Callable[[Figure], None]", prefix: str) -> str:
    """Return the SVG of a figure; without pyplot, so that no window system and no global figure list is touched."""
    with importing("researcher", "a picture"):
        import matplotlib as mpl  # noqa: PLC0415 - an optional package
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # The reader's browser has fonts for scripts that matplotlib's own font, used for measuring only, lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure)
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True)
    return _inline(text.getvalue(), prefix)


def _inline(svg: str, prefix: str) -> str:
    """Return an <svg> element that can stand beside others in a page: no prologue, no metadata, ids of its own."""
    svg = svg[svg.index("<svg") :].rstrip()
    return own_ids(re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL), prefix)


def own_ids(svg: str, prefix: str) -> str:
    """Return an SVG whose ids and references are the prefix and a number, in order of appearance.

    Some of matplotlib's own ids depend on addresses in memory. Texts stand between tags and stay as they are.
    """
    numbers: dict[str, int] = {}

    def numbered(tag: re.Match[str]) -> str:
        return re.sub(
            r'(\bid="|\bhref="#|url\(#)([^")]+)',
            lambda found: f"{found.group(1)}{prefix}-{numbers.setdefault(found.group(2), len(numbers))}",
            tag.group(),
        )

    return re.sub(r"<[^>]*>", numbered, svg)
