"""Many subsets at once: which rows each of them holds, under every scheme of the paper.

Experiments only: the generator is numpy's, which protects nobody.
"""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.schemes import Scheme
from veiltab.common.schemes.must_ow import MustOW
from veiltab.common.schemes.must_wo import MustWO
from veiltab.common.schemes.must_ww import MustWW
from veiltab.common.schemes.poisson import Poisson
from veiltab.common.schemes.with_replacement import WithReplacement
from veiltab.common.schemes.without_replacement import WithoutReplacement

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsets:
    """Subsets side by side.

    Args:
        rows: int64, shape (trials, width): row numbers from 0 to n-1, repeated as often as they are drawn.
        used: bool, of the same shape: which of them count; widths differ under Poisson sampling only.
    """

    rows: Rows
    used: NDArray[np.bool_]

    @property
    def sizes(self) -> Rows:
        """Rows of each subset, copies counted: int64, shape (trials,)."""
        return np.asarray(self.used.sum(axis=1), np.int64)

    @property
    def distinct(self) -> Rows:
        """Different rows of each subset: int64, shape (trials,)."""
        ordered = np.sort(np.where(self.used, self.rows, -1), axis=1)
        fresh = np.diff(ordered, axis=1, prepend=-1) != 0
        return np.asarray(fresh.sum(axis=1), np.int64)


def draw(scheme: Scheme, trials: int, generator: np.random.Generator) -> Subsets:
    """Return independent subsets.

    Args:
        scheme: one of the paper's.
        trials: how many subsets.

    Raises:
        InvalidInputError: another scheme.

    Source: MUST, Definition 4; each stage is drawn as it says, so MUST.WO is not drawn as its equal in law.
    """
    n, m = scheme.population, scheme.sample
    match scheme:
        case Poisson():
            return _poisson(n, m, trials, generator)
        case WithoutReplacement():
            rows = _different(n, m, trials, generator)
        case WithReplacement():
            rows = generator.integers(n, size=(trials, m))
        case MustOW(stage=b):
            rows = _again(_different(n, b, trials, generator), m, generator)
        case MustWW(stage=b):
            rows = _again(generator.integers(n, size=(trials, b)), m, generator)
        case MustWO(stage=b):
            first = generator.integers(n, size=(trials, b))
            rows = np.take_along_axis(first, _different(b, m, trials, generator), axis=1)
        case _:
            raise InvalidInputError(f"scheme {scheme.name} cannot be drawn here", where="draws")
    return Subsets(rows=rows, used=np.ones(rows.shape, np.bool_))


def _poisson(n: int, m: int, trials: int, generator: np.random.Generator) -> Subsets:
    """Draw the sizes first: given its size, such a sample is one without replacement, in random order."""
    sizes = generator.binomial(n, m / n, size=trials)
    widest = max(1, int(sizes.max()))
    return Subsets(rows=_different(n, widest, trials, generator), used=np.arange(widest) < sizes[:, None])


def _again(first: Rows, m: int, generator: np.random.Generator) -> Rows:
    """Draw m of each subset's rows with replacement."""
    picked: Rows = np.take_along_axis(first, generator.integers(first.shape[1], size=(len(first), m)), axis=1)
    return picked


def _different(n: int, m: int, trials: int, generator: np.random.Generator) -> Rows:
    """Draw m different rows of n, in random order."""
    if 4 * m > n:
        return np.argsort(generator.random((trials, n)), axis=1)[:, :m]
    expected = n * log(n / (n - m))
    width = int(expected + 6 * sqrt(expected - m + 1)) + 8
    rows = np.empty((trials, m), np.int64)
    open_trials = np.arange(trials)
    while len(open_trials):
        # The first m different values of independent draws are a sample without replacement; no trial is selected by
        # its rows.
        draws = generator.integers(n, size=(len(open_trials), width))
        fresh = _first_time(draws)
        rank = np.cumsum(fresh, axis=1)
        enough = rank[:, -1] >= m
        rows[open_trials[enough]] = draws[enough][(fresh & (rank <= m))[enough]].reshape(-1, m)
        open_trials = open_trials[~enough]
    return rows


def _first_time(draws: Rows) -> NDArray[np.bool_]:
    """Mark the draws whose row no earlier draw of the same trial has."""
    order = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=1)
    fresh = np.empty(draws.shape, np.bool_)
    np.put_along_axis(fresh, order, np.diff(ordered, axis=1, prepend=-1) != 0, axis=1)
    return fresh
