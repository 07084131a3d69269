"""What one server process leaves, another takes up."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.cluster import Cluster
from tests.server.held_leases import DATA, ID, Make, Two, complete, run_out, taken_over, two_fixture, url_fixture  # noqa: F401 - fixtures
from tests.server.publishing import STEPS, published_by, spec_ahead, tell
from tests.server.sent_columns import OWNERS, announced, pieces, whole
from veiltab.common.errors import IntegrityError, UnavailableError
from veiltab.common.release.messages.witness import NONE_SEEN
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.study.file import Study
from veiltab.server.records.store import ServerStore
from veiltab.server.release.perturbation import perturb_release
from veiltab.server.release.receiving import Receiver
from veiltab.server.release.releases import Releases
from veiltab.server.release.retention import sweep
from veiltab.server.sharing import shared_leases as leasing
from veiltab.server.sharing.folders import ReleaseFolder
from veiltab.server.sharing.leases import BusyError, Lease, LostLeaseError


def on_disk(store: ServerStore, release_id: str = ID) -> set[str]:
    return {path.name for path in store.folder(release_id).published(0).parent.iterdir()}


@pytest.fixture
def soon_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veiltab.server.records.postgres.PAUSE_SECONDS", 1)


def test_a_process_that_is_paused_at_any_step_publishes_nothing_after_another_took_over(
    soon_cut_off: None, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    del soon_cut_off
    paused, other = two
    outcomes: list[str] = []
    for pause_at in range(1, 100):
        release_id = f"{pause_at:032x}"
        spec = spec_ahead(release_id=release_id)
        complete(paused, spec)
        outcome, served = taken_over_at(pause_at, paused, other, release_id, monkeypatch)
        assert other.session(release_id).state is ReleaseState.READY
        assert published_by(other, release_id) == published_by(paused, release_id)
        assert served in ({}, published_by(other, release_id))
        kept = {other.published_file(other.session(release_id)).name}
        if outcome == "refused":
            assert on_disk(other, release_id) == kept, "deleted at once"
        sweep(other, 0, 0)
        assert on_disk(other, release_id) == kept
        if outcome == "was not paused":
            break
        outcomes.append(outcome)
    assert outcomes[-2:] == ["had published"] * 2, "paused between its publication and the deletion"
    assert outcomes.count("refused") > 5
    assert outcomes.count("was cut off in its transaction") == 1
    assert set(outcomes[:-2]) == {"found nothing to do", "refused", "was cut off in its transaction"}


def taken_over_at(
    pause_at: int, paused: ServerStore, other: ServerStore, release_id: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, bytes]]:
    """Perturb a release in one process; before a step of it, the other takes over and does all of it."""
    served: dict[str, bytes] = {}
    calls = 0

    def event(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == pause_at:
            lease = taken_over(other, release_id)
            if other.session(release_id).state is ReleaseState.PERTURBING:
                perturb_release(other, other.session(release_id), lease)
            served.update(published_by(other, release_id))

    lease = paused.leases.take(release_id)
    with monkeypatch.context() as watched:
        tell(watched, (*STEPS, (ServerStore, "session"), (ServerStore, "complete_files")), event, after=False)
        try:
            perturb_release(paused, paused.session(release_id), lease)
        except LostLeaseError:
            return "refused", served
        except IntegrityError:
            return "found nothing to do", served
        except UnavailableError:
            return "was cut off in its transaction", served
    return ("was not paused" if calls < pause_at else "had published"), served


async def test_a_column_goes_on_at_another_process_and_the_first_cannot_touch_it(two: Two) -> None:
    first, second = two
    session, column = first.open_session(spec_ahead()), DATA["sex"]
    one, other = (Receiver(store, lambda _: None) for store in two)
    bad = column[:200] + bytes(200)

    async def overtake() -> None:
        with pytest.raises(BusyError):
            await other.take(announced(session, "sex", DATA["sex"]), pieces(column))
        run_out(second, f"{ID}/sex")
        held = second.folder(ID).received("sex")
        assert held == 200
        assert await other.take(announced(session, "sex", DATA["sex"]), pieces(column, held)) == (400, True)

    # The paused process goes on, with other bytes: a whole column in its eyes.
    with pytest.raises(LostLeaseError):
        await one.take(announced(session, "sex", bad), pieces(bad, 0, 100, overtake))
    ((path, _),) = first.complete_files(ID).values()
    assert path.read_bytes() == column
    assert list(path.parent.iterdir()) == [path], "nothing is left of what was refused"


@pytest.mark.parametrize("paused_at", ["before it has the lease", "before it has a file"])
def test_a_column_that_another_process_completes_meanwhile_is_left_alone(
    two: Two, monkeypatch: pytest.MonkeyPatch, paused_at: str
) -> None:
    first, second = two
    session, column = first.open_session(spec_ahead()), DATA["sex"]
    one, other = (Receiver(store, lambda _: None) for store in two)

    def overtaken() -> None:
        run_out(second, f"{ID}/sex")
        assert asyncio.run(other.take(announced(session, "sex", DATA["sex"]), pieces(column))) == (400, True)

    take, begin_column = first.leases.take, ReleaseFolder.begin_column

    def late_take(resource: str) -> Lease:
        overtaken()
        return take(resource)

    def late_begin(folder: ReleaseFolder, attribute: str, fence: int) -> Path:
        monkeypatch.setattr(ReleaseFolder, "begin_column", begin_column)
        overtaken()
        return begin_column(folder, attribute, fence)

    if paused_at == "before it has the lease":
        monkeypatch.setattr(first.leases, "take", late_take)
        assert asyncio.run(one.take(announced(session, "sex", DATA["sex"]), pieces(column))) == (400, True)
    else:
        monkeypatch.setattr(ReleaseFolder, "begin_column", late_begin)
        with pytest.raises(LostLeaseError):
            asyncio.run(one.take(announced(session, "sex", DATA["sex"]), pieces(column)))
    ((path, _),) = first.complete_files(ID).values()
    assert (path.read_bytes(), list(path.parent.iterdir())) == (column, [path])


async def test_whole_columns_of_who_was_overtaken_are_deleted(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    session = two[0].open_session(spec_ahead())

    def overtake(_: str) -> None:
        taken_over(two[1], f"{ID}/sex")

    tell(monkeypatch, [(two[0], "complete_columns")], overtake, after=False)
    with pytest.raises(LostLeaseError):
        await Receiver(two[0], lambda _: None).take_whole(session, ("alice", NONE_SEEN), whole("sex"))
    assert not list(two[0].folder(ID).ciphertext.iterdir())


async def test_an_upload_may_be_continued_anywhere(two: Two) -> None:
    session, column = two[0].open_session(spec_ahead()), DATA["sex"]
    receivers = [Receiver(store, lambda _: None) for store in two]

    for number in range(4):
        store, receiver = two[number % 2], receivers[number % 2]
        held = store.folder(ID).received("sex")
        assert held == 100 * number
        part = column[: held + 100]
        answer = await receiver.take(announced(session, "sex", DATA["sex"]), pieces(part, held))
        assert answer == (held + 100, number == 3)
        assert [path.name for path in store.folder(ID).ciphertext.iterdir()] == [f"sex.{number + 1}"]
    assert await receivers[0].take(announced(session, "sex", DATA["sex"]), pieces(column)) == (400, True)
    # What one said is held may be more than another holds: begin again.
    with pytest.raises(UnavailableError, match="the server holds less of the column than it said before"):
        await receivers[1].take(announced(session, "salary", DATA["salary"]), pieces(DATA["salary"], 100))


async def uploaded(processes: tuple[Releases, Releases], spec: TableSpec) -> None:
    """Send each column to another process."""
    for releases, attribute in zip(processes, DATA, strict=True):
        session, _ = releases.open_release(spec, OWNERS[attribute])
        await releases.upload(announced(session, attribute, DATA[attribute]), pieces(DATA[attribute]))


async def settled(store: ServerStore, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while store.session(ID).state is not ReleaseState.READY:
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


async def stop(*running: "asyncio.Task[None]") -> None:
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def finished(*processes: Releases) -> None:
    """Wait for what processes do beside their loops."""
    for releases in processes:
        await asyncio.gather(*releases._perturbing.values())


async def test_what_one_process_does_not_finish_another_takes_up(
    two: Two, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veiltab.server.release.releases._LOOK_SECONDS", 0.05)
    processes = Releases(study, two[0]), Releases(study, two[1])
    begun: list[int] = []
    reached, stuck = asyncio.Event(), asyncio.Event()

    async def hang(lease: Lease, _release_id: str) -> None:
        begun.append(lease.fence)
        reached.set()
        await stuck.wait()

    # The second completes the release and begins, and gets no further.
    monkeypatch.setattr(processes[1], "_perturb_under", hang)
    await uploaded(processes, spec_ahead())
    await reached.wait()
    running = asyncio.create_task(processes[0].run())
    await asyncio.sleep(0.2)
    assert (two[0].session(ID).state, begun) == (ReleaseState.PERTURBING, [1])
    run_out(two[0])
    await settled(two[0])
    stuck.set()
    await stop(running)
    # Whoever comes later finds nothing to do.
    processes[0]._begin_perturbation(spec_ahead())
    await finished(*processes)
    assert two[0].session(ID).publication == 2
    assert on_disk(two[0]) == {"published.2"}


async def test_a_publication_that_the_database_did_not_answer_is_tried_again(
    two: Two, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was committed nobody knows; here it was not, and then it was."""
    monkeypatch.setattr("veiltab.server.release.releases._LOOK_SECONDS", 0.05)
    releases, publish = Releases(study, two[0]), two[0].publish
    tries: list[int] = []

    def unanswered(release_id: str, salt: bytes, digests: Mapping[str, bytes], seconds: float, lease: Lease) -> None:
        tries.append(lease.fence)
        if len(tries) > 1:
            publish(release_id, salt, digests, seconds, lease)
        raise UnavailableError("the server's database does not answer")

    monkeypatch.setattr(two[0], "publish", unanswered)
    await uploaded((releases, releases), spec_ahead())
    running = asyncio.create_task(releases.run())
    await settled(two[0])
    await stop(running)
    await finished(releases)
    assert tries == [1, 2]
    assert two[0].session(ID).publication == 2
    sweep(two[0], 0, 0)
    assert on_disk(two[0]) == {"published.2"}
    assert len(published_by(two[0], ID)["sex"]) == 400


