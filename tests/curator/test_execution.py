"""The same tasks in this process, in a pool and on a cluster, with processes that are killed: the same bytes."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.common.tasks.cluster import WAIT, cluster, wait_for
from tests.common.tasks.samples import Sleep
from tests.conftest import noise_with, refuses, request_with
from tests.curator.killed_tasks import Killing, Twice
from tests.curator.made_rows import aligned
from tests.curator.watched_tasks import Watched
from tests.hostile.small_disk import SmallDisk, small_disk
from tests.worlds.columns import encrypt
from tests.worlds.parties import ALICE
from veiltab.common.core import symbols
from veiltab.common.core.domain import Symbols
from veiltab.common.errors import IntegrityError, InvalidInputError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.modes import Pad
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.schemes.registry import scheme_of
from veiltab.common.storage import partitions
from veiltab.common.storage.disk import disk_refusal, files_of
from veiltab.common.storage.run_files import RunFiles, new_run
from veiltab.common.storage.stored import PlainFile
from veiltab.common.tasks.cluster_identity import load_cluster_identity
from veiltab.common.tasks.dask import Dask
from veiltab.common.tasks.engine import Engine, InProcess, Results
from veiltab.common.tasks.engine_options import EngineOptions
from veiltab.common.tasks.pool import Pool
from veiltab.curator.alignment import token_order
from veiltab.curator.alignment.intersection import AlignedTable, Joined, Lacking
from veiltab.curator.alignment.token_order import TokenOrder
from veiltab.curator.columns import draw_tasks, encryption_tasks, noise_and_canaries
from veiltab.curator.columns.draw_tasks import DrawnSample
from veiltab.curator.columns.encryption import ColumnEncryption
from veiltab.curator.columns.encryption_tasks import encrypted_in_tasks
from veiltab.curator.columns.noise_and_canaries import PlainColumn
from veiltab.curator.columns.sample_rows import SampleRows, gathering_on, grouping_on
from veiltab.curator.officer.work_options import WorkOptions
from veiltab.curator.party.serving import _work
from veiltab.curator.records.store import CuratorStore
from veiltab.curator.table import execution
from veiltab.curator.table.execution import Execution
from veiltab.curator.table.table_rows import TableRows, rows_on_disk

KEY = bytes(range(32))
ID = "0" * 31 + "1"


def table_in(run: RunFiles, rows: int) -> TableRows:
    """Return a table whose rows are in a run, one in a hundred no respondent."""
    rng = np.random.default_rng(5)
    columns: dict[str, Symbols] = {
        "sex": rng.integers(0, 2, rows, np.uint8),
        "place": rng.integers(0, 60_000, rows, np.uint16),
    }
    table = rows_on_disk({name: column.dtype for name, column in columns.items()}, run)
    kept = rng.random(rows) < 0.99
    ids = pa.array([f"person {number}" for number in rng.permutation(rows)], pa.large_string())
    for start in range(0, rows, 2**16):
        part = slice(start, start + 2**16)
        chosen = kept[part]
        table.append(ids[part], chosen, {name: column[part][chosen] for name, column in columns.items()})
    return table


def aligned_in(place: Execution, folder: Path, rows: int) -> str:
    return aligned_from(table_in(place.run, rows), place, folder)


def aligned_from(table: TableRows, place: Execution, folder: Path) -> str:
    """Align a table with that of a curator who has every second of its respondents; return the digest of all files."""
    ordered = TokenOrder(table, place)
    ordered.write(KEY, folder / "own")
    theirs = np.fromfile(folder / "own", np.uint8).reshape(-1, 16)[::2]
    (folder / "bob").write_bytes(theirs.tobytes())
    aligned = AlignedTable(folder / "aligned")
    lacking, joined = {name: Lacking(categories=3, parts=1) for name in table.types}, Joined()
    assert aligned.write(ordered.rows(folder / "bob", lacking, joined), table.types, folder / "bob") == len(theirs)
    assert joined.matched == len(theirs)
    assert not list(place.run.folder.glob("*-from-*"))  # copies of the others' tokens
    files = [folder / "own", *sorted(aligned.folder.iterdir())]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut few rows as many are cut."""
    monkeypatch.setattr(token_order, "SPREAD", 2500)
    monkeypatch.setattr(partitions, "SECTION", 3000)
    monkeypatch.setattr(partitions, "PART", 1000)
    monkeypatch.setattr(execution, "SMALL", 1)


