"""Pairs of data sets against integration, against dp-accounting, and against the sound bound."""

from math import exp, inf

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from veiltab.common.errors import InvalidInputError
from veiltab.papers.must.designs import COMPOSITION, FIXED_SIZE, Design, Tabulated
from veiltab.papers.must.pairs import composed_delta, eye_to_eye, one_sided
from veiltab.papers.privacy.composition import subsampled_delta
from veiltab.papers.privacy.pairs import Pair

SMALL = Design(population=20, sample=6, stage=4)
WHOLE = Design(population=10, sample=10, stage=10)


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
def test_the_pair_that_can_occur_is_a_mixture_of_gaussians() -> None:
    law = SMALL.scheme("must.ow").multiplicities()
    sensitivities = [2.0 * j for j in range(len(law))]
    exact = pld.from_mixture_gaussian_mechanism(3.0, sensitivities, law.tolist(), value_discretization_interval=1e-3)
    wanted = [float(exact.self_compose(30).get_delta_for_epsilon(epsilon)) for epsilon in (0.5, 2.0, 6.0)]
    found = composed_delta(one_sided(SMALL.scheme("must.ow"), 3.0), [30], [0.5, 2.0, 6.0])[0]
    assert found == pytest.approx(wanted, rel=5e-3)


@pytest.mark.long
def test_the_paper_s_pair_under_reports_what_a_pair_attains() -> None:
    scheme = Tabulated.of(COMPOSITION.scheme("must.ow"))
    claimed = composed_delta(eye_to_eye(scheme, 4.0), [1000], [1.0])[0][0]
    attained = composed_delta(one_sided(scheme, 4.0), [1000], [1.0])[0][0]
    assert claimed == pytest.approx(1.5e-4, rel=0.03)
    assert attained == pytest.approx(3.8e-2, rel=0.01)
    sound = subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=4.0, steps=1000, epsilon=1.0)
    assert attained < sound < 0.2


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
    with pytest.raises(InvalidInputError, match="up is not above down, or the noise is not above 0"):
        Pair(scheme=SMALL.scheme("wor"), up=up, down=down, noise_multiplier=noise)
