"""Experiment 3: logistic regression on Adult by DP-SGD, with the label among the predictors and without it.

The paper's accuracy of 0.98 is that of a model that sees the answer: its program drops column 23 of a table of 14,
which drops nothing, so the income stays among the features. Steps, learning rate and start, which the archived text
leaves out, are as in that program.
"""

from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veiltab.common.schemes import Scheme
from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must.adult import has_adult, read_split
from veiltab.papers.must.calibration import clipped_width, corrected_scale, paper_scale
from veiltab.papers.must.designs import CLASSIFICATION, LABELS
from veiltab.papers.must.sgd import Data, Descent, cross_entropy, descend

Floats = NDArray[np.float64]

EPSILON = 0.0005
"""epsilon' of a step, nats."""

STEPS, RATE, CLIP = 1000, 0.01, 3.0

METRICS = ("accuracy", "sensitivity", "specificity", "PPV", "NPV", "F1")
"""Columns of Table 8."""

VARIANTS = (("paper", True), ("paper", False), ("corrected", False))
"""(noise, whether the label is a predictor): the paper's; without the leak; without the leak and with enough noise."""


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each scheme and variant, or none without the Adult files."""
    if not has_adult(settings.adult):
        return []
    common = {"folder": str(settings.adult), "runs": settings.runs(40, 8), "every": 50 if settings.quick else 10}
    named = [(name, noise, label) for noise, label in VARIANTS for name in LABELS]
    named += [("poisson", "none", label) for label in (True, False)]
    return [
        Task(
            key=key_of(name, noise, label=label),
            function=classify,
            arguments={**common, "scheme": name, "noise": noise, "label": label},
        )
        for name, noise, label in named
    ]


def key_of(scheme: str, noise: str, *, label: bool) -> str:
    """Return the key of a task."""
    return f"experiment-3/{scheme}/{noise}/{'with' if label else 'without'}-label"


def classify(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return how well runs of DP-SGD classify the test rows.

    Args:
        arguments: folder of the Adult files; scheme; noise "none", "paper" or "corrected"; label, whether it is among
            the predictors; runs; every, steps between two points of the loss.

    Returns:
        metrics, for each of METRICS [mean, standard deviation] over runs; steps and loss (nats), the mean cross-entropy
        of the training rows in the first run.
    """
    split = read_split(Path(arguments["folder"]))
    if arguments["label"]:
        split = split.with_label()
    scheme, runs = CLASSIFICATION.scheme(arguments["scheme"]), arguments["runs"]
    data = Data(features=split.train, targets=split.train_income, offsets=np.zeros(runs, np.int64))
    how = descent_of(scheme, arguments["noise"])
    steps: list[int] = []
    losses: list[float] = []
    beta = np.empty((runs, split.train.shape[1]))
    for step, beta in enumerate(descend(data, scheme, cross_entropy, how, generator), start=1):
        if step == 1 or step % arguments["every"] == 0:
            steps.append(step)
            losses.append(loss_of(split.train @ beta[0], split.train_income))
    metrics = np.array([metrics_of(split.test @ one > 0, split.test_income > 0) for one in beta])
    spread = metrics.std(axis=0, ddof=1) if runs > 1 else np.zeros(len(METRICS))
    means = metrics.mean(axis=0)
    return {
        "metrics": {name: [float(means[i]), float(spread[i])] for i, name in enumerate(METRICS)},
        "steps": steps,
        "loss": losses,
    }


def descent_of(scheme: Scheme, noise: str) -> Descent:
    """Return how a run descends under a calibration."""
    if noise == "none":
        return Descent(steps=STEPS, rate=RATE, start=1.0, clip=inf)
    return Descent(
        steps=STEPS,
        rate=RATE,
        start=1.0,
        clip=CLIP,
        noise=noise_scale(scheme, noise),
        divides_by_sample=noise == "corrected" and isinstance(scheme, Poisson),
    )


def noise_scale(scheme: Scheme, noise: str) -> float:
    """Return sigma on each coordinate of the averaged gradient; the paper's takes Delta = C/n instead of 2C/m."""
    if noise == "paper":
        return paper_scale(scheme, EPSILON, CLIP)
    return corrected_scale(scheme, EPSILON, clipped_width(scheme, CLIP))


def loss_of(scores: Floats, income: Floats) -> float:
    """Return the mean cross-entropy, nats."""
    return float(np.mean(np.logaddexp(0.0, scores) - income * scores))


def metrics_of(guess: NDArray[np.bool_], true: NDArray[np.bool_]) -> list[float]:
    """Return METRICS; a ratio of nothing is 0."""
    hits, alarms = float((guess & true).sum()), float((guess & ~true).sum())
    misses, rejections = float((~guess & true).sum()), float((~guess & ~true).sum())
    sensitivity, precision = _ratio(hits, hits + misses), _ratio(hits, hits + alarms)
    return [
        (hits + rejections) / len(true),
        sensitivity,
        _ratio(rejections, rejections + alarms),
        precision,
        _ratio(rejections, rejections + misses),
        _ratio(2 * sensitivity * precision, sensitivity + precision),
    ]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
