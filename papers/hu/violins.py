"""Horizontal violins: the outline of a distribution around a height, as wide as its density.

Laplace noise and mixtures of it have their densities in closed form, so only a sample of something else is smoothed.
"""

from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from veiltab.papers.experiment import Curve

Floats = NDArray[np.float64]
HALF_WIDTH = 0.4
STYLES: tuple[Literal["line"], Literal["dashed"], Literal["dotted"]] = ("line", "dashed", "dotted")
STEPS = np.linspace(-1, 1, 161)


def violin(label: str, at: int, values: Floats, density: Floats) -> Curve:
    """Return a closed, filled outline around the height `at`.

    Args:
        at: 1, 2 or 3; each is drawn in another style.
        values: ascending abscissae.
        density: at each; any scale.
    """
    width = HALF_WIDTH * density / density.max()
    there_and_back = np.concatenate([values, values[::-1], values[:1]])
    # Fill the band on the way there only: on the way back it would be cut out again.
    both = np.concatenate([width, np.zeros(len(width) + 1)])
    edge = np.concatenate([width, -width[::-1], width[:1]])
    x, y, low, high = (tuple(part.tolist()) for part in (there_and_back, at + edge, at - both, at + both))
    return Curve(label=label, x=x, y=y, low=low, high=high, style=STYLES[at - 1])


def laplace_violin(label: str, at: int, *, centre: float, scales: Floats, runs: int) -> Curve:
    """Return the outline of centre + Laplace noise whose scale is each of `scales` equally often.

    It ends where the extremes of `runs` values are expected: beyond each end lies a probability of 1/(2 runs).
    """
    end = _end(scales, max(runs, 2))
    distance = end * STEPS * np.abs(STEPS)
    density = (np.exp(-np.abs(distance[:, None]) / scales) / (2 * scales)).mean(axis=1)
    return violin(label, at, centre + distance, density)


def _end(scales: Floats, runs: int) -> float:
    furthest = float(scales.max()) * log(runs)
    if len(scales) == 1:
        return furthest
    return float(brentq(lambda end: float(np.exp(-end / scales).mean()) - 1 / runs, 0, furthest * 1.01))


def sample_violin(label: str, at: int, sample: Floats) -> Curve:
    """Return the outline of drawn values, smoothed by a Gaussian kernel (Silverman's width), cut at the extremes."""
    values, density = kernel_density(sample)
    return violin(label, at, values, density)


def kernel_density(x: Floats) -> tuple[Floats, Floats]:
    """Return ordinates from the least to the largest drawn value, and the density there."""
    spread = min(float(x.std()), float(np.subtract(*np.percentile(x, [75, 25]))) / 1.349) or float(x.std())
    width = max(0.9 * spread * len(x) ** -0.2, 1e-3 * abs(float(x.mean())), 1e-12)
    values = np.linspace(float(x.min()), float(x.max()) + 1e-12, len(STEPS))
    kernel = np.exp(-(((values[:, None] - x) / width) ** 2) / 2)
    return values, kernel.mean(axis=1) / (width * np.sqrt(2 * np.pi))
