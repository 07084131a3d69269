"""A curator's test of the server: did it add the noise of the release to the canaries?

What the server published is recorded before it learns the canaries' places, so it cannot change a column afterwards.
The ciphertext of the canaries that it was sent is compared with what it published at their places; no key is needed.
Either may be as long as a column: both lie on disk, what the server sends in a file without a name.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import places_key
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.symbols import check_symbols, row_slices
from veiltab.common.errors import IntegrityError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.receipt import Receipt, accepted, level_of, receipt_of
from veiltab.common.release.spec import PLACE_BYTES, Column, ReleaseSpec
from veiltab.common.storage.disk import named_in_errors
from veiltab.common.storage.mapped import mapped_array
from veiltab.curator.bounded_set import BoundedSet
from veiltab.curator.encryption import ColumnEncryption
from veiltab.curator.progress import PublicationDigests
from veiltab.curator.store import CuratorStore

Sent = bytes | NDArray[np.uint8]
"""What a server sent, in memory or mapped from disk."""


class ServerUnderTest(Protocol):
    """The server, as far as it is tested."""

    @property
    def name(self) -> str:
        """The server, as messages name it."""
        ...

    async def publication(self, spec: ReleaseSpec) -> PublicationDigests:
        """Return the digests of what is published."""
        ...

    def canaries(self, spec: ReleaseSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Return the published symbols of the canaries in the caller's columns, piece by piece."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCanaries:
    """The canaries as a server published them.

    Args:
        count: how many they are.
        numbers: which of the release's canaries these are, by order of their places, if the server samples; None if
            they are all of them.
        symbols: attribute of the curator's own -> symbols, shape (count,), mapped from disk if what was sent is.
    """

    count: int
    numbers: NDArray[np.int64] | None
    symbols: dict[str, Symbols]


def canary_width(spec: ReleaseSpec, curator: str) -> int:
    """Return the bytes that the server sends a curator for each canary."""
    place = PLACE_BYTES if spec.sampling.is_by_server else 0
    return place + sum(column.byte_length(1) for column in spec.columns_of(curator))


def published_canaries(spec: ReleaseSpec, curator: str, data: Sent) -> PublishedCanaries:
    """Read what the server sends a curator about the canaries.

    Args:
        spec: of the release.
        curator: with columns in it.
        data: where the server samples, the numbers of the canaries that it sampled, 8 bytes each; then the symbols of
            the curator's columns, column after column.

    Raises:
        IntegrityError: it has another length, or it is not what a server can have published.
    """
    count, rest = divmod(len(data), canary_width(spec, curator))
    if rest or (count != spec.canaries and not spec.sampling.is_by_server):
        raise IntegrityError(f"{len(data)} bytes are not the symbols of {spec.canaries} canaries", where="canaries")
    offset, numbers = 0, None
    if spec.sampling.is_by_server:
        offset, numbers = count * PLACE_BYTES, np.frombuffer(data, "<i8", count).astype(np.int64, copy=False)
        _check_sampled(spec, numbers)
    symbols = {}
    for column in spec.columns_of(curator):
        symbols[column.attribute] = _symbols(data, column, count, offset)
        offset += column.byte_length(count)
    return PublishedCanaries(count=count, numbers=numbers, symbols=symbols)


def changed_canaries(published: PublishedCanaries, spec: ReleaseSpec, encryption: ColumnEncryption) -> int:
    """Return how many canaries the server changed in any of a curator's columns.

    Raises:
        IntegrityError: the ciphertext that was sent is not here any more.
    """
    sent = {attribute: _sent(spec, attribute, encryption) for attribute in published.symbols}
    changed = 0
    for part in row_slices(published.count):
        rows = part if published.numbers is None else published.numbers[part]
        differ = [symbols[part] != sent[attribute][rows] for attribute, symbols in published.symbols.items()]
        changed += int(np.any(differ, axis=0).sum())
    return changed


def _sent(spec: ReleaseSpec, attribute: str, encryption: ColumnEncryption) -> Symbols:
    """Return the ciphertext of a column's canaries that the server was sent, mapped from disk."""
    path, column = encryption.canaries(attribute), spec.column(attribute)
    if not path.exists() or path.stat().st_size != column.byte_length(spec.canaries):
        raise IntegrityError("the ciphertext of the canaries is gone or cut off", where=f"attribute {attribute}")
    sent: Symbols = mapped_array(path, symbol_dtype(column.size))
    return sent


