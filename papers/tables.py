"""A replay's output for other programs: the numbers of each figure as CSV, and everything as one JSON object."""

import csv
from collections.abc import Sequence
from io import StringIO
from math import isfinite

from veiltab.common.errors import InvalidInputError
from veiltab.papers.experiment import Comparison, Figure

COLUMNS = ("panel", "curve", "x", "y", "low", "high")


def as_csv(figure: Figure) -> str:
    """Return the numbers of a figure, one row a point of a curve; a mark has an abscissa only.

    Returns:
        CSV with a heading and lines that end in a line feed; floats in the shortest form that is read back the same.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for panel in figure.panels:
        for curve in panel.curves:
            columns = [_texts(values, len(curve.x)) for values in (curve.x, curve.y, curve.low, curve.high)]
            writer.writerows([panel.title, curve.label, *row] for row in zip(*columns, strict=True))
        writer.writerows([panel.title, mark.label, repr(float(mark.x)), "", "", ""] for mark in panel.marks)
    return text.getvalue()


def _texts(values: Sequence[float] | None, count: int) -> list[str]:
    return [""] * count if values is None else [repr(float(value)) for value in values]


def series_of(figures: Sequence[Figure]) -> dict[str, dict[str, list[float | None]]]:
    """Return every curve under "figure/panel/curve", its missing or infinite numbers as None.

    Raises:
        InvalidInputError: two curves have the same name.
    """
    series: dict[str, dict[str, list[float | None]]] = {}
    for figure in figures:
        for panel in figure.panels:
            for curve in panel.curves:
                name = "/".join(part for part in (figure.name, panel.title, curve.label) if part)
                if name in series:
                    raise InvalidInputError("two curves have the same name", where=name)
                series[name] = {"x": _numbers(curve.x), "y": _numbers(curve.y)}
    return series


def rows_of(comparisons: Sequence[Comparison]) -> list[dict[str, object]]:
    """Return comparisons as plain data."""
    return [
        {
            "what": one.what,
            "source": one.source,
            "printed": _number(one.printed),
            "ours": None if one.ours is None else _number(one.ours),
            "tolerance": _number(one.tolerance),
            "agrees": one.agrees,
            "verdict": one.verdict,
            "note": one.note,
        }
        for one in comparisons
    ]


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    """Return a number that JSON has, or None."""
    return float(value) if isfinite(value) else None
