"""The yardstick of benchmarks.release: the same statistics in plain pandas, in one process that sees everything.

Run by that benchmark: python -m benchmarks.plain_pandas FIRST SECOND --release M G. It reads both tables, joins them on
the id and, for each release, samples m rows, perturbs their cells (k-ary randomised response) and counts them. It
protects nobody: the process holds both tables, and the generator is NumPy's.
"""

import json
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.made_tables import CATEGORIES, ID

SHAPE = tuple(len(values) for values in CATEGORIES.values())


@dataclass(kw_only=True)
class Stages:
    """CPU and wall seconds of each stage; the first includes the interpreter's start."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    _at: tuple[float, float] = field(default_factory=lambda: (0.0, time.monotonic()))

    def end(self, stage: str) -> None:
        """End a stage."""
        now = (time.process_time(), time.monotonic())
        self.cpu[stage], self.wall[stage] = now[0] - self._at[0], now[1] - self._at[1]
        self._at = now


def read(path: Path) -> pd.DataFrame:
    """Read a table, its attributes as categories."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    names = pd.read_csv(path, nrows=0).columns
    return pd.read_csv(path, dtype={ID: "str"} | {name: "category" for name in names if name != ID})


def perturb(cells: NDArray[np.int64], gamma: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Keep each cell with probability (gamma - 1)/(gamma + K - 1), else replace it by a uniform one."""
    count = int(np.prod(SHAPE))
    kept = rng.random(len(cells)) < (gamma - 1) / (gamma + count - 1)
    return np.where(kept, cells, rng.integers(0, count, len(cells)))


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--release", "releases", type=(int, float), multiple=True, help="Sampled rows, and worst-case ratio gamma."
)
def main(first: Path, second: Path, releases: tuple[tuple[int, float], ...]) -> None:
    """Run all stages, and print their cost as one JSON object."""
    stages = Stages()
    tables = read(first), read(second)
    stages.end("load")
    joined = tables[0].merge(tables[1], on=ID)
    stages.end("join")
    rng = np.random.default_rng(1)
    counts = []
    for number, (m, gamma) in enumerate(releases):
        sampled = joined.iloc[rng.choice(len(joined), m, replace=False)]
        codes = [pd.Categorical(sampled[name], categories=values).codes for name, values in CATEGORIES.items()]
        cells = np.ravel_multi_index([code.astype(np.int64) for code in codes], SHAPE)
        counts.append(np.bincount(perturb(cells, gamma, rng), minlength=int(np.prod(SHAPE))).tolist())
        stages.end(f"release {number}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {"rows": len(joined), "counts": counts, "cpu": stages.cpu, "wall": stages.wall, "peak": peak}
    click.echo(json.dumps(result))


if __name__ == "__main__":
    main()
