"""A release that curators, a server and a desk make through their real kernels, without processes between them."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import Places
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.mechanism import perturb
from veiltab.common.core.pads import encrypt
from veiltab.common.core.randomness import CipherStream
from veiltab.common.core.sampling import sample_indices
from veiltab.common.core.symbols import add
from veiltab.common.errors import DeniedError
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.canary_changes import CanaryChanges, ChangesCollector
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.testing import joint_receipt, own_receipt
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.waiting.together import MOST_BESIDE
from veiltab.common.storage.files import written_whole
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, PlainColumn, curators_noise
from veiltab.researcher.parties.parties import ColumnDigests
from veiltab.researcher.parties.server_findings import CuratorsTest
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows, count_rows

SALT = bytes(range(32))


def decrypted_canaries(columns: Sequence[EncryptedColumn], rows: PublishedRows) -> list[Symbols]:
    """Return what a desk's test is shown of all published canaries, column by column."""
    shown: list[list[Symbols]] = [[np.empty(0, symbol_dtype(one.column.size))] for one in columns]
    count = 0

    def show(part: slice, symbols: Sequence[Symbols]) -> None:
        nonlocal count
        assert part.start == count, "canaries come in the order of their places"
        count = part.stop
        for column, some in zip(shown, symbols, strict=True):
            assert len(some) == part.stop - part.start
            column.append(some.copy())

    count_rows(columns, rows, show)
    return [cast("Symbols", np.concatenate(column)) for column in shown]


Table = Mapping[str, Symbols]
Perturb = Callable[[list[Symbols], TableSpec], list[Symbols]]


def honest(columns: list[Symbols], spec: TableSpec) -> list[Symbols]:
    """Return what an honest server makes of the rows of some columns."""
    outputs = [np.empty_like(column) for column in columns]
    sizes = [column.size for column in spec.columns]
    perturb(columns, sizes, spec.server_mechanism, CipherStream(secrets.token_bytes(32)), outputs)
    return outputs


