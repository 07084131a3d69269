"""How many canaries are planned, to the unit, and that so many show what they are planned for, by exact sums."""

import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import ceil, comb, prod
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from tests.conftest import spec_with
from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.privacy.cards.card import card_of
from veiltab.common.privacy.planning.planning import plan_release
from veiltab.common.release.guarantees import release_card
from veiltab.common.release.modes import Sampling
from veiltab.common.release.receipts.canary_plan import (
    MOST_PLANNED,
    HowTested,
    ServerTest,
    canaries_to_sample,
    planned_canaries,
    sampled_canaries,
    server_test,
    shown_by,
)
from veiltab.common.release.spec import release_of

Sizes = tuple[int, ...]

JOINT = Fraction(5, 10**10)
AMOUNT, COLUMN = Fraction(1, 2), Fraction(1, 5)
"""Shares of the false alarm; of each half lies below."""


def server_of(population: int, sizes: Sizes, epsilon: str, delta: str) -> GammaDiagonal:
    return plan_release(
        population=population, cells=prod(sizes), epsilon=Decimal(epsilon), delta=Decimal(delta)
    ).mechanism.server


TABLE = [
    # population, sizes, epsilon, delta; canaries, largest share of the noise that is found in thousandths
    ((45_222, (3, 8), "0.5", "1e-6"), 8_880, 500),
    ((3_000, (2, 2), "2", "1e-5"), 67_866, 500),
    ((3_000, (2, 2), "1", "1e-5"), 30_667, 500),
    ((45_222, (2, 2), "1", "1e-6"), 336_618, 500),
    ((45_222, (2, 12), "0.5", "1e-6"), 13_858, 500),
    ((300, (4, 6), "1", "1e-4"), 1_024, 541),
    ((10**6, (8, 10), "0.5", "1e-7"), 41_177, 502),
    ((10**6, (2, 2), "1", "1e-6"), MOST_PLANNED, 0),
    ((10**8, (4, 4), "1", "1e-9"), 50_124_347, 502),
    ((3_000, (7,), "1", "1e-5"), 9_068, 502),
]


@pytest.mark.parametrize(("release", "canaries", "shown"), TABLE, ids=[str(row[0]) for row in TABLE])
def test_the_plan_is_that_of_the_table(release: tuple[int, Sizes, str, str], canaries: int, shown: int) -> None:
    population, sizes, *_ = release
    server = server_of(*release)
    for order in permutations(sizes):
        found = planned_canaries(server, order, population)
        assert found == canaries
        assert shown_by(server, order, found).share == Fraction(shown, 1000)


@cache
def below(n: int, p: Fraction, count: int) -> Fraction:
    """P(Bin(n, p) <= count), term by term, as whole numbers."""
    hits, all_ = p.numerator, p.denominator
    misses = all_ - hits
    total = sum(comb(n, j) * hits**j * misses ** (count - j) for j in range(count + 1))
    return Fraction(total * misses ** (n - count), all_**n) if n >= count else Fraction(1)


@cache
def fewest(n: int, p: Fraction, level: Fraction) -> int:
    """The least count that is accepted."""
    count, term, tail = 0, (1 - p) ** n, (1 - p) ** n
    while tail <= level:
        count += 1
        term *= p / (1 - p) * Fraction(n - count + 1, count)
        tail += term
    return count


def shows_less(canaries: int, p: Fraction, share: Fraction) -> bool:
    """Whether the amount of noise shows that only a share was added, of all columns."""
    low = fewest(canaries, p, AMOUNT * JOINT / 2)
    return low > 0 and below(canaries, p * share, low - 1) >= Fraction(999, 1000)


