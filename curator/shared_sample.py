"""The sample of a release: the same rows in the same order at every curator, however often it is drawn."""

import asyncio
import hmac
import secrets
from pathlib import Path
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from veiltab.common.core.derivation import derive
from veiltab.common.core.sampling import sample_by_priority, sample_indices
from veiltab.common.errors import IntegrityError, NotReadyError
from veiltab.common.observe.steps import step
from veiltab.common.release.modes import Sampling
from veiltab.common.release.spec import ReleaseSpec
from veiltab.common.storage.files import written_whole
from veiltab.curator.coins import Coins, release_coin
from veiltab.curator.coordination import Peers
from veiltab.curator.intersection import AlignedTable


class Sampler:
    """Draws samples together with the other curators.

    Args:
        name: the curator.
        folder: where its releases have their folders.
        coins: the coins of the seeds.
    """

    def __init__(self, name: str, folder: Path, coins: Coins) -> None:
        self._name = name
        self._folder = folder
        self._coins = coins

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

    async def draw(self, spec: ReleaseSpec, table: AlignedTable, peers: Peers) -> tuple[NDArray[np.int64], bytes]:
        """Draw the sample of a release, again if need be; return its rows, shape (m,), and the keyed check of them.

        Raises:
            VeiltabError: as `Coins.toss`; after NotReadyError try again.
            IntegrityError: the indices that a peer shares are no sample.
        """
        with step("toss", release_id=spec.release_id):
            seed = await self._coins.toss(release_coin(spec.release_id), peers)
        with step("draw", release_id=spec.release_id):
            key = derive(seed, "sampling")
            match spec.sampling:
                case Sampling.SEED:
                    rows = await asyncio.to_thread(spec.description.scheme.draw, table.tokens(), key)
                case Sampling.SERVER:
                    rows = await asyncio.to_thread(sample_by_priority, table.tokens(), spec.population, key)
                case Sampling.INDICES:
                    rows = await self._indices(spec, peers)
                case _:
                    assert_never(spec.sampling)
            check = hmac.new(derive(seed, "sample check"), digestmod="sha256")
            await asyncio.to_thread(check.update, rows.astype("<i8", copy=False).data)
        return rows, check.digest()

    async def _indices(self, spec: ReleaseSpec, peers: Peers) -> NDArray[np.int64]:
        """Draw the row indices if this is the drawing curator, else fetch them from it."""
        drawer = spec.columns[0].owner
        path = self.indices_file(spec.release_id)
        if not path.exists():
            if drawer == self._name:
                drawn = await asyncio.to_thread(sample_indices, spec.population, spec.sample, secrets.token_bytes(32))
                data = drawn.astype("<i8").tobytes()
            else:
                data = await peers.indices(drawer, spec.release_id, spec.sample)
            with written_whole(path) as file:
                file.write(data)
        return checked_indices(path.read_bytes(), spec)


def checked_indices(data: bytes, spec: ReleaseSpec) -> NDArray[np.int64]:
    """Return explicit row indices: m different ones below n.

    Raises:
        IntegrityError: they are not.
    """
    # A length that is no multiple of 8 would not convert at all.
    whole = data if len(data) == 8 * spec.sample else b""
    indices: NDArray[np.int64] = np.frombuffer(whole, "<i8").astype(np.int64)
    right = len(indices) == spec.sample and indices.min() >= 0 and indices.max() < spec.population
    if not right or len(np.unique(indices)) != spec.sample:
        raise IntegrityError("the row indices are not a sample without replacement", where="shared indices")
    return indices
