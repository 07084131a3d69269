"""The expected error is near the true one, on average over releases: of data that fit a tree, and others."""

from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest

from tests.worlds.domains import domain_of
from veiltab.common.privacy.planning.workload_prices import workload_mechanisms, workload_prices
from veiltab.common.schemes.without_replacement import WithoutReplacement
from veiltab.researcher.estimates.estimation import ReleaseDesign
from veiltab.researcher.estimates.table_result import TableResult
from veiltab.researcher.microdata.comparison import fractions_of, mean_distance
from veiltab.researcher.microdata.expectation import expected_error
from veiltab.researcher.microdata.redrawing import redrawn
from veiltab.researcher.model.fitting import fit
from veiltab.researcher.model.row_drawing import Rows

PEOPLE = 20_000
SIZES = (3, 4, 2, 5, 3, 2)


DOMAIN = domain_of(*SIZES)


def chain() -> Rows:
    """Return people whose attributes each depend on the one before."""
    rng, columns = np.random.default_rng(1), [np.random.default_rng(0).integers(0, SIZES[0], PEOPLE)]
    for size in SIZES[1:]:
        chances = rng.dirichlet(np.full(size, 0.6), columns[-1].max() + 1)[columns[-1]]
        columns.append((rng.random(PEOPLE)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, size - 1))
    return np.stack(columns, axis=1)


def classes() -> Rows:
    """Return people of five classes, in which the attributes are independent; and a parity that no pair shows."""
    rng = np.random.default_rng(2)
    kinds = rng.integers(0, 5, PEOPLE)
    columns = []
    for size in SIZES:
        chances = rng.dirichlet(np.full(size, 0.6), 5)[kinds]
        columns.append((rng.random(PEOPLE)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, size - 1))
    columns[5] = np.where(rng.random(PEOPLE) < 0.8, (columns[0] + columns[2]) % 2, columns[5])
    return np.stack(columns, axis=1)


def released(rows: Rows, size: int, epsilon: str, seed: int) -> list[TableResult]:
    """Return every table of so many attributes as a release measures it."""
    tables, n = list(combinations(range(len(SIZES)), size)), len(rows)
    cells = [int(np.prod([SIZES[axis] for axis in axes])) for axes in tables]
    prices = workload_prices(cells, 0, Decimal(epsilon), Decimal("1e-6"))
    laws, _ = workload_mechanisms(WithoutReplacement(population=n, sample=n), cells, prices)
    found = []
    for number, (axes, law) in enumerate(zip(tables, laws, strict=True)):
        names = tuple(DOMAIN.names[axis] for axis in axes)
        design = ReleaseDesign(population=n, sample=n, mechanism=law)
        key = np.random.default_rng([seed, number]).bytes(32)
        counts = redrawn(fractions_of(rows, SIZES, axes), DOMAIN.subset(names), design, key)
        found.append(TableResult(number=number, names=names, counts=counts, design=design))
    return found


@pytest.mark.long
@pytest.mark.parametrize(("rows", "most_cells"), [(chain(), 720), (classes(), 720), (classes(), 60)])
def test_it_is_near_the_true_error_on_average(rows: Rows, most_cells: int) -> None:
    # A tree of 60 cells cannot join every pair: the model misses the truth.
    actual, expected = [], []
    for seed in range(8):
        tables = released(rows, 2, "1", seed)
        model = fit(DOMAIN, [one.measurement for one in tables], rows=PEOPLE, most_cells=most_cells)
        drawn = model.sample(PEOPLE, bytes(32))
        found = expected_error(tables, model, drawn, bytes([seed]) * 32)
        assert 0 < found.noise <= found.pairs
        actual.append(mean_distance(drawn, rows, SIZES, 2))
        expected.append(found.pairs)
    assert np.mean(expected) == pytest.approx(np.mean(actual), rel=0.1)


def test_tables_of_three_attributes_give_nearer_triples() -> None:
    rows, triples = classes(), []
    for size in (2, 3):
        tables = released(rows, size, "1", 0)
        model = fit(DOMAIN, [one.measurement for one in tables], rows=PEOPLE)
        drawn = model.sample(PEOPLE, bytes(32))
        triples.append(mean_distance(drawn, rows, SIZES, 3))
        if size == 2:
            expected = expected_error(tables, model, drawn, bytes(32))
            assert expected.pairs == pytest.approx(mean_distance(drawn, rows, SIZES, 2), rel=0.5)
    assert triples[1] < triples[0] / 2
