"""The noise of the three experiments: the paper's, the noise they need, and the delta' that results."""

from collections.abc import Sequence

import numpy as np

from veiltab.common.privacy.amplification import amplified_delta, base_epsilon
from veiltab.common.privacy.profiles import Gaussian
from veiltab.common.schemes import Scheme
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must import bootstrap, classification, regression
from veiltab.papers.must.calibration import analytic_ratio, corrected_ratio, paper_ratio, target_delta
from veiltab.papers.must.designs import CLASSIFICATION, LABELS, PRINTED, REGRESSION


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task an experiment."""
    del settings
    return [Task(key=key_of(number), function=noise, arguments={"experiment": number}) for number in (1, 2, 3)]


def key_of(experiment: int) -> str:
    """Return the key of an experiment's task."""
    return f"scales/experiment={experiment}"


def row_of(scheme: str, *, stage: int | None = None, epsilon: float | None = None) -> str:
    """Return under which name a scheme's numbers stand."""
    return "/".join([scheme, *([f"b={stage}"] if stage else []), *([f"epsilon={epsilon}"] if epsilon else [])])


def noise(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return the scales of an experiment and what they guarantee.

    Args:
        arguments: experiment 1 to 3.

    Returns:
        For each row: base (epsilon, nats); paper, sigma over the most that one row moves the mean; analytic, the same
        for a base of (epsilon, 1/n) without the gaps of equation 9; corrected, for (epsilon', m/n^2) after sampling;
        delta, what delta' the paper's sigma would leave if its sensitivities were right; slip, the same if Delta/sigma
        were n times larger.
    """
    del generator
    number = arguments["experiment"]
    if number == 1:
        return {
            row_of(name, stage=stage): _row(bootstrap.design_of(stage).scheme(name), bootstrap.EPSILON)
            for name, stage in bootstrap.variants(bootstrap.STAGES)
        }
    if number == 2:
        return {
            row_of(name, epsilon=epsilon): _row(REGRESSION.scheme(name), epsilon)
            for epsilon in regression.MORE_EPSILONS
            for name in LABELS
        }
    return {name: _row(CLASSIFICATION.scheme(name), classification.EPSILON) for name in PRINTED}


def _row(scheme: Scheme, epsilon: float) -> dict[str, float]:
    n, m, base = scheme.population, scheme.sample, base_epsilon(scheme, epsilon)
    ratio = paper_ratio(scheme, epsilon)
    return {
        "base": base,
        "paper": 1 / (n * ratio),
        "analytic": 1 / (m * analytic_ratio(scheme, epsilon)),
        "corrected": 1 / (m * corrected_ratio(scheme, epsilon)),
        "delta": amplified_delta(scheme, Gaussian(ratio=ratio), base),
        "slip": amplified_delta(scheme, Gaussian(ratio=n * ratio), base),
        "target": target_delta(scheme),
    }
