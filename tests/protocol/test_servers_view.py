"""What the server, and a researcher without keys, see: symbols that do not depend on the data."""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import noise_with
from tests.protocol.chance import ALPHA, agreement, combined, confirmed, independence, looks_random, same_law
from tests.protocol.village import CATEGORIES, FREE, People, made_people
from tests.protocol.wire import Published, connection, fetch_key
from tests.protocol.world import ALICE, BOB, CLOUD, RITA, World, launcher, made_world
from veiltab.common.core import pads
from veiltab.common.core.domain import Symbols, symbol_dtype
from veiltab.common.core.randomness import ByteSource
from veiltab.common.errors import DeniedError
from veiltab.common.release.modes import Pad
from veiltab.curator.columns import encryption
from veiltab.curator.records.store import CuratorStore

ROWS = 350_000
SIZES = {"narrow": 3, "wide": 200, "binary": 2}
Columns = Mapping[str, Symbols]


def view(columns: Columns, sizes: Mapping[str, int]) -> float:
    """Return the p-value of columns whose symbols are uniform and independent, within and between columns."""
    alone = [looks_random(column, sizes[name]) for name, column in columns.items()]
    return combined([*alone, *(independence(a, b) for a, b in combinations(columns.values(), 2))])


def symbols_of(data: bytes) -> Symbols:
    """Return a column of an alphabet of at most 256 symbols."""
    return np.frombuffer(data, np.uint8)


def encrypted(folder: Path, table: Columns, pad: Pad) -> Columns:
    """Encrypt a table as a curator does; return what goes to the server."""
    release_id = secrets.token_hex(16)
    with closing(CuratorStore(folder / release_id / "curator.sqlite")) as store:
        columns = encryption.ColumnEncryption(store, folder / release_id, release_id)
        for name, column in table.items():
            columns.encrypt(name, column, SIZES[name], pad, noise_with())
        return {name: symbols_of(columns.ciphertext(name).read_bytes()) for name in table}


def constant_table() -> Columns:
    return {name: np.zeros(ROWS, symbol_dtype(size)) for name, size in SIZES.items()}


def varied_table() -> Columns:
    rng = np.random.default_rng(3)
    return {name: np.sort(rng.integers(0, size, ROWS)).astype(np.uint8) for name, size in SIZES.items()}


@pytest.mark.parametrize("pad", list(Pad))
def test_a_million_symbols_look_the_same_whatever_the_table(tmp_path: Path, pad: Pad) -> None:
    assert sum(len(column) for column in constant_table().values()) >= 10**6

    def draw() -> float:
        constant = encrypted(tmp_path, constant_table(), pad)
        varied = encrypted(tmp_path, varied_table(), pad)
        alike = [same_law(constant[name], varied[name], size) for name, size in SIZES.items()]
        return combined([view(constant, SIZES), view(varied, SIZES), *alike])

    assert not confirmed(draw)


def modulo(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with bytes modulo the size: the small symbols come a little more often."""
    del source, label, chunk
    out[:] = np.frombuffer(os.urandom(out.size), np.uint8) % size


def halved(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with uniform symbols, each of which serves two neighbours."""
    del source, label, chunk
    out[:] = np.repeat(np.random.default_rng(int.from_bytes(os.urandom(8))).integers(0, size, out.size), 2)[: out.size]


def shared(out: Symbols, size: int, source: ByteSource, *, label: int, chunk: int) -> None:
    """Fill with uniform symbols that are the same for every key."""
    del source, label
    out[:] = np.random.default_rng(chunk).integers(0, 600, out.size) % size


@pytest.mark.parametrize("pad", list(Pad))
@pytest.mark.parametrize("mutant", [modulo, halved, shared])
def test_a_bad_pad_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pad: Pad, mutant: Callable[..., None]
) -> None:
    monkeypatch.setattr(pads, "fill_uniform", mutant)
    monkeypatch.setattr(encryption, "fill_uniform", mutant)
    assert confirmed(lambda: view(encrypted(tmp_path, constant_table(), pad), SIZES))


def town() -> People:
    """Many people who are all alike in region and smoking, and differ in the rest."""
    people = made_people(260_000, seed=11)
    alike = {name: np.zeros(len(people.ids), np.int64) for name in ("region", "smoker")}
    return People(ids=people.ids, symbols={**people.symbols, **alike})


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A town's worth of people."""
    world = made_world(tmp_path_factory.mktemp("big") / "study", people=town())
    with world.local:
        world.start(ALICE, BOB, CLOUD, RITA)
        yield world


def paused(world: World) -> tuple[str, Columns]:
    """Run a release until the server is about to perturb it; return what the server holds."""
    world.restart(CLOUD, how=launcher("veiltab.server.release.perturbation:_write_columns:1"))
    with world.client("rita") as client:
        release_id = client.request(FREE, epsilon="4", label=world.label()).id
    world.wait_for_kill(CLOUD)
    folder = world.releases_folder() / release_id / "ciphertext"
    columns = {name: symbols_of((folder / name).read_bytes()) for name in FREE}
    with world.store("bob") as store:
        # Bob's grants end before anyone can ask for his keys.
        store.connection.execute("UPDATE decision SET expires = 1 WHERE release_id = ?", [release_id])
    world.start(CLOUD)
    return release_id, columns


@pytest.mark.long
def test_the_server_and_a_researcher_without_a_key_see_uniform_noise(big: World) -> None:
    sizes = {name: len(CATEGORIES[name]) for name in FREE}
    releases: list[str] = []

    def draw() -> float:
        release_id, held = paused(big)
        releases.append(release_id)
        assert sum(len(column) for column in held.values()) >= 10**6
        # region and smoker are the same for everyone; income and employed are not.
        alike = [same_law(held["region"], held["income"], 3), same_law(held["smoker"], held["employed"], 2)]
        return combined([view(held, sizes), *alike])

    assert not confirmed(draw)
    without_a_key(big, releases[-1], sizes)


def without_a_key(world: World, release_id: str, sizes: Mapping[str, int]) -> None:
    """See that a researcher whom Bob gives no key reads Alice's columns, and nothing of Bob's."""
    with world.client("rita") as client:
        release = client.release(release_id)
        assert release.wait(60).granted == ("region", "smoker")
        assert agreement(release.estimate(), world.people.counts(("region", "smoker"))) > ALPHA**2

    async def noisy() -> Columns:
        async with connection(world, RITA, CLOUD) as cloud, connection(world, RITA, BOB) as bob:
            for name in ("income", "employed"):
                with pytest.raises(DeniedError, match="the grant has expired"):
                    await fetch_key(bob, release_id, name)
            fetched = {name: await Published.on(cloud).column(release_id, name) for name in sizes}
            return {name: symbols_of(data) for name, data in fetched.items()}

    columns = asyncio.run(noisy())
    assert min(len(column) for column in columns.values()) >= 10**5
    assert view(columns, sizes) > ALPHA**2
