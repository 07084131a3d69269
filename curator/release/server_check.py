"""A curator's tests of the server: did it add the noise of the release to the canaries?

What the server published is recorded before it learns the canaries' places, so it cannot change a column afterwards.
The ciphertext that it was sent is compared with what it published at the canaries' places; no key is needed. Either may
be as long as a column: both lie on disk, much of what the server sends in a file without a name.

A curator tests its own columns first, and no other can spoil that. Then the owners exchange their lists of changed
canaries, and each of them tests all columns together, before a key leaves.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.symbols import add_holders, check_symbols, row_slices
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, NotReadyError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.receipts.canary_changes import ChangesCollector, most_changes
from veiltab.common.release.receipts.canary_plan import sampled_canaries
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.receipts.receipt import Receipt
from veiltab.common.release.receipts.testing import amount_receipt, joint_receipt, own_receipt
from veiltab.common.release.table_spec import PLACE_BYTES, Column, TableSpec
from veiltab.common.storage.files import named_in_errors, written_whole
from veiltab.common.storage.mapped import IN_MEMORY, mapped_array, mapped_rows
from veiltab.curator.budget.bounded_set import BoundedSet
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.progress.release_record import PublicationDigests
from veiltab.curator.records.store import CuratorStore

Sent = bytes | NDArray[np.uint8]
"""What a server sent, in memory or mapped from disk."""


class ServerUnderTest(Protocol):
    """The server, as far as it is tested."""

    @property
    def name(self) -> str:
        """The server, as messages name it."""

    async def publication(self, spec: TableSpec) -> PublicationDigests:
        """Return the digests of what is published."""

    def canaries(self, spec: TableSpec, places_key: bytes) -> AsyncIterator[bytes]:
        """Return the published symbols of the canaries in the caller's columns, piece by piece."""


class Holders(Protocol):
    """The other curators, as far as they hold the same columns."""

    def canary_part(self, curator: str, spec: TableSpec, column: Column) -> AsyncIterator[bytes]:
        """Return the ciphertext of the canaries in a curator's part of a column, piece by piece."""


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


def canary_width(spec: TableSpec, curator: str) -> int:
    """Return the bytes that the server sends a curator for each canary."""
    place = PLACE_BYTES if spec.sampling.is_by_server else 0
    return place + sum(column.byte_length(1) for column in spec.columns_of(curator))


