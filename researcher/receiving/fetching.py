"""What a desk fetches of a release: columns and sampled places of the server, tests and keys of the curators.

Every call may be repeated: what lies in a file whole is not fetched again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

from veiltab.common.dataclass import dataclass, field
from veiltab.common.errors import DeniedError, TransferError, VeiltabError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.modes import Pad
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.waiting.together import together
from veiltab.researcher.parties.parties import ColumnDigests, PartyLinks
from veiltab.researcher.parties.server_findings import CuratorsTest
from veiltab.researcher.receiving.decryption import Ciphertext, EncryptedColumn
from veiltab.researcher.records.desk_files import DeskFiles

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
        curators = tuple(dict.fromkeys(holder for column in self.spec.columns for holder in column.holders))
        missing = [one for one in curators if one not in self.tests]
        fetches = [partial(_or_denial, partial(self.parties.fetch_test, self.spec, one)) for one in missing]
        answers = dict(zip(missing, await together(self.parties.room, fetches), strict=True)) | dict(self.tests)
        return dict(_grants(((one, answers[one]) for one in curators), self.spec))

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
        fetches: list[Callable[[], Awaitable[Mapping[str, bytes | Path]]]]
        match spec.pad:
            case Pad.CHACHA20:
                of_curators: dict[str, dict[str, ColumnDigests]] = {}
                for attribute, one in digests.items():
                    for holder in spec.column(attribute).holders:
                        of_curators.setdefault(holder, {})[attribute] = one
                fetches = [partial(self._keys_of, *one) for one in of_curators.items()]
            case Pad.OTP:
                fetches = [
                    partial(self._pad, attribute, holder, one)
                    for attribute, one in digests.items()
                    for holder in spec.column(attribute).holders
                ]
            case _:
                assert_never(spec.pad)
        answers = await together(self.parties.room, [partial(_or_denial, fetch) for fetch in fetches])
        keys = {part: key for _, some in _grants(enumerate(answers), spec) for part, key in some.items()}
        encrypted = []
        for column in spec.columns:
            if keys.keys() >= set(column.parts):
                key, *others = (keys[part] for part in column.parts)
                encrypted.append(EncryptedColumn(column=column, noisy=noisy[column], key=key, others=tuple(others)))
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


async def _or_denial(call: Callable[[], Awaitable[Answer]]) -> Answer | DeniedError:
    """Return what a call returns, or the denial that it ends with."""
    try:
        return await call()
    except DeniedError as error:
        return error


def _grants(answers: Iterable[tuple[Question, Answer | DeniedError]], spec: TableSpec) -> list[tuple[Question, Answer]]:
    """Return what was granted, with what was asked for; raise the last denial if nothing was."""
    grants, denial = [], DeniedError("no curator gave a key", where=f"release {spec.release_id}")
    for question, answer in answers:
        if isinstance(answer, DeniedError):
            denial = answer
        else:
            grants.append((question, answer))
    if not grants:
        raise denial
    return grants
