"""Raking meets the tables that are wanted with the least change, and replicates are raked to what was played."""

from itertools import combinations

import numpy as np
import pytest

from tests.researcher.microdata.made_linked import DOMAIN, people
from veiltab.researcher.microdata.comparison import fractions_of
from veiltab.researcher.microdata.replicate_weights import Kinds, replicate_counts, signs
from veiltab.researcher.model.measurement import Axes, Floats
from veiltab.researcher.model.raking import cells_of, drawn_evenly, rake
from veiltab.researcher.model.row_drawing import Uniforms

ROWS = people()
KINDS = Kinds(ROWS)
PAIRS: tuple[Axes, ...] = tuple(combinations(range(4), 2))


def pair_tables(counts: Floats) -> dict[tuple[int, ...], Floats]:
    sizes = {axes: DOMAIN.shape[axes[0]] * DOMAIN.shape[axes[1]] for axes in PAIRS}
    cells = {axes: cells_of(KINDS.rows, DOMAIN.shape, axes) for axes in PAIRS}
    return {axes: np.bincount(cells[axes], counts, sizes[axes]) / counts.sum() for axes in PAIRS}


def test_kinds_are_the_different_rows_in_order() -> None:
    assert np.array_equal(KINDS.rows[KINDS.places], ROWS)
    assert KINDS.counts.sum() == len(ROWS)
    assert np.array_equal(KINDS.rows, np.unique(ROWS, axis=0))


def test_a_tilt_by_pairs_is_found_exactly_and_none_changes_nothing() -> None:
    tilt = np.exp(
        0.5 * np.sin(KINDS.rows[:, 0] + 2 * KINDS.rows[:, 1]) - 0.7 * np.cos(KINDS.rows[:, 2] * KINDS.rows[:, 3])
    )
    wanted = KINDS.counts * tilt
    wanted *= KINDS.counts.sum() / wanted.sum()
    raked = rake(KINDS.rows, KINDS.counts, pair_tables(wanted), DOMAIN.shape, sweeps=50)
    for axes, table in pair_tables(raked).items():
        np.testing.assert_allclose(table, pair_tables(wanted)[axes], atol=1e-6)
    np.testing.assert_allclose(raked, wanted, rtol=1e-3)
    same = rake(KINDS.rows, KINDS.counts, pair_tables(KINDS.counts), DOMAIN.shape)
    np.testing.assert_allclose(same, KINDS.counts, rtol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_small_errors_are_met_and_a_fraction_that_they_would_take_is_cut(sign: int) -> None:
    rng = np.random.default_rng(2)
    drawn = pair_tables(KINDS.counts)
    tilted = pair_tables(KINDS.counts * np.exp(0.05 * rng.standard_normal(len(KINDS.counts))))
    errors = {axes: tilted[axes] - drawn[axes] for axes in PAIRS}
    counts = replicate_counts(KINDS.rows, KINDS.counts, errors, sign, DOMAIN.shape)
    assert counts.sum() == pytest.approx(len(ROWS))
    for axes, table in pair_tables(counts).items():
        np.testing.assert_allclose(table - drawn[axes], sign * errors[axes], atol=1e-4)
    most = np.zeros(drawn[0, 3].size)
    most[1] = -sign * 2 * drawn[0, 3][1]
    cut = pair_tables(replicate_counts(KINDS.rows, KINDS.counts, {(0, 3): most}, sign, DOMAIN.shape))[0, 3]
    left = drawn[0, 3] + sign * most
    left[1] = drawn[0, 3][1] / 50
    np.testing.assert_allclose(cut, left / left.sum(), atol=1e-6)


def test_half_of_the_signs_are_on_each_side_in_an_order_of_the_seed() -> None:
    assert [sum(signs(count, b"s")) for count in (2, 20, 100)] == [0, 0, 0]
    assert signs(20, b"s") == signs(20, b"s") != signs(20, b"t")
    assert len({tuple(signs(4, bytes([i]))) for i in range(100)}) == 6


def test_a_copy_has_every_kind_within_one_row_of_its_counts() -> None:
    rng = np.random.default_rng(1)
    counts = KINDS.counts * rng.gamma(2, size=len(KINDS.counts))
    counts *= len(ROWS) / counts.sum()
    copy = drawn_evenly(KINDS.rows, counts, len(ROWS), Uniforms(b"k"))
    assert len(copy) == len(ROWS)
    found = Kinds(np.concatenate([copy, KINDS.rows])).counts - 1
    assert np.abs(found - counts).max() <= 1
    assert np.array_equal(copy, drawn_evenly(KINDS.rows, 2 * counts, len(ROWS), Uniforms(b"k"))), "shares matter"
    halves = [fractions_of(half, DOMAIN.shape, (0, 1)) for half in np.split(copy, 2)]
    assert np.abs(halves[0] - halves[1]).max() < 0.05, "in random order"
