"""What no test of canaries sees: a server that draws its noise to a sum that the desk knows.

It documents a limit. Whatever the server does, the desk faces the curators' noise, and that alone.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from numpy.random import Generator

from tests.common.release.changed_canaries import noise_tests
from tests.common.release.lying_servers import Played, Rows, Sent, honest, seen
from veiltab.common.core.numbers.counts import is_accepted
from veiltab.common.release.receipts.noise_tests import JOINT_LEVEL, levels

SIZES = (4, 6)
PEOPLE, CANARIES = 20, 1024
R = Fraction(3, 10)
TIMES = 100


def of_sum_zero(sent: Sent) -> Rows:
    """Honest noise, but for one row: the offsets of all rows together are 0."""
    published = honest(sent)
    row = sent.coins.integers(len(published))
    published[row] = (published[row] - (published - sent.rows).sum(axis=0)) % sent.sizes
    return published


@dataclass(frozen=True)
class View:
    """A release.

    Args:
        table: a row a person; the first is the target.
        released: what the desk decrypts, in secret order.
        shift: of all canaries together, which the desk sees.
        tested: what the tests see.
    """

    table: Rows
    released: Rows
    shift: Rows
    tested: Played


def release(coins: Generator, curator_replacement: float) -> View:
    table = coins.integers(0, SIZES, (PEOPLE, len(SIZES)))
    replaced = coins.random(PEOPLE) < curator_replacement
    uploaded = np.where(replaced[:, None], coins.integers(0, SIZES, table.shape), table)
    places = np.sort(coins.choice(PEOPLE + CANARIES, CANARIES, replace=False))
    is_data = ~np.isin(np.arange(PEOPLE + CANARIES), places)
    pads = coins.integers(0, SIZES, table.shape)
    sent = coins.integers(0, SIZES, (PEOPLE + CANARIES, len(SIZES)))
    sent[is_data] = (coins.permutation(uploaded) + pads) % SIZES
    published = of_sum_zero(Sent(sent, SIZES, float(R), coins))
    return View(
        table=table,
        released=(published[is_data] - pads) % SIZES,
        shift=(published[places] - sent[places]).sum(axis=0),
        tested=seen(sent, published, places, SIZES),
    )


def guess(view: View) -> Rows:
    """The target's row, for a desk that knows all others: what is left of the sum of all."""
    cell: Rows = (view.released.sum(axis=0) + view.shift - view.table[1:].sum(axis=0)) % SIZES
    return cell


def passes(view: View) -> bool:
    tests = noise_tests(view.tested.changes, view.tested.orders, R)
    return all(is_accepted(one.law, one.count, *levels(one.family, SIZES, JOINT_LEVEL)) for one in tests)


def recovered(curator_replacement: float) -> int:
    """How many of a hundred targets the desk names; the server passes all tests each time."""
    coins, found = np.random.default_rng([20, 24]), 0
    for _ in range(TIMES):
        view = release(coins, curator_replacement)
        assert passes(view)
        found += bool((guess(view) == view.table[0]).all())
    return found


def test_noise_of_a_known_sum_passes_and_shows_the_desk_a_row_without_the_curators_noise() -> None:
    assert recovered(curator_replacement=0.0) == TIMES


@pytest.mark.parametrize("curator_replacement", [0.3, 0.9])
def test_with_the_curators_noise_its_desk_guesses(curator_replacement: float) -> None:
    # One row that they replace hides the sum: a guess is right once in 24 times, or where they replace none.
    luck = (1 - curator_replacement) ** PEOPLE + 1 / prod(SIZES)
    assert recovered(curator_replacement) < TIMES * luck + 10
