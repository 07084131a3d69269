"""Tasks on real clusters: schedulers and workers are processes, over TLS where that matters."""

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.common.tasks.cluster import WAIT, Cluster, cluster
from tests.common.tasks.samples import Death, Failure, Refusal, Reversal, Square, Turn
from tests.conftest import refuses
from veiltab.common.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TransferError,
    UnavailableError,
    VeiltabError,
)
from veiltab.common.tasks import dask as dask_module
from veiltab.common.tasks import dask_worker
from veiltab.common.tasks.cluster_identity import ClusterIdentity, load_cluster_identity
from veiltab.common.tasks.dask import Dask
from veiltab.common.tasks.dask_worker import VERSION
from veiltab.common.tasks.engine import Task, in_order
from veiltab.common.tasks.seal import Seal
from veiltab.curator.progress.progress import outcome_of
from veiltab.curator.progress.release_record import Wait
from veiltab.deploy.pki.cluster import init_cluster
from veiltab.play.local.processes import free_ports

pytest.importorskip("distributed")


@pytest.fixture
def identity(tmp_path: Path) -> ClusterIdentity:
    return load_cluster_identity(init_cluster(tmp_path / "pki")["client"])


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", "localhost:x", "localhost:0", "a:65536", "a:1:2"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="HOST:PORT") as caught:
        Dask(address)
    assert caught.value.where == "--dask"


@pytest.mark.parametrize("address", ["localhost:8786", "10.0.0.1:1", "[::1]:8786", "tcp://a.example.org:8786"])
def test_what_is_an_address_is_not(address: str) -> None:
    assert Dask(address)._address == f"tcp://{address.removeprefix('tcp://')}"


@pytest.mark.parametrize("address", ["localhost:8786", "tls://localhost:8786"])
def test_with_an_identity_it_is_reached_over_tls(address: str, identity: ClusterIdentity) -> None:
    engine = Dask(address, identity)
    assert engine._address == "tls://localhost:8786"
    assert engine._security().require_encryption


class PlayedClient:
    """A client of Dask's whose scheduler and worker are this process."""

    scheduler = SimpleNamespace(address="tls://played:1")

    def __init__(self) -> None:
        self.sealed = list[tuple[Any, ...]]()
        self.swapped = dict[int, int]()
        self.texts = list[bytes]()

    def nthreads(self) -> dict[str, int]:
        return {"worker": 2}

    def submit(self, call: Callable[..., bytes], *args: Any, pure: bool) -> Any:  # noqa: ANN401 - of Dask's
        assert not pure
        self.sealed.append(args)
        self.texts.append(call(*args))
        number = len(self.texts) - 1
        return SimpleNamespace(
            add_done_callback=lambda done: done(None),
            result=lambda timeout: self.texts[self.swapped.get(number, number)] if timeout else b"",
            status="finished",
        )


@pytest.fixture
def played(identity: ClusterIdentity, monkeypatch: pytest.MonkeyPatch) -> tuple[Dask, PlayedClient]:
    client = PlayedClient()
    monkeypatch.setattr(Dask, "_client", lambda _: nullcontext(client))
    monkeypatch.setattr(dask_worker, "_key", lambda: identity.tasks_key)
    return Dask("localhost:8786", identity, wait=WAIT), client


def test_what_a_scheduler_swaps_is_refused(played: tuple[Dask, PlayedClient]) -> None:
    engine, client = played
    squares = [Square(base=base) for base in range(3)]
    assert list(in_order(engine.perform(squares))) == [0, 1, 4]
    client.swapped = {3 + 1: 3 + 2}  # of the next call
    with pytest.raises(TransferError, match="outcome that came is not one that was sealed"):
        list(engine.perform(squares))


def test_what_was_sealed_for_one_call_is_refused_in_another(played: tuple[Dask, PlayedClient]) -> None:
    engine, client = played
    assert list(engine.perform([Square(base=1)])) == [(0, 1)]
    client.swapped = {1: 0}
    with pytest.raises(TransferError, match="outcome that came is not one that was sealed"):
        list(engine.perform([Square(base=2)]))
    (_, first, number, sealed), (_, second, *_) = client.sealed
    with pytest.raises(TransferError, match="task that came is not one that was sealed"):
        dask_worker.perform_sealed(VERSION, second, number, sealed)
    assert first != second


