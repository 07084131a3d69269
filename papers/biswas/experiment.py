"""The experiment of Biswas, Cormode, Maple: its figures and comparisons."""

from collections.abc import Mapping, Sequence

from veiltab.papers.biswas import (
    distance_figures,
    experiment_numbers,
    round_figures,
    rounds,
    second_round,
    second_round_figure,
    shuffled,
    shuffled_figures,
    stopping,
    theorem_numbers,
    variance_figure,
    variances,
)
from veiltab.papers.experiment import Findings, Plain, Settings, Task


class BiswasExperiment:
    """Figures 1 to 3, Theorem 3.5, and Section 6; neighbours: substitution of one node's value."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "biswas"

    @property
    def title(self) -> str:
        """Authors and title of the paper."""
        return "Biswas, Cormode, Maple: Impact of Sampling on Locally Differentially Private Data Collection"

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute; the paper gives no number of runs, so 1,000 a point, or 40 if quick."""
        return [
            *rounds.tasks(settings),
            *variances.tasks(settings),
            *shuffled.tasks(settings),
            *second_round.tasks(settings),
        ]

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        """Return the figures in the order of the paper, those that answer its open questions, and the comparisons."""
        return Findings(
            figures=(
                *round_figures.figures(results),
                *distance_figures.figures(settings, results),
                variance_figure.figure(results),
                stopping.figure(),
                *shuffled_figures.figures(results),
                second_round_figure.figure(results),
            ),
            comparisons=(*theorem_numbers.comparisons(), *experiment_numbers.comparisons(results)),
        )
