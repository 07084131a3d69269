"""How a desk comes to the counts of a published release: fetch, test, ask for keys, decrypt, test again, count.

Nothing that is decrypted is written, and every step may be repeated: until the histogram is durable, the desk has
perturbed ciphertext alone.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, assert_never

from veiltab.common.core.canaries import CanaryPlaces, places_key
from veiltab.common.core.symbols import row_slices
from veiltab.common.errors import DeniedError, TransferError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Pad
from veiltab.common.release.receipts.noise_tests import CanaryOrders
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.waiting.together import MOST_BESIDE, together
from veiltab.common.storage.files import file_digest, written_whole
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
    receipts_of,
    stated_changes,
    tested_together,
)
from veiltab.researcher.records.store import ResearcherStore

Asked = TypeVar("Asked")
Fetched = TypeVar("Fetched")


class Receiver:
    """Receives published releases.

    Args:
        store: durable state.
    """

    def __init__(self, name: str, server: str, store: ResearcherStore) -> None:
        self._name = name
        self._server = server
        self._store = store
        self._room = asyncio.Semaphore(MOST_BESIDE)

    async def receive(  # noqa: PLR0913 - what a party has sent before, and what it leads to
        self,
        spec: TableSpec,
        salt: bytes,
        parties: PartyLinks,
        stage: Stage | None = None,
        *,
        columns: Mapping[str, bytes] = MappingProxyType({}),
        tests: Mapping[str, CuratorsTest] = MappingProxyType({}),
    ) -> None:
        """Receive a release that the server has published, to its end.

        Args:
            salt: with which the digests of its columns begin.
            parties: the curators and the server.
            stage: says how far it is, if anybody asks.
            columns: attribute -> perturbed column, if the server has sent all of them; else they are fetched.
            tests: curator -> its test of the server, of those that have said what it showed; the others are asked.

        Raises:
            NotReadyError, UnavailableError: a party cannot answer yet.
            DeniedError: no curator gives a key.
            FailedReleaseError: a test of the server failed, or its parties contradict one another.
            TransferError: the columns that were sent are not those of the release.
        """
        began, stage = time.monotonic(), stage or Stage()
        noisy: dict[Column, Ciphertext] = self._sent(spec, columns) if columns else {}
        asking = asyncio.create_task(self._fetch_tests_if_ready(spec, parties, tests))
        try:
            if not columns:
                noisy |= await self._fetch_columns(spec, parties, stage)
            sampled = self._store.files.places(spec.release_id) if spec.sampling.is_by_server else None
            if sampled is not None:
                await parties.fetch_places(spec, sampled)
            fetched = time.monotonic()
            tests = await asking or await self._fetch_tests(spec, parties, tests)
        finally:
            asking.cancel()
        with stage.of("comparing columns with the curators' tests", None):
            rows, digests = await asyncio.to_thread(self._compare, spec, salt, noisy, tests, sampled)
        await asyncio.to_thread(self._test, spec, tests, rows, noisy)
        encrypted = await self._fetch_keys(spec, parties, noisy, digests)
        await asyncio.to_thread(self._count, spec, tests, rows, encrypted, stage)
        granted = tuple(one.column.attribute for one in encrypted)
        seconds = {"fetch": fetched - began, "decrypt": time.monotonic() - fetched}
        self._store.record_counts(spec.release_id, granted, seconds, self._bytes(spec, encrypted))

    def _count(
        self,
        spec: TableSpec,
        tests: Mapping[str, CuratorsTest],
        rows: PublishedRows,
        columns: Sequence[EncryptedColumn],
        stage: Stage,
    ) -> None:
        """Decrypt and count the rows, compare the canaries with their owners' lists, and write the counts."""
        with (
            step("count", release_id=spec.release_id),
            stage.of("decrypting and counting", spec.uploaded_rows) as progress,
        ):
            canaries = DecryptedCanaries(
                common_canary_key(tests),
                [one.column for one in columns],
                spec.canaries,
                rows.published_canaries,
                stated_changes(spec, tests, rows.published_canaries),
            )
            counts = count_rows(columns, rows, canaries.compare, progress.advance)
        canaries.check_lists()
        with written_whole(self._store.files.histogram(spec.release_id)) as file:
            file.write(counts.astype("<i8").data)

    def _sent(self, spec: TableSpec, columns: Mapping[str, bytes]) -> dict[Column, Ciphertext]:
        lengths = {column.attribute: column.byte_length(spec.published_rows) for column in spec.columns}
        if {attribute: len(symbols) for attribute, symbols in columns.items()} != lengths:
            raise TransferError("it sent other columns than the release has", where=f"server {self._server}")
        return {column: columns[column.attribute] for column in spec.columns}

    async def _fetch_columns(self, spec: TableSpec, parties: PartyLinks, stage: Stage) -> dict[Column, Path]:
        """Fetch the columns that are not here yet; return the file of each."""
        files = {column: self._store.files.noisy_column(spec.release_id, column.attribute) for column in spec.columns}
        sizes = {column: column.byte_length(spec.published_rows) for column in spec.columns}
        here = sum(size for column, size in sizes.items() if files[column].exists())
        with stage.of("fetching columns", sum(sizes.values()), done=here) as progress:

            async def fetch(column: Column) -> None:
                attribute, size = column.attribute, sizes[column]
                with step("fetch column", release_id=spec.release_id, attribute=attribute, size=size):
                    await parties.fetch_column(spec, column, files[column], progress.advance)

            await together(self._room, [partial(fetch, column) for column in spec.columns])
        return files

    async def _fetch_tests_if_ready(
        self, spec: TableSpec, parties: PartyLinks, received: Mapping[str, CuratorsTest]
    ) -> dict[str, CuratorsTest] | None:
        """Fetch the tests of all curators beside the columns; None if that is refused, so that they are asked again."""
        with suppress(VeiltabError):
            return await self._fetch_tests(spec, parties, received)
        return None

    async def _fetch_tests(
        self, spec: TableSpec, parties: PartyLinks, received: Mapping[str, CuratorsTest]
    ) -> dict[str, CuratorsTest]:
        """Return the tests of all curators with columns of which a key is still given; fetch those that are not known.

        Raises:
            DeniedError: there are none.
        """
        curators = tuple(dict.fromkeys(holder for column in spec.columns for holder in column.holders))
        missing = [one for one in curators if one not in received]
        fetches = [partial(_or_denial, partial(parties.fetch_test, spec, one)) for one in missing]
        answers = dict(zip(missing, await together(self._room, fetches), strict=True)) | dict(received)
        return dict(_granted(((one, answers[one]) for one in curators), spec))

    def _compare(
        self,
        spec: TableSpec,
        salt: bytes,
        noisy: Mapping[Column, Ciphertext],
        tests: Mapping[str, CuratorsTest],
        sampled: Path | None,
    ) -> tuple[PublishedRows, dict[str, ColumnDigests]]:
        """Compare what the desk fetched with what the curators tested; return its rows, and what it shows for keys.

        Raises:
            FailedReleaseError: they differ.
        """
        published = {column.attribute: digest_of(ciphertext, salt) for column, ciphertext in noisy.items()}
        claimed = b"" if sampled is None else file_digest(sampled, salt)
        check_published(tests, published, claimed, self._server)
        key = places_key(common_canary_key(tests))
        places = CanaryPlaces.of(key, rows=spec.uploaded_rows, canaries=spec.canaries)
        drawn = None if sampled is None else mapped_array(sampled, "<i8")
        many = partial(mapped_rows, folder=self._store.files.folder)
        rows = PublishedRows(uploaded=spec.uploaded_rows, canaries=places, sampled=drawn, many=many)
        digests, canary_rows = {}, rows.published_canaries.rows
        for column, ciphertext in noisy.items():
            if not tests.keys() >= set(column.holders):
                continue
            symbols, canaries = symbols_of(ciphertext, column), hashlib.sha256()
            for part in row_slices(len(canary_rows)):
                canaries.update(symbols[canary_rows[part]].data)
            digests[column.attribute] = ColumnDigests(published=published[column.attribute], canaries=canaries.digest())
        return rows, digests

    async def _fetch_keys(
        self,
        spec: TableSpec,
        parties: PartyLinks,
        noisy: Mapping[Column, Ciphertext],
        digests: Mapping[str, ColumnDigests],
    ) -> list[EncryptedColumn]:
        """Fetch every key that is given; return the columns that they decrypt.

        Raises:
            DeniedError: no key is given.
        """
        fetches: list[Callable[[], Awaitable[Mapping[str, bytes | Path]]]]
        match spec.pad:
            case Pad.CHACHA20:
                of_curators: dict[str, dict[str, ColumnDigests]] = {}
                for attribute, digest_of_owner in digests.items():
                    for holder in spec.column(attribute).holders:
                        of_curators.setdefault(holder, {})[attribute] = digest_of_owner
                fetches = [partial(self._fetch_keys_of, spec, *one, parties) for one in of_curators.items()]
            case Pad.OTP:
                fetches = [
                    partial(self._fetch_pad, spec, attribute, holder, digest_of_owner, parties)
                    for attribute, digest_of_owner in digests.items()
                    for holder in spec.column(attribute).holders
                ]
            case _:
                assert_never(spec.pad)
        answers = await together(self._room, [partial(_or_denial, fetch) for fetch in fetches])
        keys = {part: key for _, given in _granted(enumerate(answers), spec) for part, key in given.items()}
        encrypted = []
        for column in spec.columns:
            if keys.keys() >= set(column.parts):
                key, *others = (keys[part] for part in column.parts)
                encrypted.append(EncryptedColumn(column=column, noisy=noisy[column], key=key, others=tuple(others)))
        if not encrypted:
            raise DeniedError("no column has the keys of all its holders", where=f"release {spec.release_id}")
        return encrypted

    async def _fetch_keys_of(
        self, spec: TableSpec, curator: str, digests: Mapping[str, ColumnDigests], parties: PartyLinks
    ) -> dict[str, bytes]:
        """Fetch the keys of a curator's columns, or of its parts of them."""
        with ExitStack() as steps:
            measured = {
                attribute: steps.enter_context(step("fetch key", release_id=spec.release_id, attribute=attribute))
                for attribute in digests
            }
            keys = await parties.fetch_keys(spec, curator, digests)
            for attribute, one in measured.items():
                one.bytes = len(keys.get(attribute, b""))
        return {spec.column(attribute).part_of(curator): key for attribute, key in keys.items()}

    async def _fetch_pad(
        self, spec: TableSpec, attribute: str, curator: str, digests: ColumnDigests, parties: PartyLinks
    ) -> dict[str, Path]:
        """Fetch the one-time pad of a column, or of a holder's part of it."""
        column = spec.column(attribute)
        path = self._store.files.one_time_pad(spec.release_id, part := column.part_of(curator))
        with step("fetch key", release_id=spec.release_id, attribute=part) as measured:
            await parties.fetch_pad(spec, column, curator, digests, path)
            measured.bytes = path.stat().st_size
        return {part: path}

    def _test(
        self,
        spec: TableSpec,
        tests: Mapping[str, CuratorsTest],
        rows: PublishedRows,
        noisy: Mapping[Column, Ciphertext],
    ) -> None:
        """Test the server on all columns together, before any key is asked for; record what the tests showed.

        Raises:
            FailedReleaseError: a test failed.
        """
        published = rows.published_canaries
        together = tested_together(spec, tests, CanaryOrders.of(rows.canaries, published.sampled, rows.many))
        symbols = {column: symbols_of(ciphertext, column) for column, ciphertext in noisy.items()}
        check_listed_symbols(stated_changes(spec, tests, published), published, symbols)
        receipts = receipts_of(tests, together)
        self._store.set_receipts(spec.release_id, receipts)
        check_receipts(receipts, self._server, canaries=len(published.rows))

    def _bytes(self, spec: TableSpec, columns: Sequence[EncryptedColumn]) -> dict[str, int]:
        """Return the bytes of columns and keys by link."""
        fetched = sum(column.byte_length(spec.published_rows) for column in spec.columns)
        by_link = {f"server {self._server} -> researcher {self._name}": fetched}
        for one in columns:
            for holder, length in zip(one.column.holders, one.key_lengths, strict=True):
                link = f"curator {holder} -> researcher {self._name}"
                by_link[link] = by_link.get(link, 0) + length
        return by_link


async def _or_denial(call: Callable[[], Awaitable[Fetched]]) -> Fetched | DeniedError:
    """Return what a call returns, or the denial that it ends with."""
    try:
        return await call()
    except DeniedError as error:
        return error


def _granted(
    answers: Iterable[tuple[Asked, Fetched | DeniedError]], spec: TableSpec
) -> Iterator[tuple[Asked, Fetched]]:
    """Return what was granted, with what was asked for.

    Raises:
        DeniedError: nothing was.
    """
    denied = DeniedError("no curator gave a key", where=f"release {spec.release_id}")
    nothing = True
    for attribute, answer in answers:
        if isinstance(answer, DeniedError):
            denied = answer
        else:
            nothing = False
            yield attribute, answer
    if nothing:
        raise denied
