"""What desk and server together see of a column of several holders: the sum of the parts, and nothing of a part."""

from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from tests.conftest import spec_with
from veiltab.common.core.canaries import canary_symbols, is_data
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import UNIT
from veiltab.common.core.pads import ZeroShare, decrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import add_holders
from veiltab.common.release.table_spec import Column
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn, canary_key, curators_noise
from veiltab.curator.records.store import CuratorStore

HOLDERS = ("north", "south", "west")
SIZE, ABSENT = 4, 3
SEED = bytes(range(32))
ROWS, CANARIES = 60_000, 500
SPEC = spec_with(
    columns=(Column(attribute="stay", owner="north", others=("south", "west"), size=SIZE),),
    population=ROWS,
    sample=ROWS,
    canaries=CANARIES,
    curator_replacement=UNIT // 2,
)
VALUES = np.random.default_rng(1).integers(0, ABSENT, ROWS).astype(np.uint8)
"""The value of each person, whom one holder has."""


def shares_of(holder: str) -> ZeroShare:
    """Return a holder's share of zero, from a key of each two."""
    keys = {pair: bytes([number]) * 32 for number, pair in enumerate(combinations(HOLDERS, 2))}
    return ZeroShare(
        plus=tuple(key for pair, key in keys.items() if pair[0] == holder),
        minus=tuple(key for pair, key in keys.items() if pair[1] == holder),
    )


def parts_without_pads(folder: Path, noise: CuratorsNoise, *, has_shares: bool) -> list[Symbols]:
    """Return each holder's part as desk and server can see it: the ciphertext, with its pad taken off."""
    parts = list[Symbols]()
    for number, holder in enumerate(HOLDERS):
        own = np.where(np.arange(ROWS) % len(HOLDERS) == number, VALUES, ABSENT).astype(np.uint8)
        (folder / holder).mkdir()
        with closing(CuratorStore(folder / f"{holder}.sqlite")) as store:
            encryption = ColumnEncryption(store, folder / holder, SPEC.release_id)
            share = shares_of(holder) if has_shares else ZeroShare()
            plain = PlainColumn(attribute="stay", symbols=own, size=SIZE, share=share, has_canaries=number == 0)
            encryption.encrypt([plain], SPEC.pad, noise)
            pad = store.keys.pad(SPEC.release_id, "stay")
        assert pad is not None
        part: Symbols = np.fromfile(encryption.ciphertext("stay"), np.uint8)
        decrypt(part, SIZE, CipherStream(pad[0]), part)
        parts.append(part)
    return parts


def distance_from_uniform(values: NDArray[np.int64], cells: int) -> float:
    """Return how surprising the counts of some values would be if they were uniform."""
    return float(chisquare(np.bincount(values, minlength=cells)).pvalue)


@pytest.mark.parametrize("has_shares", [True, False], ids=["with shares of zero", "without"])
def test_desk_and_server_see_the_sum_alone(tmp_path: Path, *, has_shares: bool) -> None:
    noise = curators_noise(SPEC, SEED)
    parts = parts_without_pads(tmp_path, noise, has_shares=has_shares)
    data = is_data(noise.places.all(), SPEC.uploaded_rows)
    total = add_holders(parts, SIZE)
    coins = np.concatenate([coins for _, coins in noise.coins(ROWS)])
    assert np.array_equal(total[data][~coins], VALUES[~coins])
    assert distance_from_uniform(total[data][coins].astype(np.int64), SIZE) > 1e-6
    known = canary_symbols(canary_key(SEED), "stay", SIZE, CANARIES, slice(0, CANARIES))
    assert np.array_equal(total[~data], known)
    # All parts but one: with the sum, what there is to see beside it.
    beside = parts[1][data].astype(np.int64) * SIZE + parts[2][data]
    for rows in (coins, ~coins, *(~coins & (value == VALUES) for value in range(ABSENT))):
        is_uniform = distance_from_uniform(beside[rows], SIZE**2) > 1e-6
        assert is_uniform == (has_shares or rows is coins)