def encrypted(folder: Path, table: AlignedTable, rows: SampleRows | DrawnSample, canaries: int) -> str:
    """Encrypt two columns of a sample; return the digest of its rows, of the ciphertexts and of the canaries."""
    sizes: dict[str, Any] = {"population": len(rows), "sample": len(rows), "canaries": canaries}
    with_canaries, digest = noise_with(curator_replacement=2**62, server_replacement=2**63, **sizes), hashlib.sha256()
    digest.update(rows[:].data)
    with closing(CuratorStore(folder / "curator.sqlite")) as store, pytest.MonkeyPatch.context() as patch:
        keys = (hashlib.sha256(bytes([number])).digest() for number in range(9))
        patch.setattr("veiltab.curator.columns.encryption.os", SimpleNamespace(urandom=lambda _: next(keys)))
        store.releases.add(request_with(), 1)
        encryption = ColumnEncryption(store, folder / "release", ID)
        for attribute, size in (("sex", 2), ("place", 60_000)):
            encrypt(encryption, attribute, rows.column(table, attribute), size, Pad.CHACHA20, with_canaries)
            digest.update(encryption.ciphertext(attribute).read_bytes())
    return digest.hexdigest()


def aligned_table(folder: Path, rows: int) -> AlignedTable:
    rng = np.random.default_rng(rows)
    tokens = np.sort(rng.integers(0, 256, (rows, 16), np.uint8).view("S16"), axis=0).view(np.uint8).reshape(-1, 16)
    places: Symbols = rng.integers(0, 60_000, rows, np.uint16)
    return aligned(folder / "table", tokens, {"sex": rng.integers(0, 2, rows, np.uint8), "place": places})


def released(folder: Path, engine: Engine, sizes: tuple[int, int, int], *, is_remote: bool) -> None:
    """Compare a release of so many rows, sampled rows and canaries in tasks with one that needs none."""
    rows, sample, canaries = sizes
    table, here = aligned_table(folder, rows), folder / "here"
    here.mkdir()
    scheme = scheme_of("wor", population=rows, sample=sample)
    pieces = scheme.draw_pieces(table.tokens(), KEY, grouping_on(here), gathering_on(here))
    there = Execution(run=new_run(folder), engine=engine, is_remote=is_remote)
    drawn = DrawnSample(table, sample, KEY, ("place", "sex"), there)
    assert not list(there.run.folder.glob("*-copy-*"))
    assert len(drawn) == sample
    assert encrypted(folder, table, drawn, canaries) == encrypted(here, table, SampleRows(pieces, here), canaries)
    del drawn
    assert not list(there.run.folder.iterdir())


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (symbols, noise_and_canaries, encryption_tasks):
        monkeypatch.setattr(module, "CHUNK", 512)
    monkeypatch.setattr(draw_tasks, "SPREAD", 1500)


@pytest.mark.usefixtures("small", "short_chunks")
def test_a_draw_in_tasks_says_how_far_it_is(tmp_path: Path) -> None:
    table, stage = aligned_table(tmp_path, 6000), Stage()
    engine = Watched(stage)
    place = Execution(run=new_run(tmp_path), engine=engine)
    drawn = DrawnSample(table, 6000, KEY, ("sex",), place, stage)
    # Of its two passes the first has left nothing: it would take as much room as the second.
    assert all("-ordered-" in path.name for path in place.run.folder.iterdir())
    assert len(drawn) == 6000
    passes = engine.passes
    assert list(dict.fromkeys(passes)) == ["drawing the sample", "ordering the sample"]
    assert engine.said[:4] == [f"drawing the sample: {share} %" for share in (0, 25, 50, 75)]
    assert engine.said[4] == "ordering the sample: 0 %"
    assert engine.said[-1] > engine.said[4]


