import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import PlayedDisk
from tests.curator.disk_use import disk_use
from tests.curator.made_rows import rows_of, workplace
from tests.power import UNRAISABLE, FailingPower, PowerFailure
from veiltab.common.core.derivation import derive
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import (
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotReadyError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.storage.disk import Room
from veiltab.common.tasks.engine import InProcess, Result, Results, Task
from veiltab.curator.alignment.alignment import Alignment
from veiltab.curator.alignment.disk_needs import alignment_bytes
from veiltab.curator.alignment.intersection import alignment_id
from veiltab.curator.alignment.token_exchange import TokenExchange
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.peers.calls import Peers
from veiltab.curator.peers.coins import Coins
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table.table import Table
from veiltab.curator.table.table_rows import LostTableError, rows_on_disk
from veiltab.curator.table.tokens import tokens

KEY = bytes(range(32))


def table_of(ids: list[str], version: str) -> Table:
    symbols: Symbols = np.array([len(name) % 251 for name in ids], np.uint8)
    return Table(
        respondents=rows_of([ids], {"length": symbols}),
        rows_read=len(ids),
        rows_dropped=0,
        missing={},
        content_digest=version,
    )


class Curator:
    """One curator of two, whose peer is another object in this process."""

    def __init__(self, name: str, folder: Path, ids: list[str]) -> None:
        self.name = name
        self.store = CuratorStore(folder / "curator.sqlite")
        room = Room(folder)
        self.alignment = Alignment(
            name,
            folder,
            self.store,
            Ledger(self.store.connection, Decimal(1)),
            cast("Coins", self),
            TokenExchange(2, folder / "alignments", room),
            room,
            workplace(folder),
            most_respondents=10**9,
            id_rules="alice has id by integer",
        )
        self.table = table_of(ids, "content of " + name)
        self.ids = ids
        self.peer: Curator = self
        self.key = KEY
        self.tokens: Callable[[bytes], bytes] = lambda data: data
        self.curators = {"peer": None}
        self.asked_from: list[int] = []
        self.breaks = 0

    async def table_versions(self, _: Ledger) -> dict[str, str]:
        if not self.peer.alignment.table_version:
            raise NotReadyError("has no table loaded yet", where="curator peer")
        return {self.peer.name: self.peer.alignment.table_version}

    async def toss(self, coin_id: str, _: Peers) -> bytes:
        assert coin_id.startswith("alignment/")
        return self.key

    async def stream(self, _: str, name: str, offset: int, admit: Callable[[int], None]) -> AsyncIterator[bytes]:
        self.asked_from.append(offset)
        path = self.peer.alignment.tokens_file(name)
        if not path.exists():
            raise NotReadyError("has not computed its tokens yet")
        data = self.tokens(path.read_bytes())
        admit(len(data))
        for start in range(offset, len(data), 1000):
            yield data[start : start + 1000]
            if self.breaks:
                self.breaks -= 1
                raise UnavailableError("no connection", where="curator peer")

    async def align(self) -> None:
        """Run until the first alignment or the first refusal for good."""
        peers = cast("Peers", _PeersOf(self))
        self.alignment._waiting = NotReadyError("is only beginning")
        running = asyncio.create_task(self.alignment.run(self.table, peers))
        for _ in range(1000):
            await asyncio.sleep(0.02)
            try:
                self.alignment.result()
                break
            except NotReadyError:
                continue
            except VeiltabError:
                break
        running.cancel()


class _PeersOf:
    def __init__(self, curator: Curator) -> None:
        self.curators = {curator.peer.name: None}
        self.table_versions = curator.table_versions
        self.tokens = curator.stream


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Curator, Curator]]:
    alice = Curator("alice", tmp_path / "alice", [f"person {n}" + "x" * (n % 50) for n in range(300)])
    bob = Curator("bob", tmp_path / "bob", [f"person {n}" + "x" * (n % 50) for n in range(399, 99, -1)])
    alice.peer, bob.peer = bob, alice
    yield alice, bob
    alice.store.close()
    bob.store.close()


def align(*curators: Curator) -> None:
    async def together() -> None:
        await asyncio.gather(*(curator.align() for curator in curators))

    asyncio.run(together())


@pytest.mark.parametrize("name", ["", "..", "a" * 31, "A" * 32, "a" * 100_000, "\N{DEVANAGARI DIGIT ZERO}" * 32])
def test_what_is_no_alignment_has_no_tokens(both: tuple[Curator, Curator], name: str) -> None:
    with pytest.raises(NotReadyError, match="has not computed its tokens yet"):
        both[0].alignment.shared_tokens(name)


