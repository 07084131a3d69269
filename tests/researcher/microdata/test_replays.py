"""Played errors have the mean square that is derived for linear smoothers, and intervals from them hold."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.researcher.microdata.made_linked import DOMAIN, measured, people
from veiltab.researcher.estimates.table_result import fitted
from veiltab.researcher.microdata.replays import FACTOR, FRESH_NOISE, played_errors, played_release, played_truth
from veiltab.researcher.model.fitting import FitLengths, Model
from veiltab.researcher.model.junction import JunctionTree
from veiltab.researcher.model.measurement import Axes, Floats, Table

TABLES = measured(people(), seed=1)


@cache
def made_model() -> Model:
    return fitted(DOMAIN, TABLES)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("truth", [0.0, 1.0, 3.0])
def test_the_mean_square_is_at_least_the_true_one_for_linear_smoothers(kept: float, truth: float) -> None:
    rng = np.random.default_rng(5)
    draws = 10**5
    released = truth + rng.standard_normal(draws)
    played = released + np.sqrt(FRESH_NOISE) * rng.standard_normal(draws)
    errors = FACTOR * (kept * (played + rng.standard_normal(draws)) - played)
    square = float(np.mean(errors**2)) / FACTOR**2
    assert square == pytest.approx(kept**2 + (1 - kept) ** 2 * (truth**2 + 1 + FRESH_NOISE), rel=0.02)
    assert square >= kept**2 + (1 - kept) ** 2 * truth**2


def coverage(fresh: float, factor: float) -> float:
    """Return the least coverage over smoothers a and truths theta of a y +- 1.96 c sqrt(a^2 + (1-a)^2 (y^2 + k))."""
    noise = np.linspace(-6, 6, 2001)
    density = np.exp(-(noise**2) / 2)
    kept = np.linspace(0.05, 0.98, 94)[:, None, None]
    truth = np.linspace(0, 12, 121)[None, :, None]
    released = truth + noise
    half = 1.96 * factor * np.sqrt(kept**2 + (1 - kept) ** 2 * (released**2 + fresh))
    held = np.abs(kept * released - truth) <= half
    return float(((held @ density) / density.sum()).min())


@pytest.mark.long
def test_the_factor_holds_for_every_truth_and_less_of_it_does_not() -> None:
    assert coverage(FRESH_NOISE, FACTOR) == pytest.approx(0.951, abs=0.002)
    assert coverage(1, 1) == pytest.approx(0.883, abs=0.002)


def test_a_played_truth_is_fitted_to_tables_with_fresh_noise_and_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[Mapping[Axes, Table], FitLengths, JunctionTree]]()
    whole = Model.again

    def again(self: Model, *arguments: Any) -> Model:  # noqa: ANN401 - passed on
        asked.append(arguments)
        return whole(self, *arguments)

    monkeypatch.setattr(Model, "again", again)
    model = replace(made_model(), best=FitLengths(tree=2, mixture=5))
    truth = played_truth(model, bytes(32))
    played_release(TABLES, model, truth, bytes(32))
    (tables, looks, junctions), (_, release_looks, release_junctions) = asked
    assert looks == FitLengths(tree=12, mixture=20)
    assert junctions is model.wider
    assert (release_looks, release_junctions) == (model.looks, model.junctions)
    moved = [(tables[axes].values - t.values) * np.sqrt(t.weight / FRESH_NOISE) for axes, t in model.tables.items()]
    assert max(abs(float(one.sum())) for one in moved) < 1e-9
    cells: Floats = np.concatenate([one.reshape(-1) for one in moved])
    # 33 cells less 6 sums: five standard errors of a chi square.
    assert abs(float(cells @ cells) - 27) < 5 * np.sqrt(2 * 27)


def test_the_wider_graph_joins_pairs_that_show_nothing() -> None:
    rows = np.random.default_rng(1).integers(0, DOMAIN.shape, (4000, 4))
    model = fitted(DOMAIN, measured(rows, seed=2))
    assert len(model.graph) < 6
    assert model.wider.containing((0, 1, 2, 3)) is not None


@pytest.mark.long
def test_errors_are_those_of_every_pair_repeat_by_their_key_and_sum_to_nothing() -> None:
    errors = played_errors(TABLES, made_model(), bytes(32))
    assert list(errors) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    truth = played_truth(made_model(), bytes(32))
    release = played_release(TABLES, made_model(), truth, bytes(32))
    for axes, error in errors.items():
        names = [DOMAIN.names[axis] for axis in axes]
        np.testing.assert_allclose(error, 1.15 * (release.marginal(names) - truth.marginal(names)), atol=1e-12)
        assert abs(float(error.sum())) < 1e-9
        assert np.array_equal(error, played_errors(TABLES, made_model(), bytes(32))[axes])
        assert not np.array_equal(error, played_errors(TABLES, made_model(), b"x" * 32)[axes])
