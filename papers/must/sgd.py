"""DP-SGD for models whose gradient is a number times the row: many runs side by side, in plain numpy.

The gradient of one example is c(score, target) x, so its norm is |c| |x|: clipping, weighting and adding up the
examples of a step takes one matrix product, and no gradient is ever laid out by itself.
"""

from collections.abc import Callable, Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import Scheme
from veiltab.papers.must.draws import draw

Floats = NDArray[np.float64]
Coefficient = Callable[[Floats, Floats], Floats]
"""c(score, target), element by element, with gradient c x for the example (x, target)."""


def squared_error(scores: Floats, targets: Floats) -> Floats:
    """Return c = 2 (score - target), of the loss (score - target)^2."""
    return 2 * (scores - targets)


def cross_entropy(scores: Floats, targets: Floats) -> Floats:
    """Return c = sigmoid(score) - target, of the logistic loss."""
    result: Floats = expit(scores) - targets
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the runs learn from.

    Args:
        features: float64, shape (N, d), with a column of ones for the intercept.
        targets: float64, shape (N,).
        offsets: int64, shape (runs,): where the n rows of each run begin; the same number if all share them.
    """

    features: Floats
    targets: Floats
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """How a run descends.

    Args:
        steps: T.
        clip: C, largest norm of an example's gradient; infinite without privacy.
        noise: standard deviation of the noise on every coordinate of the averaged gradient.
        divides_by_sample: divide by m even if the scheme drew more or fewer rows (Poisson): then what one row can
            move is known beforehand.
    """

    steps: int
    rate: float
    start: float
    clip: float = inf
    noise: float = 0.0
    divides_by_sample: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1 or not (self.rate > 0 and self.clip > 0 and self.noise >= 0):
            raise InvalidInputError("steps, rate and clip must be above 0, and noise at least 0", where="DP-SGD")


def descend(
    data: Data, scheme: Scheme, coefficient: Coefficient, descent: Descent, generator: np.random.Generator
) -> Iterator[Floats]:
    """Yield the coefficients after each step: float64, shape (runs, d).

    Args:
        data: rows of every run.
        scheme: how each step samples, afresh.

    Source: MUST, Algorithm 2; Abadi et al. 2016, Algorithm 1.
    """
    norms = np.sqrt(np.einsum("nd,nd->n", data.features, data.features))
    runs, dimension = len(data.offsets), data.features.shape[1]
    beta = np.full((runs, dimension), descent.start)
    for _ in range(descent.steps):
        subsets = draw(scheme, runs, generator)
        rows = subsets.rows + data.offsets[:, None]
        x = data.features[rows]
        c = coefficient(np.matmul(x, beta[:, :, None])[:, :, 0], data.targets[rows])
        c *= clip_factors(np.abs(c) * norms[rows], descent.clip) * subsets.used
        total = np.matmul(c[:, None, :], x)[:, 0, :]
        sizes = scheme.sample if descent.divides_by_sample else np.maximum(subsets.sizes, 1)[:, None]
        beta = beta - descent.rate * (total / sizes + descent.noise * generator.standard_normal(beta.shape))
        yield beta


def clip_factors(norms: Floats, clip: float) -> Floats:
    """Return what each gradient is multiplied with: min(1, clip/norm)."""
    with np.errstate(divide="ignore"):
        return np.minimum(1.0, clip / norms)
