"""How a desk comes to the counts of a published release: fetch, test, ask for keys, decrypt, test again, count.

Nothing that is decrypted is written, and every step may be repeated: what lies in a file whole is not fetched again,
and until the histogram is durable, the desk has perturbed ciphertext alone.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

from veiltab.common.core.canaries import CanaryPlaces, Places, places_key
from veiltab.common.core.domain import Symbols
from veiltab.common.core.symbols import row_slices
from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import DeniedError, TransferError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.canary_changes import CanaryChanges
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.waiting.together import together
from veiltab.common.storage.files import file_digest, write_whole
from veiltab.common.storage.mapped import mapped_array, mapped_rows
from veiltab.researcher.parties.parties import ColumnDigests, PartyLinks
from veiltab.researcher.parties.server_findings import CuratorsTest
from veiltab.researcher.receiving.decryption import (
    Ciphertext,
    EncryptedColumn,
    PublishedRows,
    count_rows,
    digest_of,
    symbols_of,
)
from veiltab.researcher.receiving.server_check import (
    DecryptedCanaries,
    check_listed_symbols,
    check_published,
    check_receipts,
    common_canary_key,
    tested_together,
)
from veiltab.researcher.records.desk_files import DeskFiles
from veiltab.researcher.records.store import ResearcherStore

Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyRelease:
    """What the server published of a release, and what the curators' tests showed of it.

    Args:
        columns: perturbed, all of the release.
        places: file of the places that the server sampled; None if it published all rows.
        tests: curator -> its test of the server, of those with columns of which a key is still given.
    """

    columns: Mapping[Column, Ciphertext]
    places: Path | None
    tests: Mapping[str, CuratorsTest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Fetches one release from its parties, as many calls at a time as these have room for.

    Args:
        stage: says how far it is, if anybody asks.
        columns: attribute -> perturbed column, if the server has sent all of them; else they are fetched.
        tests: curator -> its test of the server, of those that have said what it showed; the others are asked.
    """

    spec: TableSpec
    parties: PartyLinks
    files: DeskFiles
    stage: Stage = field(default_factory=Stage)
    columns: Mapping[str, bytes] = field(default_factory=dict)
    tests: Mapping[str, CuratorsTest] = field(default_factory=dict)

    async def noisy_release(self) -> NoisyRelease:
        """Fetch columns and places, and beside them the curators' tests; errors of `Receiver.receive`."""
        asking = asyncio.create_task(self._tests_if_ready())
        try:
            noisy: Mapping[Column, Ciphertext] = self._sent() if self.columns else await self._columns()
            places = self.files.places(self.spec.release_id) if self.spec.sampling.is_by_server else None
            if places is not None:
                await self.parties.fetch_places(self.spec, places)
            return NoisyRelease(columns=noisy, places=places, tests=await asking or await self._tests())
        finally:
            asking.cancel()

    def _sent(self) -> dict[Column, bytes]:
        spec, columns = self.spec, self.columns
        lengths = {column.attribute: column.byte_length(spec.published_rows) for column in spec.columns}
        if {attribute: len(symbols) for attribute, symbols in columns.items()} != lengths:
            raise TransferError("it sent other columns than the release has", where=f"server {self.parties.server}")
        return {column: columns[column.attribute] for column in spec.columns}

    async def _columns(self) -> dict[Column, Path]:
        """Fetch the columns that are not here yet; return the file of each."""
        spec = self.spec
        files = {column: self.files.noisy_column(spec.release_id, column.attribute) for column in spec.columns}
        sizes = {column: column.byte_length(spec.published_rows) for column in spec.columns}
        here = sum(size for column, size in sizes.items() if files[column].exists())
        with self.stage.of("fetching columns", sum(sizes.values()), done=here) as progress:
            fetch = partial(self.parties.fetch_column, spec, advance=progress.advance)
            await together(self.parties.room, [partial(fetch, column, path) for column, path in files.items()])
        return files

    async def _tests_if_ready(self) -> dict[str, CuratorsTest] | None:
        """Fetch the tests beside columns that take long; None if that is refused, so that they are asked for again."""
        if not self.columns:
            with suppress(VeiltabError):
                return await self._tests()
        return None

    async def _tests(self) -> dict[str, CuratorsTest]:
        """Return the tests of the curators that still give a key of their columns; fetch those that are not known."""
        holders = dict.fromkeys(holder for column in self.spec.columns for holder in column.holders)
        return await self._granted({one: partial(self._test, one) for one in holders})

    async def _test(self, curator: str) -> CuratorsTest:
        return self.tests.get(curator) or await self.parties.fetch_test(self.spec, curator)

    async def keys(
        self, noisy: Mapping[Column, Ciphertext], digests: Mapping[str, ColumnDigests]
    ) -> list[EncryptedColumn]:
        """Fetch every key that is given; return the columns that they decrypt.

        Args:
            noisy: the perturbed columns.
            digests: attribute -> what its holders are shown, of the columns whose holders all tested the server.

        Raises:
            DeniedError: no key is given.
        """
        spec = self.spec
        fetches: Mapping[object, Callable[[], Awaitable[Mapping[str, bytes | Path]]]]
        match spec.pad:
            case Pad.CHACHA20:
                of_curators: dict[str, dict[str, ColumnDigests]] = {}
                for attribute, one in digests.items():
                    for holder in spec.column(attribute).holders:
                        of_curators.setdefault(holder, {})[attribute] = one
                fetches = {holder: partial(self._keys_of, holder, some) for holder, some in of_curators.items()}
            case Pad.OTP:
                fetches = {
                    (attribute, holder): partial(self._pad, attribute, holder, one)
                    for attribute, one in digests.items()
                    for holder in spec.column(attribute).holders
                }
            case _:
                assert_never(spec.pad)
        keys = {part: key for some in (await self._granted(fetches)).values() for part, key in some.items()}
        encrypted = []
        for column in spec.columns:
            if keys.keys() >= set(column.parts):
                of_holders = tuple(keys[part] for part in column.parts)
                encrypted.append(EncryptedColumn(column=column, noisy=noisy[column], keys=of_holders))
        if not encrypted:
            raise DeniedError("no column has the keys of all its holders", where=f"release {spec.release_id}")
        return encrypted

    async def _keys_of(self, curator: str, digests: Mapping[str, ColumnDigests]) -> dict[str, bytes]:
        """Fetch the keys of a curator's columns, or of its parts of them."""
        keys = await self.parties.fetch_keys(self.spec, curator, digests)
        return {self.spec.column(attribute).part_of(curator): key for attribute, key in keys.items()}

    async def _pad(self, attribute: str, curator: str, digests: ColumnDigests) -> dict[str, Path]:
        """Fetch the one-time pad of a column, or of a holder's part of it."""
        column = self.spec.column(attribute)
        path = self.files.one_time_pad(self.spec.release_id, part := column.part_of(curator))
        await self.parties.fetch_pad(self.spec, column, curator, digests, path)
        return {part: path}

    async def _granted(self, fetches: Mapping[Question, Callable[[], Awaitable[Answer]]]) -> dict[Question, Answer]:
        """Fetch what is granted, with what it answers; raise the last denial if nothing is."""
        calls = [partial(_or_denial, fetch) for fetch in fetches.values()]
        answers = zip(fetches, await together(self.parties.room, calls), strict=True)
        grants, denial = {}, DeniedError("no curator gave a key", where=f"release {self.spec.release_id}")
        for question, answer in answers:
            if isinstance(answer, DeniedError):
                denial = answer
            else:
                grants[question] = answer
        if not grants:
            raise denial
        return grants


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
    """Receives published releases."""

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
        columns = sum(column.byte_length(spec.published_rows) for column in spec.columns)
        byte_counts = Counter({f"server {self._server} -> researcher {self._name}": columns})
        for one in encrypted:
            for holder, length in zip(one.column.holders, one.key_lengths, strict=True):
                byte_counts[f"curator {holder} -> researcher {self._name}"] += length
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
        write_whole(self._store.files.histogram(spec.release_id), counts.astype("<i8").data)


def _digest(symbols: Symbols, canary_rows: Places) -> bytes:
    """Return the SHA-256 of the published symbols of a column's canaries, in order of their places."""
    digest = hashlib.sha256()
    for part in row_slices(len(canary_rows)):
        digest.update(symbols[canary_rows[part]].data)
    return digest.digest()


async def _or_denial(call: Callable[[], Awaitable[Answer]]) -> Answer | DeniedError:
    """Return what a call returns, or the denial that it ends with."""
    try:
        return await call()
    except DeniedError as error:
        return error