def test_a_worker_makes_files_for_its_user_alone(
    tmp_path: Path, identity: ClusterIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks.key"
    path.write_text(identity.tasks_key.hex())
    path.chmod(0o600)
    monkeypatch.setenv(dask_worker.KEY_VARIABLE, str(path))
    before = os.umask(0o022)
    try:
        assert dask_worker._key.__wrapped__() == identity.tasks_key
        assert os.umask(0o022) == 0o077
        monkeypatch.delenv(dask_worker.KEY_VARIABLE)
        with refuses(NotFoundError, where=dask_worker.KEY_VARIABLE):
            dask_worker._key.__wrapped__()
    finally:
        os.umask(before)


def test_an_identity_for_what_does_not_encrypt_is_refused_and_so_is_tls_without_one(identity: ClusterIdentity) -> None:
    for arguments in (("tcp://localhost:8786", identity), ("tls://localhost:8786", None)):
        with refuses(InvalidInputError, where="--dask-identity"):
            Dask(*arguments)
    with pytest.raises(InvalidInputError, match="HOST:PORT"):
        Dask("ws://localhost:8786")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("secure"), workers=2, tls=True) as running:
        yield running


def engine_of(running: Cluster, **options: float) -> Dask:
    identity = None if running.client is None else load_cluster_identity(running.client)
    return Dask(running.address, identity, **{"wait": WAIT, **options})


@pytest.mark.long
def test_errors_of_tasks_come_as_they_are(secure: Cluster) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        list(engine_of(secure).perform([Refusal()]))
    assert str(refusal.value) == "--nothing: there is nothing to do. Do something."
    with pytest.raises(ZeroDivisionError) as failure:
        list(engine_of(secure).perform([Failure()]))
    assert failure.value.__notes__ == ["while dividing"]


@pytest.mark.long
def test_the_scheduler_sees_neither_tasks_nor_results(tmp_path: Path) -> None:
    secret, shown = secrets.token_hex(16), secrets.token_hex(16)
    with cluster(tmp_path, workers=1, tls=True) as running:
        engine = engine_of(running)
        assert list(engine.perform([Reversal(text=secret)])) == [(0, secret[::-1])]
        with engine._client() as client:
            # As a control, what is not sealed is there.
            assert client.submit(Reversal(text=shown).perform).result() == shown[::-1]
            memory = memory_of(running.scheduler.pid)
    assert shown.encode() in memory
    assert secret.encode() not in memory
    assert secret[::-1].encode() not in memory


def memory_of(process: int) -> bytes:
    """Return all memory of a process that it may write to."""
    pieces = []
    with Path(f"/proc/{process}/maps").open() as maps, Path(f"/proc/{process}/mem").open("rb") as memory:
        for line in maps:
            places, rights, *_ = line.split()
            start, end = (int(place, 16) for place in places.split("-"))
            if rights.startswith("rw") and "[v" not in line:
                memory.seek(start)
                pieces.append(memory.read(end - start))
    return b"".join(pieces)


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    tasks: list[Task[int]] = [Square(base=base) for base in range(50)]
    tasks.insert(20, Death(folder=deaths, times=1))
    with cluster(tmp_path, workers=2, tls=True) as running:
        results = list(in_order(engine_of(running).perform(tasks)))
        assert sum(worker.poll() is not None for worker in running.workers) == 1
    assert results.pop(20) == 1
    assert results == [base * base for base in range(50)]


