import asyncio
import hashlib
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.power import FailingPower, PowerFailure
from veiltab.common.errors import (
    ConflictError,
    DeniedError,
    FailedReleaseError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    TransferError,
    VeiltabError,
)
from veiltab.common.observe.progress import Stage
from veiltab.common.release.messages.release_messages import spec_to_proto
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import Column, TableSpec
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.rpc.statuses import every
from veiltab.common.storage.database import Database
from veiltab.common.storage.files import file_digest
from veiltab.common.study.file import Study
from veiltab.server.party.service import IngestServicer
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import perturb_release
from veiltab.server.release.receiving import Announced
from veiltab.server.release.releases import Releases
from veiltab.server.sharing.leases import Lease
from veiltab.v1 import ingest_pb2

Make = Callable[..., Any]
ID = "0" * 31 + "1"
DATA = {"sex": bytes(400), "salary": bytes([1] * 400)}
OWNERS = {"sex": "alice", "salary": "bob"}


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[ServerStore]:
    store = ServerStore(tmp_path, database)
    yield store
    store.close()


@pytest.fixture
def releases(study: Study, store: ServerStore) -> Releases:
    return Releases(study, store, retention_days=1)


async def pieces(data: bytes, offset: int = 0, length: int = 64) -> AsyncIterator[tuple[int, bytes]]:
    for start in range(offset, len(data), length):
        await asyncio.sleep(0)
        yield start, data[start : start + length]


async def send(
    releases: Releases, spec: TableSpec, attribute: str, data: bytes | None = None, stop: int | None = None
) -> tuple[int, bool]:
    """Announce a release and send one column, or its beginning, as its owner does."""
    whole = DATA[attribute] if data is None else data
    session, received = releases.open_release(spec, OWNERS[attribute])
    return await releases.upload(announced(session, attribute, whole), pieces(whole[:stop], received[attribute]))


def announced(session: Session, attribute: str, data: bytes) -> Announced:
    return Announced(
        curator=OWNERS[attribute],
        release_id=session.spec.release_id,
        attribute=attribute,
        spec_digest=session.spec.digest(),
        column_digest=hashlib.sha256(data).digest(),
        noise_digest=session.noise_digest,
    )


async def send_whole(
    releases: Releases, spec: TableSpec, curator: str, columns: Mapping[str, tuple[bytes, bytes]]
) -> None:
    """Announce a release and send whole columns together."""
    session, _ = releases.open_release(spec, curator)
    await releases.upload_whole(spec, curator, columns, session.noise_digest)


async def settled(releases: Releases) -> None:
    while releases._perturbing:
        await asyncio.gather(*releases._perturbing.values(), return_exceptions=True)


