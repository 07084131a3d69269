"""What a replayed experiment is: tasks that can be computed anywhere, and what their results show.

A task is a function of plain arguments and a generator; its result is plain data, so that it can be kept on disk,
computed by another process, and taken up after an interruption.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from veiltab.common.dataclass import dataclass
from veiltab.common.errors import InvalidInputError

Plain = Mapping[str, Any]
"""What JSON can hold: strings, whole numbers, floats, booleans, and lists and mappings of them."""

Style = Literal["line", "points", "dashed", "dotted", "bars"]
"""How a curve is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The number of runs, the grids and the seed of a replay.

    Args:
        trials: runs a point; None takes the experiment's own number (the paper's, or fewer if `quick`).
        quick: coarser grids and fewer runs.
        adult: folder with adult.data and adult.test; what needs them is left out without it.
    """

    trials: int | None = None
    quick: bool = False
    seed: int = 1
    adult: Path | None = None

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise InvalidInputError("there must be at least 1 trial", where="--trials")

    def runs(self, full: int, quick: int) -> int:
        """Return the runs of a point: as asked, or one of two numbers."""
        return self.trials or (quick if self.quick else full)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One point of an experiment.

    Args:
        key: unique in the experiment, such as "figure-5/epsilon=0.5/m=1000".
        function: a function of a module's top level; it gets the arguments and a generator of its own, whose seed
            depends on the settings' seed, the experiment and the key alone.
    """

    key: str
    function: Callable[[Plain, np.random.Generator], Plain]
    arguments: Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One series of a panel.

    Args:
        label: its name; unique within the figure.
        low: lower ends of bars or of a band, if any.
        group: curves of one group share a colour and a marker; empty for a group of its own.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    style: Style = "line"
    group: str = ""

    def __post_init__(self) -> None:
        for values in (self.y, self.low, self.high):
            if values is not None and len(values) != len(self.x):
                raise InvalidInputError(f"a curve has {len(self.x)} abscissae and {len(values)} ordinates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A vertical line of a panel, such as the optimum."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes; the labels carry units, and `x_names` are the names of the abscissae 0, 1, 2 ..., if any."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_log: bool = False
    y_log: bool = False
    marks: tuple[Mark, ...] = ()
    x_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One picture.

    Args:
        name: file name without its ending, such as "lin-figure-5".
        title: says paper and figure, such as "Lin, Wang, Rane, Figure 5: error against sample size, Adult".
        caption: one or two sentences: what the picture shows, and where the paper's differs.
        shared_y: all panels have the same ordinates, so that they can be compared.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    caption: str
    shared_y: bool = False


class Verdict(StrEnum):
    """What a printed number turned out to be, beside ours."""

    AGREES = "agrees"
    PAPER_ERRS = "differs, the paper errs"
    READING = "a reading of a vague sentence"
    BOUND = "a bound that holds"
    CLOCK = "another clock"
    NOT_COMPUTED = "not computed"
    NOT_EXPLAINED = "not explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A number that a paper prints, beside ours.

    Args:
        what: the quantity and its setting.
        source: paper and table, figure or page.
        printed: as the paper has it.
        ours: computed here; None if it cannot be.
        tolerance: largest absolute difference that agrees (rounding of the print, or a stated Monte-Carlo allowance).
        note: why it disagrees, or what the tolerance is; required where it does not agree.
        otherwise: what it means where ours lies outside the tolerance.
    """

    what: str
    source: str
    printed: float
    ours: float | None
    tolerance: float
    note: str = ""
    otherwise: Verdict = Verdict.NOT_EXPLAINED

    def __post_init__(self) -> None:
        if not self.agrees and not self.note:
            raise InvalidInputError(f"{self.what}: a number that disagrees needs its reason")

    @property
    def agrees(self) -> bool:
        """Whether ours is the printed number, within the tolerance."""
        return self.verdict is Verdict.AGREES

    @property
    def verdict(self) -> Verdict:
        """What the printed number turned out to be."""
        if self.ours is None:
            return Verdict.NOT_COMPUTED
        return Verdict.AGREES if abs(self.ours - self.printed) <= self.tolerance else self.otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures and comparisons of an experiment."""

    figures: tuple[Figure, ...]
    comparisons: tuple[Comparison, ...]


class Experiment(Protocol):
    """A paper's experiments."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def title(self) -> str:
        """Authors and title of the paper."""

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute."""

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        """Return figures and comparisons; `results` holds each task's result under its key."""
