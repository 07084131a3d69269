"""The claims of an estimate, over many releases of the Adult table: no bias, exact error, honest intervals."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from tests.conftest import spec_with
from tests.researcher.analysis.simulated import ADULT, ADULT_DOMAIN, simulated_counts
from tests.researcher.made_release import MadeRelease
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.privacy.planning.noise_split import curators_part, servers_part
from veiltab.common.release.modes import Sampling
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.researcher.estimates.estimation import Estimate, ReleaseDesign
from veiltab.researcher.estimates.table_result import design_of
from veiltab.researcher.estimates.uncertainty import covariance, total_variance
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows, count_rows

DOMAIN, SIZES = ADULT_DOMAIN, ADULT_DOMAIN.shape
N, M, CELLS = 45222, 3300, 24
TRUTH = ADULT.reshape(-1) / N
# epsilon = 1 at m close to the exact optimum: gamma = 1 + (e - 1) n/m
MECHANISM = GammaDiagonal.from_gamma(CELLS, 1 + Fraction(exp(1.0) - 1.0) * Fraction(N, M))
DESIGN = ReleaseDesign(population=N, sample=M, mechanism=MECHANISM)


def full_counts(runs: int, seed: int) -> NDArray[np.int64]:
    """Histograms of `runs` releases: rows sampled one by one, every symbol through the product's own kernel."""
    rng = np.random.default_rng(seed)
    table = np.repeat(np.arange(CELLS), ADULT.reshape(-1))
    histograms = []
    for _ in range(runs):
        rows = rng.choice(table, M, replace=False)
        columns: list[Symbols] = [column.astype(np.uint8) for column in np.unravel_index(rows, SIZES)]
        perturb(columns, SIZES, MECHANISM, CipherStream(rng.bytes(32)), columns)
        histograms.append(np.bincount(np.ravel_multi_index(tuple(columns), SIZES), minlength=CELLS))
    return np.array(histograms, dtype=np.int64)


def estimates_of(counts: NDArray[np.int64]) -> list[Estimate]:
    """Return the estimates of releases of one design."""
    return [Estimate(domain=DOMAIN, design=DESIGN, counts=row) for row in counts]


def check_estimates(estimates: Sequence[Estimate], *, mse_tolerance: float) -> None:
    """Unbiasedness (chi-square, alpha 1e-3), mean squared error, and the coverage of the 95% intervals."""
    raw = np.array([estimate.raw for estimate in estimates])
    bias = (raw.mean(axis=0) - TRUTH)[:-1]
    designs = [estimate.design for estimate in estimates]
    spread = np.mean([covariance(TRUTH, design) for design in designs], axis=0)[:-1, :-1] / len(raw)
    assert chi2.sf(float(bias @ np.linalg.solve(spread, bias)), CELLS - 1) > 1e-3
    raw_errors = ((raw - TRUTH) ** 2).sum(axis=1)
    exact = np.mean([total_variance(float(TRUTH @ TRUTH), design) for design in designs])
    assert raw_errors.mean() == pytest.approx(exact, rel=mse_tolerance)
    projected_errors = np.array([((estimate.projected - TRUTH) ** 2).sum() for estimate in estimates])
    assert (projected_errors <= raw_errors + 1e-15).all()
    for part in (("marital", "salary"), DOMAIN.names):
        covered = [covers(estimate.marginal(part), part) for estimate in estimates]
        assert 0.93 < np.mean(covered) < 0.97


def covers(estimate: Estimate, names: tuple[str, ...]) -> NDArray[np.bool_]:
    others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in names)
    truth = TRUTH.reshape(SIZES).sum(axis=others).reshape(-1)
    inside: NDArray[np.bool_] = (estimate.low <= truth) & (truth <= estimate.high)
    return inside


@pytest.mark.long
def test_four_thousand_releases_from_sufficient_statistics() -> None:
    # The relative standard error of the mean squared error is 0.3/sqrt(4000) = 0.5%.
    estimates = estimates_of(simulated_counts(ADULT, DESIGN, 4000, np.random.default_rng(2024)))
    check_estimates(estimates, mse_tolerance=0.02)
    covered = np.array([covers(one, DOMAIN.names) for one in estimates])
    # each cell on its own: the standard error of a cell's coverage is 0.34%
    assert covered.mean(axis=0).min() > 0.93
    assert covered.mean(axis=0).max() < 0.97


def test_expected_error_that_a_release_reports_is_the_exact_one() -> None:
    estimates = estimates_of(simulated_counts(ADULT, DESIGN, 500, np.random.default_rng(7)))
    reported = [one.root_mse**2 for one in estimates]
    assert np.mean(reported) == pytest.approx(total_variance(float(TRUTH @ TRUTH), DESIGN), rel=0.01)


def test_four_hundred_full_releases_through_the_real_kernel() -> None:
    # The relative standard error of the mean squared error is 0.3/sqrt(400) = 1.5%.
    check_estimates(estimates_of(full_counts(400, 2025)), mse_tolerance=0.05)


CANARIES = 4000
COLUMNS = tuple(
    Column(attribute=name, owner=owner, size=size)
    for name, owner, size in zip(DOMAIN.names, ("alice", "bob", "alice", "bob"), SIZES, strict=True)
)


def released(folder: Path, spec: TableSpec, rng: np.random.Generator) -> Estimate:
    """Return the estimate of one release with noise of both sides and canaries, made by every party's own kernels."""
    rows = rng.permutation(np.repeat(np.arange(CELLS), ADULT.reshape(-1)))[: spec.data_rows]
    table: dict[str, Symbols] = {}
    for name, symbols in zip(DOMAIN.names, np.unravel_index(rows, SIZES), strict=True):
        table[name] = symbols.astype(np.uint8)
    release = MadeRelease(spec, table)
    encrypted = []
    for column in spec.columns:
        noisy = folder / column.attribute
        noisy.write_bytes(release.published[column.attribute].tobytes())
        encrypted.append(EncryptedColumn(column=column, noisy=noisy, keys=(release.keys[column.attribute],)))
    sampled = release.places if spec.sampling.is_by_server else None
    published = PublishedRows(uploaded=spec.uploaded_rows, canaries=release.noise.places, sampled=sampled)
    counts = count_rows(encrypted, published)
    return Estimate(domain=DOMAIN, design=design_of(spec, CELLS, counted=int(counts.sum())), counts=counts)


@pytest.mark.long
@pytest.mark.parametrize("sampling", [Sampling.SEED, Sampling.SERVER])
def test_four_hundred_releases_with_noise_of_both_sides_and_canaries(tmp_path: Path, sampling: Sampling) -> None:
    curators = curators_part(MECHANISM, Decimal("0.5"))
    spec: TableSpec = spec_with(
        columns=COLUMNS,
        population=N,
        sample=M,
        sampling=sampling,
        server_replacement=servers_part(MECHANISM, curators),
        curator_replacement=curators,
        canaries=CANARIES,
    )
    rng = np.random.default_rng(2026)
    estimates = [released(tmp_path, spec, rng) for _ in range(400)]
    counted = {estimate.design.sample for estimate in estimates}
    # Where the server samples, it draws canaries too: 8% of the rows, and not always as many.
    assert (counted == {M}) if sampling is Sampling.SEED else (len(counted) > 20 and 0.9 * M < max(counted) < 0.95 * M)
    check_estimates(estimates, mse_tolerance=0.05)
