"""Whether time tells symbols apart: encryption, perturbation and decryption of two tables, taken in turns at random.

python -m benchmarks.timing --runs 10000

One table is constant, the other random. Each run works on one of them, chosen by a coin, so that whatever else the
machine does befalls both alike. Welch's t-test compares the times, of which the slowest tenth is left out.
"""

import os
import time
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_ind

from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.pads import decrypt, encrypt
from veiltab.common.core.randomness import CipherStream

SIZES = (3, 200)
ROWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Times of both tables.

    Args:
        runs: of both together.
        medians: of the constant table and of the other, in seconds.
        p_value: that the means are equal.
    """

    runs: int
    medians: tuple[float, float]
    p_value: float


def seconds_of(columns: list[Symbols]) -> float:
    """Return how long columns take from plain symbols to noisy ones."""
    mechanism = GammaDiagonal(cells=int(np.prod(SIZES)), replacement=2**63)
    keys = [CipherStream(os.urandom(32)) for _ in SIZES]
    sent, noisy, plain = ([np.empty_like(column) for column in columns] for _ in range(3))
    began = time.perf_counter()
    for column, size, key, out in zip(columns, SIZES, keys, sent, strict=True):
        encrypt(column, size, key, out)
    perturb(sent, SIZES, mechanism, CipherStream(os.urandom(32)), noisy)
    for column, size, key, out in zip(noisy, SIZES, keys, plain, strict=True):
        decrypt(column, size, key, out)
    return time.perf_counter() - began


def compare(runs: int) -> Comparison:
    """Time runs of both tables."""
    rng = np.random.default_rng()
    tables: list[list[Symbols]] = [
        [np.zeros(ROWS, np.uint8) for _ in SIZES],
        [rng.integers(0, size, ROWS, dtype=np.uint8) for size in SIZES],
    ]
    for table in tables:
        seconds_of(table)
    coins = rng.integers(0, 2, runs)
    times = np.array([seconds_of(tables[coin]) for coin in coins])
    one, other = (_without_slowest(times[coins == coin]) for coin in (0, 1))
    return Comparison(
        runs=runs,
        medians=(float(np.median(one)), float(np.median(other))),
        p_value=float(ttest_ind(one, other, equal_var=False).pvalue),
    )


def _without_slowest(times: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sort(times)[: int(0.9 * len(times))]


@click.command(help=__doc__)
@click.option("--runs", default=10_000, show_default=True)
def main(runs: int) -> None:
    """Print the comparison."""
    found = compare(runs)
    medians = " and ".join(f"{1e6 * median:.1f} us" for median in found.medians)
    print(f"{found.runs} runs, medians {medians}, p = {found.p_value:.3f}")


if __name__ == "__main__":
    main()
