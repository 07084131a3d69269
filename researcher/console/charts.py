"""Pictures of results inside a page of the console: the house's pictures, with colours that the page's style chooses.

The console's pages allow no style inside of them, so the styles that matplotlib writes into its pictures become
attributes, and assets/desk.css gives them the colours of the light or the dark page.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup, escape

from veiltab.researcher.drawing.style import NARROW, Sheet

BESIDE = Sheet(width=7.4, letters=46)
"""What is left of a screen beside the form of a page."""

_TAG = re.compile(r"<[^>]*>")
_STYLE = re.compile(r' style="([^"]*)"')
_BLOCK = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)
_ATTRIBUTES = frozenset(
    {
        "clip-path",
        "clip-rule",
        "fill",
        "fill-opacity",
        "fill-rule",
        "opacity",
        "stroke",
        "stroke-dasharray",
        "stroke-dashoffset",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-miterlimit",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
    }
)
"""Properties of SVG that may be attributes as they are."""


def chart(picture: Callable[[Sheet], str], title: str) -> Markup:
    """Return a picture that may stand in a page of the console, for a wide and for a narrow screen.

    Args:
        picture: draws it as an <svg> element, whose texts are escaped; as `drawing.style.figure` takes it.
        title: what it shows, in words, for who does not see it.
    """
    sheets = (("wide", BESIDE), ("narrow", NARROW))
    return Markup("\n").join(
        Markup('<div class="{}" role="img" aria-label="{}">{}</div>').format(name, title, _plain(picture(sheet)))
        for name, sheet in sheets
    )


@lru_cache(maxsize=64)
def _plain(svg: str) -> Markup:
    """Return a picture whose styles are attributes; texts stand between tags and stay as they are."""

    def plain(tag: re.Match[str]) -> str:
        return _STYLE.sub(lambda style: _attributes(style.group(1)), tag.group())

    opened = svg.replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)
    return Markup(_TAG.sub(plain, _BLOCK.sub("", opened, count=1)))  # noqa: S704 - texts are escaped as they are drawn


def _attributes(style: str) -> str:
    """Return the declarations of a style as attributes; of a text's font its size and weight, as classes."""
    found, classes = [], []
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        match name:
            case "font-size":
                classes.append(f"t{round(float(value.removesuffix('px')))}")
            case "font-weight":
                classes.append("strong")
            case _ if name in _ATTRIBUTES:
                found.append(f'{name}="{escape(value)}"')
            case _:
                # Names of fonts; the page has its own.
                pass
    if classes:
        found.append(f'class="{" ".join(classes)}"')
    return "".join(f" {one}" for one in found)
