"""The picture of a simulation: each estimator's variance against the value, simulated points on exact curves."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from veiltab.common.errors import InvalidInputError
from veiltab.common.extras import importing
from veiltab.researcher.collection.simulation import Performance
from veiltab.researcher.frequency.estimators import Estimator

_COLOURS = ("#8a949e", "#c2571a", "#16324f", "#2a7f62", "#7a3b8f")
_MARKS = ("v", "s", "o", "D", "x")
_LINES = ("-", "-", "--", "-", (0, (2, 4)))


def check_picture(path: Path) -> None:
    """Refuse an unusable file name of a picture, before any computation.

    Raises:
        InvalidInputError: another suffix than .svg or .png, or a folder that does not exist.
    """
    if path.suffix not in {".svg", ".png"}:
        raise InvalidInputError("a picture is .svg or .png", where=str(path))
    if not path.parent.is_dir():
        raise InvalidInputError("the folder of the picture does not exist", where=str(path))


def draw(results: Mapping[Estimator, Performance], title: str, path: Path) -> None:
    """Write the picture.

    Args:
        results: the performance of each estimator.
        title: the setting, for people.
        path: .svg or .png.

    Raises:
        InvalidInputError: another suffix, or a file that cannot be written.
    """
    check_picture(path)
    with importing("researcher", "a picture", where="--plot"):
        import matplotlib as mpl  # noqa: PLC0415 - an optional package
        from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.use("Agg")

    with mpl.rc_context({"svg.hashsalt": "veiltab", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(11, 5), layout="constrained")
        for (which, one), colour, mark, line in zip(results.items(), _COLOURS, _MARKS, _LINES, strict=False):
            values = np.arange(1, len(one.bias) + 1)
            known = "exact" if one.exact.exact else "linearised"
            axes.plot(values, one.exact.variance, linestyle=line, color=colour, label=f"{which}: {known}")
            axes.plot(values, one.variance, mark, color=colour, markersize=4, mfc="none", label="simulated")
        axes.set(xlabel="value", ylabel="variance of the estimated count (nodes squared)", yscale="log")
        axes.grid(visible=True, which="both", alpha=0.25)
        figure.legend(loc="outside right upper", frameon=False)
        figure.suptitle(title)
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None, "Creator": None} if path.suffix == ".svg" else None)
        except OSError as error:
            raise InvalidInputError(f"the picture cannot be written ({error.strerror})", where=str(path)) from None
        finally:
            plt.close(figure)
