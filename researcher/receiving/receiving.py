"""How a desk comes to the counts of a published release: fetch, test, ask for keys, decrypt, test again, count.

Nothing that is decrypted is written, and every step may be repeated: until the histogram is durable, the desk has
perturbed ciphertext alone.
"""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import partial

from veiltab.common.core.canaries import CanaryPlaces, Places, places_key
from veiltab.common.core.domain import Symbols
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.storage.files import file_digest, written_whole
from veiltab.common.storage.mapped import mapped_array, mapped_rows
from veiltab.researcher.parties.parties import ColumnDigests
from veiltab.researcher.receiving.decryption import EncryptedColumn, PublishedRows, count_rows, digest_of, symbols_of
from veiltab.researcher.receiving.fetching import Fetch, NoisyRelease
from veiltab.researcher.receiving.server_check import (
    DecryptedCanaries,
    check_listed_symbols,
    check_published,
    check_receipts,
    common_canary_key,
    tested_together,
)
from veiltab.researcher.records.store import ResearcherStore


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedRows:
    """The published rows, on which the server has passed the tests.

    Args:
        lists: owner -> the changes of canaries that it stated.
        digests: attribute -> what its holders are shown for their keys, of the columns that all of them have tested.
    """

    rows: PublishedRows
    lists: Mapping[str, CanaryChanges]
    digests: Mapping[str, ColumnDigests]


class Receiver:
    """Receives published releases.

    Args:
        store: durable state.
    """

    def __init__(self, name: str, server: str, store: ResearcherStore) -> None:
        self._name = name
        self._server = server
        self._store = store

    async def receive(self, fetch: Fetch, salt: bytes) -> None:
        """Receive a release that the server has published, to its end.

        Args:
            salt: with which the digests of its columns begin.

        Raises:
            NotReadyError, UnavailableError: a party cannot answer yet.
            DeniedError: no curator gives a key.
            FailedReleaseError: a test of the server failed, or its parties contradict one another.
            TransferError: the columns that were sent are not those of the release.
        """
        spec, began = fetch.spec, time.monotonic()
        noisy_release = await fetch.noisy_release()
        fetched = time.monotonic()
        with fetch.stage.of("comparing columns with the curators' tests", None):
            tested = await asyncio.to_thread(self._tested, spec, salt, noisy_release)
        encrypted = await fetch.keys(noisy_release.columns, tested.digests)
        await asyncio.to_thread(self._count, spec, noisy_release, tested, encrypted, fetch.stage)
        attributes = tuple(one.column.attribute for one in encrypted)
        seconds = {"fetch": fetched - began, "decrypt": time.monotonic() - fetched}
        byte_counts = self._bytes(spec, encrypted)
        self._store.record_counts(spec.release_id, attributes, seconds, byte_counts)

    def _tested(self, spec: TableSpec, salt: bytes, noisy_release: NoisyRelease) -> TestedRows:
        """Compare what the desk fetched with what the curators tested, and repeat their tests of all columns together.

        What the tests showed is recorded, and no key was asked for yet.

        Raises:
            FailedReleaseError: the columns differ, or a test failed.
        """
        noisy, tests, sampled = noisy_release.columns, noisy_release.tests, noisy_release.places
        published = {column.attribute: digest_of(ciphertext, salt) for column, ciphertext in noisy.items()}
        places_digest = b"" if sampled is None else file_digest(sampled, salt)
        check_published(tests, published, places_digest, self._server)
        key = places_key(common_canary_key(tests))
        places = CanaryPlaces.of(key, rows=spec.uploaded_rows, canaries=spec.canaries)
        sample = None if sampled is None else mapped_array(sampled, "<i8")
        many = partial(mapped_rows, folder=self._store.files.folder)
        rows = PublishedRows(uploaded=spec.uploaded_rows, canaries=places, sampled=sample, many=many)
        canaries = rows.published_canaries
        receipts, lists = tested_together(spec, tests, CanaryOrders.of(places, canaries.sampled, many))
        symbols = {column: symbols_of(ciphertext, column) for column, ciphertext in noisy.items()}
        check_listed_symbols(lists, canaries, symbols)
        self._store.set_receipts(spec.release_id, receipts)
        check_receipts(receipts, self._server, canaries=len(canaries.rows))
        digests = {
            column.attribute: ColumnDigests(
                published=published[column.attribute], canaries=_digest(symbols[column], canaries.rows)
            )
            for column in noisy
            if tests.keys() >= set(column.holders)
        }
        return TestedRows(rows=rows, lists=lists, digests=digests)

    def _count(
        self,
        spec: TableSpec,
        noisy_release: NoisyRelease,
        tested: TestedRows,
        columns: Sequence[EncryptedColumn],
        stage: Stage,
    ) -> None:
        """Decrypt and count the rows, compare the canaries with their owners' lists, and write the counts."""
        with (
            step("count", release_id=spec.release_id),
            stage.of("decrypting and counting", spec.uploaded_rows) as progress,
        ):
            canaries = DecryptedCanaries(
                common_canary_key(noisy_release.tests),
                [one.column for one in columns],
                spec.canaries,
                tested.rows.published_canaries,
                tested.lists,
            )
            counts = count_rows(columns, tested.rows, canaries.compare, progress.advance)
        canaries.check_lists()
        with written_whole(self._store.files.histogram(spec.release_id)) as file:
            file.write(counts.astype("<i8").data)

    def _bytes(self, spec: TableSpec, columns: Sequence[EncryptedColumn]) -> dict[str, int]:
        """Return the bytes of columns and keys by link."""
        fetched = sum(column.byte_length(spec.published_rows) for column in spec.columns)
        by_link = {f"server {self._server} -> researcher {self._name}": fetched}
        for one in columns:
            for holder, length in zip(one.column.holders, one.key_lengths, strict=True):
                link = f"curator {holder} -> researcher {self._name}"
                by_link[link] = by_link.get(link, 0) + length
        return by_link


def _digest(symbols: Symbols, canary_rows: Places) -> bytes:
    """Return the SHA-256 of the published symbols of a column's canaries, in order of their places."""
    digest = hashlib.sha256()
    for part in row_slices(len(canary_rows)):
        digest.update(symbols[canary_rows[part]].data)
    return digest.digest()
