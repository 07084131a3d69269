"""Pairs of data sets against integration, against dp-accounting, and against the sound bound."""

from math import exp, inf

import numpy as np
import pytest
from scipy.stats import norm

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.papers.must.designs import COMPOSITION, FIXED_SIZE, Design, Tabulated
from veiltab.papers.must.pairs import composed_delta, eye_to_eye, one_sided
from veiltab.papers.privacy.composition import subsampled_delta
from veiltab.papers.privacy.pairs import Pair

SMALL = Design(population=20, sample=6, stage=4)


def integrated(pair: Pair, epsilon: float) -> float:
    """The positive part of the difference of the densities, by the trapezium rule."""
    law, sigma, x = pair.scheme.multiplicities(), pair.noise_multiplier, np.linspace(-30, 30, 60_001)
    first = sum(p * norm.pdf(x, j * pair.up, sigma) for j, p in enumerate(law))
    second = sum(p * norm.pdf(x, j * pair.down, sigma) for j, p in enumerate(law))
    return float(np.trapezoid(np.maximum(first - exp(epsilon) * second, 0.0), x))


@pytest.mark.parametrize("name", ["wor", "must.ow"])
@pytest.mark.parametrize("epsilon", [-0.5, 0.3, 1.5])
def test_delta_of_one_step_is_the_hockey_stick_divergence(name: str, epsilon: float) -> None:
    scheme = SMALL.scheme(name)
    for pair in (*eye_to_eye(scheme, 1.3), *one_sided(scheme, 1.3)):
        found = pair.delta(np.array([epsilon]))[0]
        assert found == pytest.approx(integrated(pair, epsilon), abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", FIXED_SIZE)
def test_the_sound_bound_lies_above_every_pair(name: str) -> None:
    scheme = Tabulated.of(COMPOSITION.scheme(name))
    for epsilon in (0.5, 1.0):
        sound = subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=4.0, steps=600, epsilon=epsilon)
        attained = composed_delta(one_sided(scheme, 4.0), [600], [epsilon])[0][0]
        claimed = composed_delta(eye_to_eye(scheme, 4.0), [600], [epsilon])[0][0]
        assert claimed < attained < sound


@pytest.mark.parametrize(
    ("up", "down", "noise"), [(1.0, 1.0, 2.0), (-1.0, 1.0, 2.0), (1.0, -1.0, 0.0), (inf, inf, 1.0)]
)
def test_pairs_that_do_not_differ_are_refused(up: float, down: float, noise: float) -> None:
    with refuses(InvalidInputError, where="pair"):
        Pair(scheme=SMALL.scheme("wor"), up=up, down=down, noise_multiplier=noise)
