"""DP-SGD against the loop over examples that it stands for, and its noise against its law."""

from collections.abc import Callable
from math import exp, inf

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from tests.conftest import refuses
from veiltab.common.errors import InvalidInputError
from veiltab.papers.must.designs import Design
from veiltab.papers.must.draws import draw
from veiltab.papers.must.sgd import Data, Descent, cross_entropy, descend, squared_error

Floats = NDArray[np.float64]
DESIGN = Design(population=40, sample=6, stage=8)
RUNS, DIMENSION = 3, 2


def data_of(targets: Callable[[Floats], Floats]) -> Data:
    generator = np.random.default_rng(1)
    features = np.column_stack([np.ones(RUNS * 40), 2 * generator.standard_normal(RUNS * 40)])
    return Data(features=features, targets=targets(features), offsets=np.arange(RUNS, dtype=np.int64) * 40)


def by_hand(data: Data, name: str, gradient: Callable[[Floats, Floats, float], Floats], descent: Descent) -> Floats:
    """The same subsets, an example at a time; without noise."""
    generator = np.random.default_rng(2)
    betas = np.full((RUNS, DIMENSION), descent.start)
    for _ in range(descent.steps):
        subsets = draw(DESIGN.scheme(name), RUNS, generator)
        generator.standard_normal(betas.shape)
        for run in range(RUNS):
            rows = subsets.rows[run][subsets.used[run]] + data.offsets[run]
            total = np.zeros(DIMENSION)
            for row in rows:
                one = gradient(betas[run], data.features[row], float(data.targets[row]))
                norm = float(np.linalg.norm(one))
                total += one / max(1.0, norm / descent.clip)
            size = 6 if descent.divides_by_sample else max(1, len(rows))
            betas[run] = betas[run] - descent.rate * total / size
    return betas


def linear(beta: Floats, x: Floats, y: float) -> Floats:
    found: Floats = 2 * (float(x @ beta) - y) * x
    return found


def logistic(beta: Floats, x: Floats, y: float) -> Floats:
    found: Floats = (1 / (1 + exp(-float(x @ beta))) - y) * x
    return found


@pytest.mark.parametrize("name", ["poisson", "wor", "must.ww"])
@pytest.mark.parametrize("clip", [0.7, inf])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("by_sample", [True, False])
def test_a_step_is_the_average_of_clipped_gradients(name: str, clip: float, kind: str, by_sample: bool) -> None:  # noqa: FBT001 - the product's signature
    descent = Descent(steps=5, rate=0.3, start=-1.0, clip=clip, divides_by_sample=by_sample)
    if kind == "linear":
        data = data_of(lambda x: x[:, 1] + 1)
        wanted = by_hand(data, name, linear, descent)
    else:
        data = data_of(lambda x: (x[:, 1] > 0).astype(np.float64))
        wanted = by_hand(data, name, logistic, descent)
    coefficient = squared_error if kind == "linear" else cross_entropy
    *_, found = descend(data, DESIGN.scheme(name), coefficient, descent, np.random.default_rng(2))
    assert found == pytest.approx(wanted, abs=1e-12)


def test_without_gradients_the_coefficients_walk_at_random() -> None:
    # Targets are met exactly, so that only noise moves beta: a sum of 20 normals of deviation rate times noise.
    runs, descent = 2000, Descent(steps=20, rate=0.1, start=0.0, noise=3.0)
    data = Data(features=np.zeros((40, 1)), targets=np.zeros(40), offsets=np.zeros(runs, np.int64))
    *_, found = descend(data, DESIGN.scheme("wor"), squared_error, descent, np.random.default_rng(3))
    square = float((found**2).sum()) / (20 * (0.1 * 3.0) ** 2)
    assert float(chi2.ppf(5e-5, runs)) < square < float(chi2.ppf(1 - 5e-5, runs))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"rate": 0.0}, {"clip": 0.0}, {"noise": -1.0}])
def test_descents_that_lead_nowhere_are_refused(wrong: dict[str, float]) -> None:
    facts = {"steps": 5, "rate": 0.1, "start": 0.0, **wrong}
    with refuses(InvalidInputError, where="DP-SGD"):
        Descent(**facts)  # type: ignore[arg-type]
