"""The privacy loss of many steps together: by a sound bound, by the paper's pair, and by a pair that can occur.

The sound bound composes a profile that is sharper than that of the paper's Theorem 5 (docs/accounting.md). Between it
and the pair that can occur lies the truth; the paper's own pair lies below both, so its delta is not a guarantee.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.common.privacy.amplification import MultiplicityLaw
from veiltab.common.schemes import Scheme
from veiltab.common.schemes.poisson import Poisson
from veiltab.papers.experiment import Plain, Settings, Task
from veiltab.papers.must import classification, regression
from veiltab.papers.must.designs import CLASSIFICATION, COMPOSITION, FIXED_SIZE, PRINTED, REGRESSION, Design, Tabulated
from veiltab.papers.must.pairs import attained_deltas, composed_delta, eye_to_eye, one_sided
from veiltab.papers.privacy.composition import subsampled_delta
from veiltab.papers.privacy.pairs import Pair

SIGMA = 4.0
"""Noise multiplier of supplement S7."""

STEP_COUNTS = (400, 500, 600, 700, 800, 900, 1000)
"""Numbers of compositions in the picture of supplement S7, whose epsilon is 1."""


PAIRED = ("wor", "must.ow")
"""Schemes whose pairs are shown in the picture of the experiments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Steps of an experiment under a calibration.

    Args:
        experiment: 2 or 3.
        noise: "paper" or "corrected".
        epsilons: at which delta is read, nats.
    """

    experiment: int
    noise: str
    epsilons: tuple[float, ...]

    @property
    def design(self) -> Design:
        """Sizes of the experiment."""
        return REGRESSION if self.experiment == 2 else CLASSIFICATION

    @property
    def steps(self) -> int:
        """Steps of a run."""
        return regression.STEPS if self.experiment == 2 else classification.STEPS

    def noise_multiplier(self, scheme: Scheme) -> float:
        """Return sigma of the summed gradient over the clipping norm."""
        if self.experiment == 2:
            return scheme.sample * regression.noise_scale(scheme, self.noise, 0.01) / regression.CLIP
        return scheme.sample * classification.noise_scale(scheme, self.noise) / classification.CLIP


CASES: Mapping[str, Case] = {
    "experiment-2/paper": Case(experiment=2, noise="paper", epsilons=(0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)),
    "experiment-2/corrected": Case(experiment=2, noise="corrected", epsilons=(0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)),
    "experiment-3/paper": Case(experiment=3, noise="paper", epsilons=(0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0)),
    "experiment-3/corrected": Case(
        experiment=3, noise="corrected", epsilons=(0.001, 0.003, 0.006, 0.01, 0.015, 0.02, 0.025)
    ),
}
"""Compositions in the picture of the experiments; experiment 2 at epsilon' = 0.01."""


def tasks(settings: Settings) -> Sequence[Task]:
    """Return a task for each case and scheme, and for each scheme of supplement S7."""
    counts = STEP_COUNTS[::3] if settings.quick else STEP_COUNTS
    growing = [
        Task(key=growth_key(name), function=growth, arguments={"scheme": name, "steps": list(counts)})
        for name in ("poisson", *FIXED_SIZE)
    ]
    return growing + [
        Task(
            key=case_key(case, name),
            function=composition,
            arguments={
                "case": case,
                "scheme": name,
                "epsilons": list(CASES[case].epsilons[:: 2 if settings.quick else 1]),
            },
        )
        for case in CASES
        for name in PRINTED
    ]


def growth_key(scheme: str) -> str:
    """Return the key of a scheme's task of supplement S7."""
    return f"figure-s2/{scheme}"


def case_key(case: str, scheme: str) -> str:
    """Return the key of a case's task."""
    return f"overall/{case}/{scheme}"


def growth(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return delta at epsilon = 1 against the number of steps, in the setting of supplement S7.

    Args:
        arguments: scheme; steps, numbers of compositions.

    Returns:
        steps; sound, paper (not for Poisson), attained and its lower bound attained_low: a list each of a number for
        each number of steps. For Poisson, where one row is added or removed, sound is exact up to the grid.
    """
    del generator
    law, steps = COMPOSITION.scheme(arguments["scheme"]), arguments["steps"]
    if isinstance(law, Poisson):
        # A row that is added or removed moves a sum half as far as one that is replaced: half the noise is as much.
        pairs = tuple(Pair(scheme=law, up=up, down=up - 1.0, noise_multiplier=SIGMA / 2) for up in (1.0, 0.0))
        rows = {"sound": [_sound(law, SIGMA / 2, count, 1.0) for count in steps]}
    else:
        scheme = Tabulated.of(law)
        pairs = one_sided(scheme, SIGMA)
        rows = {
            "sound": [_sound(scheme, SIGMA, count, 1.0) for count in steps],
            "paper": [row[0] for row in composed_delta(eye_to_eye(scheme, SIGMA), steps, [1.0])],
        }
    return {
        "steps": steps,
        **rows,
        "attained": [row[0] for row in composed_delta(pairs, steps, [1.0])],
        "attained_low": [row[0] for row in attained_deltas(pairs, steps, [1.0])],
    }


def composition(arguments: Plain, generator: np.random.Generator) -> Plain:
    """Return delta against epsilon, of all steps of a run.

    Args:
        arguments: case, one of CASES; scheme; epsilons, nats.

    Returns:
        epsilons; sound, and for PAIRED schemes paper and attained: a list each of a number an epsilon. For Poisson,
        where one row is added or removed, sound is exact.
    """
    del generator
    case = CASES[arguments["case"]]
    scheme, epsilons = case.design.scheme(arguments["scheme"]), arguments["epsilons"]
    multiplier = case.noise_multiplier(scheme)
    if isinstance(scheme, Poisson):
        sound = [_sound(scheme, multiplier, case.steps, epsilon) for epsilon in epsilons]
        return {"epsilons": epsilons, "sound": sound}
    tabulated = Tabulated.of(scheme)
    deltas = {
        "epsilons": epsilons,
        "sound": [_sound(tabulated, multiplier, case.steps, epsilon) for epsilon in epsilons],
    }
    if arguments["scheme"] in PAIRED:
        deltas["paper"] = composed_delta(eye_to_eye(tabulated, multiplier), [case.steps], epsilons)[0]
        deltas["attained"] = composed_delta(one_sided(tabulated, multiplier), [case.steps], epsilons)[0]
    return deltas


def _sound(scheme: MultiplicityLaw, multiplier: float, steps: int, epsilon: float) -> float:
    deltas = subsampled_delta(scheme, mechanism="gaussian", noise_multiplier=multiplier, steps=steps, epsilon=epsilon)
    return max(0.0, deltas)