def miss_of_raw(canaries: int, r: Fraction, sizes: Sizes, size: int, share: Fraction) -> float:
    """Return the probability that the column test misses a column that has a share of its noise, by the exact sum."""
    cells = prod(sizes)
    some, own, rest = 1 - Fraction(1, cells), 1 - Fraction(1, size), 1 - Fraction(size, cells)
    changes = share * some + (1 - share) * rest
    changed = np.arange(1, canaries + 1)
    low = binom.ppf(float(COLUMN * JOINT / len(sizes) / 2), changed, float(own / some))
    misses = binom.sf(low - 1, changed, float(share * own / changes))
    return float(binom.pmf(changed, canaries, float(r * changes)) @ misses)


@pytest.mark.parametrize("release", [TABLE[1][0], TABLE[4][0]], ids=str)
def test_planned_canaries_find_any_column_raw_in_half_of_the_rows(release: tuple[int, Sizes, str, str]) -> None:
    population, sizes, *_ = release
    server = server_of(*release)
    canaries, r = planned_canaries(server, sizes, population), 1 - server.retention
    misses = [miss_of_raw(canaries, r, sizes, size, Fraction(1, 2)) for size in set(sizes)]
    assert max(misses) <= 0.001
    # A fifth fewer do not.
    assert max(miss_of_raw(canaries * 4 // 5, r, sizes, size, Fraction(1, 2)) for size in set(sizes)) > 0.001


@pytest.mark.parametrize("canaries", [200, 500])
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 12), (2, 2, 3)], ids=str)
def test_a_column_is_missed_at_the_share_that_is_shown_with_a_thousandth_at_the_most(
    sizes: Sizes, canaries: int
) -> None:
    server = GammaDiagonal(cells=prod(sizes), replacement=UNIT // 3)
    shown = shown_by(server, sizes, canaries).share
    if shown:
        r = 1 - server.retention
        some = 1 - Fraction(1, prod(sizes))
        assert shows_less(canaries, r * some, shown)
        misses = [miss_of_raw(canaries, r, sizes, size, shown) for size in set(sizes)]
        assert max(misses) <= 0.001


@pytest.mark.parametrize("release", [TABLE[0][0], TABLE[1][0], TABLE[5][0]], ids=str)
def test_no_share_that_is_left_out_passes_often_enough_to_reach_delta(release: tuple[int, Sizes, str, str]) -> None:
    population, sizes, epsilon, delta = release
    plan = plan_release(population=population, cells=prod(sizes), epsilon=Decimal(epsilon), delta=Decimal(delta))
    server = plan.mechanism.server
    canaries = planned_canaries(server, sizes, plan.sample)
    shown = shown_by(server, sizes, canaries).share
    card = card_of(plan.release, delta=Decimal(delta), least_noise=shown).bounds[0].if_omitted
    assert card is not None
    p = float((1 - server.retention) * (1 - Fraction(1, prod(sizes))))
    low = binom.ppf(float(AMOUNT * JOINT / 2), canaries, p)
    worst = 0.0
    for share in range(0, ceil(shown * 1000), 20):
        view = plan.release.seen_with_share(Fraction(share, 1000))
        assert view is not None
        assert view.order_certificate is not None
        passes = binom.sf(low - 1, canaries, p * share / 1000)
        worst = max(worst, passes * view.order_certificate.delta(float(card[0])))
    assert worst <= float(delta) / 1000


@pytest.mark.long
@pytest.mark.parametrize("release", [TABLE[5][0], (3_000, (8, 10), "2", "1e-5")], ids=str)
def test_half_of_the_noise_is_found_where_the_plan_says_enough(release: tuple[int, Sizes, str, str]) -> None:
    population, sizes, *_ = release
    server = server_of(*release)
    p = (1 - server.retention) * (1 - Fraction(1, prod(sizes)))
    assert shows_less(planned_canaries(server, sizes, population), p, Fraction(1, 2))


SHOWN = [
    ((5,), UNIT // 3, 1024),
    ((100,), UNIT, 1024),
    ((7,), UNIT // 10, 250),
    ((7,), UNIT // 10, 400),
    ((65_536,), UNIT - 1, 300),
    ((8,), UNIT // 3, 0),
]


@pytest.mark.parametrize(("sizes", "replacement", "canaries"), SHOWN, ids=str)
def test_of_one_column_the_share_that_is_shown_is_that_of_the_amount(
    sizes: Sizes, replacement: int, canaries: int
) -> None:
    server = GammaDiagonal(cells=prod(sizes), replacement=replacement)
    p = Fraction(replacement, UNIT) * (1 - Fraction(1, prod(sizes)))
    found = shown_by(server, sizes, canaries).share
    assert shown_by(server, (*sizes, 1), canaries).share == found
    beyond = found + Fraction(1, 1000)
    assert not shows_less(canaries, p, beyond) if found else not shows_less(canaries, p, Fraction(0))
    assert found == 0 or shows_less(canaries, p, found)


@pytest.mark.parametrize("sizes", [(2,), (5,), (4, 6), (3, 2, 4), (65_536, 2)], ids=str)
@pytest.mark.parametrize("replacement", [1, 2, 5, 1000, 2**20, 2**40, UNIT - 1, UNIT])
def test_every_release_has_a_plan_and_a_share_that_is_shown(sizes: Sizes, replacement: int) -> None:
    server = GammaDiagonal(cells=prod(sizes), replacement=replacement)
    rows = 10**8
    found = planned_canaries(server, sizes, rows)
    assert found == (rows if replacement <= 2**40 else 1024)
    expected = HowTested.ENOUGH if replacement > 2**40 else HowTested.TOO_LITTLE
    assert shown_by(server, sizes, found).tested is expected


@pytest.mark.parametrize(
    ("canaries", "shown", "tested", "words"),
    [
        (0, "0", HowTested.NOT, "not tested: nothing shows that it adds its noise"),
        (1000, "0", HowTested.TOO_LITTLE, "too little: one that adds no noise, or leaves a column"),
        (1000, ".499", HowTested.TOO_LITTLE, "leaves out 0.501 or more of its noise, of all columns"),
        (1000, ".5", HowTested.ENOUGH, "tested enough: one that leaves out 0.5 or more of its noise"),
    ],
)
def test_a_test_says_what_it_finds(canaries: int, shown: str, tested: HowTested, words: str) -> None:
    test = ServerTest(canaries=canaries, share=Fraction(shown))
    assert test.tested is tested
    assert words in test.sentence
    assert ("may pass" in test.sentence) == (tested is HowTested.TOO_LITTLE)


def test_card_and_documents_say_the_same_words_of_what_was_tested() -> None:
    test = ServerTest(canaries=5000, share=Fraction(1, 2))
    found = test.sentence.partition(": ")[2].replace("0.5", "half")
    root = Path(__file__).parents[3]
    for page in ("README.md", "docs/threat-model.md", "docs/protection.md"):
        assert found in " ".join((root / page).read_text("utf-8").split()), page
    spec = spec_with(canaries=20_000)
    assert release_card(release_of(spec)).bounds[0].note.endswith(f"; {server_test(spec).sentence}")


@pytest.mark.parametrize("needed", [1024, 5000, 100_000])
def test_a_server_that_samples_publishes_as_many_as_are_needed(needed: int) -> None:
    n, m = 10**6, 300_000
    hidden = canaries_to_sample(needed, population=n, sample=m)
    spec = spec_with(population=n, sample=m, canaries=hidden, sampling=Sampling.SERVER)
    fewest_published, _ = sampled_canaries(spec)
    assert needed <= fewest_published <= needed + 16 * needed**0.5
    assert sampled_canaries(spec_with(canaries=7)) == (7, 7)


PROGRAM = """
from veiltab.common.core.mechanism import GammaDiagonal
from veiltab.common.release.receipts.canary_plan import planned_canaries, shown_by
server = GammaDiagonal(cells=360, replacement=2**58 + 12345)
print(planned_canaries(server, (3, 5, 2, 12), 10**7), shown_by(server, (3, 5, 2, 12), 5000))
"""


def test_another_process_plans_the_same() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(answers) == 1
