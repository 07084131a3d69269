"""A whole run: experiments to points, points to findings, findings to files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError
from veiltab.common.tasks.engine import Engine
from veiltab.papers.experiment import Comparison, Experiment, Figure, Findings, Settings
from veiltab.papers.page import render
from veiltab.papers.point import Point
from veiltab.papers.running import compute
from veiltab.papers.store import Store
from veiltab.papers.style import draw
from veiltab.papers.tables import as_csv, rows_of, series_of

POINTS = "points"
"""Where computed points are kept, in the folder of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """The result of a run.

    Args:
        findings: name of an experiment -> (title, findings).
    """

    findings: Mapping[str, tuple[str, Findings]]
    settings: Settings

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All pictures."""
        return tuple(figure for _, findings in self.findings.values() for figure in findings.figures)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All printed numbers."""
        return tuple(one for _, findings in self.findings.values() for one in findings.comparisons)

    def as_dict(self) -> dict[str, object]:
        """Return series and comparisons as plain data."""
        return {"series": series_of(self.figures), "comparisons": rows_of(self.comparisons)}


def reproduce(experiments: Sequence[Experiment], settings: Settings, out: Path, engine: Engine) -> Reproduction:
    """Compute the points that are not kept under `out`, and return the findings.

    Args:
        out: folder of the results, which keeps computed points too.

    Raises:
        InvalidInputError: an experiment names two tasks or two figures alike.
    """
    tasks = {one.name: one.tasks(settings) for one in experiments}
    points = [Point(experiment=name, task=task, seed=settings.seed) for name, some in tasks.items() for task in some]
    _unique([str(point) for point in points], "tasks")
    results = compute(points, Store(out / POINTS), engine)
    findings = {}
    for one in experiments:
        own = {task.key: results[f"{one.name}/{task.key}"] for task in tasks[one.name]}
        findings[one.name] = (one.title, one.findings(settings, own))
    reproduction = Reproduction(findings=findings, settings=settings)
    _unique([figure.name for figure in reproduction.figures], "figures")
    return reproduction


def write(reproduction: Reproduction, out: Path, *, page: bool) -> list[Path]:
    """Write pictures, tables and summary.json, and return the paths of the pictures and of the page."""
    paths, pictures = [], {}
    for figure in reproduction.figures:
        svg, png = draw(figure)
        pictures[figure.name] = svg
        paths += [_write_file(out / f"{figure.name}.svg", svg.encode()), _write_file(out / f"{figure.name}.png", png)]
        _write_file(out / f"{figure.name}.csv", as_csv(figure).encode())
    summary = {"settings": _settings(reproduction.settings), "titles": _titles(reproduction), **reproduction.as_dict()}
    _write_file(out / "summary.json", (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())
    if page:
        text = render(reproduction.findings, pictures, _sentence(reproduction.settings))
        paths.append(_write_file(out / "index.html", text.encode()))
    return paths


def _write_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _titles(reproduction: Reproduction) -> dict[str, str]:
    return {name: title for name, (title, _) in reproduction.findings.items()}


def _settings(settings: Settings) -> dict[str, object]:
    # The path of the census files does not matter; whether they were given does.
    return {
        "trials": settings.trials,
        "quick": settings.quick,
        "seed": settings.seed,
        "adult": settings.adult is not None,
    }


def _sentence(settings: Settings) -> str:
    trials = "the papers' number of runs" if settings.trials is None else f"{settings.trials:,} runs"
    runs = "coarser grids and fewer runs" if settings.quick and settings.trials is None else trials
    adult = "with" if settings.adult is not None else "without"
    return f"This page: {runs} a point, seed {settings.seed}, {adult} the files of the census."


def _unique(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"two {what} have the same name", where=name)
