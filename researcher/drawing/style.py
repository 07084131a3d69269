"""Drawing in one style, to a file or into a page; the same bytes for the same numbers."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import escape
from io import StringIO
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from veiltab.common.dataclass import dataclass, field
from veiltab.common.extras import importing
from veiltab.common.storage.named_files import check_place, written_as_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
INK, ACCENT, SOFT = "#16324f", "#c2571a", "#d7dde4"

STYLE: Any = {
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
"""Text stays text in an SVG, and names may contain any character: no mathematical markup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a picture of a page is drawn on.

    Args:
        width: inches.
        letters: as many of a label stand beside a mark.
    """

    width: float
    letters: int


WIDE = Sheet(width=9.6, letters=60)
"""A screen, or paper."""

NARROW = Sheet(width=4.0, letters=20)
"""A phone."""


_ONE_AT_A_TIME = RLock()
"""matplotlib's settings are those of the process, and `veiltab researcher http` draws in several threads."""


@contextmanager
def house_style(style: Any = STYLE) -> Iterator[None]:  # noqa: ANN401 - matplotlib's settings
    """Draw inside the block in the style of the house, or in a variant of it."""
    import matplotlib as mpl  # noqa: PLC0415 - not where the extra is missing

    with _ONE_AT_A_TIME, mpl.rc_context(style), warnings.catch_warnings():
        # The reader's viewer has fonts for scripts that matplotlib's own font, used for measuring only, lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def check_picture(path: Path) -> None:
    """Refuse an unusable file name of a picture, before any computation."""
    check_place(path, SUFFIXES)


def write_picture(path: Path, size: tuple[float, float], paint: "Callable[[Figure], None]", *, option: str) -> None:
    """Draw a figure to a file.

    Args:
        size: width and height, inches.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """
    check_picture(path)
    with importing("researcher", "a picture", where=option):
        from matplotlib.figure import Figure  # noqa: PLC0415 - not where the extra is missing

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        kind = path.suffix.lower()
        metadata = {"Date": None, "Creator": None} if kind == ".svg" else None
        with written_as_named(path) as file:
            figure.savefig(file, format=kind[1:], dpi=150, metadata=metadata)


def logarithmic(axes: "Axes", *names: str) -> None:
    """Make axes of a panel, "x" or "y", logarithmic, with plain numbers at their ticks; call it after drawing."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415 - not where the extra is missing

    for name in names:
        axes.set(**{f"{name}scale": "log"})
        low, high = sorted(getattr(axes, f"get_{name}lim")())
        narrow = high < 100 * low
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axis.set_minor_formatter(NullFormatter())
        if narrow:
            axis.set_minor_locator(NullLocator())


def number(value: float) -> str:
    """Return a number in plain notation."""
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e7 or value == 0 else f"{value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that a notebook shows and that can be saved.

    Args:
        size: width and height, inches.
    """

    size: tuple[float, float]
    paint: "Callable[[Figure], None]" = field(repr=False)

    @property
    def svg(self) -> str:
        """The picture as an <svg> element, the same bytes for the same numbers.

        Raises:
            InvalidInputError: matplotlib is not installed.
        """
        return draw_figure(self.size, self.paint)

    def save(self, path: Path) -> None:
        """Write the picture to a file, .svg or .png.

        Raises:
            InvalidInputError: another suffix, a file that cannot be written, or matplotlib is not installed.
        """
        write_picture(Path(path), self.size, self.paint, option="")

    def axes(self) -> "list[Axes]":
        """Draw on a new figure, and return its axes to restyle; `axes[0].figure` is the figure.

        Raises:
            InvalidInputError: matplotlib is not installed.
        """
        with importing("researcher", "a picture"):
            from matplotlib.figure import Figure  # noqa: PLC0415 - not where the extra is missing

        with house_style():
            figure = Figure(figsize=self.size, layout="constrained")
            self.paint(figure)
        return figure.axes

    def _repr_html_(self) -> str:
        return self.svg


def draw(size: tuple[float, float], paint: "Callable[[Axes], None]") -> str:
    """Return the SVG of one panel."""
    return draw_figure(size, lambda figure: paint(figure.subplots()))


def draw_figure(size: tuple[float, float], paint: "Callable[[Figure], None]") -> str:
    """Return the SVG of a figure; without pyplot, so that no window system and no global figure list is touched."""
    with importing("researcher", "a picture"):
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - not where the extra is missing
        from matplotlib.figure import Figure  # noqa: PLC0415 - not where the extra is missing

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure)
        text = StringIO()
        figure.savefig(text, format="svg")
    return _inline(text.getvalue())


def figure(picture: Callable[[Sheet], str], caption: str) -> str:
    """Return a picture with its caption, which is also its text alternative.

    Args:
        picture: draws it, as an <svg> element, on a sheet: the reader sees the one that the screen has room for.
        caption: plain text.
    """
    text = escape(caption)
    pictures = "\n".join(
        f'<div class="{name}" role="img" aria-label="{text}">\n{_with_own_ids(picture(sheet), name)}\n</div>'
        for name, sheet in (("wide", WIDE), ("narrow", NARROW))
    )
    return f"<figure>\n{pictures}\n<figcaption>{text}</figcaption>\n</figure>"


def _inline(svg: str) -> str:
    """Return an <svg> element that can stand beside others in a page: no prologue, no metadata, ids of its own."""
    svg = svg[svg.index("<svg") :].rstrip()
    return _with_own_ids(own_ids(re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL), ""), "picture")


def _with_own_ids(svg: str, name: str) -> str:
    """Return an SVG whose ids another picture has only if it looks the same and has the same name."""
    return own_ids(svg, f"{name}-{sha256(svg.encode()).hexdigest()[:12]}")


def own_ids(svg: str, prefix: str) -> str:
    """Return an SVG whose ids and references are the prefix and a number, in order of appearance.

    Some of matplotlib's own ids depend on addresses in memory. Texts stand between tags and stay as they are.
    """
    numbers: dict[str, int] = {}

    def numbered(tag: re.Match[str]) -> str:
        return re.sub(
            r'(\bid="|\bhref="#|url\(#)([^")]+)',
            lambda match: f"{match.group(1)}{prefix}-{numbers.setdefault(match.group(2), len(numbers))}",
            tag.group(),
        )

    return re.sub(r"<[^>]*>", numbered, svg)
