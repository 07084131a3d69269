"""The experiment of the MUST paper: its tables, figures and comparisons."""

from collections.abc import Callable, Mapping, Sequence

from veiltab.papers.experiment import Findings, Plain, Settings, Task
from veiltab.papers.must import (
    bootstrap,
    bootstrap_findings,
    classification,
    classification_findings,
    efficiency,
    efficiency_findings,
    overall,
    overall_findings,
    profile_findings,
    profiles,
    regression,
    regression_findings,
    scales,
)

_TASKS: tuple[Callable[[Settings], Sequence[Task]], ...] = (
    profiles.tasks,
    scales.tasks,
    bootstrap.tasks,
    regression.tasks,
    classification.tasks,
    efficiency.tasks,
    overall.tasks,
)

_FINDINGS: tuple[Callable[[Settings, Mapping[str, Plain]], Findings], ...] = (
    profile_findings.findings,
    bootstrap_findings.findings,
    regression_findings.findings,
    classification_findings.findings,
    efficiency_findings.findings,
    overall_findings.findings,
)


class MustExperiment:
    """Replay of Zhao and Liu's paper on multistage sampling."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return "must"

    @property
    def title(self) -> str:
        """Authors and title of the paper."""
        return (
            "Zhao, Liu: Enhancing Trade-offs in Privacy, Utility, and Computational Efficiency through MUltistage"
            " Sampling Technique (MUST)"
        )

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute; those of experiment 3 only if the Adult files are there."""
        return [task for part in _TASKS for task in part(settings)]

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        """Return tables and figures, in the order of the paper."""
        parts = [part(settings, results) for part in _FINDINGS]
        return Findings(
            figures=tuple(figure for one in parts for figure in one.figures),
            comparisons=tuple(comparison for one in parts for comparison in one.comparisons),
        )
