"""The reference implementation of McKenna, Sheldon and Miklau's method as the independent calculation.

It comes with the dependency group `mbi` of pyproject.toml, which brings JAX and is therefore no part of `dev`.
"""

import warnings
from itertools import islice

import numpy as np
import pytest

from tests.researcher.model.made_tables import log_linear, measured, total_variation
from tests.worlds.domains import domain_of
from veiltab.researcher.model.descent import EVERY, tree_path
from veiltab.researcher.model.junction import junction_tree
from veiltab.researcher.model.measurement import tables_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("jax").config.update("jax_enable_x64", True)  # noqa: FBT003 - the product's signature
    mbi = pytest.importorskip("mbi")

SHAPE = (3, 4, 2, 5, 3)
NAMES = ("ab", "bc", "ac", "cd", "de")


@pytest.mark.filterwarnings("ignore")
def test_marginals_are_those_of_the_reference_implementation() -> None:
    domain, generator = domain_of(*SHAPE), np.random.default_rng(0)
    joint = log_linear(SHAPE, [(0, 1, 2), (2, 3), (3, 4)], seed=2)
    measurements = [
        measured(domain, joint, names, weight=weight, generator=generator)
        for names, weight in zip(NAMES, (2e4, 1e4, 4e4, 1e4, 3e4), strict=True)
    ]
    assert min(float(one.values.min()) for one in measurements) < 0

    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
    tables = list(tables_of(domain, measurements).values())
    path = tree_path(junction_tree(SHAPE, edges), tables, [np.full(size, 1 / size) for size in SHAPE])
    ours = next(islice(path, 3000 // EVERY, None))

    linear = [mbi.LinearMeasurement(one.values, one.names, stddev=one.weight**-0.5) for one in measurements]
    theirs = mbi.estimation.MirrorDescent().estimate(
        mbi.Domain(domain.names, SHAPE), linear, known_total=1.0, iters=5_000
    )
    for axes in ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (0, 4), (1, 3)):
        expected = theirs.project(tuple(domain.names[axis] for axis in axes)).datavector()
        assert total_variation(ours.marginal(axes), np.asarray(expected, np.float64)) < 1e-3