async def test_nodes_wait_for_a_database_that_is_away(
    two: Two, study: Study, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_LOOK_SECONDS", "_SWEEP_SECONDS"):
        monkeypatch.setattr(f"veiltab.server.release.releases.{name}", 0.05)
    monkeypatch.setattr(leasing, "SECONDS", 1.0)
    processes = Releases(study, two[0]), Releases(study, two[1])

    def away(*_: object) -> None:
        cluster.stop()
        raise UnavailableError("the server's database does not answer")

    running = [asyncio.create_task(releases.run()) for releases in processes]
    with monkeypatch.context() as broken:
        broken.setattr(two[1], "publish", away)
        broken.setattr(two[0], "publish", away)
        await uploaded(processes, spec_ahead())
        await asyncio.sleep(0.5)
        with pytest.raises(UnavailableError):
            processes[0].open_release(spec_ahead(), "alice")
    assert not any(task.done() for task in running)
    cluster.start()
    for store in two:
        with suppress(UnavailableError):
            run_out(store)
    await settled(two[0])
    await stop(*running)
    await finished(*processes)
    sweep(two[0], 0, 0)
    assert not two[0].folder(ID).ciphertext.exists()
    assert two[0].session(ID).failure == ""


def test_both_sweep_and_only_one_ends_a_release(two: Two) -> None:
    first, second = two
    spec = spec_ahead()
    first.open_session(spec)
    held = second.leases.take(ID)
    sweep(first, spec.deadline + 1, 0)
    assert first.session(ID).state is ReleaseState.UPLOADING, "another process is at work on it"
    second.leases.give_back(held)
    for store in two:
        sweep(store, spec.deadline + 1, 0)
    assert second.session(ID).state is ReleaseState.EXPIRED
