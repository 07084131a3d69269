"""Tests of several tables under one price: shares, mechanisms, foreseen errors, and what adaptive choices give away."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import exp, sqrt

import numpy as np
import pytest

from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.errors import InvalidInputError
from veiltab.common.privacy.description import ReleaseDescription
from veiltab.common.privacy.planning.workload_prices import (
    MOST_ERROR,
    WorkloadPrices,
    check_carries,
    expected_distance,
    foreseen_error,
    foreseen_errors,
    workload_mechanisms,
    workload_prices,
)
from veiltab.common.privacy.pricing.price import composed_price, price, price_budget
from veiltab.common.schemes import scheme_of

EPSILON, DELTA = Decimal(1), Decimal("1e-6")
CELLS = (4, 6, 6, 30)
EVERYONE = scheme_of("wor", population=44_000, sample=44_000)


def squares(prices: WorkloadPrices, repeats: int) -> tuple[Decimal, Decimal]:
    """Return the sums of mu^2 and of the slacks, the repeats all taken."""
    again = [] if prices.again is None else [prices.again] * repeats
    every = [*prices.first, *again]
    return sum((p.mu**2 for p in every), Decimal(0)), sum((p.slack for p in every), Decimal(0))


@pytest.mark.parametrize("repeats", [0, 1, 3])
def test_the_prices_use_up_the_budget_and_never_exceed_it(repeats: int) -> None:
    budget = price_budget(EPSILON, DELTA)
    mu, slack = squares(workload_prices(CELLS, repeats, EPSILON, DELTA), repeats)
    assert budget.mu**2 * Decimal("0.9989") < mu <= budget.mu**2 * Decimal("0.9991")
    assert budget.slack * Decimal("0.9989") < slack <= budget.slack * Decimal("0.9991")


def test_shares_go_with_the_third_root_of_the_cells_and_repeats_share_half() -> None:
    once, twice = (workload_prices(CELLS, repeats, EPSILON, DELTA) for repeats in (0, 3))
    assert float(once.first[3].mu / once.first[0].mu) ** 2 == pytest.approx((30 / 4) ** (1 / 3), rel=1e-5)
    assert once.again is None
    assert twice.again is not None
    for first, half in zip(once.first, twice.first, strict=True):
        assert float(half.mu / first.mu) ** 2 == pytest.approx(0.5, rel=1e-5)
    assert float(twice.again.mu / price_budget(EPSILON, DELTA).mu) ** 2 == pytest.approx(1 / 6, rel=2e-3)


def test_every_mechanism_keeps_its_price_and_hardly_costs_less() -> None:
    prices = workload_prices(CELLS, 2, EPSILON, DELTA)
    first, again = workload_mechanisms(EVERYONE, CELLS, prices)
    assert prices.again is not None
    assert first[1] is first[2]  # one is worked out for each kind
    for cells, mechanism, limit in [
        *zip(CELLS, first, prices.first, strict=True),
        *((cells, mechanism, prices.again) for cells, mechanism in zip(CELLS, again, strict=True)),
    ]:
        kept = price(ReleaseDescription(scheme=EVERYONE, cells=cells, gamma=mechanism.gamma), limit.slack)
        assert limit.mu * Decimal("0.998") < kept.mu <= limit.mu


def test_without_repeats_there_is_no_mechanism_for_them() -> None:
    assert workload_mechanisms(EVERYONE, CELLS, workload_prices(CELLS, 0, EPSILON, DELTA))[1] == ()


def test_the_expected_distance_is_that_of_simulated_estimates() -> None:
    rows, cells, gamma, repetitions = 600, 12, 9.0, 4000
    rng = np.random.default_rng(3)
    q = gamma + cells - 1
    truth = np.full(cells, rows // cells)
    kept = rng.binomial(truth, (gamma - 1) / q, size=(repetitions, cells))
    noise = np.array([rng.multinomial(rows - some.sum(), np.full(cells, 1 / cells)) for some in kept])
    estimates = (q * (kept + noise) / rows - 1) / (gamma - 1)
    distances = np.abs(estimates - truth / rows).sum(axis=1) / 2
    expected = expected_distance(population=rows, sample=rows, cells=cells, gamma=gamma)
    # Six standard errors, and 1 % for the normal approximation.
    tolerance = 6 * float(distances.std()) / sqrt(repetitions) + 0.01 * expected
    assert float(distances.mean()) == pytest.approx(expected, abs=tolerance)


def test_a_foreseen_error_is_close_to_that_of_the_mechanism_that_runs() -> None:
    prices = workload_prices(CELLS, 0, EPSILON, DELTA)
    for cells, mechanism, error in zip(
        CELLS, workload_mechanisms(EVERYONE, CELLS, prices)[0], foreseen_errors(EVERYONE, CELLS, prices), strict=True
    ):
        exact = expected_distance(population=44_000, sample=44_000, cells=cells, gamma=float(mechanism.gamma))
        assert error == pytest.approx(exact, rel=0.03)


def test_so_many_tables_that_a_typical_one_says_nothing_are_refused_with_how_many_would_be_carried() -> None:
    scheme = scheme_of("wor", population=2000, sample=2000)
    check_carries(scheme, [30] * 10, workload_prices([30] * 10, 0, EPSILON, DELTA))
    prices = workload_prices([30] * 500, 0, EPSILON, DELTA)
    with pytest.raises(
        InvalidInputError, match=r"too small for 500 tables: .* it would carry at most (\d+) such"
    ) as refused:
        check_carries(scheme, [30] * 500, prices)
    carried = int(str(refused.value).split("carry at most ")[1].split()[0])
    mu = float(price_budget(EPSILON, DELTA).mu)
    assert foreseen_error(scheme, 30, mu / sqrt(carried)) <= MOST_ERROR * 1.001
    assert foreseen_error(scheme, 30, mu / sqrt(carried + 1)) > MOST_ERROR * 0.999
    with pytest.raises(InvalidInputError, match="carry not even one such table"):
        check_carries(
            scheme_of("wor", population=5, sample=5),
            [90] * 3,
            workload_prices([90] * 3, 0, Decimal("0.01"), Decimal("1e-9")),
        )


# What an adversary gains who chooses the second table after seeing the first results: enumerated, for two tables of two
# cells over two rows, and one repeat. A row holds one symbol of each table.

Law = dict[tuple[int, ...], Fraction]


def histogram(symbols: tuple[int, ...], mechanism: GammaDiagonal) -> Law:
    """Return the law of how many published rows of a table of two cells are 1; a secret order says no more."""
    law: Law = defaultdict(Fraction)
    change = (1 - mechanism.retention) / 2
    for published in product(range(2), repeat=len(symbols)):
        chance = Fraction(1)
        for true, shown in zip(symbols, published, strict=True):
            chance *= 1 - change if true == shown else change
        law[sum(published),] += chance
    return law


def transcripts(rows: tuple[tuple[int, int], ...], first: GammaDiagonal, again: GammaDiagonal) -> dict[int, dict]:  # type: ignore[type-arg]
    """Return, for each table that may be repeated, the law of (both first results, the repeat)."""
    columns = [tuple(row[table] for row in rows) for table in range(2)]
    firsts = {
        one + other: p * r
        for (one, p), (other, r) in product(*(histogram(column, first).items() for column in columns))
    }
    return {
        table: {
            (results, repeat): p * r
            for (results, p), (repeat, r) in product(firsts.items(), histogram(columns[table], again).items())
        }
        for table in range(2)
    }


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.05"), ("2", "0.01"), ("0.5", "0.2")])
def test_a_choice_after_the_first_results_stays_within_what_was_asked_for(epsilon: str, delta: str) -> None:
    asked = Decimal(epsilon), Decimal(delta)
    scheme = scheme_of("wor", population=2, sample=2)
    prices = workload_prices((2, 2), 1, *asked)
    (first, _), (again, _) = workload_mechanisms(scheme, (2, 2), prices)
    assert prices.again is not None
    bound = composed_price([*prices.first, prices.again])
    cells = ((0, 0), (0, 1), (1, 0), (1, 1))
    laws = {rows: transcripts(rows, first, again) for rows in product(cells, repeat=2)}
    checked = 0
    for other in cells:
        for one, two in permutations(cells, 2):
            mine, theirs = laws[one, other], laws[two, other]
            for at in (0.0, float(epsilon) / 2, float(epsilon), 1.5 * float(epsilon)):
                e = Fraction(exp(at))
                # The best adversary repeats, after each pair of first results, the table that tells most.
                gains = {
                    results: max(
                        sum(
                            (
                                max(p - e * theirs[table][key], Fraction(0))
                                for key, p in law.items()
                                if key[0] == results
                            ),
                            Fraction(0),
                        )
                        for table, law in mine.items()
                    )
                    for results in {key[0] for key in mine[0]}
                }
                worst = float(sum(gains.values()))
                assert worst <= bound.delta(at)
                assert at != float(epsilon) or worst <= float(delta)
                checked += 1
    assert checked == 4 * 12 * 4
