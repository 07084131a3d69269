"""The picture of a simulation: each estimator's variance against the value, simulated points on exact curves."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veiltab.researcher.collection.simulation.simulation import Performance
from veiltab.researcher.drawing.style import logarithmic, write_picture
from veiltab.researcher.frequency.estimators import Estimator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#8a949e", "#c2571a", "#16324f", "#2a7f62", "#7a3b8f")
_MARKS = ("v", "s", "o", "D", "x")
_LINES = ("-", "-", "--", "-", (0, (2, 4)))


def draw(results: Mapping[Estimator, Performance], title: str, path: Path) -> None:
    """Write the picture.

    Args:
        results: the performance of each estimator.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for (which, one), colour, mark, line in zip(results.items(), _COLOURS, _MARKS, _LINES, strict=False):
            values = np.arange(1, len(one.bias) + 1)
            kind = "exact" if one.exact.exact else "linearised"
            axes.plot(values, one.exact.variance, linestyle=line, color=colour, label=f"{which}: {kind}")
            axes.plot(values, one.variance, mark, color=colour, markersize=4, mfc="none", label="simulated")
        axes.set(xlabel="value", ylabel="variance of the estimated count (nodes squared)")
        logarithmic(axes, "y")
        axes.grid(visible=True, which="both", alpha=0.25)
        figure.legend(loc="outside right upper", frameon=False)
        figure.suptitle(title)

    write_picture(path, (11, 5), paint, option="--plot")
