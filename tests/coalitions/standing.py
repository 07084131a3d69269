"""Small releases over real processes and TLS, and what a coalition's members keep and fetch of them."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import grpc
import numpy as np

from tests.coalitions.attacks import Array, Held, table
from tests.coalitions.games import Design, symbols_of
from tests.protocol.village import CATEGORIES, TWO, People, Rules
from tests.protocol.wire import SECONDS, Published, answer, connection, whole
from tests.protocol.world import ALICE, BOB, CLOUD, ROSA, World, made_world
from veiltab.common.core.canaries import CanaryPlaces, Places, is_data, places_key
from veiltab.common.rpc.parties.identity import Role
from veiltab.v1 import curator_pb2, curator_pb2_grpc, ingest_pb2, ingest_pb2_grpc

NAMES = ("smoker", "employed")
"""Two categories each; the first is alice's, the second bob's."""

BATCH = 24
"""Releases at once; a researcher may open no more than 32."""

PLANTED = "planted-person@hill"
LAUNCHER = Path(__file__).with_name("keeping_launcher.py")


@dataclass(frozen=True, kw_only=True)
class Opened:
    """One release as the desk reads it, with a client of its own.

    Args:
        keys: by attribute.
        published: by attribute, whole columns.
        salt: of the digests of the published columns.
        canary_key: of the canaries.
        places: of the canaries.
    """

    keys: dict[str, bytes]
    published: dict[str, bytes]
    salt: bytes
    canary_key: bytes
    places: Places

    def cells(self, columns: dict[str, bytes]) -> Array:
        """Decrypt columns in order; return the cells of the rows of data."""
        one, other = (symbols_of(np.frombuffer(columns[name], np.uint8), self.keys[name]) for name in NAMES)
        return (2 * one + other)[is_data(self.places, len(one))]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A deployment whose parties keep what they should forget.

    Args:
        world: its processes; alice and the server keep what they see.
        kept: where.
        design: of the releases.
        canaries: in each release.
    """

    world: World
    kept: Path
    design: Design
    canaries: int

    def released(self, count: int) -> list[str]:
        """Make releases, many at once; return their ids."""
        made: list[str] = []
        delta = None if self.design.delta is None else str(self.design.delta)
        with self.world.client(timeout=60) as rosa:
            while len(made) < count:
                batch = [
                    rosa.request(
                        NAMES,
                        epsilon=str(self.design.epsilon),
                        delta=delta,
                        sample=self.design.sample,
                        noise_split="0.5",
                        canaries=self.canaries,
                        label=self.world.label(),
                    )
                    for _ in range(min(BATCH, count - len(made)))
                ]
                for release in batch:
                    release.wait(120)
                    made.append(release.id)
        return made

    def held(self, releases: Sequence[str]) -> Held:
        """Return what the parties hold of releases, put together."""
        ids = json.loads((self.kept / "ids.json").read_text("utf-8"))
        persons, coins, sent, published, ciphertext = [], [], [], [], []
        for release_id, opened in zip(releases, asyncio.run(self.opened(releases)), strict=True):
            sample = np.load(self.kept / f"{release_id}.npz")
            persons.append([int(ids[bytes(token).hex()] != PLANTED) for token in sample["tokens"]])
            coins.append(sample["coins"])
            raw = {name: (self.kept / release_id / name).read_bytes() for name in NAMES}
            sent.append(opened.cells(raw))
            published.append(opened.cells(opened.published))
            column = np.frombuffer(raw[NAMES[1]], np.uint8)
            ciphertext.append(column[is_data(opened.places, len(column))].astype(np.int64))
        return Held(
            persons=np.array(persons),
            coins=np.array(coins),
            own=np.array(sent) // 2,
            sent=np.array(sent),
            published=np.array(published),
            ciphertext=np.array(ciphertext),
        )

    async def opened(self, releases: Sequence[str]) -> list[Opened]:
        """Read releases as the desk may, with the desk's certificate, and in order."""
        async with (
            connection(self.world, ROSA, CLOUD) as cloud,
            connection(self.world, ROSA, ALICE) as alice,
            connection(self.world, ROSA, BOB) as bob,
        ):
            owners = dict(zip(NAMES, (alice, bob), strict=True))
            return [await self._open(release_id, cloud, owners) for release_id in releases]

    async def _open(self, release_id: str, cloud: grpc.aio.Channel, owners: dict[str, grpc.aio.Channel]) -> Opened:
        keys, published, key, places = {}, {}, b"", np.zeros(0, np.int64)
        salt = (await Published.on(cloud).state(release_id)).salt
        for name, owner in owners.items():
            curator = curator_pb2_grpc.CuratorServiceStub(owner)
            column = published[name] = await Published.on(cloud).column(release_id, name)
            question = curator_pb2.GetReceiptRequest(release_id=release_id)
            receipt = await answer(curator.GetReceipt(question, timeout=SECONDS))
            key = receipt.canary_key
            places = CanaryPlaces.of(places_key(key), rows=len(column), canaries=self.canaries).all()
            held = curator_pb2.ColumnDigests(
                published=hashlib.sha256(salt + column).digest(),
                canaries=hashlib.sha256(bytes(column[place] for place in places)).digest(),
            )
            request = curator_pb2.GetKeysRequest(release_id=release_id, columns={name: held})
            keys[name] = (await answer(curator.GetKeys(request, timeout=SECONDS))).keys[name]
        return Opened(keys=keys, published=published, salt=salt, canary_key=key, places=places)

    def counts_of_analyst(self, releases: Sequence[str]) -> Array:
        """Return the counts that an analyst reads at the desk, shape (releases, CELLS)."""
        with self.world.client("ana", role=Role.ANALYST) as ana:
            return np.array([np.frombuffer(ana.histogram(release_id), "<i8") for release_id in releases])


