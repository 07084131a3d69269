"""Lin, Wang, Rane: error against the size of a secret sample, Figures 5 to 9, and what its secret order adds."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np

from veiltab.common.privacy.planning.planning import paper_sample
from veiltab.papers.census import CELLS, POPULATION, known_tables
from veiltab.papers.experiment import Findings, Plain, Settings, Task
from veiltab.papers.lin import numbers, order, pictures, structured
from veiltab.papers.lin.curves import EPSILONS
from veiltab.papers.lin.order import DELTAS
from veiltab.papers.lin.pictures import SHAPES
from veiltab.papers.lin.points import error, guarantee, synthetic

CARDINALITIES = (12, 24, 48, 96, 192, 384, 768)
QUICK_CARDINALITIES = (12, 24, 96, 768)
PURE_EPSILONS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3")

_RUNS, _QUICK_RUNS = 1000, 200
_SMALLEST = 30
"""Rows of the smallest sample that is simulated."""


class Lin:
    """The experiments of the paper, from the planner, the mechanism and the certificates of the services."""

    name = "lin"
    title = (
        "Lin, Wang, Rane: On the Benefits of Sampling in Privacy Preserving Statistical Analysis on Distributed"
        " Databases"
    )

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """Return the points to compute."""
        runs = settings.runs(_RUNS, _QUICK_RUNS)
        return [
            *_against_sample_size(8 if settings.quick else 22, runs),
            *_against_cells(settings, runs),
            *_with_order(6 if settings.quick else 14, runs),
            *_guarantees(),
        ]

    def findings(self, settings: Settings, results: Mapping[str, Plain]) -> Findings:
        """Return figures and comparisons."""
        return Findings(
            figures=(
                pictures.figure_5(results),
                *(pictures.figure_of_shape(results, shape) for shape in SHAPES[1:]),
                pictures.figure_9(results, with_files=settings.adult is not None),
                order.errors(results),
                order.price(results),
                structured.figure(),
            ),
            comparisons=numbers.comparisons(results, settings.adult),
        )


EXPERIMENT = Lin()


def sizes(count: int) -> list[int]:
    """Return sample sizes, evenly spaced on a log scale, up to everybody."""
    return sorted({round(float(m)) for m in np.geomspace(_SMALLEST, POPULATION, count)})


@lru_cache(maxsize=4)
def _tables(adult: Path | None) -> dict[int, list[int]]:
    return known_tables(adult)


def _against_sample_size(count: int, runs: int) -> list[Task]:
    """Figures 5 to 8."""
    tables = {shape: list(CELLS) if shape == "Adult" else synthetic(shape, len(CELLS), POPULATION) for shape in SHAPES}
    return [
        _task(f"size/{shape}/epsilon={epsilon}/m={m}", tables[shape], epsilon, None, m, runs)
        for shape in SHAPES
        for epsilon in EPSILONS
        for m in sizes(count)
    ]


def _against_cells(settings: Settings, runs: int) -> list[Task]:
    """Figure 9: at the paper's sample size."""
    adult = _tables(settings.adult)
    tasks = []
    for cells in QUICK_CARDINALITIES if settings.quick else CARDINALITIES:
        tables = {shape: synthetic(shape, cells, POPULATION) for shape in SHAPES[1:]}
        if cells in adult:
            tables["Adult"] = adult[cells]
        for shape, counts in tables.items():
            for epsilon in EPSILONS:
                star = paper_sample(population=POPULATION, cells=cells, epsilon=Decimal(epsilon))
                tasks.append(_task(f"cells/{shape}/epsilon={epsilon}/K={cells}", counts, epsilon, None, star, runs))
    return tasks


def _with_order(count: int, runs: int) -> list[Task]:
    """Beyond the paper: the same table under the certificate of the secret order."""
    return [
        _task(f"order/delta={delta}/epsilon={epsilon}/m={m}", list(CELLS), epsilon, delta, m, runs)
        for delta in DELTAS
        for epsilon in EPSILONS
        for m in sizes(count)
    ]


def _guarantees() -> list[Task]:
    return [
        Task(
            key=f"guarantee/delta={delta}/epsilon={epsilon}",
            function=guarantee,
            arguments={"population": POPULATION, "cells": len(CELLS), "epsilon": epsilon, "delta": delta},
        )
        for delta in DELTAS
        for epsilon in PURE_EPSILONS
    ]


def _task(  # noqa: PLR0913, PLR0917 - what a release is made of
    key: str, counts: list[int], epsilon: str, delta: str | None, sample: int, runs: int
) -> Task:
    arguments = {"counts": counts, "epsilon": epsilon, "delta": delta, "sample": sample, "runs": runs}
    return Task(key=key, function=error, arguments=arguments)
