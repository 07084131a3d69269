"""Table 3, and Figures 4 and 5, from the amplified profiles."""

from collections.abc import Mapping, Sequence

import numpy as np

from veiltab.papers.experiment import Comparison, Curve, Figure, Findings, Panel, Plain, Settings
from veiltab.papers.must.comparing import exact
from veiltab.papers.must.designs import FIXED_SIZE, LABELS
from veiltab.papers.must.printed import PAPER, TABLE_3
from veiltab.papers.must.profiles import (
    BLOCKS,
    CONTOUR_SCHEMES,
    CONTOUR_VALUES,
    TABLE_EPSILONS,
    contour_key,
    profile_key,
)

_REPEATED = "the paper repeats the Laplace row here"
_LEVELS = 6
_VALUE_TITLES = {"eta": "eta", "laplace": "delta' - delta, Laplace", "gaussian": "delta' - delta, Gaussian"}


def findings(settings: Settings, results: Mapping[str, Plain]) -> Findings:
    """Return the table's numbers and the figures."""
    del settings
    return Findings(
        figures=(_figure_4(results), _figure_5(results), _figure_s3(results)), comparisons=tuple(_table_3(results))
    )


def _table_3(results: Mapping[str, Plain]) -> list[Comparison]:
    numbers = []
    for mechanism, ratio in BLOCKS:
        table = results[profile_key(mechanism, ratio)]["table"]
        for scheme, row in TABLE_3[mechanism, ratio].items():
            values = [cell[:2] for cell in table["wor"]] if scheme == "base" else [cell[2:] for cell in table[scheme]]
            reason = _REPEATED if (mechanism, ratio, scheme) == ("gaussian", 1.0, "must.ww") else ""
            for epsilon, cell, ours in zip(TABLE_EPSILONS, row, values, strict=True):
                where = f"{mechanism}, Delta/scale {ratio:g}, {LABELS.get(scheme, 'base')}, base epsilon {epsilon:g}"
                numbers += _cell(where, cell, ours, reason)
    return numbers


def _cell(where: str, cell: str, ours: Sequence[float], reason: str) -> list[Comparison]:
    """Compare epsilon' and, where the archived text has it, delta'."""
    epsilon, delta = (part.strip() for part in cell.split(","))
    numbers = [exact(f"epsilon' of {where}", "Table 3", epsilon, ours[0])]
    if delta:
        # A bare 0 is printed where the profile is nil, not where it is small.
        numbers.append(exact(f"delta' of {where}", "Table 3", "0.000" if delta == "0" else delta, ours[1], reason))
    return numbers


def _figure_4(results: Mapping[str, Plain]) -> Figure:
    panels = []
    for mechanism, ratio in (("laplace", 1.0), ("laplace", 0.25), ("gaussian", 1.0), ("gaussian", 0.25)):
        grid = results[profile_key(mechanism, ratio)]["grid"]
        curves = tuple(
            Curve(
                label=LABELS[scheme] + (" (MUST.WO is the same)" if scheme == "wr" else ""),
                x=tuple(after / before for before, _, after, _ in grid[scheme]),
                y=tuple(after - before for _, before, _, after in grid[scheme]),
                group=scheme,
            )
            for scheme in FIXED_SIZE
        )
        scale = "s" if mechanism == "laplace" else "sigma"
        panels.append(
            Panel(
                title=f"{mechanism.capitalize()}, Delta/{scale} = {ratio:g}",
                x_label="epsilon'/epsilon",
                y_label="delta' - delta",
                curves=curves,
            )
        )
    return Figure(
        name="must-figure-4",
        title=f"{PAPER}, Figure 4: aligned privacy profiles, n = 1000, m = 400, b = 500",
        panels=tuple(panels),
        caption="Below zero both parameters shrink (strong amplification). Only WOR stays there; the schemes that"
        " repeat rows buy a smaller epsilon with a larger delta, MUST.WW for longest. The same picture as the paper's.",
    )


def _figure_s3(results: Mapping[str, Plain]) -> Figure:
    points = {mechanism: results[profile_key(mechanism, 1.0)]["grid"] for mechanism in ("laplace", "gaussian")}
    epsilons = _against_epsilon("(a) epsilon' of every mechanism", "epsilon'", points["laplace"], 2)
    deltas = [
        _against_epsilon(f"({letter}) {mechanism.capitalize()}, Delta/scale = 1", "delta'", points[mechanism], 3)
        for letter, mechanism in (("b", "laplace"), ("c", "gaussian"))
    ]
    return Figure(
        name="must-figure-s3",
        title=f"{PAPER}, Figure S3: epsilon' and delta' against epsilon, n = 1000, m = 400, b = 500",
        panels=(epsilons, *deltas),
        caption="epsilon' is smallest for MUST.WW and largest for WOR at every epsilon. delta' is smallest for WOR"
        " where epsilon is large; the curves cross, and below the crossing the order is the reverse.",
    )


def _against_epsilon(title: str, what: str, points: Mapping[str, Sequence[Sequence[float]]], place: int) -> Panel:
    curves = tuple(
        Curve(
            label=LABELS[scheme] + (" (MUST.WO is the same)" if scheme == "wr" else ""),
            x=tuple(point[0] for point in points[scheme]),
            y=tuple(point[place] for point in points[scheme]),
            group=scheme,
        )
        for scheme in FIXED_SIZE
    )
    return Panel(title=title, x_label="epsilon, nats", y_label=what, curves=curves)


def _figure_5(results: Mapping[str, Plain]) -> Figure:
    panels = [
        _contour_panel(scheme, value, results[contour_key(scheme)])
        for scheme in CONTOUR_SCHEMES
        for value in CONTOUR_VALUES
    ]
    return Figure(
        name="must-figure-5",
        title=f"{PAPER}, Figure 5: eta and delta' - delta against m and b; n = 1000, epsilon = Delta/scale = 1",
        panels=tuple(panels),
        caption="Lines of equal value: eta rises with m and b, delta' - delta rises with m and falls with b, and"
        " MUST.WW hardly differs from MUST.OW. The same as the paper's, whose first row is headed MUST.WO by mistake.",
    )


def _contour_panel(scheme: str, value: str, surface: Plain) -> Panel:
    heights = np.array(surface[value])
    lowest, highest = heights.min(), heights.max()
    levels = lowest + (highest - lowest) * (np.arange(_LEVELS) + 0.5) / _LEVELS
    curves = [
        level_curve(surface["samples"], surface["stages"], heights, float(level), group=f"level {place}")
        for place, level in enumerate(levels)
    ]
    return Panel(
        title=f"{LABELS[scheme]}: {_VALUE_TITLES[value]}",
        x_label="m, rows of the subset",
        y_label="b, rows after stage one",
        curves=tuple(curves),
    )


def level_curve(
    samples: Sequence[int], stages: Sequence[int], heights: np.ndarray, level: float, group: str = ""
) -> Curve:
    """Return where a surface has a height, which rises with m in every row.

    Args:
        samples: m of the columns.
        heights: float64, shape (numbers, columns).
    """
    crossed = [
        (float(np.interp(level, row, samples)), float(stage))
        for stage, row in zip(stages, heights, strict=True)
        if row[0] <= level <= row[-1]
    ]
    return Curve(label=f"{level:.4f}", x=tuple(m for m, _ in crossed), y=tuple(b for _, b in crossed), group=group)