async def guessed_column(standing: Standing, release_id: str, opened: Opened, salt: bytes) -> bytes | None:
    """Return alice's published column if she finds it by its digest, which the server tells every curator.

    She knows, as every curator, what became of the canaries, and tries everything for the few other rows. She would
    learn which of them the server replaced.

    Args:
        standing: the deployment.
        release_id: the release.
        opened: it, of which she uses what curators know of the canaries.
        salt: what she takes for the salt of the digest.
    """
    async with connection(standing.world, ALICE, CLOUD) as cloud:
        server = ingest_pb2_grpc.IngestServiceStub(cloud)
        question = ingest_pb2.GetPublicationRequest(release_id=release_id)
        digest = (await answer(server.GetPublication(question, timeout=SECONDS))).digests[NAMES[0]]
        request = ingest_pb2.FetchCanariesRequest(release_id=release_id, places_key=places_key(opened.canary_key))
        canaries = await whole(server.FetchCanaries, request)
    column = np.zeros(len(opened.published[NAMES[0]]), np.uint8)
    column[opened.places] = np.frombuffer(canaries, np.uint8)
    data = is_data(opened.places, len(column))
    for guess in product((0, 1), repeat=int(data.sum())):
        column[data] = guess
        if hashlib.sha256(salt + column.tobytes()).digest() == digest:
            return column.tobytes()
    return None


@contextmanager
def standing(folder: Path, design: Design, planted: int, *, canaries: int, changes: str = "") -> Iterator[Standing]:
    """Start a deployment on the table with a planted cell.

    Args:
        folder: a new one.
        design: of the releases.
        planted: cell of the planted person.
        canaries: in each release.
        changes: of the parties, as `keeping_launcher` names them.
    """
    cells = table(planted, design.population)
    symbols = dict.fromkeys(CATEGORIES, np.zeros(design.population, np.int64))
    symbols |= dict(zip(NAMES, np.divmod(cells, 2), strict=True))
    ids = (PLANTED, *(f"neighbour-{number}@hill" for number in range(1, design.population)))
    rules = Rules(minimum_population=2, budget="1000")
    world = made_world(folder / "study", people=People(ids=ids, symbols=symbols), owners=TWO, rules=rules)
    kept = folder / "kept"
    kept.mkdir()
    of_curators, of_server = (
        [change for change in changes.split(",") if side in change] for side in ("curator", "server")
    )
    with world.local:
        for party, own in (
            (ALICE, ["sample", *of_curators]),
            (BOB, of_curators),
            (CLOUD, ["ciphertext", *of_server]),
            (ROSA, []),
        ):
            how = (sys.executable, str(LAUNCHER), str(kept), ",".join(own)) if own else None
            world.local.start(*party, launcher=how)
        for party in (ALICE, BOB, CLOUD, ROSA):
            world.local.wait_for(*party)
        yield Standing(world=world, kept=kept, design=design, canaries=canaries)