class ServerCheck:
    """The tests that one curator makes.

    Args:
        name: the curator.
        store: keeps their results.
    """

    def __init__(self, name: str, store: CuratorStore) -> None:
        self._name = name
        self._store = store
        # Releases whose server was seen to have passed: a result is never taken back.
        self._passed = BoundedSet()

    async def run(
        self,
        spec: ReleaseSpec,
        server: ServerUnderTest,
        encryption: ColumnEncryption,
        stage: Stage | None = None,
        *,
        is_published: bool = False,
    ) -> None:
        """Test the server, unless that was done; a curator without columns in the release has nothing to test.

        Args:
            spec: of a release whose columns every curator has sent.
            server: whom to test.
            encryption: has the ciphertext of the canaries, which is deleted once the result is recorded.
            stage: says that it tests, if anybody asks.
            is_published: whether what the server published is recorded; else the server is asked.

        Raises:
            NotReadyError: the release is not published yet.
            ConflictError: the server has published other columns, or sampled other places, before.
            IntegrityError: what it published is not the release with its noise.
            VeiltabError: as `ServerLink.publication` and `ServerLink.canaries`.
        """
        if not spec.columns_of(self._name):
            return
        if self._store.receipt(spec.release_id) is None:
            # What it published is durable before the server can learn which rows are tested.
            if not is_published:
                self._store.record_publication(spec.release_id, await server.publication(spec))
            with (stage or Stage()).of("testing the server", None):
                await self._test(spec, server, encryption)
        encryption.forget_canaries()
        check_passed(self.receipt(spec), server.name)

    def is_passed(self, spec: ReleaseSpec) -> bool:
        """Whether the server has passed this curator's test of a release, or it has no columns there to test."""
        if spec.release_id in self._passed or not spec.columns_of(self._name):
            return True
        if self._store.receipt(spec.release_id) is None or not self.receipt(spec).passed:
            return False
        self._passed.add(spec.release_id)
        return True

    def receipt(self, spec: ReleaseSpec) -> Receipt:
        """Return the receipt of a test that was made.

        Raises:
            IntegrityError: it was not.
        """
        counts = self._store.receipt(spec.release_id)
        if counts is None:
            raise IntegrityError("the server was not tested", where=f"release {spec.release_id}")
        canaries, changed = counts
        return receipt_of(spec, self._name, canaries=canaries, changed=changed)

    async def _test(self, spec: ReleaseSpec, server: ServerUnderTest, encryption: ColumnEncryption) -> None:
        data: Sent = b""
        if spec.canaries:
            data = await self._sent_by(server, spec, encryption.folder)
        await asyncio.to_thread(self._compare, spec, data, server.name, encryption)

    async def _sent_by(self, server: ServerUnderTest, spec: ReleaseSpec, folder: Path) -> Sent:
        """Ask for the canaries, and return what comes, mapped from a file without a name."""
        key = places_key(self._store.canary_key(spec.release_id))
        with named_in_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
            async for data in server.canaries(spec, key):
                file.write(data)
            file.flush()
            return np.memmap(file, np.uint8, mode="r") if file.tell() else b""

    def _compare(self, spec: ReleaseSpec, data: Sent, server: str, encryption: ColumnEncryption) -> None:
        """Compare the canaries that the server published with those that it was sent, and record the result."""
        try:
            published = published_canaries(spec, self._name, data)
        except IntegrityError as error:
            raise IntegrityError(f"{error}; no key leaves", where=server) from None
        changed = changed_canaries(published, spec, encryption) if spec.canaries else 0
        digests = {name: hashlib.sha256(symbols.data).digest() for name, symbols in published.symbols.items()}
        self._store.set_receipt(spec.release_id, published.count, changed, digests)


def check_passed(receipt: Receipt, server: str) -> None:
    """Refuse a server whose noise is not that of the release.

    Raises:
        IntegrityError: it says how many canaries changed, and how many should have.
    """
    if not receipt.passed:
        raise IntegrityError(
            f"of {receipt.canaries} canaries {receipt.changed} changed in {receipt.tester}'s columns,"
            f" {receipt.expected:.0f} +- {receipt.sd:.0f} expected: it did not add the noise of the release;"
            " no key leaves",
            where=server,
        )


def _check_sampled(spec: ReleaseSpec, numbers: NDArray[np.int64]) -> None:
    """Refuse numbers of sampled canaries that are none, or that a sample of the release cannot have."""
    # Overlapping by one: the last of a chunk is below the first of the next.
    chunks = (numbers[part.start : part.stop + 1] for part in row_slices(len(numbers)))
    rises = all(np.all(chunk[1:] > chunk[:-1]) for chunk in chunks)
    if not rises or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < spec.canaries):
        raise IntegrityError("the places of the sampled canaries are none of this release", where="canaries")
    # A sample without replacement spreads less than a binomial number, so the bounds are wide enough.
    share = Fraction(spec.published_rows, spec.uploaded_rows)
    low, high = accepted(spec.canaries, share, level_of(spec))
    if not low <= len(numbers) <= high:
        raise IntegrityError(
            f"{len(numbers)} of {spec.canaries} canaries are sampled, {low} to {high} can be", where="canaries"
        )


def _symbols(data: Sent, column: Column, count: int, offset: int) -> Symbols:
    # They may begin anywhere in memory.
    symbols = cast("Symbols", np.frombuffer(data, symbol_dtype(column.size), count, offset))
    for part in row_slices(count):
        check_symbols(symbols[part], column.size)
    return symbols