def run(work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever it returns
    return asyncio.run(work)


async def whole_release(releases: Releases, spec: TableSpec) -> None:
    for attribute in DATA:
        await send(releases, spec, attribute)
    await settled(releases)


# What is announced


def test_a_release_is_announced_and_found_again(releases: Releases, make_spec: Make) -> None:
    spec = make_spec()
    for curator, received in (("alice", {"sex": 0}), ("bob", {"salary": 0}), ("alice", {"sex": 0})):
        session, held = releases.open_release(spec, curator)
        assert (session.state, held) == (ReleaseState.UPLOADING, received)
    with pytest.raises(ConflictError, match="another spec is announced"):
        releases.open_release(make_spec(sample=399), "alice")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"study_digest": "0" * 64}, "another study file"),
        ({"columns": (Column(attribute="sex", owner="bob", size=2),)}, "not as the study says"),
        ({"columns": (Column(attribute="sex", owner="alice", size=3),)}, "not as the study says"),
        ({"columns": (Column(attribute="height", owner="alice", size=2),)}, "not as the study says"),
    ],
)
def test_a_release_that_is_not_of_the_study_is_refused(
    releases: Releases, store: ServerStore, make_spec: Make, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        releases.open_release(make_spec(**changes), "alice")
    assert store.sessions() == ()


def test_too_many_cells_and_others_releases_are_refused(store: ServerStore, study: Study, make_spec: Make) -> None:
    from dataclasses import replace  # noqa: PLC0415

    with pytest.raises(InvalidInputError, match="the study allows 3 cells"):
        Releases(replace(study, maximum_cells=3), store).open_release(make_spec(), "alice")
    with pytest.raises(DeniedError, match="no column of this release is the caller's"):
        Releases(study, store).open_release(make_spec(), "carol")


# What is uploaded


def whole(attribute: str, data: bytes | None = None) -> dict[str, tuple[bytes, bytes]]:
    """Return a column and its digest, by its name."""
    column = DATA[attribute] if data is None else data
    return {attribute: (column, hashlib.sha256(column).digest())}


def test_whole_columns_are_taken_of_a_release_that_was_announced(releases: Releases, make_spec: Make) -> None:
    async def work() -> None:
        spec = make_spec()
        for attribute, curator in OWNERS.items():
            for _ in range(2):  # the same again changes nothing
                await send_whole(releases, spec, curator, whole(attribute))
        await settled(releases)
        assert set(releases.publication_of(ID, "alice")[1]) == set(DATA)
        await send_whole(releases, spec, "bob", whole("salary"))
        with pytest.raises(ConflictError, match="other bytes were taken"):
            await send_whole(releases, spec, "bob", whole("salary", bytes(400)))
        with pytest.raises(ConflictError, match="another spec is announced"):
            await send_whole(releases, make_spec(sample=399), "bob", whole("salary"))

    run(work())


@pytest.mark.parametrize(
    ("column", "refusal"),
    [
        (whole("sex", bytes(399)), InvalidInputError("the column has more than 399 bytes")),
        (whole("sex", bytes(401)), InvalidInputError("the column has 400 bytes, and more came")),
        (whole("salary"), DeniedError("this column is another curator's")),
        ({"sex": (bytes(400), bytes(32))}, TransferError("the column does not have its digest")),
        (whole("sex", bytes([2] * 400)), IntegrityError("400 of 400 symbols lie outside an alphabet of 2 categories")),
    ],
)
def test_a_whole_column_is_refused_that_is_none(
    releases: Releases,
    store: ServerStore,
    make_spec: Make,
    column: dict[str, tuple[bytes, bytes]],
    refusal: VeiltabError,
) -> None:
    spec = make_spec()
    with pytest.raises(type(refusal), match=re.escape(refusal.problem)):
        run(send_whole(releases, spec, "alice", column))
    assert not store.session(ID).complete
    ends = not isinstance(refusal, InvalidInputError | DeniedError | TransferError)
    assert store.session(ID).state is (ReleaseState.FAILED if ends else ReleaseState.UPLOADING)
    if ends:
        with pytest.raises(FailedReleaseError):
            run(send_whole(releases, spec, "alice", whole("sex")))


def test_a_column_of_which_a_part_is_here_is_completed_by_the_whole(releases: Releases, make_spec: Make) -> None:
    async def work() -> None:
        assert await send(releases, make_spec(), "sex", stop=100) == (100, False)
        await send_whole(releases, make_spec(), "alice", whole("sex"))
        assert releases.open_release(make_spec(), "alice")[0].complete == {"sex"}

    run(work())


def test_a_part_that_a_failing_power_damaged_is_sent_again_with_the_whole(
    releases: Releases, store: ServerStore, make_spec: Make
) -> None:
    async def work() -> None:
        spec = make_spec()
        await send(releases, spec, "sex", stop=100)
        (part,) = store.ciphertext_folder(ID).iterdir()
        part.write_bytes(bytes(1 - symbol for symbol in DATA["sex"][:100]))
        with pytest.raises(TransferError, match="does not have its digest"):
            await send_whole(releases, spec, "alice", whole("sex"))
        await send_whole(releases, spec, "alice", whole("sex"))
        assert store.session(ID).complete == {"sex"}

    run(work())


def outlives(folder: Path, study: Study, spec: TableSpec, at: int, seed: int) -> bool:
    """Let the power fail before a step of a release, and go on; return whether there was such a step.

    A curator deletes what the server has said to hold whole, and the digests that it has stated are stated again.
    """
    held, stated, noises = set[str](), dict[str, bytes](), set[bytes]()

    async def work(releases: Releases) -> None:
        noises.add(releases.open_release(spec, "alice")[0].noise_digest)
        for attribute in set(DATA) - held:
            await send(releases, spec, attribute, stop=100)
            if (await send(releases, spec, attribute))[1]:
                held.add(attribute)
        await settled(releases)
        stated.update(releases.publication_of(ID, "alice")[1])

    store = ServerStore(folder / "first")
    with pytest.MonkeyPatch.context() as watching, suppress(PowerFailure, VeiltabError):
        power = FailingPower(watching, folder / "first", cast("Database", store.connection), at=at, seed=seed)
        run(work(Releases(study, store, retention_days=1)))
    power.close()
    store.close()
    if power.left is None:
        return False
    power.restore(folder / "later")
    before = dict(stated)
    with closing(ServerStore(folder / "later")) as store:
        again = Releases(study, store, retention_days=1)
        noises.add(again.open_release(spec, "alice")[0].noise_digest)
        assert len(noises) == 1, "curators send columns for the noise that was stated first"
        run(resumed(again, work))
        session, digests = again.publication_of(ID, "alice")
        assert before in ({}, digests)
        salt = again.salt_of(session)
        columns = {name: again.published_column(ID, name, "rosa")[0] for name in DATA}
        assert digests == {name: file_digest(path, salt) for name, path in columns.items()}
        again._sweep(int(time.time()))
        assert not store.ciphertext_folder(ID).exists()
    return True


async def resumed(releases: Releases, work: Callable[[Releases], Coroutine[Any, Any, None]]) -> None:
    """Let a service that has been started go on with what is complete, and do some work until it has published."""
    taking_up = asyncio.create_task(every(1, releases._take_up, logging.getLogger(), "not taken up"))
    async with asyncio.timeout(20):
        while releases._store.session(ID).state is not ReleaseState.READY:
            with suppress(TransferError):
                await work(releases)
            await asyncio.sleep(0.01)
    taking_up.cancel()


@pytest.mark.parametrize("at", [6, 13, 20])
def test_a_release_outlives_a_power_that_fails(tmp_path: Path, study: Study, make_spec: Make, at: int) -> None:
    assert outlives(tmp_path, study, make_spec(), at, seed=at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_release_outlives_a_power_that_fails_at_any_step(
    tmp_path: Path, study: Study, make_spec: Make, seed: int
) -> None:
    at = 0
    while outlives(tmp_path / str(at), study, make_spec(), at, 1000 * seed + at):
        at += 1
    assert at > 20


def test_a_column_is_named_once_in_a_message(releases: Releases, make_spec: Make) -> None:
    twice = [ingest_pb2.WholeColumn(attribute="sex")] * 2
    request = ingest_pb2.UploadColumnsRequest(spec=spec_to_proto(make_spec()), columns=twice)
    with pytest.raises(InvalidInputError, match="an attribute is named twice"):
        run(IngestServicer(releases).UploadColumns(request, cast("Any", None)))


def test_an_upload_may_stop_and_go_on(releases: Releases, make_spec: Make) -> None:
    async def work() -> None:
        spec = make_spec()
        assert await send(releases, spec, "sex", stop=100) == (100, False)
        assert releases.open_release(spec, "alice")[1] == {"sex": 100}
        assert await send(releases, spec, "sex") == (400, True)
        assert releases.open_release(spec, "alice")[1] == {"sex": 400}
        # The same column again is fine; other bytes are not.
        assert await send(releases, spec, "sex") == (400, True)
        with pytest.raises(ConflictError, match="other bytes were taken"):
            await send(releases, spec, "sex", bytes([1] * 400))

    run(work())


def test_a_column_of_another_spec_or_curator_is_refused(releases: Releases, make_spec: Make) -> None:
    async def work() -> None:
        spec = make_spec()
        good = announced(releases.open_release(spec, "alice")[0], "sex", DATA["sex"])
        with pytest.raises(InvalidInputError, match="another spec"):
            await releases.upload(replace(good, spec_digest=bytes(32)), pieces(DATA["sex"]))
        with pytest.raises(DeniedError, match="another curator's"):
            await releases.upload(replace(good, curator="bob"), pieces(DATA["sex"]))
        with pytest.raises(InvalidInputError, match="not in this release"):
            await releases.upload(replace(good, attribute="age"), pieces(DATA["sex"]))
        with pytest.raises(ConflictError, match="for another noise than the release has here"):
            await releases.upload(replace(good, noise_digest=bytes(32)), pieces(DATA["sex"]))
        with pytest.raises(ConflictError, match="for another noise than the release has here"):
            await releases.upload_whole(spec, "alice", whole("sex"), bytes(32))
        assert not releases._store.ciphertext_folder(ID).exists()

    run(work())


def test_a_symbol_outside_its_alphabet_fails_the_release(
    releases: Releases, store: ServerStore, make_spec: Make
) -> None:
    async def work() -> None:
        spec = make_spec()
        await send(releases, spec, "salary")
        with pytest.raises(IntegrityError, match="1 of 400 symbols lie outside"):
            await send(releases, spec, "sex", bytes([2, *bytes(399)]))
        session = store.session(ID)
        assert session.state is ReleaseState.FAILED
        assert session.failure == "attribute sex: 1 of 400 symbols lie outside an alphabet of 2 categories"
        assert not store.ciphertext_folder(ID).exists()
        with pytest.raises(FailedReleaseError, match="symbols lie outside"):
            await send(releases, spec, "sex")

    run(work())


def test_a_damaged_column_may_be_sent_again(releases: Releases, store: ServerStore, make_spec: Make) -> None:
    async def work() -> None:
        spec = make_spec()
        header = announced(releases.open_release(spec, "alice")[0], "sex", DATA["sex"])
        with pytest.raises(IntegrityError, match="does not have its digest"):
            await releases.upload(header, pieces(bytes([1] * 400)))
        assert store.session(ID).state is ReleaseState.UPLOADING
        assert await send(releases, spec, "sex") == (400, True)

    run(work())


def test_an_upload_whose_file_is_gone_is_refused_while_nothing_explains_it(
    releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError

    with monkeypatch.context() as broken:
        broken.setattr("veiltab.server.sharing.folders.ReleaseFolder.begin_column", gone)
        with pytest.raises(FileNotFoundError):
            run(send(releases, make_spec(), "sex"))
    assert store.session(ID).state is ReleaseState.UPLOADING
    assert run(send(releases, make_spec(), "sex")) == (400, True)


# Once, ever


@pytest.fixture
def perturbations(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def recorded(store: ServerStore, spec: TableSpec, lease: Lease, stage: Stage) -> None:
        counted[spec.release_id] += 1
        time.sleep(0.05)
        perturb_release(store, spec, lease, stage)

    monkeypatch.setattr("veiltab.server.release.releases.perturb_release", recorded)
    return counted


def test_fifty_submissions_at_once_are_perturbed_once(
    releases: Releases, store: ServerStore, make_spec: Make, perturbations: Counter[str]
) -> None:
    async def work() -> list[tuple[int, bool] | BaseException]:
        spec = make_spec()
        uploads = [send(releases, spec, attribute) for attribute in DATA for _ in range(25)]
        answers = await asyncio.gather(*uploads, return_exceptions=True)
        await settled(releases)
        return answers

    assert run(work()) == [(400, True)] * 50
    assert perturbations == {ID: 1}
    assert store.session(ID).state is ReleaseState.READY
    assert not store.ciphertext_folder(ID).exists()


@pytest.mark.parametrize("database", [""], ids=["sqlite"])
def test_fifty_releases_at_once_are_kept_apart(
    releases: Releases, store: ServerStore, make_spec: Make, perturbations: Counter[str]
) -> None:
    specs = [make_spec(release_id=f"{number:032x}", sample=400) for number in range(50)]

    async def work() -> None:
        await asyncio.gather(*(send(releases, spec, attribute) for attribute in DATA for spec in specs))
        await settled(releases)

    run(work())
    assert perturbations == {spec.release_id: 1 for spec in specs}
    assert {session.state for session in store.sessions()} == {ReleaseState.READY}


def test_nothing_is_served_before_it_is_published_nor_to_another(
    releases: Releases, make_spec: Make, store: ServerStore
) -> None:
    async def work() -> None:
        spec = make_spec()
        releases.open_release(spec, "alice")
        with pytest.raises(NotReadyError, match="not published yet"):
            releases.published_column(ID, "sex", "rosa")
        await whole_release(releases, spec)
        path, length = releases.published_column(ID, "sex", "rosa")
        assert (path.stat().st_size, length, path.parent) == (400, 400, store.published_folder(ID))
        with pytest.raises(InvalidInputError, match="not in this release"):
            releases.published_column(ID, "age", "rosa")
        for ask in (releases.release_of, lambda release, who: releases.published_column(release, "sex", who)):
            with pytest.raises(DeniedError, match="for another researcher"):
                ask(ID, "rita")
        session, seconds = releases.release_of(ID, "rosa")
        assert session.state is ReleaseState.READY
        assert seconds > 0

    run(work())


def test_columns_that_fit_a_chunk_together_come_with_the_answer(
    releases: Releases, make_spec: Make, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        spec = make_spec()
        session, _ = releases.open_release(spec, "alice")
        assert releases.short_columns_of(session) == {}
        await whole_release(releases, spec)
        session = store.session(ID)
        folder = store.published_folder(ID)
        monkeypatch.setattr("veiltab.server.release.publications.CHUNK", 800)
        assert releases.short_columns_of(session) == {name: (folder / name).read_bytes() for name in DATA}
        monkeypatch.setattr("veiltab.server.release.publications.CHUNK", 799)
        assert releases.short_columns_of(session) == {}
        monkeypatch.undo()
        (folder / "salary").unlink()
        with pytest.raises(NotFoundError, match="not here"):
            releases.short_columns_of(session)

    run(work())


@pytest.mark.parametrize("database", [""], ids=["sqlite"])
def test_who_waits_for_a_publication_hears_of_it_when_it_is_there(
    releases: Releases, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.changes.LONGEST_WAIT", 3600.0)
    alice, carol = (Party(study="survey", role=Role.CURATOR, name=name) for name in ("alice", "carol"))

    async def work() -> None:
        spec = make_spec()
        await send(releases, spec, "sex")
        with pytest.raises(DeniedError):
            await releases.wait_for_publication(ID, carol, 3600.0)
        waiting = asyncio.create_task(releases.wait_for_publication(ID, alice, 3600.0))
        # Whatever takes no time ends at once, and this does not.
        await releases.wait_for_publication(ID, alice, 0.001)
        assert not waiting.done()
        await send(releases, spec, "salary")
        await waiting
        assert releases.publication_of(ID, "alice")[0].state is ReleaseState.READY
        await releases.wait_for_publication(ID, alice, 3600.0)

    run(asyncio.wait_for(work(), 20))


# After a crash, and with time


async def started(releases: Releases, seconds: float = 0.3) -> None:
    """Let a server process run for a moment."""
    running = asyncio.create_task(releases.run())
    await asyncio.sleep(seconds)
    await settled(releases)
    running.cancel()


def test_a_new_process_takes_up_a_perturbation(
    study: Study, releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Releases, "_begin_perturbation", lambda *_: None)
        run(whole_release(releases, make_spec()))
    assert store.session(ID).state is ReleaseState.PERTURBING
    run(started(Releases(study, store)))
    assert store.session(ID).state is ReleaseState.READY
    assert not store.ciphertext_folder(ID).exists()


def test_what_is_being_perturbed_is_not_begun_again(
    releases: Releases, store: ServerStore, make_spec: Make, perturbations: Counter[str]
) -> None:
    async def work() -> None:
        for attribute in DATA:
            await send(releases, make_spec(), attribute)
        assert store.session(ID).state is ReleaseState.PERTURBING
        await started(releases)

    run(work())
    assert perturbations == {ID: 1}
    assert store.session(ID).state is ReleaseState.READY


def test_a_new_process_deletes_the_ciphertext_of_what_is_published(
    study: Study, releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crashed:
        crashed.setattr(store, "delete_ciphertext", lambda _: None)
        run(whole_release(releases, make_spec()))
    assert store.session(ID).state is ReleaseState.READY
    assert store.ciphertext_folder(ID).exists()
    run(started(Releases(study, store)))
    assert not store.ciphertext_folder(ID).exists()
    assert (store.published_folder(ID) / "sex").stat().st_size == 400


def test_a_full_disk_leaves_the_ciphertext_for_a_new_process(
    study: Study, releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("veiltab.server.release.perturbation.perturb_chunk", full)
        broken.setattr(store.leases, "seconds", store.leases.seconds / 100)
        run(whole_release(releases, make_spec()))
    assert store.session(ID).state is ReleaseState.PERTURBING
    assert store.ciphertext_folder(ID).exists()
    run(started(Releases(study, store)))
    assert store.session(ID).state is ReleaseState.READY


def test_a_column_that_was_damaged_since_fails_the_release(
    releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Releases, "_begin_perturbation", lambda *_: None)
        run(whole_release(releases, make_spec()))
    store.complete_files(ID)["sex"].write_bytes(b"\xff" * 400)
    run(started(releases))
    assert store.session(ID).state is ReleaseState.FAILED
    assert "symbols lie outside" in store.session(ID).failure
    assert not store.ciphertext_folder(ID).exists()
    assert not store.published_folder(ID).exists()


def test_what_is_not_complete_at_its_deadline_expires(releases: Releases, store: ServerStore, make_spec: Make) -> None:
    spec = make_spec()
    run(send(releases, spec, "sex"))
    releases._sweep(spec.deadline)
    assert store.session(ID).state is ReleaseState.UPLOADING
    releases._sweep(spec.deadline + 1)
    assert store.session(ID).state is ReleaseState.EXPIRED
    assert not store.ciphertext_folder(ID).exists()
    with pytest.raises(FailedReleaseError, match="not all columns came before the deadline"):
        run(send(releases, spec, "salary"))


def test_what_is_published_is_kept_for_its_time(releases: Releases, store: ServerStore, make_spec: Make) -> None:
    spec = make_spec()
    run(whole_release(releases, spec))
    releases._sweep(spec.deadline + 86_400)
    assert releases.published_column(ID, "sex", "rosa")[0].exists()
    releases._sweep(spec.deadline + 86_401)
    assert not store.published_folder(ID).exists()
    with pytest.raises(FailedReleaseError, match="no longer kept"):
        releases.published_column(ID, "sex", "rosa")


def test_what_is_being_perturbed_does_not_expire(
    releases: Releases, store: ServerStore, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Releases, "_begin_perturbation", lambda *_: None)
    run(whole_release(releases, make_spec()))
    releases._sweep(2**40)
    assert store.session(ID).state is ReleaseState.PERTURBING
    assert np.fromfile(store.complete_files(ID)["salary"], np.uint8).sum() == 400