@pytest.mark.usefixtures("small", "short_chunks")
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 0),
        (3000, 3000, 0),
        (3000, 3000, 700),
        (5000, 5000, 4321),
        (2048, 2048, 5),
        (40, 40, 4000),
        (9000, 700, 60),
    ],
)
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_release_in_tasks_is_the_release(tmp_path: Path, sizes: tuple[int, int, int], *, is_remote: bool) -> None:
    released(tmp_path, Twice(), sizes, is_remote=is_remote)


@pytest.mark.usefixtures("small", "short_chunks")
def test_ciphertext_that_was_read_takes_no_room_any_more(tmp_path: Path) -> None:
    table, place = aligned_table(tmp_path, 5000), Execution(run=new_run(tmp_path), engine=InProcess())
    drawn = DrawnSample(table, 5000, KEY, ("sex",), place)
    noise = noise_with(population=5000, sample=5000, canaries=0)
    column = drawn.column(table, "sex")
    plain = PlainColumn(attribute="sex", symbols=column, size=2)
    chunks = encrypted_in_tasks(plain, KEY, KEY, noise)
    found = [len(list(place.run.folder.glob("*-encrypted-*"))) for _ in chunks]
    assert found == [1] * 10


@pytest.mark.usefixtures("small", "short_chunks")
def test_a_draw_for_which_too_few_rows_came_early_takes_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_tasks, "thresholds", lambda *_: [2**58, 2**64 - 1])
    released(tmp_path, Twice(), (4000, 900, 60), is_remote=False)


@pytest.mark.parametrize("rows", [slice(7, 30), np.array([3, 49, 7]), np.empty(0, np.int64)])
def test_a_task_reads_the_tokens_of_any_rows(tmp_path: Path, rows: Any) -> None:  # noqa: ANN401 - a slice or rows
    tokens = aligned_table(tmp_path, 50).tokens()
    tokens.tofile(tmp_path / "tokens")
    with PlainFile(path=tmp_path / "tokens").opened() as file:
        assert np.array_equal(draw_tasks._tokens_in(file)(rows), tokens[rows])


def here_and(folder: Path, engine: Engine, *, rows: int, is_remote: bool = False) -> tuple[str, str]:
    """Return what this process makes, and what an engine makes."""
    made = []
    for name, one, remote in (("here", InProcess(), False), ("there", engine, is_remote)):
        own = folder / name
        own.mkdir()
        made.append(aligned_in(Execution(run=new_run(own), engine=one, is_remote=remote), own, rows))
    return made[0], made[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_remote", [False, True])
def test_tasks_may_run_twice_and_break_off(tmp_path: Path, *, is_remote: bool) -> None:
    here, there = here_and(tmp_path, Twice(), rows=10_000, is_remote=is_remote)
    assert here == there


@pytest.mark.usefixtures("small")
def test_remote_tasks_read_and_write_files_of_the_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise AssertionError("a plain file")

    monkeypatch.setattr("veiltab.common.storage.stored.PlainFile.opened", refuse)
    place = Execution(run=new_run(tmp_path), engine=Twice(), is_remote=True)
    aligned_in(place, tmp_path, 10_000)
    left = b"".join(path.read_bytes() for path in place.run.folder.iterdir())
    own = (tmp_path / "own").read_bytes()
    assert len(left) > len(own)
    assert not [start for start in range(0, len(own), 16) if own[start : start + 16] in left]
    assert b"person" not in left


def test_remote_tasks_see_a_copy_of_a_file(tmp_path: Path) -> None:
    data = np.random.default_rng(1).bytes(3 * 2**20 + 5)
    (tmp_path / "file").write_bytes(data)
    place = Execution(run=new_run(tmp_path), engine=Twice(), is_remote=True)
    with place.for_tasks(tmp_path / "file", "copy").opened() as copy:
        assert copy.read(0, len(data)).tobytes() == data


class _Exchanging:
    """An engine beside somebody who can write to the folder of the run, and copies its table over other files."""

    def __init__(self, run: RunFiles, kind: str) -> None:
        self._run, self._kind = run, kind

    def perform(self, tasks: Iterable[Any]) -> Results[Any]:
        for number, task in enumerate(tasks):
            result = task.perform()
            if type(task).__name__ == self._kind:
                left = task.tokens.path if self._kind == "_Join" else self._run.folder / task.name
                shutil.copyfile(self._run.folder / "table", left)
            yield number, result

    def close(self) -> None:
        pass


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["_Spread", "_Sort", "_Join"])
def test_files_that_were_exchanged_in_the_shared_folder_are_not_decrypted(tmp_path: Path, kind: str) -> None:
    """The table in the place of the sorted tokens would be sent to the other curators as tokens, decrypted."""
    run = new_run(tmp_path)
    place = Execution(run=run, engine=_Exchanging(run, kind), is_remote=True)
    with pytest.raises(IntegrityError, match="was altered"):
        aligned_in(place, tmp_path, 10_000)
    assert (tmp_path / "own").exists() == (kind == "_Join")
    assert not (tmp_path / "aligned" / "tokens").exists()


