"""The sample of a release and its noise: the same rows and coins at every curator, however often they are drawn."""

import asyncio
import hmac
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import POSITION
from veiltab.common.core.sampling import Rows, index_pieces, sample_pieces
from veiltab.common.core.symbols import CHUNK, row_slices
from veiltab.common.dataclass import dataclass
from veiltab.common.errors import IntegrityError, NotReadyError
from veiltab.common.observe.progress import Stage
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Sampling
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.schemes.simple_random import SimpleRandom
from veiltab.common.storage.files import written_whole
from veiltab.curator.columns.noise_and_canaries import CuratorsNoise, canary_key, coin_key, curators_noise
from veiltab.curator.columns.sample_rows import SampleRows, are_different, gathering_on, grouping_on
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import NO_COMMITMENTS, Coins, release_coin
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.execution import Execution, is_small

if TYPE_CHECKING:
    from veiltab.curator.alignment.intersection import AlignedTable
    from veiltab.curator.columns.draw_tasks import DrawnSample

_INDEX_BYTES = 8

_ROUNDED = "rounded-"
"""How the names of folders begin that have rounded columns; what an earlier process left there is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSample:
    """What the curators of a release draw from its seed, alike at each of them.

    Args:
        table: all respondents, numbers rounded.
        rows: the sampled rows, in sample order.
        noise: the coins of the curators' noise, and the canaries.
        check: keyed digest of all of that.
    """

    table: "AlignedTable"
    rows: "SampleRows | DrawnSample"
    noise: CuratorsNoise
    check: bytes


class Sampler:
    """Draws samples together with the other curators.

    Args:
        folder: where its releases have their folders.
        coins: the coins of the seeds.
        store: remembers which keys are spent.
        execution: draws samples of tables that are not small.
    """

    def __init__(self, name: str, folder: Path, coins: Coins, store: CuratorStore, execution: Execution) -> None:
        for old in folder.glob(f"{_ROUNDED}*"):
            shutil.rmtree(old, ignore_errors=True)
        self._name = name
        self._folder = folder
        self._grouping, self._gathering = grouping_on(folder), gathering_on(folder)
        self._coins = coins
        self._store = store
        self._execution = execution

    def indices_file(self, release_id: str) -> Path:
        """Return where explicit row indices of a release lie."""
        return self._folder / release_id / "indices.bin"

    def shared_indices(self, release_id: str) -> Path:
        """Return the file of the row indices of a release, for a peer.

        Raises:
            NotReadyError: there are none yet.
        """
        path = self.indices_file(release_id)
        if not path.exists():
            raise NotReadyError("has not drawn the indices yet", where=f"curator {self._name}")
        return path

    async def draw(
        self,
        spec: TableSpec,
        table: "AlignedTable",
        peers: Peers,
        stage: Stage | None = None,
        commitments: Mapping[str, bytes] = NO_COMMITMENTS,
    ) -> SharedSample:
        """Draw the sample of a release, its coins and its canaries, again if need be.

        Args:
            stage: says how far the draw is, if anybody asks.
            commitments: as in `Coins.toss`.

        Raises:
            VeiltabError: as `Coins.toss`; after NotReadyError try again.
            IntegrityError: the indices that a peer shares are not a sample.
            ConflictError: another release has spent these coins or canaries.
        """
        stage = stage or Stage()
        with step("toss", release_id=spec.release_id):
            seed = await self._coins.toss(release_coin(spec.release_id), peers, commitments)
        with step("draw", release_id=spec.release_id), stage.of("drawing the sample", None):
            # Whether there are indices comes before the work: it may have to wait for them.
            pieces = await self._indices(spec, peers) if spec.sampling is Sampling.INDICES else None
            if numbers := [c for c in spec.columns_of(self._name) if table.column(c.attribute).dtype == POSITION]:
                from veiltab.curator.columns.rounded_table import rounded_table  # noqa: PLC0415 - not for tables without numbers

                table = await asyncio.to_thread(rounded_table, table, numbers, self._folder, _ROUNDED)
            key = derive(seed, "sampling")
            by_seed = partial(self._drawn_rows, spec, table, key, stage)
            draw = by_seed if pieces is None else partial(SampleRows, pieces, self._folder)
            return await asyncio.to_thread(self._sample, spec, seed, table, draw, stage)

    def _drawn_rows(
        self, spec: TableSpec, table: "AlignedTable", key: bytes, stage: Stage
    ) -> "SampleRows | DrawnSample":
        """Draw rows by a key: in tasks if many are ordered."""
        scheme, everybody = spec.description.scheme, spec.sampling.is_by_server
        if not is_small(spec.population) and (everybody or isinstance(scheme, SimpleRandom)):
            from veiltab.curator.columns.draw_tasks import DrawnSample  # noqa: PLC0415 - not for tables that fit in memory

            own = [column.attribute for column in spec.columns_of(self._name)]
            sample = spec.population if everybody else scheme.sample
            return DrawnSample(table, sample, key, own, self._execution, stage)
        if everybody:
            pieces = sample_pieces(table.tokens(), spec.population, key, self._grouping)
        else:
            pieces = scheme.draw_pieces(table.tokens(), key, self._grouping, self._gathering)
        return SampleRows(pieces, self._folder)

    def _sample(
        self,
        spec: TableSpec,
        seed: bytes,
        table: "AlignedTable",
        draw: "Callable[[], SampleRows | DrawnSample]",
        stage: Stage,
    ) -> SharedSample:
        """Draw what follows from a seed; its keys are spent before their first use."""
        rows = draw()
        self._store.keys.spend_shared_keys(spec.release_id, coin_key(seed), canary_key(seed))
        noise = curators_noise(spec, seed)
        with stage.of("checking the sample", None):
            check = sample_check(derive(seed, "sample check"), rows, noise)
        return SharedSample(table=table, rows=rows, noise=noise, check=check)

    async def _indices(self, spec: TableSpec, peers: Peers) -> Iterator[Rows]:
        """Draw the row indices if this is the drawing curator, else fetch them from it; return them piece by piece."""
        drawer = spec.columns[0].owner
        path = self.indices_file(spec.release_id)
        if not path.exists():
            with written_whole(path) as file:
                if drawer == self._name:
                    await asyncio.to_thread(self._draw_indices, spec, file)
                else:
                    async for data in peers.indices(drawer, spec.release_id, spec.sample):
                        file.write(data)
        await asyncio.to_thread(check_indices, path, spec)
        return index_pieces_of(path)

    def _draw_indices(self, spec: TableSpec, file: BinaryIO) -> None:
        pieces = index_pieces(spec.population, spec.sample, secrets.token_bytes(32), self._grouping)
        file.writelines(rows.astype("<i8", copy=False).data for rows in pieces)


def sample_check(key: bytes, rows: "SampleRows | DrawnSample", noise: CuratorsNoise) -> bytes:
    """Return the keyed digest of the rows, the coins and the canaries' places; the spec says how many of each."""
    check = hmac.new(key, digestmod="sha256")
    for part in row_slices(len(rows)):
        check.update(rows[part].astype("<i8", copy=False).data)
    for _, coins in noise.coins(len(rows)):
        check.update(np.packbits(coins).data)
    for places in noise.places.pieces():
        check.update(places.astype("<i8", copy=False).data)
    return check.digest()


def index_pieces_of(path: Path) -> Iterator[Rows]:
    """Yield the row indices of a file piece by piece."""
    with path.open("rb") as file:
        while data := file.read(_INDEX_BYTES * CHUNK):
            yield np.frombuffer(data, "<i8").astype(np.int64, copy=False)


def check_indices(path: Path, spec: TableSpec) -> None:
    """Refuse a file of explicit row indices unless they are m different ones below n.

    Raises:
        IntegrityError: they are not.
    """
    # A length that is not a multiple of 8 would not convert at all.
    if path.stat().st_size != _INDEX_BYTES * spec.sample or not are_different(
        index_pieces_of(path), spec.population, path.parent
    ):
        raise IntegrityError("the row indices are not a sample without replacement", where="shared indices")
