"""Servers, honest and not: what each publishes for the ciphertext that it was sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.common.release.changed_canaries import columns_of
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.release.receipts.canary_changes import CanaryChanges, ChangesCollector
from veiltab.common.release.receipts.noise_tests import CanaryOrders

Rows = NDArray[np.int64]
"""(rows, columns) of symbols."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a server was sent, and the noise that it is to add.

    Args:
        rows: of ciphertext, data and canaries.
        sizes: of the columns.
        r: the replacement probability.
        coins: of the server.
    """

    rows: Rows
    sizes: tuple[int, ...]
    r: float
    coins: Generator

    @property
    def changing(self) -> float:
        """The probability that an honest server changes a row."""
        return self.r * (1 - 1 / prod(self.sizes))

    def uniform(self) -> Rows:
        return self.coins.integers(0, self.sizes, self.rows.shape)

    def chosen(self, probability: float | NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return rows chosen by a coin each."""
        return self.coins.random(len(self.rows)) < probability

    def replaced(self, chosen: NDArray[np.bool_], by: Rows | None = None) -> Rows:
        """Return the rows with those chosen replaced, by uniform ones unless said otherwise."""
        return np.where(chosen[:, None], self.uniform() if by is None else by, self.rows)

    def honest_offsets(self) -> Rows:
        return (self.replaced(self.chosen(self.r)) - self.rows) % self.sizes

    def shifted(self, offsets: Rows) -> Rows:
        return (self.rows + offsets) % self.sizes


Server = Callable[[Sent], Rows]


def honest(sent: Sent) -> Rows:
    return sent.replaced(sent.chosen(sent.r))


def half_of_all(sent: Sent) -> Rows:
    return sent.replaced(sent.chosen(sent.r / 2))


def first_column_raw(sent: Sent) -> Rows:
    return _raw(sent, 0, honest(sent))


def first_column_raw_in_half_the_rows(sent: Sent) -> Rows:
    return _raw(sent, 0, honest(sent), sent.chosen(0.5))


def last_column_raw_in_half_the_rows(sent: Sent) -> Rows:
    return _raw(sent, -1, honest(sent), sent.chosen(0.5))


def first_column_raw_and_the_rest_raised(sent: Sent) -> Rows:
    """As many canaries change as are expected."""
    others = prod(sent.sizes[1:])
    return _raw(sent, 0, sent.replaced(sent.chosen(sent.changing / (1 - 1 / others))))


def always_one_more_in_all_columns(sent: Sent) -> Rows:
    return sent.shifted(np.ones_like(sent.rows) * sent.chosen(sent.changing)[:, None])


def always_one_more_where_a_column_changes(sent: Sent) -> Rows:
    return sent.shifted((sent.honest_offsets() != 0).astype(np.int64))