def test_a_small_table_is_never_handed_over(tmp_path: Path) -> None:
    place = Execution(run=new_run(tmp_path), engine=Twice())
    assert isinstance(place.engine_for(execution.SMALL - 1), InProcess)
    assert place.engine_for(execution.SMALL) is place.engine


ROWS = 10**6 + 7
RELEASE_VICTIMS = {"_Spread": 1, "_Order": 0, "_Encrypt": 0}
VICTIMS = {"_Spread": 1, "_Sort": 0, "_Join": 1}


@pytest.mark.long
def test_a_pool_whose_processes_are_killed_makes_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "SMALL", 1)
    engine = Killing(engine=Pool(2), folder=tmp_path, victims=VICTIMS)
    here, there = here_and(tmp_path, engine, rows=ROWS)
    engine.close()
    assert here == there
    assert {path.name for path in tmp_path.glob("killed-*")} == {f"killed-{kind}" for kind in VICTIMS}


@pytest.mark.long
def test_a_cluster_whose_workers_are_killed_makes_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(execution, "SMALL", 1)
    monkeypatch.setattr(partitions, "SECTION", 2**17)
    with cluster(tmp_path / "cluster", workers=4, tls=True) as running:
        assert running.client is not None
        dask = Dask(running.address, load_cluster_identity(running.client), wait=WAIT)
        engine = Killing(engine=dask, folder=tmp_path, victims=VICTIMS)
        here, there = here_and(tmp_path, engine, rows=ROWS, is_remote=True)
        assert sum(worker.poll() is not None for worker in running.workers) == len(VICTIMS)
    assert here == there


@pytest.mark.long
def test_a_pool_whose_processes_are_killed_releases_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "SMALL", 1)
    engine = Killing(engine=Pool(2), folder=tmp_path, victims=RELEASE_VICTIMS)
    released(tmp_path, engine, (ROWS, ROWS, 1000), is_remote=False)
    engine.close()
    assert len(list(tmp_path.glob("killed-*"))) == len(RELEASE_VICTIMS)


@pytest.mark.long
def test_a_cluster_whose_workers_are_killed_releases_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(execution, "SMALL", 1)
    with cluster(tmp_path / "cluster", workers=4, tls=True) as running:
        assert running.client is not None
        dask = Dask(running.address, load_cluster_identity(running.client), wait=WAIT)
        engine = Killing(engine=dask, folder=tmp_path, victims=RELEASE_VICTIMS)
        released(tmp_path, engine, (ROWS, ROWS, 1000), is_remote=True)
        assert sum(worker.poll() is not None for worker in running.workers) == len(RELEASE_VICTIMS)


@dataclass(frozen=True, kw_only=True)
class _Filling:
    """An engine beside somebody who fills the disk when tasks of a kind begin."""

    engine: Engine
    disk: SmallDisk
    kind: str

    def perform(self, tasks: Iterable[Any]) -> Results[Any]:
        first, *others = tasks
        if type(first).__name__ == self.kind:
            self.disk.fill()
        return self.engine.perform([first, *others])

    def close(self) -> None:
        self.engine.close()


