"""Hu, Drechsler, Kim: can privatising a sample beat privatising the population?"""

from collections.abc import Mapping, Sequence

from veiltab.papers.experiment import Experiment, Findings, Plain, Settings, Task
from veiltab.papers.hu import simulation
from veiltab.papers.hu.formulas import figure_1, figure_2, figure_3, figure_4, figure_5
from veiltab.papers.hu.median_figures import bimodal_figures, lognormal_figures
from veiltab.papers.hu.numbers import comparisons


class Hu:
    """Figures 1 to 13 and Table 1; relation: substitution, sampling without replacement."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "hu"

    @property
    def title(self) -> str:
        """Authors and title of the paper."""
        return (
            "Jingchen Hu, Joerg Drechsler, Hang J. Kim: "
            "Accuracy gains from privacy amplification through sampling for differential privacy"
        )

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute: 1,000 runs each, or 200 if quick."""
        return simulation.tasks(settings)

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        """Return all figures and numbers; those with a formula are computed here."""
        lognormal, bimodal = (simulation.medians(name, results) for name in simulation.DRAWN)
        others = simulation.others(results)
        runs = simulation.runs(settings)
        closed = (figure_1(runs), figure_2(runs), figure_3(), figure_4(), figure_5())
        return Findings(
            figures=(*closed, *lognormal_figures(lognormal, others), *bimodal_figures(bimodal)),
            comparisons=comparisons(lognormal, bimodal, others),
        )


EXPERIMENT: Experiment = Hu()
