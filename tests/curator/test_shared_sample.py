"""The rows that every curator draws from one coin, and the check by which they compare them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from veiltab.common.release.modes import Sampling
from veiltab.curator.coins import Coins, release_coin
from veiltab.curator.coordination import Peers
from veiltab.curator.intersection import AlignedTable
from veiltab.curator.shared_sample import Sampler

ID = "0" * 31 + "1"


class Tossed:
    """A coin whose value is known."""

    async def toss(self, coin_id: str, _: Peers) -> bytes:
        assert coin_id == release_coin(ID)
        return bytes(range(32))


# The first rows of a sample of three, and its check; where the server samples, the curators order everyone.
KNOWN = [
    (Sampling.SEED, [471, 74, 399], "ea63c17b7ab2f5b66b88e72befda72719cb6bab813334a37bb3b7bef1555b14b"),
    (Sampling.SERVER, [471, 74, 399], "d0255b1d04056d3c342e4fb0dadc2630f96ffa80ca55865a05d92cfe0fcc5b62"),
    (Sampling.INDICES, [7, 3, 999], "0a8bc44be8d23e56511ef5a28af353bec672929022a6dc4c551a63c8c4ed13d5"),
]


@pytest.mark.parametrize(("sampling", "head", "check"), KNOWN)
def test_known_answers(
    tmp_path: Path, make_spec: Callable[..., Any], sampling: Sampling, head: list[int], check: str
) -> None:
    words = np.arange(1000, dtype=">u8")
    tokens = np.stack([words, words ^ np.uint64(0x5DEECE66D)], axis=1).view(np.uint8)
    sampler = Sampler("alice", tmp_path, cast("Coins", Tossed()))
    indices = sampler.indices_file(ID)
    indices.parent.mkdir()
    indices.write_bytes(np.array([7, 3, 999], "<i8").tobytes())
    table, peers = SimpleNamespace(tokens=lambda: tokens), SimpleNamespace()
    spec = make_spec(sampling=sampling, sample=3)
    rows, digest = asyncio.run(sampler.draw(spec, cast("AlignedTable", table), cast("Peers", peers)))
    assert rows[:3].tolist() == head
    assert digest.hex() == check