@pytest.mark.long
def test_a_scheduler_that_is_lost_is_said_and_so_are_all_workers(tmp_path: Path) -> None:
    with cluster(tmp_path, workers=1, tls=True) as running:
        tasks: list[Task[int]] = [Square(base=1), Turn(folder=tmp_path, number=0, together=100)]
        results = engine_of(running).perform(tasks)
        assert next(results) == (0, 1)
        running.scheduler.kill()
        with pytest.raises(UnavailableError, match="scheduler was lost"):
            next(results)
    (tmp_path / "2").mkdir()
    with cluster(tmp_path / "2", workers=1, tls=True) as running:
        assert list(engine_of(running).perform([Square(base=1)])) == [(0, 1)]
        results = engine_of(running, wait=2).perform([Death(folder=running.folder, times=100)])
        with pytest.raises(UnavailableError, match="has no worker"):
            next(results)


def test_a_scheduler_that_does_not_answer_is_said_and_no_thread_stays(identity: ClusterIdentity) -> None:
    (port,) = free_ports(1)
    threads = threading.active_count()
    for one, remedy in ((identity, '"A cluster"'), (None, "dask scheduler --port PORT")):
        with pytest.raises(UnavailableError, match="no Dask scheduler answers") as caught:
            list(Dask(f"127.0.0.1:{port}", one, wait=0.1).perform([Square(base=1)]))
        assert remedy in caught.value.remedy
    assert threading.active_count() == threads


@pytest.mark.long
def test_results_are_fetched_by_no_thread_that_other_calls_need(
    secure: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = set[int]()
    future = dask_module._distributed().Future
    fetch = future.result

    def watched(self: object, timeout: float) -> bytes:
        fetching.add(threading.get_ident())
        return bytes(fetch(self, timeout))

    monkeypatch.setattr(future, "result", watched)
    assert list(in_order(engine_of(secure).perform([Square(base=base) for base in range(20)])))[-1] == 361
    assert fetching == {threading.get_ident()}


@pytest.mark.long
def test_a_client_of_another_authority_is_refused_and_so_is_one_without_tls(secure: Cluster, tmp_path: Path) -> None:
    other = load_cluster_identity(init_cluster(tmp_path / "other")["client"])
    refusals = {"no certificate of the cluster's authority": other, "no Dask scheduler answers": None}
    for refusal, identity in refusals.items():
        with pytest.raises(UnavailableError, match=refusal):
            list(Dask(secure.address, identity, wait=3).perform([Square(base=1)]))


@pytest.mark.long
def test_a_worker_without_a_key_or_with_another_is_refused(tmp_path: Path) -> None:
    keys = {"other": init_cluster(tmp_path / "other")["worker"] / "tasks.key", "none": tmp_path / "no.key"}
    for name, key in keys.items():
        (tmp_path / name / "cluster").mkdir(parents=True)
        with (
            cluster(tmp_path / name / "cluster", workers=1, tls=True, tasks_key=key) as running,
            pytest.raises(UnavailableError, match=r"not one that was sealed here|not there"),
        ):
            list(engine_of(running).perform([Square(base=1)]))


@pytest.mark.parametrize("refusal", [ConflictError, NotFoundError, TransferError])
def test_what_a_worker_refuses_may_be_mended_and_ends_no_release(refusal: type[VeiltabError]) -> None:
    def refuse(timeout: float) -> bytes:
        raise refusal("a worker has another version", remedy=f"Wait {timeout} s.")

    crew = dask_module._Crew[int](SimpleNamespace(scheduler=SimpleNamespace(address="tls://a:1")), None, 1.0)
    told = crew._text(SimpleNamespace(result=refuse, status="error"))
    assert isinstance(told, UnavailableError)
    assert str(told) == "a worker has another version. Wait 1.0 s."
    assert isinstance(outcome_of(told, is_charged=True), Wait)


@pytest.mark.long
def test_results_that_a_scheduler_swaps_are_refused(secure: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Seal.open
    swapped = {0: 1, 1: 0}
    monkeypatch.setattr(Seal, "open", lambda seal, kind, number, text: opened(seal, kind, swapped[number], text))
    with pytest.raises(TransferError):
        list(engine_of(secure).perform([Square(base=1), Square(base=2)]))


@pytest.mark.long
def test_a_worker_of_another_version_is_refused(secure: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_module, "VERSION", "0.0.0")
    with pytest.raises(UnavailableError, match=r"0\.0\.0"):
        list(engine_of(secure).perform([Square(base=1)]))
