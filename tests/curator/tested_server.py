"""A server that a curator tests."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import request_with, spec_with
from tests.worlds.columns import encrypt
from veiltab.common.core.canaries import CanaryPlaces
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import UNIT, GammaDiagonal, perturb
from veiltab.common.core.randomness import CipherStream
from veiltab.common.errors import NotReadyError
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.noise_and_canaries import canary_key, coin_key, curators_noise
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.release.server_check import ServerCheck

SEED = bytes(range(32))


ROWS = 4000


COLUMNS = (
    Column(attribute="sex", owner="alice", size=2),
    Column(attribute="age", owner="alice", size=300),
    Column(attribute="salary", owner="bob", size=3),
)


def spec_of(**changes: object) -> TableSpec:
    """Return a spec with noise on both sides, half of it the server's, and canaries."""
    fields = {
        "columns": COLUMNS,
        "population": ROWS,
        "sample": ROWS,
        "curator_replacement": UNIT // 2,
        "server_replacement": UNIT // 2,
        "canaries": 4000,
    } | changes
    return spec_with(**fields)


@dataclass(kw_only=True)
class Played:
    """A server that got alice's columns, and publishes and shows them as `perturbed` says.

    Args:
        spec: of the release.
        uploaded: attribute -> alice's ciphertext.
        perturbed: what becomes of the columns.
    """

    spec: TableSpec
    uploaded: dict[str, Symbols]
    perturbed: "Callable[[Played], dict[str, Symbols]]"
    name: str = "server cloud"
    is_published: bool = True
    keys: list[bytes] = field(default_factory=list)
    sampled: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the sample of a server that samples."""
        rows, spec = np.arange(self.spec.uploaded_rows), self.spec
        if spec.sampling.is_by_server:
            rows = np.sort(np.random.default_rng(1).permutation(rows)[: spec.sample])
        self.sampled = rows
        self.published = self.perturbed(self)

    async def publication(self, spec: TableSpec) -> PublicationDigests:
        if not self.is_published:
            raise NotReadyError("has not published the release yet", where=self.name)
        mine = {attribute: hashlib.sha256(column.data).digest() for attribute, column in self.published.items()}
        return PublicationDigests(
            columns={column.attribute: mine.get(column.attribute, bytes(32)) for column in spec.columns},
            places=hashlib.sha256(self.sampled.data).digest() if spec.sampling.is_by_server else b"",
        )

    async def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Return the canaries as they are published, in pieces that end anywhere."""
        self.keys.append(places_key)
        places = CanaryPlaces.of(places_key, rows=spec.uploaded_rows, canaries=spec.canaries).all()
        is_drawn = np.isin(places, self.sampled)
        rows = np.searchsorted(self.sampled, places[is_drawn])
        numbers = np.flatnonzero(is_drawn).astype("<i8").tobytes() if spec.sampling.is_by_server else b""
        data = numbers + b"".join(column[rows].tobytes() for column in self.published.values())
        for begin in range(0, len(data), 1001):
            yield data[begin : begin + 1001]


def noisy(server: Played, replacement: int) -> dict[str, Symbols]:
    """Run the product's mechanism with some replacement probability on alice's columns."""
    names = list(server.uploaded)
    sizes = [server.spec.column(name).size for name in names]
    law = GammaDiagonal(cells=int(np.prod(sizes)), replacement=replacement)
    inputs = [server.uploaded[name][server.sampled] for name in names]
    outputs = [np.empty_like(column) for column in inputs]
    perturb(inputs, sizes, law, CipherStream(derive(SEED, "server")), outputs)
    return dict(zip(names, outputs, strict=True))


NOBODY = cast("Any", None)
"""The other holders of columns that one curator holds."""


def honest(server: Played) -> dict[str, Symbols]:
    return noisy(server, server.spec.server_replacement)


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path) -> Iterator[CuratorStore]:
    with closing(CuratorStore(tmp_path / "curator.sqlite")) as store:
        store.releases.add(request_with(), 1)
        yield store


@dataclass(frozen=True, kw_only=True)
class Alice:
    """A curator that has sent her columns."""

    store: CuratorStore
    encryption: ColumnEncryption
    spec: TableSpec
    uploaded: dict[str, Symbols]

    def server(self, perturbed: Callable[[Played], dict[str, Symbols]] = honest) -> Played:
        """Return a server that has her columns."""
        return Played(spec=self.spec, uploaded=self.uploaded, perturbed=perturbed)

    def test(self, server: Played, name: str = "alice") -> None:
        """Test a server on her own columns."""
        asyncio.run(ServerCheck(name, self.store).run(self.spec, server, self.encryption, NOBODY))

    @property
    def receipt(self) -> Receipt:
        """What the test of her own columns showed."""
        (receipt,) = self.store.tests.receipts(self.spec.release_id)
        return receipt


def sent(store: CuratorStore, folder: Path, spec: TableSpec) -> Alice:
    """Let alice encrypt her columns as the release says."""
    noise = curators_noise(spec, SEED)
    store.keys.spend_shared_keys(spec.release_id, coin_key(SEED), canary_key(SEED))
    encryption = ColumnEncryption(store, folder / "release", spec.release_id)
    uploaded: dict[str, Symbols] = {}
    for column in spec.columns_of("alice"):
        values: Symbols = np.zeros(spec.data_rows, symbol_dtype(column.size))
        encrypt(encryption, column.attribute, values, column.size, spec.pad, noise)
        uploaded[column.attribute] = np.empty(spec.uploaded_rows, symbol_dtype(column.size))
        ciphertext = encryption.ciphertext(column.attribute).read_bytes()
        uploaded[column.attribute].view(np.uint8)[:] = np.frombuffer(ciphertext, np.uint8)
    return Alice(store=store, encryption=encryption, spec=spec, uploaded=uploaded)