@pytest.mark.long
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["_Spread", "_Sort"])
def test_a_full_disk_of_a_run_is_said_and_with_room_again_the_files_are_the_same(tmp_path: Path, kind: str) -> None:
    folders = [tmp_path / "here", tmp_path / "there"]
    for folder in folders:
        folder.mkdir()
    here = aligned_in(Execution(run=new_run(folders[0]), engine=InProcess()), folders[0], 10_000)
    with small_disk(folders[1] / "run") as disk, closing(Pool(2)) as pool:
        run = new_run(folders[1])
        table = table_in(run, 10_000)
        with pytest.raises(OSError, match="No space left") as caught:
            aligned_from(table, Execution(run=run, engine=_Filling(engine=pool, disk=disk, kind=kind)), folders[1])
        assert str(disk_refusal(caught.value)).startswith("this party's disk is full")
        assert str(run.folder) in files_of(caught.value)
        disk.free()
        assert aligned_from(table, Execution(run=run, engine=pool), folders[1]) == here


def test_a_cluster_needs_a_folder_that_its_workers_see(tmp_path: Path) -> None:
    cluster_options = EngineOptions(dask="tls://localhost:1")
    mistakes = {"no folder was given that": (cluster_options, None), "no cluster to share": (EngineOptions(), tmp_path)}
    for problem, (engine, shared) in mistakes.items():
        with pytest.raises(InvalidInputError, match=problem) as caught:
            WorkOptions(engine=engine, shared=shared)
        assert caught.value.where == "--advanced shared"
    with refuses(InvalidInputError, where=f"{tmp_path}/none"):
        WorkOptions(engine=cluster_options, shared=tmp_path / "none")


def test_a_run_is_in_the_state_folder_and_ends_with_the_block(tmp_path: Path) -> None:
    options = WorkOptions(engine=EngineOptions(workers=1))
    with options.run(tmp_path, ALICE) as run:
        assert run.folder == tmp_path / "run"
        with options.execution(run, study_authority=b"") as place:
            assert not place.is_remote
        table_in(run, 100)
        assert list(run.folder.iterdir())
    assert not run.folder.exists()


def test_curators_that_share_a_folder_leave_each_other_s_files(tmp_path: Path) -> None:
    """Each deletes at its start what an earlier process of its own left."""
    options = WorkOptions(engine=EngineOptions(dask="tls://localhost:1"), shared=tmp_path)
    bob = Party(study="survey", role=Role.CURATOR, name="bob")
    with options.run(tmp_path, ALICE) as run:
        table_in(run, 100)
        with options.run(tmp_path, bob) as other:
            assert other.folder != run.folder
        assert (run.folder / "table").exists()
        with options.run(tmp_path, ALICE):
            assert not (run.folder / "table").exists()


@pytest.mark.parametrize("is_remote", [False, True])
def test_other_machines_see_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_remote: bool
) -> None:
    """The curator keeps its file open, and a network's file system sends on what is written when it is closed."""
    synced, opened_at = list[int](), list[int]()
    monkeypatch.setattr("veiltab.common.storage.sealed.os.fsync", lambda file: synced.append(os.fstat(file).st_ino))
    place = Execution(run=new_run(tmp_path), engine=InProcess(), is_remote=is_remote)
    table = table_in(place.run, 100)
    monkeypatch.setattr(token_order._Spread, "perform", lambda _: opened_at.extend(synced))
    with pytest.raises(AttributeError):
        TokenOrder(table, place).write(KEY, tmp_path / "own")
    assert opened_at == ([(place.run.folder / "table").stat().st_ino] if is_remote else [])


def test_a_curator_that_ends_waits_for_no_pass(tmp_path: Path) -> None:
    async def align() -> None:
        await asyncio.to_thread(lambda: list(pool.perform([Sleep(folder=tmp_path)])))

    async def party() -> None:
        work = asyncio.create_task(_work(align, None, pool.close))
        await asyncio.to_thread(wait_for, lambda: next(tmp_path.iterdir(), None))
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    with closing(Pool(1)) as pool:
        asyncio.run(party())  # waits for all threads
