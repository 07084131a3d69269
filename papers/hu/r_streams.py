"""The random numbers of R, so that a population whose R code a paper prints is the very same population here.

Matsumoto and Nishimura's Mersenne Twister, filled by a linear congruence from the seed; normal values by inversion;
beta values by Cheng's rejection algorithm.
"""

from collections.abc import Iterator
from itertools import islice
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
WORDS = 624
UNIT = 2.0**-32


def uniforms(seed: int) -> Iterator[float]:
    """Yield what runif draws after set.seed(seed), without end."""
    generator = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": _key(seed), "pos": WORDS}}
    while True:
        numbers = generator.random_raw(4096).astype(np.float64) * UNIT
        yield from np.clip(numbers, UNIT / 2, 1 - UNIT / 2).tolist()


def _key(seed: int) -> NDArray[np.uint32]:
    """Return the twister's words: 50 steps of warming up, one for R's own position, then one a word."""
    word, words = seed, []
    for _ in range(50 + 1 + WORDS):
        word = (69069 * word + 1) % 2**32
        words.append(word)
    return np.array(words[-WORDS:], np.uint32)


def normals(source: Iterator[float], count: int) -> Floats:
    """Return what rnorm(count) draws: Phi^-1 of uniforms of 27 bits and a second draw's bits."""
    pairs = np.array(list(islice(source, 2 * count))).reshape(count, 2)
    return np.asarray(ndtri((np.floor(2**27 * pairs[:, 0]) + pairs[:, 1]) / 2**27), np.float64)


def betas(source: Iterator[float], count: int, *, a: float, b: float) -> Floats:
    """Return what rbeta(count, a, b) draws.

    Args:
        source: of `uniforms`.
        count: how many.
        a: above 1.
        b: at least a.

    Returns:
        (count,) float64 in (0, 1).

    Source: Cheng 1978, Generating beta variates with nonintegral shape parameters, algorithm BB; its two quicker tests
    accept nothing that the last one refuses. The constant is ln 4 as R rounds it.
    """
    return np.array([_beta(source, a, b) for _ in range(count)])


def _beta(source: Iterator[float], a: float, b: float) -> float:
    total = a + b
    slope = sqrt((total - 2) / (2 * a * b - total))
    while True:
        first, second = next(source), next(source)
        v = slope * log(first / (1 - first))
        w = a * exp(v)
        z = first * first * second
        r = (a + 1 / slope) * v - 1.3862944
        if r + total * log(total / (b + w)) >= log(z):
            return w / (b + w)