class MadeRelease:
    """Answers a desk as the server and the curators of a release do; what they answer may be replaced.

    Args:
        spec: of the release.
        table: attribute -> (data rows,) symbols.
        perturb_rows: what the server does to the uploaded rows that it publishes.
    """

    server = "cloud"

    def __init__(self, spec: TableSpec, table: Table, perturb_rows: Perturb = honest) -> None:
        self.spec = spec
        self.room = asyncio.Semaphore(MOST_BESIDE)
        self.noise: CuratorsNoise = curators_noise(spec, secrets.token_bytes(32))
        self.keys: dict[str, bytes] = {}
        self.denied: set[str] = set()
        self.uploaded: dict[str, Symbols] = {}
        plain = {
            c.attribute: np.concatenate(
                list(
                    self.noise.with_noise_and_canaries(
                        PlainColumn(attribute=c.attribute, symbols=table[c.attribute], size=c.size),
                        secrets.token_bytes(32),
                    )
                )
            )
            for c in spec.columns
        }
        for column in spec.columns:
            self.uploaded[column.attribute] = self._padded(column, plain[column.attribute])
        self.places: Places = np.arange(spec.uploaded_rows)
        if spec.sampling.is_by_server:
            key = secrets.token_bytes(32)
            self.places = np.sort(sample_indices(spec.uploaded_rows, spec.published_rows, key))
        published = perturb_rows([self.uploaded[c.attribute][self.places] for c in spec.columns], spec)
        self.published = dict(zip(self.uploaded, published, strict=True))
        self.served, self.served_places = dict(self.published), self.places
        self.tests = self.tests_of(self.changes())
        self.asked: list[str] = []

    def _padded(self, column: Column, plain: Symbols) -> Symbols:
        ciphertext = np.empty_like(plain)
        if self.spec.pad is Pad.CHACHA20:
            self.keys[column.attribute] = secrets.token_bytes(32)
            encrypt(plain, column.size, CipherStream(self.keys[column.attribute]), ciphertext)
            return ciphertext
        pad: Symbols = np.empty(len(plain), symbol_dtype(column.size))
        pad[:] = np.random.default_rng().integers(0, column.size, len(plain))
        self.keys[column.attribute] = pad.tobytes()
        add(plain, pad, column.size, ciphertext)
        return ciphertext

    @property
    def is_canary(self) -> NDArray[np.bool_]:
        """Which of the published rows are canaries."""
        return np.isin(self.places, self.noise.places.all())

    def changes(self) -> dict[str, CanaryChanges]:
        """Return owner -> the changes of canaries that it sees, on ciphertext."""
        found = {}
        for owner in dict.fromkeys(column.owner for column in self.spec.columns):
            names = [column.attribute for column in self.spec.columns_of(owner)]
            collected = ChangesCollector(self.spec.columns_of(owner), most=self.spec.canaries)
            collected.compare(
                0,
                [self.published[name][self.is_canary] for name in names],
                [self.uploaded[name][self.places][self.is_canary] for name in names],
            )
            found[owner] = cast("CanaryChanges", collected.changes())
        return found

    def tests_of(self, lists: Mapping[str, CanaryChanges]) -> dict[str, CuratorsTest]:
        """Return what curators say of their tests who have exchanged some lists."""
        orders = CanaryOrders(places=self.places[self.is_canary], rows=self.spec.uploaded_rows)
        sent = {owner: changes.to_bytes() for owner, changes in lists.items()}
        together = joint_receipt(self.spec, sent, orders)
        digests = {name: hashlib.sha256(SALT + column.data).digest() for name, column in self.published.items()}
        return {
            owner: CuratorsTest(
                receipts=(own_receipt(self.spec, owner, changes, orders).text, together.text),
                changes=sent,
                canary_key=self.noise.canary_key,
                digests=digests,
                places_digest=self._places_digest(),
            )
            for owner, changes in lists.items()
        }

    def _places_digest(self) -> bytes:
        if not self.spec.sampling.is_by_server:
            return b""
        return hashlib.sha256(SALT + self.places.astype("<i8").tobytes()).digest()

    # What a desk asks

    async def fetch_column(self, _spec: TableSpec, column: Column, path: Path, advance: Callable[[int], None]) -> None:
        with written_whole(path, is_durable=False) as file:
            file.write(self.served[column.attribute].tobytes())
        advance(path.stat().st_size)

    async def fetch_places(self, _spec: TableSpec, path: Path) -> None:
        path.write_bytes(self.served_places.astype("<i8").tobytes())

    async def fetch_test(self, _spec: TableSpec, curator: str) -> CuratorsTest:
        if {column.attribute for column in self.spec.columns_of(curator)} <= self.denied:
            raise DeniedError("the grant has expired")
        return self.tests[curator]

    async def fetch_keys(
        self, _spec: TableSpec, curator: str, digests: Mapping[str, ColumnDigests]
    ) -> dict[str, bytes]:
        # Who denied all its columns has said so where it was asked for its test.
        assert {column.attribute for column in self.spec.columns_of(curator)} - self.denied
        if not (granted := digests.keys() - self.denied):
            raise DeniedError("the grant has expired")
        assert digests.keys() <= {column.attribute for column in self.spec.columns_of(curator)}
        return {attribute: self._key(attribute, digests[attribute]) for attribute in digests if attribute in granted}

    async def fetch_pad(
        self, _spec: TableSpec, column: Column, _curator: str, digests: ColumnDigests, path: Path
    ) -> None:
        if column.attribute in self.denied:
            raise DeniedError("the grant has expired")
        path.write_bytes(self._key(column.attribute, digests))

    def _key(self, attribute: str, digests: ColumnDigests) -> bytes:
        published = self.published[attribute]
        canaries = published[self.is_canary]
        assert digests.published == hashlib.sha256(SALT + published.data).digest()
        assert digests.canaries == hashlib.sha256(canaries.data).digest()
        self.asked.append(attribute)
        return self.keys[attribute]