def published_canaries(spec: TableSpec, curator: str, data: Sent) -> PublishedCanaries:
    """Read what the server sends a curator about the canaries.

    Args:
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


def changed_canaries(
    published: PublishedCanaries, spec: TableSpec, curator: str, encryption: ColumnEncryption, orders: CanaryOrders
) -> ChangesCollector:
    """Return which canaries the server changed in a curator's columns, and how; the list of them if it fits a message.

    Raises:
        IntegrityError: the ciphertext that was sent is not here any more, or damaged.
    """
    columns = spec.columns_of(curator)
    collector = ChangesCollector(columns, most=most_changes(columns))
    sent = [_sent(spec, curator, column, encryption) for column in columns]
    for part in row_slices(published.count):
        places, numbers = orders.places[part], part if published.numbers is None else published.numbers[part]
        symbols = [published.symbols[column.attribute][part] for column in columns]
        ciphertexts = list[Symbols]()
        for column, (whole, *others) in zip(columns, sent, strict=True):
            parts = [whole[places], *(some[numbers] for some in others)]
            if max(one.max(initial=0) for one in parts) >= column.size:  # a sum of parts would hide it
                raise IntegrityError("the ciphertext is damaged", where=f"attribute {column.attribute}")
            ciphertexts.append(add_holders(parts, column.size))
        collector.compare(part.start, symbols, ciphertexts)
    return collector


def canary_orders(spec: TableSpec, canary_key: bytes, numbers: NDArray[np.int64] | None, folder: Path) -> CanaryOrders:
    """Return the places of the published canaries among the rows that the curators uploaded.

    Args:
        numbers: which of the canaries were published; None for all.
        folder: for what memory should not keep.
    """
    places = CanaryPlaces.of(places_key(canary_key), rows=spec.uploaded_rows, canaries=spec.canaries)
    return CanaryOrders.of(places, numbers, partial(mapped_rows, folder=folder))


def _sent(spec: TableSpec, curator: str, column: Column, encryption: ColumnEncryption) -> list[Symbols]:
    """Return a column's ciphertext that the server was sent, then that of the canaries in the other holders' parts."""
    others = [holder for holder in column.holders if holder != curator] if spec.canaries else []
    own = _mapped(encryption.ciphertext(column.attribute), column, spec.uploaded_rows)
    return [own, *(_mapped(encryption.canaries(column.attribute, one), column, spec.canaries) for one in others)]


def _mapped(path: Path, column: Column, rows: int) -> Symbols:
    """Return the symbols of a file, mapped from disk."""
    if not path.exists() or path.stat().st_size != column.byte_length(rows):
        raise IntegrityError("the ciphertext is gone or cut off", where=f"attribute {column.attribute}")
    return mapped_array(path, symbol_dtype(column.size))


class ServerCheck:
    """The tests that one curator makes."""

    def __init__(self, name: str, store: CuratorStore) -> None:
        self._name = name
        self._store = store
        # Releases whose server was seen to have passed: a result is never taken back.
        self._passed = BoundedSet()
        # Where the canaries stand, from one's own test to that of all columns; a process that lacks it asks again.
        self._orders: dict[str, CanaryOrders] = {}

    async def run(  # noqa: PLR0913 - what is tested, and what was done before
        self,
        spec: TableSpec,
        server: ServerUnderTest,
        encryption: ColumnEncryption,
        peers: Holders,
        stage: Stage | None = None,
        *,
        is_published: bool = False,
    ) -> None:
        """Test one's own columns, unless that was done; a curator without columns in the release has nothing to test.

        Args:
            spec: of a release whose columns every curator has sent.
            encryption: has the ciphertext, and that of the canaries in columns of other holders.
            peers: give the ciphertext of the canaries in their parts of one's columns, once they have heard what the
                server published.
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
        if not self._store.tests.receipts(spec.release_id):
            # What it published is durable before the server can learn which rows are tested.
            if not is_published:
                self._store.tests.record_publication(spec.release_id, await server.publication(spec))
            if any(column.others for column in spec.columns_of(self._name)):
                await asyncio.to_thread(self._write_parts, spec, encryption)
                await self._fetch_parts(spec, encryption, peers)
            with (stage or Stage()).of("testing the server", None):
                data = await self._sent_by(server, spec, encryption.folder)
                await asyncio.to_thread(self._test, spec, data, server.name, encryption)
        holders = {holder for column in spec.columns_of(self._name) for holder in column.holders} - {self._name}
        self._check(spec, server.name, holders, "part")

    async def run_together(
        self, spec: TableSpec, server: ServerUnderTest, lists: Mapping[str, bytes], folder: Path
    ) -> None:
        """Test all columns together, unless that was done; a curator without columns has nothing to test.

        Args:
            spec: of a release of which every owner has tested its own columns.
            lists: owner -> its list of changed canaries, of every other owner.
            folder: for what memory should not keep.

        Raises:
            FailedReleaseError: a list is none.
            IntegrityError: the columns together are not the release with its noise.
        """
        release_id = spec.release_id
        if not spec.columns_of(self._name):
            return
        if len(self._store.tests.receipts(release_id)) < 2:
            orders = self._orders.get(release_id) or await self._orders_of(spec, server, folder)
            whole = dict(lists) | {self._name: self._store.tests.canary_changes(release_id)[self._name]}
            receipt = await asyncio.to_thread(joint_receipt, spec, whole, orders)
            self._store.tests.set_joint_receipt(release_id, receipt, whole)
        self._orders.pop(release_id, None)
        self._check(spec, server.name, lists, "list")

    def forget(self, release_id: str) -> None:
        """Forget where the canaries of a release stand that is over."""
        self._orders.pop(release_id, None)

    def is_passed(self, spec: TableSpec) -> bool:
        """Whether the server has passed the tests of a release that were made, or this curator has no columns there."""
        if spec.release_id in self._passed or not spec.columns_of(self._name):
            return True
        receipts = self._store.tests.receipts(spec.release_id)
        is_passed = bool(receipts) and all(receipt.passed for receipt in receipts)
        if is_passed and len(receipts) > 1:
            self._passed.add(spec.release_id)
        return is_passed

    def changes(self, spec: TableSpec) -> bytes:
        """Return the list of changed canaries of one's own columns, for another owner.

        Raises:
            NotReadyError: the server has not passed the test of them.
        """
        if not self.is_passed(spec) or not spec.columns_of(self._name):
            raise NotReadyError("has not tested the server yet", where=f"curator {self._name}")
        return self._store.tests.canary_changes(spec.release_id)[self._name]

    def _write_parts(self, spec: TableSpec, encryption: ColumnEncryption) -> None:
        """Write the ciphertext of the canaries in one's own part of columns that have other holders, for these."""
        orders = canary_orders(spec, self._store.keys.canary_key(spec.release_id), None, encryption.folder)
        for column in filter(lambda column: column.others, spec.columns_of(self._name)):
            own = _mapped(encryption.ciphertext(column.attribute), column, spec.uploaded_rows)
            with written_whole(encryption.canaries(column.attribute)) as file:
                file.writelines(own[orders.places[part]].data for part in row_slices(spec.canaries))

    async def _fetch_parts(self, spec: TableSpec, encryption: ColumnEncryption, peers: Holders) -> None:
        """Fetch the ciphertext of the canaries in the other holders' parts of one's columns."""
        for column in spec.columns_of(self._name) if spec.canaries else ():
            for holder in column.holders:
                path = encryption.canaries(column.attribute, holder)
                if holder == self._name or path.exists():
                    continue
                with written_whole(path) as file:
                    async for data in peers.canary_part(holder, spec, column):
                        file.write(data)

    def _check(self, spec: TableSpec, server: str, others: Iterable[str], what: str) -> None:
        """Refuse a server that failed a test which was made; what others gave for it may be false as well."""
        where = ", or ".join((server, *(f"curator {one} with its {what}" for one in sorted(others))))
        for receipt in self._store.tests.receipts(spec.release_id):
            check_passed(receipt, where)

    async def _sent_by(self, server: ServerUnderTest, spec: TableSpec, folder: Path) -> Sent:
        """Ask for the canaries, and return what comes; if that is much, mapped from a file without a name."""
        if not spec.canaries:
            return b""
        pieces = server.canaries(spec, places_key(self._store.keys.canary_key(spec.release_id)))
        if spec.canaries * canary_width(spec, self._name) <= IN_MEMORY:
            return b"".join([data async for data in pieces])
        with named_in_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
            async for data in pieces:
                file.write(data)
            file.flush()
            return np.memmap(file, np.uint8, mode="r") if file.tell() else b""

    def _test(self, spec: TableSpec, data: Sent, server: str, encryption: ColumnEncryption) -> None:
        """Compare the canaries that the server published with those that it was sent, and record the result."""
        published = self._published(spec, data, server)
        digests = {name: hashlib.sha256(symbols.data).digest() for name, symbols in published.symbols.items()}
        key = self._store.keys.canary_key(spec.release_id)
        orders = canary_orders(spec, key, published.numbers, encryption.folder)
        collected = changed_canaries(published, spec, self._name, encryption, orders)
        changes, listed = collected.changes(), b""
        if changes is None:
            receipt = amount_receipt(spec, self._name, canaries=published.count, changed=collected.count)
        else:
            listed, receipt = changes.to_bytes(), own_receipt(spec, self._name, changes, orders)
            self._orders[spec.release_id] = orders
        self._store.tests.set_receipt(spec.release_id, receipt, listed, digests)

    def _published(self, spec: TableSpec, data: Sent, server: str) -> PublishedCanaries:
        try:
            return published_canaries(spec, self._name, data)
        except IntegrityError as error:
            raise IntegrityError(f"{error}; no key leaves", where=server) from None

    async def _orders_of(self, spec: TableSpec, server: ServerUnderTest, folder: Path) -> CanaryOrders:
        """Return where the canaries stand that the server published; it is asked which, if it samples."""
        numbers = None
        if spec.sampling.is_by_server:
            data = await self._sent_by(server, spec, folder)
            numbers = self._published(spec, data, server.name).numbers
        return await asyncio.to_thread(
            canary_orders, spec, self._store.keys.canary_key(spec.release_id), numbers, folder
        )


def check_passed(receipt: Receipt, server: str) -> None:
    """Refuse a server whose noise is not that of the release.

    Raises:
        IntegrityError: it says which tests failed.
    """
    if not receipt.passed:
        raise IntegrityError(
            f"it did not add the noise of the release: {receipt.sentence()}; no key leaves", where=server
        )


def _check_sampled(spec: TableSpec, numbers: NDArray[np.int64]) -> None:
    """Refuse numbers of sampled canaries that are none, or that a sample of the release cannot have."""
    # Overlapping by one: the last of a chunk is below the first of the next.
    chunks = (numbers[part.start : part.stop + 1] for part in row_slices(len(numbers)))
    rises = all(np.all(chunk[1:] > chunk[:-1]) for chunk in chunks)
    if not rises or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < spec.canaries):
        raise IntegrityError("the places of the sampled canaries are none of this release", where="canaries")
    low, high = sampled_canaries(spec)
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
