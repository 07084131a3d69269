"""Experiment 2: linear regression by DP-SGD, on data simulated afresh for every run.

y = 1 + x1/2 + x2/5 + noise, all of them standard normal. What the archived text of the paper leaves out (coefficients,
200 steps, learning rate 0.04, starts at -1, the error averaged over the last 16 steps) is as in the authors' program,
github.com/zhao-xingyuan/MUST. For MUST.WW that program draws the subsets of MUST.OW, here and in experiment 3; here
every scheme draws its own.
"""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from veiltab.common.schemes import Scheme
from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must.calibration import clipped_width, corrected_scale, paper_scale
from veiltab.papers.must.designs import LABELS, REGRESSION
from veiltab.papers.must.sgd import Data, Descent, descend, squared_error

Floats = NDArray[np.float64]

TRUTH = (1.0, 0.5, 0.2)
"""Intercept and two slopes."""

EPSILONS = (0.01, 0.001)
"""epsilon' of a step, as printed, nats."""

MORE_EPSILONS = (*EPSILONS, 0.1)
"""Those of the picture."""

STEPS, RATE, CLIP = 200, 0.04, 3.0
_LAST = 16


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each scheme, epsilon' and calibration, and one without privacy."""
    runs = settings.runs(200, 50)
    epsilons = EPSILONS if settings.quick else MORE_EPSILONS
    private = [
        Task(
            key=key_of(name, noise, epsilon),
            function=regress,
            arguments={"scheme": name, "noise": noise, "epsilon": epsilon, "runs": runs},
        )
        for epsilon in epsilons
        for noise in ("paper", "corrected")
        for name in LABELS
    ]
    arguments = {"scheme": "poisson", "noise": "none", "epsilon": None, "runs": runs}
    return [Task(key=key_of("poisson", "none", None), function=regress, arguments=arguments), *private]


def key_of(scheme: str, noise: str, epsilon: float | None) -> str:
    """Return the key of a task."""
    return f"experiment-2/{scheme}/{noise}" + (f"/epsilon={epsilon}" if epsilon is not None else "")


def regress(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return how well runs of DP-SGD predict and estimate.

    Args:
        arguments: scheme; noise "none", "paper" or "corrected"; epsilon' of a step, nats, or None; runs.

    Returns:
        rmse, the mean and standard deviation over runs of the root of the mean squared error, averaged over the last
        16 steps; bias and error (root of the mean square) of each coefficient; loss after each step of the first run.
    """
    scheme, runs = REGRESSION.scheme(arguments["scheme"]), arguments["runs"]
    data = simulated(runs, generator)
    losses = _losses_of(data, runs)
    path = np.empty((STEPS, runs))
    beta = np.zeros((runs, 3))
    how = descent_of(scheme, arguments["noise"], arguments["epsilon"])
    for step, beta in enumerate(descend(data, scheme, squared_error, how, generator)):
        path[step] = losses(beta)
    rmse = np.sqrt(path[-_LAST:].mean(axis=0))
    off = beta - np.array(TRUTH)
    return {
        "rmse": [float(rmse.mean()), float(rmse.std(ddof=1)) if runs > 1 else 0.0],
        "bias": off.mean(axis=0).tolist(),
        "error": np.sqrt((off * off).mean(axis=0)).tolist(),
        "loss": path[:, 0].tolist(),
    }


def descent_of(scheme: Scheme, noise: str, epsilon: float | None) -> Descent:
    """Return how a run descends under a calibration."""
    if noise == "none" or epsilon is None:
        return Descent(steps=STEPS, rate=RATE, start=-1.0, clip=inf)
    return Descent(
        steps=STEPS,
        rate=RATE,
        start=-1.0,
        clip=CLIP,
        noise=noise_scale(scheme, noise, epsilon),
        divides_by_sample=noise == "corrected" and isinstance(scheme, Poisson),
    )


def noise_scale(scheme: Scheme, noise: str, epsilon: float) -> float:
    """Return sigma on each coordinate of the averaged gradient; the paper's takes Delta = C/n instead of 2C/m."""
    if noise == "paper":
        return paper_scale(scheme, epsilon, CLIP)
    return corrected_scale(scheme, epsilon, clipped_width(scheme, CLIP))


def simulated(runs: int, generator: np.random.Generator) -> Data:
    """Return a data set for each run."""
    n = REGRESSION.population
    features = np.concatenate([np.ones((runs * n, 1)), generator.standard_normal((runs * n, 2))], axis=1)
    targets = features @ np.array(TRUTH) + generator.standard_normal(runs * n)
    return Data(features=features, targets=targets, offsets=np.arange(runs, dtype=np.int64) * n)


def _losses_of(data: Data, runs: int) -> Callable[[Floats], Floats]:
    """Return what gives each run's mean squared error on all of its data, from their second moments."""
    x = data.features.reshape(runs, -1, data.features.shape[1])
    y = data.targets.reshape(runs, -1)
    xx = np.einsum("rni,rnj->rij", x, x) / x.shape[1]
    xy = np.einsum("rni,rn->ri", x, y) / x.shape[1]
    yy = (y * y).mean(axis=1)

    def losses(beta: Floats) -> Floats:
        square = np.einsum("ri,rij,rj->r", beta, xx, beta)
        result: Floats = square - 2 * np.einsum("ri,ri->r", beta, xy) + yy
        return result

    return losses
