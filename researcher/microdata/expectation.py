"""How far the pairs of a file of microdata are expected to be from the true ones.

Two things separate them. What the noise of the release leaves unknown is played: noisy tables are drawn anew from the
model P, a model is fitted to them with the graph, the share and the looks of the first, a file is drawn, and its error
f* - P is known (a parametric bootstrap). With choices of its own the second fit would smooth more than the first did:
P is a smoother truth than the real one. But there the first model is the truth, which it is not. How far it misses the
truth shows in the measured pairs y, which are unbiased: with f the file's pairs and v the variance of y's K cells,

    E |f - truth|^2 = E |y - f|^2 - K v + 2 Cov(y, f)

and the covariance, which is how closely a fit follows the noise, is seen where all is known: (y* - P)(f* - P). Errors
of the file count as those that were played, times a factor: in each group of pairs

    expected distance = D* sqrt(max(1, (|y - f|^2 - K v + 2 (y* - P)(f* - P)) / |f* - P|^2))

D* being the distance that was played. Pairs that the model joins directly and pairs that it does not are counted apart.

An estimate, and no bound. docs/microdata.md says how near to the distance it was on three sets of data.

Source: Efron, The estimation of prediction error: covariance penalties and cross-validation (2004), section 4.
"""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.dataclass import dataclass
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.replays import played_release
from veiltab.researcher.microdata.synthesis import LARGE
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.measurement import Axes, Floats, Table, pooled
from veiltab.researcher.model.row_drawing import Rows

PLAYS = 4
"""How often the noise is played; of a large model, whose pairs are many, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The expected mean total variation distance of a file's pairs from the true ones.

    Args:
        pairs: of all pairs of attributes.
        noise: the part of the noise, of the fit and of the drawing of rows, as if the model were right.
    """

    pairs: float
    noise: float


def measured_pairs(model: Model) -> dict[Axes, Table]:
    """Return what was measured of every pair that some table of a model has, pooled over all of these."""
    pairs: dict[Axes, Table] = {}
    for axes in combinations(range(len(model.domain.names)), 2):
        having = [table.marginal(axes) for table in model.tables.values() if set(axes) <= set(table.axes)]
        if having:
            pairs[axes] = pooled(having)
    return pairs


def expected_error(tables: Sequence[TableResult], model: Model, rows: Rows, key: bytes) -> ExpectedError:
    """Return the expected error of a file.

    Args:
        model: fitted to them, of at least two attributes.
        rows: of the file, drawn from the model.
        key: 32 bytes; the same key plays the same noise.
    """
    domain, measured, plays = model.domain, measured_pairs(model), PLAYS if model.junctions.cells <= LARGE else 1
    releases = [played_release(tables, model, model, derive(key, f"play {play}")) for play in range(plays)]
    played = [(measured_pairs(one), one.sample(len(rows), derive(key, f"rows {k}"))) for k, one in enumerate(releases)]
    joined = {frozenset(domain.names.index(name) for name in pair) for pair in model.graph}
    groups: dict[bool, list[Axes]] = {}
    for pair in combinations(range(len(domain.names)), 2):
        groups.setdefault(frozenset(pair) in joined, []).append(pair)
    total = noise = 0.0
    for group in groups.values():
        distance = misses = squares = 0.0
        for axes in group:
            marginal = model.marginal([domain.names[axis] for axis in axes])
            errors = [fractions_of(sample, domain.shape, axes) - marginal for _, sample in played]
            distance += float(np.abs(errors).sum()) / 2 / plays
            if axes not in measured:
                continue
            table = measured[axes]
            apart: Floats = table.values.reshape(-1) - fractions_of(rows, domain.shape, axes)
            misses += float(apart @ apart) - apart.size / table.weight
            for (again, _), error in zip(played, errors, strict=True):
                misses += 2 * float((again[axes].values.reshape(-1) - marginal) @ error) / plays
                squares += float(error @ error) / plays
        noise += distance
        total += distance * (sqrt(max(1.0, misses / squares)) if squares else 1.0)
    pairs = sum(map(len, groups.values()))
    return ExpectedError(pairs=total / pairs, noise=noise / pairs)
