"""How far the pairs of a file of microdata are expected to be from the true ones.

Two things separate them. What the noise of the release leaves unknown is played: noisy tables are drawn anew from the
model, a model is fitted to them and a file drawn, and the distance D* of its pairs from those of the first model is
known (a parametric bootstrap). But there the first model is the truth, which it is not. How far it misses the truth
shows in the measured pairs y, which are unbiased: with f the file's pairs, v the variance of y's cells and * for what
was played,

    misfit^2 = mean over pairs of (|y - f|^2 - K v) - mean over pairs of (|y* - f*|^2 - K v)

is how much farther the file is from what was measured than it would be if the model were right. Errors of cells in
proportion to the root of their fractions p have a distance of misfit sum sqrt(p) / sqrt(2 pi), on average. Pairs that
the model joins directly and pairs that it does not are counted apart; in each group

    expected distance = sqrt(D*^2 + (misfit mean sum sqrt(p))^2 / (2 pi))

An estimate, and no bound. On Adult it was 7 to 22% below the truth in seven releases at epsilon .5, 1 and 3.

Source: Efron, How biased is the apparent error rate of a prediction rule? (1986), for the correction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import pi, sqrt

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Domain
from veiltab.researcher.estimates.table_result import TableResult, fitted
from veiltab.researcher.microdata.comparison import distance, fractions_of
from veiltab.researcher.microdata.redrawing import drawn_anew
from veiltab.researcher.model.fitting import Model
from veiltab.researcher.model.measurement import Axes, Floats, Table, pooled, tables_of
from veiltab.researcher.model.row_drawing import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The expected mean total variation distance of a file's pairs from the true ones.

    Args:
        pairs: of all pairs of attributes.
        noise: the part of the noise, of the fit and of the drawing of rows, as if the model were right.
    """

    pairs: float
    noise: float


def measured_pairs(domain: Domain, tables: Sequence[TableResult]) -> dict[Axes, Table]:
    """Return what was measured of every pair that some table has, pooled over all of these."""
    known = tables_of(domain, [one.measurement for one in tables])
    pairs: dict[Axes, Table] = {}
    for axes in combinations(range(len(domain.names)), 2):
        having = [table.marginal(axes) for table in known.values() if set(axes) <= set(table.axes)]
        if having:
            pairs[axes] = pooled(having)
    return pairs


def expected_error(
    domain: Domain, tables: Sequence[TableResult], model: Model, rows: Rows, key: bytes
) -> ExpectedError:
    """Return the expected error of a file.

    Args:
        domain: its columns, at least two.
        tables: as they were measured.
        model: fitted to them.
        rows: of the file, drawn from the model.
        key: 32 bytes; the same key plays the same noise.
    """
    again = drawn_anew(domain, tables, model, derive(key, "tables"))
    rows_again = fitted(domain, again).sample(len(rows), derive(key, "rows"))
    measured, measured_again = measured_pairs(domain, tables), measured_pairs(domain, again)
    joined = {frozenset(domain.names.index(name) for name in pair) for pair in model.graph}
    groups: dict[bool, list[Axes]] = {}
    for axes in combinations(range(len(domain.names)), 2):
        groups.setdefault(frozenset(axes) in joined, []).append(axes)
    total = noise = 0.0
    for group in groups.values():
        known = {axes: model.marginal([domain.names[axis] for axis in axes]) for axes in group}
        played = float(np.mean([distance(fractions_of(rows_again, domain.shape, a), known[a]) for a in group]))
        apart = _apparent(measured, rows, domain, group) - _apparent(measured_again, rows_again, domain, group)
        roots = float(np.mean([np.sqrt(fractions).sum() for fractions in known.values()]))
        misfit = sqrt(max(apart, 0.0))
        total += len(group) * sqrt(played**2 + (misfit * roots) ** 2 / (2 * pi))
        noise += len(group) * played
    pairs = sum(map(len, groups.values()))
    return ExpectedError(pairs=total / pairs, noise=noise / pairs)


def _apparent(measured: Mapping[Axes, Table], rows: Rows, domain: Domain, group: Sequence[Axes]) -> float:
    """Return the mean over the measured pairs of a group of |y - f|^2 less what the noise of y adds."""
    excesses = []
    for axes in group:
        if axes in measured:
            table = measured[axes]
            apart: Floats = table.values.reshape(-1) - fractions_of(rows, domain.shape, axes)
            excesses.append(float(apart @ apart) - apart.size / table.weight)
    return float(np.mean(excesses)) if excesses else 0.0
