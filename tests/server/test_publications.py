"""What the server publishes, once, and until when."""

import asyncio
import time
from collections import Counter

import numpy as np
import pytest

from tests.conftest import refuses
from tests.server.publishing import published_by, spec_ahead
from tests.server.sent_columns import DATA, ID, Make, releases_fixture, run, send, settled, started  # noqa: F401 - fixtures
from veiltab.common.errors import DeniedError, FailedReleaseError, InvalidInputError, NotFoundError, NotReadyError
from veiltab.common.observe.progress import Stage
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.chunks import file_chunks
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import Study
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import perturb_release
from veiltab.server.release.releases import Releases
from veiltab.server.sharing.leases import Lease


async def whole_release(releases: Releases, spec: TableSpec) -> None:
    for attribute in DATA:
        await send(releases, spec, attribute)
    await settled(releases)


@pytest.fixture
def complete(releases: Releases, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is complete, and whose perturbation no process has begun."""
    with monkeypatch.context() as stopped:
        stopped.setattr(Releases, "_begin_perturbation", lambda *_: None)
        run(whole_release(releases, spec_ahead()))


@pytest.fixture
def perturbations(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def recorded(store: ServerStore, session: Session, lease: Lease, stage: Stage) -> None:
        counted[session.spec.release_id] += 1
        time.sleep(0.05)
        perturb_release(store, session, lease, stage)

    monkeypatch.setattr("veiltab.server.release.releases.perturb_release", recorded)
    return counted


def test_fifty_submissions_at_once_are_perturbed_once(
    releases: Releases, store: ServerStore, perturbations: Counter[str]
) -> None:
    async def work() -> list[tuple[int, bool] | BaseException]:
        spec = spec_ahead()
        uploads = [send(releases, spec, attribute) for attribute in DATA for _ in range(25)]
        answers = await asyncio.gather(*uploads, return_exceptions=True)
        await settled(releases)
        return answers

    assert run(work()) == [(400, True)] * 50
    assert perturbations == {ID: 1}
    assert store.session(ID).state is ReleaseState.READY
    assert not store.folder(ID).ciphertext.exists()


@pytest.mark.parametrize("database", [""], ids=["sqlite"])
async def test_fifty_releases_at_once_are_kept_apart(
    releases: Releases, store: ServerStore, perturbations: Counter[str]
) -> None:
    specs = [spec_ahead(release_id=f"{number:032x}", sample=400) for number in range(50)]

    await asyncio.gather(*(send(releases, spec, attribute) for attribute in DATA for spec in specs))
    await settled(releases)
    assert perturbations == {spec.release_id: 1 for spec in specs}
    assert {session.state for session in store.sessions()} == {ReleaseState.READY}


async def test_nothing_is_served_before_it_is_published_nor_to_another(releases: Releases, store: ServerStore) -> None:
    spec = spec_ahead()
    releases.open_release(spec, "alice")
    with refuses(NotReadyError, where="release 00000000000000000000000000000001"):
        releases.published_column(ID, "sex", "rosa")
    await whole_release(releases, spec)
    path, part = releases.published_column(ID, "sex", "rosa")
    assert b"".join(chunk.data for chunk in file_chunks(path, 7, part=part)) == published_by(store, ID)["sex"][7:]
    with refuses(InvalidInputError, where="attribute"):
        releases.published_column(ID, "age", "rosa")
    for ask in (releases.release_of, lambda release, who: releases.published_column(release, "sex", who)):
        with refuses(DeniedError, where="release 00000000000000000000000000000001"):
            ask(ID, "rita")
    session = releases.release_of(ID, "rosa")
    assert session.state is ReleaseState.READY
    assert session.perturbation_seconds > 0


async def test_columns_that_fit_a_chunk_together_come_with_the_answer(
    releases: Releases, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_ahead()
    session, _ = releases.open_release(spec, "alice")
    assert releases.short_columns_of(session) == {}
    await whole_release(releases, spec)
    session = store.session(ID)
    monkeypatch.setattr("veiltab.server.release.publications.CHUNK", 800)
    assert releases.short_columns_of(session) == published_by(store, ID)
    monkeypatch.setattr("veiltab.server.release.publications.CHUNK", 799)
    assert releases.short_columns_of(session) == {}
    monkeypatch.undo()
    store.published_file(session).unlink()
    with refuses(NotFoundError, where="release 00000000000000000000000000000001"):
        releases.short_columns_of(session)


@pytest.mark.parametrize("database", [""], ids=["sqlite"])
def test_who_waits_for_a_publication_hears_of_it_when_it_is_there(
    releases: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.common.rpc.waiting.changes.LONGEST_WAIT", 3600.0)
    alice = Party(study="survey", role=Role.CURATOR, name="alice")

    async def wait(seconds: float = 3600.0) -> Session:
        version = releases.changes.version(ID)
        return await releases.wait_for_publication(releases.publication_of(ID, "alice"), version, alice, seconds)

    async def work() -> None:
        spec = spec_ahead()
        await send(releases, spec, "sex")
        waiting = asyncio.create_task(wait())
        # Whatever takes no time ends at once, and this does not.
        await wait(0.001)
        assert not waiting.done()
        await send(releases, spec, "salary")
        assert await waiting == await wait() == releases.publication_of(ID, "alice")
        assert (await waiting).state is ReleaseState.READY

    run(asyncio.wait_for(work(), 20))


@pytest.mark.usefixtures("complete")
def test_a_new_process_takes_up_a_perturbation(study: Study, store: ServerStore) -> None:
    assert store.session(ID).state is ReleaseState.PERTURBING
    run(started(Releases(study, store)))
    assert store.session(ID).state is ReleaseState.READY
    assert not store.folder(ID).ciphertext.exists()


async def test_what_is_being_perturbed_is_not_begun_again(
    releases: Releases, store: ServerStore, perturbations: Counter[str]
) -> None:
    for attribute in DATA:
        await send(releases, spec_ahead(), attribute)
    assert store.session(ID).state is ReleaseState.PERTURBING
    await started(releases)
    assert perturbations == {ID: 1}
    assert store.session(ID).state is ReleaseState.READY


def test_a_new_process_deletes_the_ciphertext_of_what_is_published(
    study: Study, releases: Releases, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crashed:
        crashed.setattr(store, "delete_ciphertext", lambda _: None)
        run(whole_release(releases, spec_ahead()))
    assert store.session(ID).state is ReleaseState.READY
    assert store.folder(ID).ciphertext.exists()
    run(started(Releases(study, store)))
    assert not store.folder(ID).ciphertext.exists()
    assert len(published_by(store, ID)["sex"]) == 400


def test_a_full_disk_leaves_the_ciphertext_for_a_new_process(
    study: Study, releases: Releases, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("veiltab.server.release.perturbation.perturb_chunk", full)
        broken.setattr(store.leases, "seconds", store.leases.seconds / 100)
        run(whole_release(releases, spec_ahead()))
    assert store.session(ID).state is ReleaseState.PERTURBING
    assert store.folder(ID).ciphertext.exists()
    run(started(Releases(study, store)))
    assert store.session(ID).state is ReleaseState.READY


@pytest.mark.usefixtures("complete")
def test_a_column_that_was_damaged_since_fails_the_release(releases: Releases, store: ServerStore) -> None:
    store.complete_files(ID)["sex"][0].write_bytes(b"\xff" * 400)
    run(started(releases))
    assert store.session(ID).state is ReleaseState.FAILED
    assert "symbols lie outside" in store.session(ID).failure
    assert not store.folder(ID).ciphertext.exists()
    assert not store.published_file(store.session(ID)).exists()


def test_what_is_not_complete_at_its_deadline_expires(releases: Releases, store: ServerStore) -> None:
    spec = spec_ahead()
    run(send(releases, spec, "sex"))
    releases._sweep(spec.deadline)
    assert store.session(ID).state is ReleaseState.UPLOADING
    releases._sweep(spec.deadline + 1)
    assert store.session(ID).state is ReleaseState.EXPIRED
    assert not store.folder(ID).ciphertext.exists()
    with pytest.raises(FailedReleaseError, match="not all columns came before the deadline"):
        run(send(releases, spec, "salary"))


def test_what_is_published_is_kept_for_its_time(releases: Releases, store: ServerStore) -> None:
    spec = spec_ahead()
    run(whole_release(releases, spec))
    releases._sweep(spec.deadline + 86_400)
    assert releases.published_column(ID, "sex", "rosa")[0].exists()
    releases._sweep(spec.deadline + 86_401)
    assert not store.published_file(store.session(ID)).exists()
    with pytest.raises(FailedReleaseError, match="no longer kept"):
        releases.published_column(ID, "sex", "rosa")


@pytest.mark.usefixtures("complete")
def test_what_is_being_perturbed_does_not_expire(releases: Releases, store: ServerStore) -> None:
    releases._sweep(2**40)
    assert store.session(ID).state is ReleaseState.PERTURBING
    assert np.fromfile(store.complete_files(ID)["salary"][0], np.uint8).sum() == 400
