"""The covariance of the estimate under every sampling scheme, against many releases; and what the order is worth."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from veiltab.common.core.mechanism import GammaDiagonal, invert, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.schemes import scheme_of
from veiltab.researcher.estimates.uncertainty import ReleaseDesign, covariance

ALPHA = 1e-4


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "b"), [("wor", None), ("wr", None), ("must.ow", 25), ("must.wo", 50), ("must.ww", 25)]
)
def test_the_covariance_is_that_of_many_releases(name: str, b: int | None) -> None:
    n, m, cells, trials = 60, 40, 3, 3000
    table = np.repeat(np.arange(3), [30, 20, 10])
    fractions = np.array([1 / 2, 1 / 3, 1 / 6])
    generator = np.random.default_rng(5)
    tokens = generator.integers(0, 256, (n, 16), dtype=np.uint8)
    scheme = scheme_of(name, population=n, sample=m, stage=b)
    mechanism = GammaDiagonal.from_gamma(cells, Fraction(40))
    design = ReleaseDesign(population=n, sample=m, mechanism=mechanism, scheme=scheme)
    estimates = np.empty((trials, cells))
    for trial in range(trials):
        rows = scheme.draw(tokens, generator.bytes(32))
        column = table[rows].astype(np.uint8)
        noisy = np.empty_like(column)
        perturb([column], [cells], mechanism, CipherStream(generator.bytes(32)), [noisy])
        estimates[trial] = invert(np.bincount(noisy, minlength=cells).astype(np.int64), mechanism)
    exact = covariance(fractions, design)
    deviations = estimates - fractions
    # Each variance against chi-square, and the mean against its standard error.
    for cell in range(cells):
        ratio = float(np.sum(deviations[:, cell] ** 2)) / exact[cell, cell]
        assert chi2.ppf(ALPHA, trials) < ratio < chi2.ppf(1 - ALPHA, trials)
        assert abs(deviations[:, cell].mean()) < 4.5 * np.sqrt(exact[cell, cell] / trials)
    off = (deviations[:, 0] * deviations[:, 1]).mean()
    spread = np.sqrt((exact[0, 0] * exact[1, 1] + exact[0, 1] ** 2) / trials)
    assert abs(off - exact[0, 1]) < 4.5 * spread
