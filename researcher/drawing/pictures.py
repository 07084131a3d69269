"""The pictures of a report, as inline SVG: estimates with intervals, a heat map of two attributes, marginals.

Every mark differs in shape as well as in colour, so that a black-and-white print says the same. Text stays text in the
SVG; mathematical markup in names is off, so a category may be called anything.
"""

from collections.abc import Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veiltab.researcher.drawing.drawable import Quantities, ShownTable, Unit, at_level, is_covered
from veiltab.researcher.drawing.style import ACCENT, INK, SOFT, WIDE, Picture, Sheet, draw, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELLS_SHOWN = 60
"""Cells in the picture of estimates; of a larger table the largest estimates are shown."""

CATEGORIES_SHOWN = 30
"""Categories of one attribute in a picture; of more the largest are shown."""

CURVES = ((INK, "-"), (ACCENT, "--"), ("#2e7d5b", "-."), ("#7a4fa3", ":"), ("#8a6d1d", "-"), ("#5b6b7a", "--"))
"""Colours and lines of the curves of a picture; of more groups the first are shown."""

_PROJECTED: Any = {"mfc": "white", "mec": ACCENT, "mew": 1.3, "ms": 7.5, "zorder": 2, "label": "projected"}
"""How projected values look."""

_SHARE = "share of all respondents, %"

_AXES = {Unit.SHARE: "%", Unit.ROWS: "rows of the table", Unit.NUMBER: ""}


