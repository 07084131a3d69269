"""Wrong links are undone exactly, in stars too, and errors pass on as the slopes say."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from veiltab.researcher.linkage_errors.inversion import Correction, Floats, Mixing, mixed, relinking_covariance

SHAPE = (3, 4, 2, 3)
LEGS = (((1,), 0.07), ((2, 3), 0.2))
BY_CATEGORY = (((1,), np.reshape([0.02, 0.3, 0.1], (3, 1, 1, 1))), ((2, 3), 0.2))
"""The first leg has another share in each category of the hub's attribute."""
RNG = np.random.default_rng(20)
TABLE: Floats = RNG.dirichlet(np.ones(72))


@pytest.mark.parametrize("legs", [LEGS, BY_CATEGORY])
def test_what_wrong_links_make_of_a_table_is_undone_exactly(legs: Sequence[Mixing]) -> None:
    linked = mixed(TABLE, SHAPE, legs)
    assert np.abs(linked - TABLE).max() > 0.001
    assert np.abs(Correction(linked, SHAPE, legs).table - TABLE).max() < 1e-15
    # Legs commute.
    assert np.abs(mixed(TABLE, SHAPE, legs[::-1]) - linked).max() < 1e-16
    assert np.abs(Correction(linked, SHAPE, legs[::-1]).table - TABLE).max() < 1e-15


def test_a_star_of_two_legs_is_the_sum_of_who_is_right() -> None:
    table, (one, two) = TABLE.reshape(3, 4, 6), (share for _, share in LEGS)
    hub, first, second = (table.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1)))
    expected = (
        (1 - one) * (1 - two) * table
        + one * (1 - two) * np.einsum("b,hc->hbc", first, table.sum(axis=1))
        + (1 - one) * two * np.einsum("hb,c->hbc", table.sum(axis=2), second)
        + one * two * np.einsum("h,b,c->hbc", hub, first, second)
    )
    assert np.abs(mixed(TABLE, SHAPE, LEGS) - expected.reshape(-1)).max() < 1e-16


@pytest.mark.parametrize("kept", [(0, 1), (0, 2), (1, 2), (0, 1, 3), (2, 3), (1,)])
def test_slices_of_the_correction_are_corrections_of_slices(kept: tuple[int, ...]) -> None:
    observed = TABLE + RNG.normal(0, 0.004, 72)
    observed /= observed.sum()
    dropped = tuple(axis for axis in range(4) if axis not in kept)
    whole = Correction(observed, SHAPE, LEGS).table.reshape(SHAPE).sum(axis=dropped)
    part = observed.reshape(SHAPE).sum(axis=dropped)
    legs = [(tuple(kept.index(axis) for axis in axes if axis in kept), share) for axes, share in LEGS]
    legs = [(axes, share) for axes, share in legs if axes]
    found = Correction(part.reshape(-1), part.shape, legs).table
    assert np.abs(found - whole.reshape(-1)).max() < 1e-15


def test_attributes_of_one_curator_stay_as_they_are() -> None:
    observed = TABLE + RNG.normal(0, 0.01, 72)
    observed /= observed.sum()
    assert np.abs(Correction(observed, SHAPE, [((0, 1, 2, 3), 0.3)]).table - observed).max() < 1e-15
    assert (Correction(observed, SHAPE, []).table == observed).all()


@pytest.mark.parametrize("legs", [LEGS, BY_CATEGORY])
def test_errors_of_the_table_and_of_the_shares_pass_on_by_the_slopes(legs: Sequence[Mixing]) -> None:
    step, contrasts = 1e-6, RNG.normal(size=(5, 72))
    error = RNG.normal(size=72)
    error -= error.mean()
    observed = mixed(TABLE, SHAPE, legs) + 0.001 * error
    centre = Correction(observed, SHAPE, legs)
    up, down = (Correction(observed + side * step * error, SHAPE, legs).table for side in (1, -1))
    assert centre.transported(contrasts) @ error == pytest.approx(contrasts @ (up - down) / (2 * step), abs=1e-8)
    steps = [(leg, one) for leg, (_, share) in enumerate(legs) for one in step * np.eye(np.size(share))]
    assert len(steps) == len(centre.slopes)
    for (leg, one), slope in zip(steps, centre.slopes, strict=True):
        axes, share = legs[leg]
        up, down = (
            Correction(
                observed, SHAPE, [*legs[:leg], (axes, share + side * one.reshape(np.shape(share))), *legs[leg + 1 :]]
            ).table
            for side in (1, -1)
        )
        assert slope == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_the_draw_of_wrong_links_adds_what_a_count_person_by_person_says() -> None:
    shape, legs, n = (2, 3, 2), (((1,), 0.1), ((2,), 0.3)), 12
    people = RNG.multinomial(n, RNG.dirichlet(np.ones(12)))
    table, contrasts = people / n, RNG.normal(size=(4, 12))
    first, second = (table.reshape(shape).sum(axis=axes) for axes in ((0, 2), (0, 1)))
    covariance = np.zeros((12, 12))
    for cell, count in enumerate(people):
        hub, b, c = np.unravel_index(cell, shape)
        law = np.zeros(shape)  # where this person is seen
        for other_b, other_c in product(range(3), range(2)):
            law[hub, other_b, other_c] = (0.9 * (other_b == b) + 0.1 * first[other_b]) * (
                0.7 * (other_c == c) + 0.3 * second[other_c]
            )
        flat = law.reshape(-1)
        covariance += count * (np.diag(flat) - np.outer(flat, flat)) / n**2
    found = relinking_covariance(contrasts, table, shape, legs, n)
    assert np.abs(found - contrasts @ covariance @ contrasts.T).max() < 1e-15
    assert np.abs(relinking_covariance(contrasts, table, shape, [(axes, 0.0) for axes, _ in legs], n)).max() < 1e-16
