"""The curators' noise and canaries: the same at every curator, of the law of the spec, and gone without a trace."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.conftest import noise_with
from veiltab.common.core.canaries import canary_symbols, is_data, with_canaries
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT, replace_symbols
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.release.modes import Sampling
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn

SEED = bytes(range(32))
KEYS = (bytes(32), bytes([7]) * 32)
"""Replacement keys of two curators."""


def noise(rows: int, replacement: int, canaries: int = 0, **changes: Any) -> CuratorsNoise:  # noqa: ANN401 - a spec's
    """Return the noise of a release of so many rows."""
    changes = {"population": rows, "sample": rows, "server_replacement": UNIT // 2} | changes
    return noise_with(SEED, curator_replacement=replacement, canaries=canaries, **changes)


def applied(one: CuratorsNoise, attribute: str, column: Symbols, size: int, key: bytes) -> Symbols:
    return np.concatenate(
        list(one.with_noise_and_canaries(PlainColumn(attribute=attribute, symbols=column, size=size), key))
    )


def coins_of(one: CuratorsNoise, rows: int) -> NDArray[np.bool_]:
    return np.concatenate([coins for _, coins in one.coins(rows)])


def test_known_answers() -> None:
    one = noise(12, UNIT // 2, canaries=3)
    assert one.coin_key.hex() == "cdc3e6c63d1e2b45bcc8d94717779bd9011ce278c74d83741e3c8e5112d95f6c"
    assert one.canary_key.hex() == "2c0e36f654375e626b4d329a555069a4f49a059cc189eb511f0134c0ccddf078"
    assert one.places.all().tolist() == [5, 12, 14]
    assert np.flatnonzero(coins_of(one, 12)).tolist() == [5, 6, 7, 8, 9]
    column = applied(one, "sex", np.zeros(12, np.uint8), 5, KEYS[1])
    assert column.tolist() == [0, 0, 0, 0, 0, 1, 3, 4, 1, 0, 4, 0, 0, 0, 4]
    assert column[one.places.all()].tolist() == canary_symbols(one.canary_key, "sex", 5, 3).tolist()


@pytest.mark.parametrize("size", [2, 5, 256, 300])
def test_every_curator_replaces_the_rows_whose_coins_say_so_by_symbols_of_its_own(size: int) -> None:
    rows = CHUNK + 1000
    one = noise(rows, UNIT // 3, canaries=50)
    coins = coins_of(one, rows)
    column: Symbols = np.empty(rows, symbol_dtype(size))
    column[:] = np.arange(rows) % size
    kept = column.copy()
    drawn: list[Symbols] = []
    for attribute, key in zip(("sex", "salary"), KEYS, strict=True):
        data = applied(one, attribute, column, size, key)[is_data(one.places.all(), rows + 50)]
        assert np.array_equal(data[~coins], column[~coins])
        drawn.append(data[coins])
    assert np.array_equal(column, kept)
    assert not np.array_equal(drawn[0], drawn[1])
    # Uniform, whatever was replaced, and independent between the curators. Alpha: 1e-6, seeds fixed.
    cells = np.bincount(drawn[0].astype(np.int64) * size + drawn[1], minlength=size * size)
    before = np.bincount(drawn[0].astype(np.int64) * size + column[coins], minlength=size * size)
    for counts in (cells, before):
        assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("replacement", [1, UNIT // 10, UNIT // 2, UNIT - 1])
def test_the_law_of_the_coins(replacement: int) -> None:
    rows = 2 * CHUNK
    replaced = int(coins_of(noise(rows, replacement), rows).sum())
    assert stats.binomtest(replaced, rows, replacement / UNIT).pvalue > 1e-6


def test_coins_are_of_data_rows_whatever_the_canaries() -> None:
    with_some, without = noise(1000, UNIT // 2, canaries=400), noise(1000, UNIT // 2)
    assert np.array_equal(coins_of(with_some, 1000), coins_of(without, 1000))
    column: Symbols = (np.arange(1000) % 5).astype(np.uint8)
    data = applied(with_some, "sex", column, 5, KEYS[0])[is_data(with_some.places.all(), 1400)]
    assert np.array_equal(data, applied(without, "sex", column, 5, KEYS[0]))


def test_without_noise_data_stays_and_no_key_is_needed() -> None:
    column: Symbols = (np.arange(1000) % 5).astype(np.uint8)
    assert np.array_equal(applied(noise(1000, 0), "sex", column, 5, b""), column)
    whole = applied(noise(1000, 0, canaries=7), "sex", column, 5, b"")
    assert np.array_equal(whole[is_data(noise(1000, 0, canaries=7).places.all(), 1007)], column)
    with pytest.raises(InvalidInputError, match="the key has 0 bytes"):
        applied(noise(1000, 1), "sex", column, 5, b"")


def test_where_the_server_samples_everybody_has_a_coin_and_canaries_are_among_all() -> None:
    one = noise(1000, UNIT // 2, canaries=100, sampling=Sampling.SERVER, sample=10)
    assert len(applied(one, "sex", np.zeros(1000, np.uint8), 5, KEYS[0])) == 1100
    assert one.places.all().max() > 110


def test_a_symbol_outside_its_alphabet_is_refused_and_not_replaced() -> None:
    with pytest.raises(IntegrityError, match="1 of 3 symbols lie outside"):
        applied(noise(3, UNIT - 1), "sex", np.array([0, 5, 1], np.uint8), 5, KEYS[0])


def test_nothing_secret_is_shown() -> None:
    one = noise(10, UNIT // 2, canaries=3)
    assert repr(one.coin_key) not in repr(one)
    assert "key" not in repr(one)
    assert "places" not in repr(one)


@pytest.mark.parametrize(("replacement", "canaries"), [(0, 0), (0, 7000), (UNIT // 3, 0), (UNIT // 3, 7000)])
def test_chunks_are_those_of_the_whole_column(replacement: int, canaries: int) -> None:
    rows = 2 * CHUNK + 1000
    one = noise(rows, replacement, canaries=canaries)
    column: Symbols = (np.arange(rows) % 5).astype(np.uint8)
    noisy: Symbols = column.copy()
    for chunk, (part, coins) in enumerate(one.coins(rows)):
        replace_symbols(noisy[part], 5, coins, CipherStream(KEYS[0]), noisy[part], label=0, chunk=chunk)
    whole = with_canaries(noisy, one.places.all(), canary_symbols(one.canary_key, "sex", 5, canaries))
    chunks = list(one.with_noise_and_canaries(PlainColumn(attribute="sex", symbols=column, size=5), KEYS[0]))
    assert [len(chunk) for chunk in chunks] == [CHUNK, CHUNK, 1000 + canaries]
    assert np.array_equal(np.concatenate(chunks), whole)
