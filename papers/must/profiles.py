"""The paper's Section 4.1: what each scheme makes of the base's epsilon and delta. Exact; nothing is drawn."""

from collections.abc import Sequence

import numpy as np

from veiltab.common.privacy.profiles import Gaussian, GroupProfile
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must.designs import AMPLIFICATION, FIXED_SIZE, Design, Tabulated
from veiltab.papers.privacy.amplification import amplify
from veiltab.papers.privacy.profiles import Laplace

BLOCKS = (("laplace", 0.25), ("gaussian", 0.25), ("laplace", 1.0), ("gaussian", 1.0))
"""Mechanism and Delta/scale, in the order of Table 3."""

TABLE_EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)
"""Columns of Table 3, nats."""

CONTOUR_SCHEMES = ("must.ow", "must.ww")
"""Rows of Figure 5."""

CONTOUR_VALUES = ("eta", "laplace", "gaussian")
"""Columns of Figure 5: eta, and delta' - delta of the two mechanisms at epsilon = Delta/scale = 1."""


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each block of Table 3 and Figure 4, and for each row of Figure 5."""
    aligned = [
        Task(
            key=profile_key(mechanism, ratio),
            function=aligned_profile,
            arguments={"mechanism": mechanism, "ratio": ratio, "step": 0.01, "last": 6.0},
        )
        for mechanism, ratio in BLOCKS
    ]
    grid = {"samples": [100, 150], "stages": [150, 200], "step": 10 if settings.quick else 5}
    return [
        *aligned,
        *(
            Task(key=contour_key(name), function=contours, arguments={"scheme": name, **grid})
            for name in CONTOUR_SCHEMES
        ),
    ]


def profile_key(mechanism: str, ratio: float) -> str:
    """Return the key of a block's task."""
    return f"profiles/{mechanism}/ratio={ratio}"


def contour_key(scheme: str) -> str:
    """Return the key of a row's task."""
    return f"figure-5/{scheme}"


def aligned_profile(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return base and amplified (epsilon, delta) of every scheme, on Table 3's epsilons and on a grid.

    Args:
        arguments: mechanism; ratio Delta/scale; step and last of the grid, nats.

    Source: MUST, Theorem 5.
    """
    del generator
    profile = profile_of(arguments["mechanism"], arguments["ratio"])
    count = round(arguments["last"] / arguments["step"])
    grid = [arguments["step"] * (place + 1) for place in range(count)]
    schemes = {name: Tabulated.of(AMPLIFICATION.scheme(name)) for name in FIXED_SIZE}

    def points(epsilons: Sequence[float]) -> dict[str, list[list[float]]]:
        return {name: [_point(scheme, profile, epsilon) for epsilon in epsilons] for name, scheme in schemes.items()}

    return {"table": points(TABLE_EPSILONS), "grid": points(grid)}


def _point(scheme: Tabulated, profile: GroupProfile, epsilon: float) -> list[float]:
    amplified = amplify(scheme, profile, epsilon)
    return [amplified.base_epsilon, amplified.base_delta, amplified.epsilon, amplified.delta]


def profile_of(mechanism: str, ratio: float) -> GroupProfile:
    """Return the group profile of a mechanism of the paper."""
    return Laplace(ratio=ratio) if mechanism == "laplace" else Gaussian(ratio=ratio)


def contours(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return eta and delta' - delta on a grid of m and b.

    Args:
        arguments: scheme; samples and stages, the first and the last m and b; step of both.

    Returns:
        samples, stages, and for each of CONTOUR_VALUES a list a stage of a number a sample.
    """
    del generator
    samples, stages = (
        list(range(first, last + 1, arguments["step"])) for first, last in (arguments["samples"], arguments["stages"])
    )
    grid = [[_surfaces(arguments["scheme"], sample, stage) for sample in samples] for stage in stages]
    return {
        "samples": samples,
        "stages": stages,
        **{value: [[cell[value] for cell in row] for row in grid] for value in CONTOUR_VALUES},
    }


def _surfaces(name: str, sample: int, stage: int) -> dict[str, float]:
    design = Design(population=AMPLIFICATION.population, sample=sample, stage=stage)
    scheme = Tabulated.of(design.scheme(name))
    surfaces = {"eta": scheme.eta}
    for mechanism in ("laplace", "gaussian"):
        amplified = amplify(scheme, profile_of(mechanism, 1.0), 1.0)
        surfaces[mechanism] = amplified.delta - amplified.base_delta
    return surfaces
