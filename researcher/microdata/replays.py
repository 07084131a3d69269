"""Plays a release again with another truth, so that the error of what it gives is known.

With y the pooled tables of a release, w their weights and P the model of it, replay i

    draws y' = y + e', e' normal with variance 2/w in each cell, centred in each table;
    fits the played truth T to y', with the share of P, but run on to max(4 best, 12) looks, where the best look is the
        one with the least judged error when P was fitted, and on a graph that also joins the pairs which P leaves
        out since they show no dependence: T is hardly smoothed;
    draws the tables of the release anew from T, and fits Q to them with the graph, the share and the looks of P;
    knows the error of Q: D = 1.15 (pair tables of Q - pair tables of T).

A fit is smoother than the truth, so its error has two parts, noise and bias. Of a linear smoother A y of y = theta + e,
Var e = S, and a played truth that is not smoothed at all,

    E d d' = A S A' + (I - A) (theta theta' + 3 S) (I - A)'  >=  A S A' + (I - A) theta theta' (I - A)'

the right side being the true mean squared error: the played one is at least that, for every theta and A, also before
the factor. The factor 1.15 makes an interval of two standard deviations hold at 95% for every theta, where the mean
squared error is bias for the most part (by enumeration, docs/microdata.md). Looks are not chosen anew: T carries noise
as structure, and a fit that chose them by it would smooth less than P.

Source: Efron and Tibshirani, An introduction to the bootstrap (1993), chapter 10; Ferrando, Wang, Sheldon, Parametric
bootstrap for differentially private confidence intervals (AISTATS 2022); Armstrong, Kolesar, Optimal inference in a
class of regression models (2018), for critical values that know of bias.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.redrawing import drawn_anew
from veiltab.researcher.model.fitting import FitLengths, Model
from veiltab.researcher.model.measurement import Axes, Floats, Table, tables_of
from veiltab.researcher.model.row_drawing import Uniforms

FACTOR = 1.15
"""Of every played error."""

LEAST_LOOKS = 12
"""Of a played truth."""

FRESH_NOISE = 2.0
"""Variance of the noise that a played truth gets, in that of the measurement."""


def played_truth(model: Model, key: bytes) -> Model:
    """Return a truth near the tables of a release that is hardly smoothed.

    Args:
        key: 32 bytes; the same key plays the same truth.
    """
    uniforms, tables = Uniforms(derive(key, "truth")), dict[Axes, Table]()
    for axes, table in model.tables.items():
        noise = uniforms.normals(table.values.size).reshape(table.values.shape) * np.sqrt(FRESH_NOISE / table.weight)
        tables[axes] = replace(table, values=table.values + (noise - noise.mean()))
    looks = FitLengths(tree=_run_on(model.best.tree), mixture=_run_on(model.best.mixture))
    return model.again(tables, looks, model.wider)


def played_release(tables: Sequence[TableResult], model: Model, truth: Model, key: bytes) -> Model:
    """Return the model of a release of a played truth, fitted as the model of the real one.

    Args:
        key: 32 bytes; the same key draws the same noise.
    """
    again = drawn_anew(model.domain, tables, truth, derive(key, "tables"))
    pooled = tables_of(model.domain, [one.measurement for one in again])
    return model.again(pooled, model.looks, model.junctions)


def played_errors(tables: Sequence[TableResult], model: Model, key: bytes) -> Mapping[Axes, Floats]:
    """Return D of one replay.

    Args:
        key: 32 bytes; the same key plays the same errors.

    Returns:
        Attributes of each pair, or the only attribute -> errors of its fractions, shape (K,), in C order.
    """
    truth = played_truth(model, key)
    release = played_release(tables, model, truth, key)
    names = model.domain.names
    errors = {}
    for axes in combinations(range(len(names)), min(2, len(names))):
        pair = [names[axis] for axis in axes]
        errors[axes] = FACTOR * (release.marginal(pair) - truth.marginal(pair))
    return errors


def _run_on(look: int) -> int:
    return max(4 * look, LEAST_LOOKS)
