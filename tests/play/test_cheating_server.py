"""What each cheat does to the rows, and that the canaries show it: the demonstration without its processes."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import spec_with
from tests.server.publishing import complete, perturb
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.domain import Symbols
from veiltab.common.core.mechanism import UNIT
from veiltab.common.release.receipts.canary_changes import ChangesCollector
from veiltab.common.release.receipts.noise_test_kinds import Family
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import is_right, joint_receipt, own_receipt
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.chunks import data_of
from veiltab.play.demos.cheating_server import Cheat, perturb_dishonestly
from veiltab.server.records.store import ServerStore
from veiltab.server.release.canaries import Canaries

KEY = bytes(range(32))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServerStore]:
    with closing(ServerStore(tmp_path)) as store:
        yield store


@pytest.mark.parametrize("cheat", [None, *Cheat])
def test_the_canaries_show_every_cheat_and_no_honest_server(
    store: ServerStore, monkeypatch: pytest.MonkeyPatch, cheat: Cheat | None
) -> None:
    if cheat is not None:
        monkeypatch.setattr(
            "veiltab.server.release.perturbation.perturb_chunk", partial(perturb_dishonestly, cheat=cheat)
        )
    owned = (
        Column(attribute="sex", owner="alice", size=2),
        Column(attribute="salary", owner="bob", size=3),
        Column(attribute="age", owner="carol", size=4),
    )
    spec: TableSpec = spec_with(
        columns=owned, population=5000, sample=5000, canaries=4000, server_replacement=UNIT // 4
    )
    symbols = [np.random.default_rng(c.size).integers(0, c.size, spec.uploaded_rows, np.uint8) for c in owned]
    complete(store, spec, *symbols)
    perturb(store, spec)
    receipts = receipts_of(store, spec, dict(zip(owned, symbols, strict=True)))
    assert all(is_right(receipt, spec) for receipt in receipts.values())
    failures = {tester: {(one.test, one.of) for one in receipt.failures} for tester, receipt in receipts.items()}
    match cheat:
        case None:
            assert not any(failures.values())
        case Cheat.COLUMN:
            assert (Family.AMOUNT, "all columns") in failures["alice"]
            assert (Family.COLUMN, "sex") in failures[""]
            assert "column (sex): 0 of the changed canaries changed there" in receipts[""].sentence()
        case Cheat.SHIFT:
            # A change of one of two categories is always 1: there are too many.
            assert {test for test, _ in failures["alice"]} <= {Family.AMOUNT, Family.PLACES}
            assert {Family.ARCS, Family.SEEN} <= {test for test, _ in failures["carol"]}
            assert "offsets of age" in receipts["carol"].sentence()
            assert {Family.PAIR, Family.COLUMN, Family.SEEN} <= {test for test, _ in failures[""]}
        case _:
            assert all((Family.AMOUNT, "all columns") in found for found in failures.values())


def receipts_of(store: ServerStore, spec: TableSpec, sent: dict[Column, Symbols]) -> dict[str, Receipt]:
    """Return what the tests of each owner show, and under "" those of all columns."""
    places = CanaryPlaces.of(KEY, rows=spec.uploaded_rows, canaries=spec.canaries).all()
    orders, lists, receipts = CanaryOrders(places=places, rows=spec.uploaded_rows), {}, {}
    for column, symbols in sent.items():
        stream = asyncio.run(Canaries(store).of(spec.release_id, column.owner, KEY))
        shown = np.frombuffer(b"".join(data_of(chunk) for chunk in stream.chunks()), np.uint8)
        collected = ChangesCollector((column,), most=spec.canaries)
        collected.compare(0, [shown], [symbols[places]])
        changes = collected.changes()
        assert changes is not None
        lists[column.owner] = changes.to_bytes()
        receipts[column.owner] = own_receipt(spec, column.owner, changes, orders)
    return receipts | {"": joint_receipt(spec, lists, orders)}