def small_offsets_only(sent: Sent) -> Rows:
    return sent.shifted(_other_offsets(sent, lambda size: sent.coins.integers(1, size // 2 + 1, len(sent.rows))))


def even_offsets_only(sent: Sent) -> Rows:
    """Of an odd size every offset is a multiple of two."""

    def even(size: int) -> Rows:
        step = 1 if size % 2 else 2
        return step * sent.coins.integers(1, size // step, len(sent.rows))

    return sent.shifted(_other_offsets(sent, even))


def columns_apart(sent: Sent) -> Rows:
    """Each by coins of its own."""
    chosen = sent.coins.random(sent.rows.shape) < sent.r
    return np.where(chosen, sent.uniform(), sent.rows)


def never_the_same_symbol_again(sent: Sent) -> Rows:
    others = np.stack([sent.coins.integers(1, size, len(sent.rows)) for size in sent.sizes], axis=1)
    return sent.shifted(others * sent.chosen(sent.changing)[:, None])


def one_random_word_for_all_columns(sent: Sent) -> Rows:
    words = sent.coins.random(len(sent.rows))[:, None]
    return sent.replaced(sent.chosen(sent.r), (words * sent.sizes).astype(np.int64))


def only_the_upper_half_is_replaced(sent: Sent) -> Rows:
    size = sent.sizes[-1]
    is_upper = sent.rows[:, -1] >= -(-size // 2)
    return sent.replaced(is_upper & sent.chosen(sent.r * size / (size // 2)))


def only_the_lower_half_is_published(sent: Sent) -> Rows:
    lower = [*sent.sizes[:-1], -(-sent.sizes[-1] // 2)]
    return sent.replaced(sent.chosen(sent.r), sent.coins.integers(0, lower, sent.rows.shape))


def first_half_of_the_places_raw(sent: Sent) -> Rows:
    return sent.replaced(sent.chosen(2 * sent.r * (_numbers(sent) >= len(sent.rows) // 2)))


def odd_rows_alone(sent: Sent) -> Rows:
    return sent.replaced(sent.chosen(2 * sent.r * (_numbers(sent) % 2)))


def one_coin_for_4096_rows(sent: Sent) -> Rows:
    return sent.replaced(np.repeat(sent.chosen(sent.r), 4096)[: len(sent.rows)])


def the_same_vector_for_64_rows(sent: Sent) -> Rows:
    offsets = np.repeat(sent.uniform(), 64, axis=0)[: len(sent.rows)]
    return sent.shifted(offsets * sent.chosen(sent.r)[:, None])


def the_same_noise_every_1024_rows(sent: Sent) -> Rows:
    return sent.shifted(sent.honest_offsets()[_numbers(sent) % 1024])


def _numbers(sent: Sent) -> Rows:
    return np.arange(len(sent.rows))


def _raw(sent: Sent, column: int, published: Rows, where: NDArray[np.bool_] | bool = True) -> Rows:  # noqa: FBT001, FBT002 - rows
    published[:, column] = np.where(where, sent.rows[:, column], published[:, column])
    return published


def _other_offsets(sent: Sent, drawn: Callable[[int], Rows]) -> Rows:
    """Return offsets where an honest server has some, but drawn otherwise."""
    offsets: Rows = sent.honest_offsets() != 0
    return offsets * np.stack([drawn(size) for size in sent.sizes], axis=1)


@dataclass(frozen=True, slots=True)
class Played:
    """A release as the tests see it.

    Args:
        changes: of its canaries.
        orders: of their places.
    """

    changes: CanaryChanges
    orders: CanaryOrders


def played(  # noqa: PLR0913 - a release
    server: Server,
    sizes: tuple[int, ...],
    *,
    rows: int,
    canaries: int,
    r: Fraction | float,
    coins: Generator,
    sampled: Callable[[Rows], NDArray[np.bool_]] | None = None,
) -> Played:
    """Play a server.

    Args:
        server: what it does.
        sizes: of the columns.
        rows: of data.
        canaries: beside these.
        r: of the server.
        coins: of everybody.
        sampled: of the rows that were sent, those that the server publishes; None for all.
    """
    sent = coins.integers(0, sizes, (rows + canaries, len(sizes)))
    published = server(Sent(sent, sizes, float(r), coins))
    is_canary = np.zeros(len(sent), np.bool_)
    is_canary[coins.choice(len(sent), canaries, replace=False)] = True
    places = np.flatnonzero(is_canary if sampled is None else is_canary & sampled(sent))
    return seen(sent, published, places, sizes)


def seen(sent: Rows, published: Rows, places: Rows, sizes: tuple[int, ...]) -> Played:
    """Return a release as the tests see it, from all its rows and the places of the published canaries."""
    collector = ChangesCollector(columns_of(sizes), most=len(places))
    collector.compare(0, symbols_of(published[places], sizes), symbols_of(sent[places], sizes))
    changes = collector.changes()
    assert changes is not None
    return Played(changes, CanaryOrders(places=places, rows=len(sent)))


def symbols_of(rows: Rows, sizes: Sequence[int]) -> list[Symbols]:
    return [cast("Symbols", rows[:, place].astype(symbol_dtype(size))) for place, size in enumerate(sizes)]
