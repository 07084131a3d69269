"""What the server, and a researcher without keys, see: symbols that do not depend on the data."""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import noise_with
from tests.protocol.chance import combined, confirmed, independence, looks_random, same_law
from tests.worlds.columns import encrypt
from veiltab.common.core import pads
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.release.modes import Pad
from veiltab.curator.columns import encryption
from veiltab.curator.records.store import CuratorStore

ROWS = 350_000
SIZES = {"narrow": 3, "wide": 200, "binary": 2}
Columns = Mapping[str, Symbols]


def view(columns: Columns, sizes: Mapping[str, int]) -> float:
    """Return the p-value of columns whose symbols are uniform and independent, within and between columns."""
    alone = [looks_random(column, sizes[name]) for name, column in columns.items()]
    return combined([*alone, *(independence(a, b) for a, b in combinations(columns.values(), 2))])


def symbols_of(data: bytes) -> Symbols:
    """Return a column of an alphabet of at most 256 symbols."""
    return np.frombuffer(data, np.uint8)


def encrypted(folder: Path, table: Columns, pad: Pad) -> Columns:
    """Encrypt a table as a curator does; return what goes to the server."""
    release_id = secrets.token_hex(16)
    with closing(CuratorStore(folder / release_id / "curator.sqlite")) as store:
        columns = encryption.ColumnEncryption(store, folder / release_id, release_id)
        for name, column in table.items():
            encrypt(columns, name, column, SIZES[name], pad, noise_with())
        return {name: symbols_of(columns.ciphertext(name).read_bytes()) for name in table}


def constant_table() -> Columns:
    return {name: np.zeros(ROWS, symbol_dtype(size)) for name, size in SIZES.items()}


def varied_table() -> Columns:
    rng = np.random.default_rng(3)
    return {name: np.sort(rng.integers(0, size, ROWS)).astype(np.uint8) for name, size in SIZES.items()}


@pytest.mark.parametrize("pad", list(Pad))
def test_a_million_symbols_look_the_same_whatever_the_table(tmp_path: Path, pad: Pad) -> None:
    assert sum(len(column) for column in constant_table().values()) >= 10**6

    def draw() -> float:
        constant = encrypted(tmp_path, constant_table(), pad)
        varied = encrypted(tmp_path, varied_table(), pad)
        alike = [same_law(constant[name], varied[name], size) for name, size in SIZES.items()]
        return combined([view(constant, SIZES), view(varied, SIZES), *alike])

    assert not confirmed(draw)


def modulo(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with bytes modulo the size: the small symbols come a little more often."""
    del source, label, chunk
    out[:] = np.frombuffer(os.urandom(out.size), np.uint8) % size


def halved(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with uniform symbols, each of which serves two neighbours."""
    del source, label, chunk
    out[:] = np.repeat(np.random.default_rng(int.from_bytes(os.urandom(8))).integers(0, size, out.size), 2)[: out.size]


def shared(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with uniform symbols that are the same for every key."""
    del source, label
    out[:] = np.random.default_rng(chunk).integers(0, 600, out.size) % size


@pytest.mark.parametrize("pad", list(Pad))
@pytest.mark.parametrize("mutant", [modulo, halved, shared])
def test_a_bad_pad_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pad: Pad, mutant: Callable[..., None]
) -> None:
    monkeypatch.setattr(pads, "fill_uniform", mutant)
    monkeypatch.setattr(encryption, "fill_uniform", mutant)
    assert confirmed(lambda: view(encrypted(tmp_path, constant_table(), pad), SIZES))
