"""A picture shows every curve, survives odd numbers, and is the same bytes in every process."""

import re
import xml.etree.ElementTree as ET
from math import inf, nan

import pytest

from veiltab.papers.experiment import Curve, Figure, Mark, Panel, Style
from veiltab.papers.style import draw, element

STYLES: tuple[Style, ...] = ("line", "points", "dashed", "dotted", "bars")
X = (1.0, 2.0, 4.0, 8.0)


def curve(label: str, *, style: Style = "line", group: str = "", scale: float = 1.0) -> Curve:
    y = tuple(scale * x for x in X)
    return Curve(label=label, x=X, y=y, low=tuple(0.8 * v for v in y), high=y, style=style, group=group)


def panel(*curves: Curve, title: str = "one", log: bool = True) -> Panel:
    marks = (Mark(x=2.0, label="first <mark>"), Mark(x=2.05, label="second"))
    return Panel(title=title, x_label="rows", y_label="error", curves=curves, x_log=log, y_log=log, marks=marks)


def figure(*panels: Panel, name: str = "test-1") -> Figure:
    return Figure(name=name, title="Paper, Figure 1: a & b <c> " * 6, panels=panels, caption="What to see.")


def every_style(title: str = "one", *, log: bool = False) -> Panel:
    return panel(*(curve(f"{style} $x_1$ & <b>", style=style) for style in STYLES), title=title, log=log)


def test_every_text_is_in_the_picture_as_text() -> None:
    svg, png = draw(figure(every_style()))
    text = " ".join("".join(node.itertext()) for node in ET.fromstring(svg).iter())  # noqa: S314 - drawn here
    for expected in ("Figure 1: a & b <c>", "rows", "error", "a: first <mark>", "b: second"):
        assert expected in text
    for style in STYLES:
        assert f"{style} $x_1$ & <b>" in text
    assert png.startswith(b"\x89PNG")
    assert element(svg).startswith("<svg")


@pytest.mark.parametrize("log", [False, True])
def test_missing_and_infinite_numbers_leave_gaps(*, log: bool) -> None:
    odd = Curve(label="odd", x=X, y=(nan, inf, 1.0, 0.0))
    draw(figure(panel(odd, Curve(label="one", x=(1.0,), y=(2.0,), style="points"), log=log)))


def test_ids_are_the_figures_own_and_nothing_says_when() -> None:
    svg, _ = draw(figure(every_style()))
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert ids
    assert all(one.startswith("test-1-") for one in ids)
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert {a or b for a, b in references} <= set(ids)
    assert not re.search(r"metadata|dc:date|20\d\d-\d\d", svg)
