"""What each cheat does to the rows, and that the canaries show it: the demonstration without its processes."""

import asyncio
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.server.publishing import complete, perturb
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import UNIT, GammaDiagonal
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.symbols import CHUNK
from veiltab.common.release.canary_changes import ChangesCollector
from veiltab.common.release.noise_tests import CanaryOrders
from veiltab.common.release.receipt import joint_receipt
from veiltab.common.release.spec import Column, ReleaseSpec
from veiltab.common.rpc.chunks import data_of
from veiltab.deploy.local.cheating_server import Cheat, perturb_dishonestly
from veiltab.server.canaries import Canaries
from veiltab.server.store import ServerStore

KEY = bytes(range(32))
SIZES = (3, 300)


def cheated(cheat: Cheat, mechanism: GammaDiagonal, columns: list[Symbols]) -> list[Symbols]:
    outputs = [np.empty_like(column) for column in columns]
    perturb_dishonestly(columns, SIZES, mechanism, CipherStream(KEY), outputs, chunk=0, cheat=cheat)
    return outputs


def columns() -> list[Symbols]:
    return [np.zeros(CHUNK, np.uint8), np.full(CHUNK, 299, "<u2")]


@pytest.mark.parametrize(
    ("cheat", "numerator", "share"),
    [
        (Cheat.LAZY, UNIT // 4, 0),
        (Cheat.HALF, UNIT // 4, 1 / 8),
        (Cheat.OTHER, UNIT // 4, 1 / 2),
        (Cheat.OTHER, UNIT // 4 * 3, 3 / 16),
    ],
)
def test_so_many_rows_are_replaced(cheat: Cheat, numerator: int, share: float) -> None:
    """Of 2^18 rows, within 6 standard deviations."""
    mechanism = GammaDiagonal(cells=900, replacement=numerator)
    first, second = cheated(cheat, mechanism, columns())
    changed = int(((first != 0) | (second != 299)).sum())
    expected = CHUNK * share * 899 / 900
    assert abs(changed - expected) <= 6 * math.sqrt(expected)


def test_a_column_stays_as_it_came_and_as_many_rows_change() -> None:
    mechanism = GammaDiagonal(cells=900, replacement=UNIT // 4)
    first, second = cheated(Cheat.COLUMN, mechanism, columns())
    assert not first.any()
    expected = CHUNK * 899 / 900 / 4
    assert abs(int((second != 299).sum()) - expected) <= 6 * math.sqrt(expected)


def test_every_changed_row_is_shifted_by_one() -> None:
    mechanism = GammaDiagonal(cells=900, replacement=UNIT // 4)
    first, second = cheated(Cheat.SHIFT, mechanism, columns())
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(0, 299), (1, 0)}


def test_columns_are_exchanged_within_their_alphabets() -> None:
    mechanism = GammaDiagonal(cells=900, replacement=1)
    first, second = cheated(Cheat.SWAP, mechanism, columns())
    assert set(first.tolist()) == {299 % 3}
    assert set(second.tolist()) == {0}
    assert (first.itemsize, second.itemsize) == (1, 2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServerStore]:
    store = ServerStore(tmp_path)
    yield store
    store.close()


@pytest.mark.parametrize("cheat", [None, *Cheat])
def test_the_canaries_show_every_cheat_and_no_honest_server(
    store: ServerStore, make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, cheat: Cheat | None
) -> None:
    if cheat is not None:
        monkeypatch.setattr("veiltab.server.perturbation.perturb_chunk", partial(perturb_dishonestly, cheat=cheat))
    owned = (
        Column(attribute="sex", owner="alice", size=2),
        Column(attribute="salary", owner="bob", size=3),
        Column(attribute="age", owner="carol", size=4),
    )
    spec: ReleaseSpec = make_spec(
        columns=owned, population=5000, sample=5000, canaries=4000, server_replacement=UNIT // 4
    )
    symbols = [np.random.default_rng(c.size).integers(0, c.size, spec.uploaded_rows, np.uint8) for c in owned]
    complete(store, spec, *symbols)
    perturb(store, spec)
    places = CanaryPlaces.of(KEY, rows=9000, canaries=4000).all()
    lists = {}
    for column, sent in zip(owned, symbols, strict=True):
        stream = asyncio.run(Canaries(store).of(spec.release_id, column.owner, KEY))
        shown = np.frombuffer(b"".join(data_of(chunk) for chunk in stream.chunks()), np.uint8)
        collected = ChangesCollector([column], most=4000)
        collected.compare(0, [shown], [sent[places]])
        changes = collected.changes()
        assert changes is not None
        lists[column.owner] = changes.to_bytes()
    assert joint_receipt(spec, lists, CanaryOrders(places=places, rows=9000)).passed is (cheat is None)
