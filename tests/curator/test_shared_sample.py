"""The rows that every curator draws from one coin, and the check by which they compare them."""

import asyncio
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest

from tests.conftest import refuses, spec_with
from tests.curator.made_rows import aligned, execution
from tests.curator.tested_server import store_fixture  # noqa: F401 - fixture
from veiltab.common.core.domain import Symbols
from veiltab.common.core.sampling import sample_indices
from veiltab.common.errors import ConflictError, NotFoundError
from veiltab.common.release.modes import Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.alignment.intersection import AlignedTable
from veiltab.curator.columns.noise_and_canaries import canary_key, coin_key
from veiltab.curator.columns.shared_sample import Sampler, SharedSample
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins, release_coin
from veiltab.curator.records.store import CuratorStore

ID = "0" * 31 + "1"


class Tossed:
    """A coin whose value is known."""

    async def toss(self, coin_id: str, _: Peers, _shown: Mapping[str, bytes]) -> bytes:
        assert coin_id == release_coin(ID)
        return bytes(range(32))


# The first rows of a sample of three, and its check; where the server samples, the curators order everyone.
KNOWN = [
    (Sampling.SEED, [471, 74, 399], "ea63c17b7ab2f5b66b88e72befda72719cb6bab813334a37bb3b7bef1555b14b"),
    (Sampling.SERVER, [471, 74, 399], "d0255b1d04056d3c342e4fb0dadc2630f96ffa80ca55865a05d92cfe0fcc5b62"),
    (Sampling.INDICES, [7, 3, 999], "0a8bc44be8d23e56511ef5a28af353bec672929022a6dc4c551a63c8c4ed13d5"),
]


# The same with the curators' noise and canaries, which leave the rows as they are.
NOISY_CHECKS = {
    Sampling.SEED: "619adf98d427e68b8cba2be741864c3c21ec3c39e725564921dc979e859d1ae3",
    Sampling.SERVER: "8306f4dc9ee65b667f4c73b4300700e0ae785c7c44fe39c42f6dbd4749a3c060",
    Sampling.INDICES: "78e3077af6d430b48429c92b9e36dd7314f1f455442881b415611bf499093ab1",
}
SYMBOLS = np.zeros(1000, np.uint8)
TOKENS = np.stack([np.arange(1000, dtype=">u8"), np.arange(1000, dtype=">u8") ^ np.uint64(0x5DEECE66D)], axis=1)


def drawn(store: CuratorStore, folder: Path, spec: TableSpec) -> SharedSample:
    """Draw the sample of a spec, which may have explicit indices."""
    sampler = Sampler("alice", folder, cast("Coins", Tossed()), store, execution(folder))
    indices = sampler.indices_file(ID)
    indices.parent.mkdir(exist_ok=True)
    indices.write_bytes(np.array([7, 3, 999], "<i8").tobytes())
    table, peers = SimpleNamespace(tokens=lambda: TOKENS.view(np.uint8), column=lambda _: SYMBOLS), SimpleNamespace()
    return asyncio.run(sampler.draw(spec, cast("AlignedTable", table), cast("Peers", peers)))


def test_indices_are_drawn_anew_for_every_release(store: CuratorStore, tmp_path: Path) -> None:
    """Under a key that nobody else has, and that is used once."""
    sampler = Sampler("alice", tmp_path, cast("Coins", Tossed()), store, execution(tmp_path))
    spec, drawn_ = spec_with(sampling=Sampling.INDICES, sample=300), list[bytes]()
    for _ in range(2):
        file = io.BytesIO()
        sampler._draw_indices(spec, file)
        drawn_.append(file.getvalue())
    assert [len(set(np.frombuffer(rows, "<i8").tolist())) for rows in drawn_] == [300, 300]
    assert drawn_[0] != drawn_[1]
    assert drawn_[0] != sample_indices(spec.population, 300, bytes(32)).tobytes()


@pytest.mark.parametrize(("sampling", "head", "check"), KNOWN)
def test_known_answers(store: CuratorStore, tmp_path: Path, sampling: Sampling, head: list[int], check: str) -> None:
    plain = drawn(store, tmp_path, spec_with(sampling=sampling, sample=3))
    assert plain.rows[:3].tolist() == head
    assert plain.check.hex() == check
    noisy = drawn(store, tmp_path, spec_with(sampling=sampling, sample=3, curator_replacement=2**63, canaries=5))
    assert noisy.rows[:3].tolist() == head
    assert noisy.check.hex() == NOISY_CHECKS[sampling]


@pytest.mark.parametrize("sampling", Sampling)
def test_the_check_covers_rows_coins_and_places(store: CuratorStore, tmp_path: Path, sampling: Sampling) -> None:
    spec = spec_with(sampling=sampling, sample=3, curator_replacement=2**64 - 1, canaries=5)
    others = (replace(spec, curator_replacement=1), replace(spec, canaries=4), replace(spec, canaries=0))
    checks = [drawn(store, tmp_path, one).check for one in (spec, *others)]
    assert checks[0] == drawn(store, tmp_path, spec).check
    assert len(set(checks)) == len(checks)


def test_coins_and_canaries_of_another_release_alone_are_refused(store: CuratorStore, tmp_path: Path) -> None:
    spec = spec_with(sample=3, curator_replacement=2**63, canaries=5)
    drawn(store, tmp_path, spec)
    assert store.keys.canary_key(ID) == canary_key(bytes(range(32)))
    drawn(store, tmp_path, spec)  # as after a crash
    for key in (coin_key, canary_key):
        mine = key(bytes(range(32)))
        with refuses(ConflictError, where="release ffffffffffffffffffffffffffffffff"):
            store.keys.spend_shared_keys("f" * 32, mine, bytes(32))
        with refuses(ConflictError, where="release ffffffffffffffffffffffffffffffff"):
            store.keys.spend_shared_keys("f" * 32, bytes(32), mine)
    with refuses(NotFoundError, where="release ffffffffffffffffffffffffffffffff"):
        store.keys.canary_key("f" * 32)


def test_coins_are_spent_before_a_toss(store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.keys, "spend_shared_keys", Mock(side_effect=ConflictError("spent")))
    monkeypatch.setattr(
        "veiltab.curator.columns.shared_sample.curators_noise", lambda *_: pytest.fail("they were derived")
    )
    with pytest.raises(ConflictError, match="spent"):
        drawn(store, tmp_path, spec_with(sample=3, curator_replacement=2**63))


LARGE = [("wor", Sampling.SEED), ("wor", Sampling.SERVER), ("wr", Sampling.SEED)]


@pytest.mark.parametrize(("scheme", "sampling"), LARGE)
def test_a_large_table_is_drawn_alike(
    store: CuratorStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, sampling: Sampling
) -> None:
    spec, checks = spec_with(sampling=sampling, sample=3, scheme=scheme), set[bytes]()
    columns: dict[str, Symbols] = {"sex": np.zeros(1000, np.uint8), "age": np.zeros(1000, np.uint8)}
    table = aligned(tmp_path / "table", TOKENS.view(np.uint8), columns)
    for small in (2000, 1):
        monkeypatch.setattr("veiltab.curator.table.execution.SMALL", small)
        sampler = Sampler("alice", tmp_path, cast("Coins", Tossed()), store, execution(tmp_path))
        sample = asyncio.run(sampler.draw(spec, table, cast("Peers", SimpleNamespace())))
        assert len(sample.rows) == (1000 if sampling.is_by_server else 3)
        checks.add(sample.check)
    assert len(checks) == 1