def test_both_find_the_same_respondents_in_the_same_order(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    population, digest = alice.alignment.result()
    assert population == 200
    assert bob.alignment.result() == (population, digest)
    tables = [curator.alignment.table(digest) for curator in both]
    assert np.array_equal(tables[0].tokens(), tables[1].tokens())
    lengths = [table.column("length") for table in tables]
    assert np.array_equal(lengths[0], lengths[1])  # a row's symbol is that of the same person
    common = set(alice.ids) & set(bob.ids)
    assert sorted(lengths[0]) == sorted(len(name) for name in common)


def test_tokens_of_others_do_not_stay(both: tuple[Curator, Curator]) -> None:
    align(*both)
    for curator in both:
        names = {path.name for path in curator.alignment.tokens_file("x").parents[1].rglob("*") if path.is_file()}
        assert names == {"own-tokens.bin", "tokens.bin", "column-length.npy"}


def test_tokens_of_others_that_outlast_a_crash_are_deleted(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    before = files(alice)
    folder = next(alice.alignment.tokens_file("x").parents[1].iterdir())
    (folder / "bob-tokens.bin").write_bytes(bytes(32))
    asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", _PeersOf(alice))))
    assert files(alice) == before


def test_the_same_tables_are_aligned_once(both: tuple[Curator, Curator]) -> None:
    align(*both)
    before = both[0].alignment.result()
    both[0].key = bytes(32)
    align(*both)
    assert both[0].alignment.result() == before


def test_a_release_planned_on_another_table_fails(both: tuple[Curator, Curator]) -> None:
    align(*both)
    with pytest.raises(FailedReleaseError, match="table changed since the release was planned"):
        both[0].alignment.table("0" * 32)


def test_before_there_is_an_alignment_it_says_what_it_waits_for(both: tuple[Curator, Curator]) -> None:
    alice, _ = both
    with pytest.raises(NotReadyError, match="has not aligned its table yet"):
        alice.alignment.result()

    async def briefly() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await alice.alignment.run(alice.table, cast("Peers", _PeersOf(alice)))

    asyncio.run(briefly())
    with pytest.raises(NotReadyError, match="curator peer: has no table loaded yet"):
        alice.alignment.result()


def test_curators_without_a_common_respondent_are_told(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    bob.table = table_of(["nobody"], "other")
    align(alice, bob)
    with pytest.raises(InvalidInputError, match=r"no respondent in common.*with the tables: alice has id by integer\."):
        alice.alignment.result()


def test_an_alignment_for_which_there_is_no_room_is_not_begun(both: tuple[Curator, Curator], disk: PlayedDisk) -> None:
    alice, bob = both
    disk.free = 300 * (2 * 17 + 16) + 2**20

    async def briefly() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await asyncio.gather(alice.align(), bob.align())

    asyncio.run(briefly())
    with pytest.raises(NotReadyError, match=r"disk is full but for 1\.0 MiB, and this takes 0\.1 MiB with 1\.0 MiB in"):
        alice.alignment.result()
    assert files(alice) == {}
    disk.free += 2**17
    align(alice, bob)
    assert alice.alignment.result() == bob.alignment.result()
    disk.free = 0
    align(alice, bob)  # what is made takes no more room


def test_more_respondents_than_a_table_may_have_are_refused(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    for curator in both:  # one alone would be waited for
        curator.alignment._most_respondents = 299
    align(alice, bob)
    for curator in both:
        with pytest.raises(InvalidInputError, match="at most 299 respondents, not 300"):
            curator.alignment.result()
        assert files(curator) == {}
        curator.alignment._most_respondents = 300
    align(alice, bob)
    assert alice.alignment.result() == bob.alignment.result()


def test_an_alignment_writes_no_more_than_is_kept_for_it(both: tuple[Curator, Curator]) -> None:
    rows = 20_000
    for curator in both:
        curator.table = table_of([f"person {n}" for n in range(rows)], f"content of {curator.name}")
    alice, bob = both
    with disk_use(alice.alignment._folder.parent) as use:
        align(alice, bob)
    kept = alignment_bytes(rows, alice.table.respondents.types.values(), 2)
    assert use.most <= kept <= 2 * use.most


@pytest.mark.parametrize("cut", [1, 8, 15])
def test_tokens_that_are_cut_short_are_refused(both: tuple[Curator, Curator], cut: int) -> None:
    alice, bob = both
    alice.tokens = lambda data: data[:-cut]
    align(alice, bob)
    with pytest.raises(InvalidInputError, match="sent tokens that are cut short"):
        alice.alignment.result()


def test_tokens_go_on_where_a_connection_broke(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    alice.breaks = 3
    align(alice, bob)
    assert alice.asked_from[-4:] == [0, 1000, 2000, 3000]
    assert alice.alignment.result() == bob.alignment.result()
    assert not [name for name in files(alice) if name.endswith(".part")]


def test_tokens_that_are_refused_are_fetched_from_the_beginning(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    alice.tokens = lambda data: data[16:] + data[:16]
    align(alice, bob)
    alice.tokens = lambda data: data
    align(alice)
    assert set(alice.asked_from) == {0}
    assert alice.alignment.result() == bob.alignment.result()


def test_tokens_out_of_order_are_refused(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    alice.tokens = lambda data: data[16:] + data[:16]
    align(alice, bob)
    with pytest.raises(IntegrityError, match="curator bob: tokens are not in ascending order"):
        alice.alignment.result()


def test_what_a_crash_left_is_used_or_made_again(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    alice.tokens = lambda data: data[:-1]
    align(alice, bob)
    alice.tokens = lambda data: data
    own = next(alice.alignment.tokens_file("x").parents[1].rglob("own-tokens.bin"))
    alice.alignment._ordered = None
    align(alice)
    assert alice.alignment.result() == bob.alignment.result()
    assert own.parent.name == alignment_id({curator.name: curator.alignment.table_version for curator in both})


def folder_of(curator: Curator) -> Path:
    """Return the folder of a curator's alignments."""
    return curator.alignment.tokens_file("x").parents[1]


def files(curator: Curator) -> dict[str, bytes]:
    """Return the files of a curator's alignments."""
    folder = folder_of(curator)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("lost", ["own-tokens.bin", "tokens.bin", "column-length.npy", "*"])
def test_files_that_are_lost_are_made_again(both: tuple[Curator, Curator], lost: str) -> None:
    alice, bob = both
    align(alice, bob)
    before, result = files(alice), alice.alignment.result()
    folder = next(alice.alignment.tokens_file("x").parents[1].iterdir())
    for path in folder.glob(lost):
        path.unlink()
    asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", _PeersOf(alice))))
    assert (files(alice), alice.alignment.result()) == (before, result)


def damage(path: Path, how: str) -> None:
    """Alter, cut off or delete a file of a run."""
    match how:
        case "altered":
            data = path.read_bytes()
            path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
        case "cut off":
            os.truncate(path, path.stat().st_size - 1)
        case "deleted":
            path.unlink()
        case _:
            raise AssertionError(how)


DAMAGES = ("altered", "cut off", "deleted")


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("what", ["spread", "sorted"])
def test_what_is_damaged_between_two_passes_is_made_again(
    both: tuple[Curator, Curator], monkeypatch: pytest.MonkeyPatch, what: str, how: str
) -> None:
    """Also if the rows that it is made from are not: the curator neither ends nor fails for ever."""
    alice, bob = both
    align(alice, bob)
    run, damaged = alice.alignment._workplace.run, list[Path]()
    before = set(run.folder.iterdir())
    folder = next(alice.alignment.tokens_file("x").parents[1].iterdir())
    (folder / "tokens.bin").unlink()

    class Damaging(InProcess):
        def perform(self, tasks: Iterable[Task[Result]]) -> Results[Result]:
            for ready in super().perform(tasks):
                yield ready
                if not damaged:
                    damaged.extend(set(run.folder.glob(f"*-{what}-0")) - before)
                    for path in damaged:
                        damage(path, how)

    engine = Damaging()
    monkeypatch.setattr("veiltab.curator.table.workplace.InProcess", lambda: engine)
    with pytest.raises(FileNotFoundError if how == "deleted" else TransferError):
        asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", _PeersOf(alice))))
    assert len(damaged) == 1
    asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", _PeersOf(alice))))
    assert alice.alignment.result() == bob.alignment.result()


@pytest.mark.parametrize("how", DAMAGES)
def test_a_curator_whose_table_is_damaged_ends_and_says_what_to_do(both: tuple[Curator, Curator], how: str) -> None:
    alice, bob = both
    run, symbols = alice.alignment._workplace.run, np.zeros(len(alice.ids), np.uint8)
    rows = rows_on_disk({"length": symbols.dtype}, run)
    rows.append(pa.array(alice.ids, pa.large_string()), np.ones(len(alice.ids), np.bool_), {"length": symbols})
    rows.check()
    damage(run.folder / "table", how)
    alice.table = replace(alice.table, respondents=rows)
    running = alice.alignment.run(alice.table, cast("Peers", _PeersOf(alice)))
    bob.alignment.table_version = "b" * 32
    with pytest.raises(LostTableError, match="Start the curator again: it reads its table again"):
        asyncio.run(asyncio.wait_for(running, 20))
    if how == "altered":
        with pytest.raises(LostTableError):
            rows.ids(0, 300)


def test_what_is_made_again_otherwise_is_refused(both: tuple[Curator, Curator]) -> None:
    alice, bob = both
    align(alice, bob)
    folder = next(alice.alignment.tokens_file("x").parents[1].iterdir())
    (folder / "tokens.bin").unlink()
    alice.tokens = lambda data: data[:1600]
    with pytest.raises(IntegrityError, match="aligned otherwise than before"):
        asyncio.run(alice.alignment._align(folder.name, alice.table, cast("Peers", _PeersOf(alice))))


def realign(*curators: Curator) -> None:
    """Run until the curators' present tables are aligned, and every other alignment is deleted."""

    async def together() -> None:
        for curator in curators:
            version = curator.store.alignments.table_version(curator.table.content_digest, f"version of {curator.name}")
            curator.alignment.table_version = version
        name = alignment_id({curator.name: curator.alignment.table_version for curator in curators})
        running = [
            asyncio.create_task(curator.alignment.run(curator.table, cast("Peers", _PeersOf(curator))))
            for curator in curators
        ]
        async with asyncio.timeout(20):
            # Names alone: what is deleted meanwhile cannot be read.
            while not all([path.name for path in folder_of(one).iterdir()] == [name] for one in curators):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            while not all(one.alignment._current == name for one in curators):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        for task in running:
            task.cancel()

    asyncio.run(together())


def test_earlier_alignments_are_deleted_and_made_again_when_their_table_comes_back(
    both: tuple[Curator, Curator],
) -> None:
    alice, bob = both
    align(alice, bob)
    first, result, table = files(alice), alice.alignment.result(), bob.table
    bob.table = table_of(bob.ids[:150], "another")
    realign(alice, bob)
    second = files(alice)
    assert len({name.split("/")[0] for name in second}) == 1
    assert not set(first) & set(second)
    bob.table = table
    realign(alice, bob)
    assert (files(alice), alice.alignment.result()) == (first, result)


def test_known_answers_of_the_keys(both: tuple[Curator, Curator]) -> None:
    """Tokens and the digest of the respondents, each under its own key from the coin KEY."""
    alice, bob = both
    alice.table, bob.table = table_of(["Ann", "Bea"], "a"), table_of(["Bea", "Cid"], "b")
    align(alice, bob)
    assert alice.alignment.result() == (1, "df367f9375723f49a5d830c0d6c4a3e8")
    assert (
        alice.alignment.table("df367f9375723f49a5d830c0d6c4a3e8").tokens().tobytes().hex()
        == "8c1227d910f8fdc555d0bb94854f3a95"
    )


def serving(curator: Curator, name: str) -> None:
    """Let a curator's sorted tokens lie ready for others."""
    made = tokens(pa.array(curator.ids, pa.large_string()), derive(KEY, "tokens"))
    path = curator.alignment.tokens_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(sorted(map(bytes, made))))


def aligned_by(curator: Curator, name: str) -> tuple[dict[str, bytes], tuple[int, str]]:
    """Align as often as a curator begins again; return the files and the result."""
    for _ in range(3):
        with suppress(VeiltabError):
            asyncio.run(curator.alignment._align(name, curator.table, cast("Peers", _PeersOf(curator))))
    return files(curator), curator.alignment.result()


def outlives(folder: Path, both: tuple[Curator, Curator], at: int, seed: int) -> bool:
    """Let the power fail before a step of an alignment, and go on; return whether there was such a step."""
    alice, bob = both
    first = Curator("alice", folder / "first", alice.ids)
    first.peer = bob
    with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure):
        power = FailingPower(watching, folder / "first", first.store.connection, at=at, seed=seed)
        asyncio.run(first.alignment._align(NAME, first.table, cast("Peers", _PeersOf(first))))
    power.close()
    first.store.close()
    if power.left is None:
        return False
    power.restore(folder / "later")
    later = Curator("alice", folder / "later", alice.ids)
    later.peer = bob
    with closing(later.store):
        assert aligned_by(later, NAME) == aligned_by(alice, NAME)
    return True


NAME = "a" * 32


@pytest.mark.parametrize("at", [4, 9, 14])
@pytest.mark.filterwarnings(UNRAISABLE)
def test_an_alignment_outlives_a_power_that_fails(tmp_path: Path, both: tuple[Curator, Curator], at: int) -> None:
    serving(both[1], NAME)
    assert outlives(tmp_path, both, at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings(UNRAISABLE)
def test_an_alignment_outlives_a_power_that_fails_at_any_step(
    tmp_path: Path, both: tuple[Curator, Curator], seed: int
) -> None:
    serving(both[1], NAME)
    at = 0
    while outlives(tmp_path / str(at), both, at, 1000 * seed + at):
        at += 1
    assert at > 15