def largest(values: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """Return the positions of the `limit` largest values, in their original order."""
    return np.sort(np.argsort(-values, kind="stable")[:limit])


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to `length` characters with an ellipsis if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def wrapped(text: str, letters: int) -> str:
    """Return `text` in as many lines of `letters` characters as it needs; what three do not hold is cut."""
    return "\n".join(wrap(shorten(text, 3 * letters), letters))


def cell_label(estimate: ShownTable, cell: int, letters: int = WIDE.letters) -> str:
    """Return the categories of a cell, joined by middle dots, as `wrapped`; the longest are cut first."""
    categories = estimate.domain.categories_of(cell)
    room = 3 * letters - 3 * (len(categories) - 1)
    share = max(map(len, categories))
    while share > 6 and sum(min(len(category), share) for category in categories) > room:
        share -= 1
    return wrapped(" · ".join(shorten(category, share) for category in categories), letters)


def height_of(labels: Sequence[str]) -> float:
    """Return the inches that rows with these labels need below each other."""
    return len(labels) * (0.11 + 0.16 * max((label.count("\n") + 1 for label in labels), default=1))


def estimates_picture(estimate: ShownTable, truth: NDArray[np.float64] | None = None, sheet: Sheet = WIDE) -> Picture:
    """Draw the estimates with their intervals, the projected values and, where known, the truth.

    Args:
        estimate: the estimated table; above CELLS_SHOWN cells the largest are drawn.
        truth: true fractions, shape (K,), float64, or None.
        sheet: what it is drawn on.
    """
    cells = largest(estimate.raw, CELLS_SHOWN)
    labels = [cell_label(estimate, int(cell), sheet.letters) for cell in cells]
    return Picture(
        size=(sheet.width, 1.1 + height_of(labels)),
        paint=lambda figure: _intervals(figure.subplots(), estimate, cells, labels, truth, legend=sheet),
    )


def analysis_picture(analysis: Quantities, sheet: Sheet = WIDE) -> Picture:
    """Draw the quantities of an analysis with their intervals; above CELLS_SHOWN rows the first are drawn.

    An interval without an upper or lower limit ends in an arrow, and what cannot be said has no mark.

    Args:
        analysis: what was asked of a table.
        sheet: what it is drawn on.
    """
    if analysis.along:
        return Picture(
            size=(sheet.width, max(0.5 * sheet.width, 3.2)), paint=partial(_curves, analysis=analysis, sheet=sheet)
        )
    labels = [wrapped(name, sheet.letters) for name in analysis.names[:CELLS_SHOWN]]
    return Picture(
        size=(sheet.width, 1.4 + height_of(labels)),
        paint=lambda figure: _quantities(figure.subplots(), analysis, labels, sheet),
    )


def marginals_picture(estimate: ShownTable, truth: NDArray[np.float64] | None = None, sheet: Sheet = WIDE) -> str:
    """Draw the marginal of every attribute, one panel each.

    Args:
        truth: true fractions of the joint table, shape (K,), float64, or None.
        sheet: what it is drawn on.

    Returns:
        An <svg> element, the same bytes for the same numbers.
    """
    marginals = [estimate.marginal([name]) for name in estimate.domain.names]
    categories = [largest(one.raw, CATEGORIES_SHOWN) for one in marginals]
    labels = [
        [cell_label(one, int(cell), sheet.letters) for cell in cells]
        for one, cells in zip(marginals, categories, strict=True)
    ]
    heights = [height_of(rows) / 0.27 + 1.6 for rows in labels]

    def panels(figure: "Figure") -> None:
        grid = figure.subplots(len(marginals), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        for axis, (axes, one) in enumerate(zip(grid[:, 0], marginals, strict=True)):
            truth_here = None if truth is None else estimate.domain.summed(truth, [estimate.domain.names[axis]])
            _intervals(axes, one, categories[axis], labels[axis], truth_here, legend=sheet if axis == 0 else None)
            axes.set_xlabel(_SHARE if axis == len(marginals) - 1 else "")
            axes.set_title(
                wrapped(one.domain.names[0], sheet.letters), loc="left", fontsize=11, fontweight="bold", color=INK
            )

    return draw_figure((sheet.width, 0.5 + 0.3 * sum(heights)), panels)


def heat_map(pair: ShownTable, sheet: Sheet = WIDE) -> str:
    """Draw the joint table of two attributes: a stronger blue is more, with the share of all respondents in each field.

    Args:
        pair: an estimate of exactly two attributes; above CATEGORIES_SHOWN categories the largest are drawn.
        sheet: what it is drawn on.

    Returns:
        An <svg> element, the same bytes for the same numbers.
    """
    table = pair.raw.reshape(pair.domain.shape)
    rows, columns = (largest(table.sum(axis=axis), CATEGORIES_SHOWN) for axis in (1, 0))
    part = table[np.ix_(rows, columns)]
    longest = min(max(len(pair.domain.attributes[1].categories[int(c)]) for c in columns), 24)
    upright = longest * len(columns) > sheet.letters + 10
    width, height = (
        min(sheet.width, 3.2 + 0.95 * len(columns)),
        1.3 + 0.42 * len(rows) + (0.075 * longest if upright else 0.0),
    )
    paint = partial(_fields, pair=pair, part=part, rows=rows, columns=columns, sheet=sheet, upright=upright)
    return draw((width, height), paint)


def _intervals(  # noqa: PLR0913 - one call draws one panel
    axes: "Axes",
    estimate: ShownTable,
    cells: NDArray[np.intp],
    labels: list[str],
    truth: NDArray[np.float64] | None,
    *,
    legend: Sheet | None,
) -> None:
    """Draw cells as rows: the interval as a bar with a dot, the projected value and the truth as open marks."""
    at = np.arange(len(cells))
    raw, low, high = (100 * part[cells] for part in (estimate.raw, estimate.low, estimate.high))
    axes.axvline(0, color="#8a949e", linewidth=0.9, zorder=1)
    axes.hlines(at, low, high, color=INK, linewidth=1.7, zorder=3)
    axes.plot([low, high], [at, at], "|", color=INK, ms=7, zorder=3)
    # The raw estimate may lie outside of its interval, which is cut to 0 and 100%.
    bars = axes.errorbar(
        raw,
        at,
        xerr=np.zeros(len(at)),
        fmt="o",
        color=INK,
        ms=4.6,
        elinewidth=1.7,
        zorder=3,
        label=f"raw estimate, interval {at_level(estimate.confidence, estimate.remarks)}",
    )
    projected = 100 * estimate.projected[cells]
    marks = axes.plot(projected, at, "D", **_PROJECTED)
    if truth is not None:
        marks += axes.plot(100 * truth[cells], at, "|", color="black", ms=15, mew=2.0, zorder=4, label="truth")
    _name_rows(axes, labels)
    axes.set_xlabel(_SHARE)
    if legend is not None:
        _legend(axes, [bars, *marks], legend)


def _quantities(axes: "Axes", analysis: Quantities, labels: list[str], sheet: Sheet) -> None:
    """Draw the rows of an analysis: dots with bars, and an upright line where nothing differs."""
    scale = 100.0 if analysis.unit is Unit.SHARE else 1.0
    value, low, high = (scale * part[: len(labels)] for part in (analysis.estimate, analysis.low, analysis.high))
    at = np.arange(len(labels))
    finite = np.concatenate([part[np.isfinite(part)] for part in (value, low, high)])
    least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    margin = 0.08 * (most - least) or 1.0
    ends = np.clip(low, least - margin, None), np.clip(high, None, most + margin)
    if analysis.neutral is not None:
        axes.axvline(scale * analysis.neutral, color="#8a949e", linewidth=0.9, zorder=1)
    axes.hlines(at, *ends, color=INK, linewidth=1.7, zorder=2)
    for limit, end, mark in ((low, ends[0], "<"), (high, ends[1], ">")):
        axes.plot(end[np.isfinite(limit)], at[np.isfinite(limit)], "|", color=INK, ms=7, zorder=2)
        axes.plot(end[np.isinf(limit)], at[np.isinf(limit)], mark, color=INK, ms=6, zorder=2)
    axes.plot(value, at, "o" if analysis.is_measured else "D", color=INK, ms=4.6, zorder=3)
    if analysis.projected is not None and analysis.leaves_range:
        _legend(axes, axes.plot(scale * analysis.projected[: len(labels)], at, "D", **_PROJECTED), sheet)
    _name_rows(axes, labels)
    _title(axes, analysis, sheet)
    axes.set_xlabel(_AXES[analysis.unit])


def _name_rows(axes: "Axes", labels: list[str]) -> None:
    """Name the rows of a panel, from its top."""
    axes.set_yticks(np.arange(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both", color=SOFT, linewidth=0.6)
    axes.spines["left"].set_visible(False)


def _curves(figure: "Figure", analysis: Quantities, sheet: Sheet) -> None:
    """Draw a line for each group along a time or waves, with its intervals; of many groups the first ones."""
    axes = figure.subplots()
    texts = analysis.labels[analysis.along]
    others = [names for name, names in analysis.labels.items() if name != analysis.along]
    groups = list(zip(*others, strict=True)) if others else [()] * len(texts)
    times = _places(axes, texts)
    scale = 100.0 if analysis.unit is Unit.SHARE else 1.0
    for (colour, line), group in zip(CURVES, dict.fromkeys(groups), strict=False):
        rows = [row for row, one in enumerate(groups) if one == group]
        at, name = times[rows], wrapped(" · ".join(group), sheet.letters)
        value, low, high = (scale * part[rows] for part in (analysis.estimate, analysis.low, analysis.high))
        if analysis.begins is None:
            ends = np.abs(np.nan_to_num([value - low, high - value]))
            axes.errorbar(at, value, ends, fmt=f"o{line}", color=colour, linewidth=1.8, ms=4.6, capsize=3, label=name)
            continue
        if analysis.projected is not None:
            value = scale * analysis.projected[rows]
        points = int(np.isfinite(value).sum())
        # The last step goes on to the next time, or a little farther.
        at = np.array([min(0.0, at[0]), *at, 1.02 * at[-1]])[: points + 2]
        value, low, high = (
            np.append(scale * analysis.begins, part[np.minimum(np.arange(points + 1), points - 1)])
            for part in (value, low, high)
        )
        axes.step(at, value, line, where="post", color=colour, linewidth=1.8, label=name)
        axes.fill_between(at, low, high, step="post", color=colour, alpha=0.18, linewidth=0)
    if analysis.begins is not None:
        axes.set_ylim(0, 1.02 * scale * analysis.begins)
        axes.set_xlim(left=min(0.0, float(times.min())))
    if analysis.neutral is not None:
        axes.axhline(scale * analysis.neutral, color="#8a949e", linewidth=0.9, zorder=1)
    axes.grid(axis="both", color=SOFT, linewidth=0.6)
    axes.set_xlabel(wrapped(analysis.along, sheet.letters))
    axes.set_ylabel(_AXES[analysis.unit])
    _title(axes, analysis, sheet)
    if others:
        axes.legend(frameon=False, fontsize=10)


def _title(axes: "Axes", analysis: Quantities, sheet: Sheet) -> None:
    """Put what was asked above the panel, and that its intervals are not covered, if they are not."""
    lines = [wrapped(analysis.title, 100 * sheet.letters // WIDE.letters)]
    if not is_covered(analysis.remarks):
        lines.append(f"intervals {at_level(analysis.confidence, analysis.remarks)}")
    axes.set_title("\n".join(lines), loc="left", fontsize=11, color=INK)


def _places(axes: "Axes", texts: Sequence[str]) -> NDArray[np.float64]:
    """Return where labels stand: numbers at their own, others one after the other."""
    different = list(dict.fromkeys(texts))
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        axes.set_xticks(np.arange(1, len(different) + 1), [wrapped(text, 12) for text in different])
        return np.array([1.0 + different.index(text) for text in texts])


def _legend(axes: "Axes", marks: list[Any], sheet: Sheet) -> None:
    """Put the legend above the panel, right-aligned, where no mark can be."""
    axes.legend(
        handles=marks,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=max(sheet.letters // 20, 1),
        frameon=False,
        fontsize=10,
        borderaxespad=0.3,
        handletextpad=0.4,
        columnspacing=1.4,
    )


def _fields(  # noqa: PLR0913 - one call draws one map
    axes: "Axes",
    pair: ShownTable,
    part: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    *,
    sheet: Sheet,
    upright: bool,
) -> None:
    """Draw the fields of a heat map, with their numbers where there is room."""
    first, second = pair.domain.attributes
    top = max(float(part.max()), 1e-9)
    axes.pcolormesh(np.clip(part, 0.0, None), cmap="Blues", vmin=0.0, vmax=top * 1.15, edgecolors="white", linewidth=2)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [wrapped(second.categories[int(c)], 24) for c in columns])
    axes.set_yticks(
        np.arange(len(rows)) + 0.5, [wrapped(first.categories[int(r)], min(34, sheet.letters)) for r in rows]
    )
    axes.set_ylim(len(rows), 0)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", labelrotation=90 * upright)
    axes.set_xlabel(wrapped(second.name, sheet.letters), fontweight="bold")
    axes.set_ylabel(wrapped(first.name, min(40, sheet.letters)), fontweight="bold")
    axes.spines[:].set_visible(False)
    if len(columns) <= sheet.letters // 5:
        for (row, column), share in np.ndenumerate(part):
            ink = "white" if share > 0.7 * top else "black"
            text = f"{round(100 * share, 1) + 0.0:.1f}%"
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=ink, fontsize=10)
