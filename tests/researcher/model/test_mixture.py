from itertools import combinations, islice

import numpy as np
import pytest

from tests.researcher.model.made_tables import Floats, margin, measured, total_variation
from tests.worlds.domains import domain_of
from veiltab.common.errors import InvalidInputError
from veiltab.researcher.model import mixture
from veiltab.researcher.model.measurement import tables_of
from veiltab.researcher.model.mixture import EVERY, Mixture, _PairLoss, mixture_path
from veiltab.researcher.model.row_drawing import Uniforms

SHAPE = (2, 3, 4)
DOMAIN = domain_of(*SHAPE)


def two_products() -> tuple[Mixture, Floats]:
    """Return a mixture of two components, and its joint table."""
    generator = np.random.default_rng(0)
    shares = np.array([0.3, 0.7])
    factors = [generator.dirichlet(np.ones(size), 2) for size in SHAPE]
    return Mixture(shares, factors), np.einsum("r,ra,rb,rc->abc", shares, *factors)


def test_marginals_are_those_of_the_joint_table() -> None:
    mixture, joint = two_products()
    for axes in ((0,), (2, 0), (1, 2), (2, 0, 1)):
        assert np.allclose(mixture.marginal(axes), margin(joint, axes), rtol=1e-12)


def test_a_marginal_that_is_too_large_is_refused() -> None:
    wide = Mixture(np.ones(1), [np.full((1, 4000), 1 / 4000)] * 2)
    with pytest.raises(InvalidInputError, match="16000000 cells"):
        wide.marginal((0, 1))


def test_the_slope_is_that_of_the_loss() -> None:
    _, joint = two_products()
    measurements = [measured(DOMAIN, joint, names, weight=w) for names, w in (("ab", 3.0), ("bc", 5.0), ("a", 2.0))]
    loss = _PairLoss(SHAPE, list(tables_of(DOMAIN, measurements).values()))
    logits = np.random.default_rng(1).normal(size=(sum(SHAPE) + 1, 4))

    def value(at: Floats) -> float:
        shares, factors = loss.parameters(at)
        a, b, c = (factors[place].T for place in loss.places[:-1])
        errors = (
            (3.0, np.einsum("r,ra,rb->ab", shares, a, b) - margin(joint, (0, 1))),
            (5.0, np.einsum("r,rb,rc->bc", shares, b, c) - margin(joint, (1, 2))),
            (2.0, shares @ a - margin(joint, (0,))),
        )
        return sum(weight * float((error**2).sum()) / 2 for weight, error in errors)

    slope = loss.slope(logits)
    for place in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[place] = 1e-5
        assert slope[place] == pytest.approx((value(logits + step) - value(logits - step)) / 2e-5, rel=1e-4, abs=1e-9)


def test_pairs_of_a_mixture_are_fitted() -> None:
    _, joint = two_products()
    measurements = [measured(DOMAIN, joint, one + other) for one, other in combinations("abc", 2)]
    tables = list(tables_of(DOMAIN, measurements).values())
    uniform = [np.full(size, 1 / size) for size in SHAPE]
    mixture = next(islice(mixture_path(SHAPE, tables, uniform), 600 // EVERY, None))
    for axes in combinations(range(3), 2):
        assert total_variation(mixture.marginal(axes), margin(joint, axes)) < 1e-3


def test_the_average_of_several_starts_follows_less_noise_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _, joint = two_products()
    generator = np.random.default_rng(0)
    pairs = list(combinations(range(3), 2))
    noisy = [measured(DOMAIN, joint, one + other, weight=1e3, generator=generator) for one, other in ("ab", "ac", "bc")]
    tables = list(tables_of(DOMAIN, noisy).values())
    uniform = [np.full(size, 1 / size) for size in SHAPE]

    def error() -> float:
        average = next(islice(mixture_path(SHAPE, tables, uniform), 250 // EVERY, None))
        return sum(float(((average.marginal(axes) - margin(joint, axes)) ** 2).sum()) for axes in pairs)

    several = error()
    monkeypatch.setattr(mixture, "STARTS", 1)
    assert several < error()


def test_an_attribute_with_a_table_of_its_own_alone_is_fitted() -> None:
    _, joint = two_products()
    tables = list(tables_of(DOMAIN, [measured(DOMAIN, joint, names) for names in ("ab", "c")]).values())
    uniform = [np.full(size, 1 / size) for size in SHAPE]
    mixture = next(islice(mixture_path(SHAPE, tables, uniform), 600 // EVERY, None))
    assert total_variation(mixture.marginal((2,)), margin(joint, (2,))) < 1e-3


def test_rows_follow_the_mixture() -> None:
    mixture, joint = two_products()
    rows = mixture.rows(50_000, Uniforms(b"rows"))
    counts = np.bincount(np.ravel_multi_index(tuple(rows.T), SHAPE), minlength=24)
    # Independent rows would be off by sqrt(2 p/(pi n))/2 a cell on average, .0085 in all.
    assert total_variation(counts / 50_000, joint) < 0.0085
