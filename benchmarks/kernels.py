"""Cost a row of each kernel against plain numpy, measured side by side: python -m benchmarks.kernels --rows 1000000.

Plain numpy means PCG64 for randomness, % for residues, np.where for replacement and hashlib for tokens, over whole
columns and in the narrowest types. It keeps nothing secret; it is the yardstick only.
"""

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import prod
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.pads import decrypt, encrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import sample_by_priority
from veiltab.common.core.tabulation import tabulate
from veiltab.curator.table.tokens import tokens

SHAPE = (3, 2, 2, 2)
"""Education, marital status, sex and salary of the Adult table."""

KEY = bytes(range(32))
MECHANISM = GammaDiagonal.from_gamma(prod(SHAPE), Fraction("31.59"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Nanoseconds a row of one stage, ours and plain: wall clock and processor time."""

    stage: str
    wall: float
    cpu: float
    plain_wall: float
    plain_cpu: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is, by wall clock."""
        return self.plain_wall / self.wall


class Ours:
    """The product's kernels on a table of `rows` rows."""

    def __init__(self, columns: list[Symbols], ids: list[str]) -> None:
        self.columns = columns
        self.out: list[Symbols] = [np.empty_like(column) for column in columns]
        self.ids = pa.array(ids)
        self.tokens = tokens(self.ids, KEY)

    def encrypt(self) -> None:
        """Encrypt every column."""
        for column, size, out in zip(self.columns, SHAPE, self.out, strict=True):
            encrypt(column, size, CipherStream(KEY), out)

    def perturb(self) -> None:
        """Perturb the table."""
        perturb(self.columns, SHAPE, MECHANISM, CipherStream(KEY), self.out)

    def count(self) -> None:
        """Decrypt every column and count the cells."""
        for column, size, out in zip(self.columns, SHAPE, self.out, strict=True):
            decrypt(column, size, CipherStream(KEY), out)
        tabulate(self.out, SHAPE, np.zeros(prod(SHAPE), np.int64))

    def sample(self) -> None:
        """Draw a tenth of the rows."""
        sample_by_priority(self.tokens, len(self.tokens) // 10, KEY)

    def order(self) -> None:
        """Draw all rows, in secret order."""
        sample_by_priority(self.tokens, len(self.tokens), KEY)

    def token(self) -> None:
        """Turn ids into tokens."""
        tokens(self.ids, KEY)


class Plain:
    """The same steps in plain numpy."""

    def __init__(self, columns: list[Symbols], ids: list[str]) -> None:
        self.columns = columns
        self.rows = len(ids)
        self.ids = ids
        self.rng = np.random.default_rng(1)

    def _noise(self, size: int) -> NDArray[np.uint8]:
        """Draw a column of symbols."""
        return self.rng.integers(0, size, self.rows, dtype=np.uint8)

    def encrypt(self) -> None:
        """Encrypt every column."""
        for column, size in zip(self.columns, SHAPE, strict=True):
            (column + self._noise(size)) % size

    def perturb(self) -> None:
        """Perturb the table."""
        replaced = self.rng.random(self.rows) < 1 - float(MECHANISM.retention)
        for column, size in zip(self.columns, SHAPE, strict=True):
            np.where(replaced, self._noise(size), column)

    def count(self) -> None:
        """Decrypt every column and count the cells."""
        clear = [(c + size - self._noise(size)) % size for c, size in zip(self.columns, SHAPE, strict=True)]
        np.bincount(np.ravel_multi_index(tuple(clear), SHAPE), minlength=prod(SHAPE))

    def sample(self) -> None:
        """Draw a tenth of the rows."""
        self.rng.permutation(self.rows)[: self.rows // 10]

    def order(self) -> None:
        """Draw all rows, in the order of random keys."""
        np.argsort(self.rng.random(self.rows))

    def token(self) -> None:
        """Turn ids into tokens."""
        for one in self.ids:
            hashlib.blake2b(one.encode(), key=KEY, digest_size=16).digest()


def measure(stage: str, rows: int, pair: Sequence[Callable[[], None]], repeats: int) -> Cost:
    """Run both turn by turn and take the medians; a first run of each warms up and does not count."""
    wall: list[list[float]] = [[], []]
    cpu: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        for i, run in enumerate(pair):
            start, busy = time.perf_counter(), time.process_time()
            run()
            wall[i].append(time.perf_counter() - start)
            cpu[i].append(time.process_time() - busy)
    walls = [statistics.median(times[1:]) / rows * 1e9 for times in wall]
    cpus = [statistics.median(times[1:]) / rows * 1e9 for times in cpu]
    return Cost(stage=stage, wall=walls[0], cpu=cpus[0], plain_wall=walls[1], plain_cpu=cpus[1])


def measure_all(rows: int, repeats: int) -> list[Cost]:
    """Measure every stage on one made-up table."""
    cells = np.random.default_rng(7).integers(0, prod(SHAPE), rows)
    columns: list[Symbols] = [part.astype(np.uint8) for part in np.unravel_index(cells, SHAPE)]
    ids = [f"person{i}" for i in range(rows)]
    ours, plain = Ours(columns, ids), Plain(columns, ids)
    stages = [
        ("pads and encryption, 4 columns", ours.encrypt, plain.encrypt),
        ("perturbation, 4 columns", ours.perturb, plain.perturb),
        ("decryption and counting, 4 columns", ours.count, plain.count),
        ("sample of a tenth (plain: permutation)", ours.sample, plain.sample),
        ("sample of all, in order (plain: argsort)", ours.order, plain.order),
        ("tokens (plain: keyed BLAKE2b)", ours.token, plain.token),
    ]
    return [measure(stage, rows, pair, repeats) for stage, *pair in stages]


def show(costs: Sequence[Cost], rows: int) -> None:
    """Print the costs as a table."""
    table = Table("stage", title=f"Nanoseconds a row, {rows:,} rows")
    for name in ("wall", "CPU", "plain wall", "plain CPU", "times faster"):
        table.add_column(name, justify="right")
    for cost in costs:
        figures = (cost.wall, cost.cpu, cost.plain_wall, cost.plain_cpu, cost.ratio)
        table.add_row(cost.stage, *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


@click.command()
@click.option("--rows", type=click.IntRange(min=1000), default=1_000_000, show_default=True, help="Rows of the table.")
@click.option("--repeats", type=click.IntRange(min=1), default=7, show_default=True, help="Timed runs of each stage.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here too.")
def main(rows: int, repeats: int, file: Path | None) -> None:
    """Measure the kernels."""
    costs = measure_all(rows, repeats)
    show(costs, rows)
    if file is not None:
        figures = [asdict(cost) | {"ratio": cost.ratio} for cost in costs]
        file.write_text(json.dumps({"rows": rows, "repeats": repeats, "stages": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
