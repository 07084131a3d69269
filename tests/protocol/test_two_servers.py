"""Two server processes on one PostgreSQL and one folder: each release is published once, each report counts once."""

import time
from collections.abc import Iterator

import pytest

from tests.protocol.chance import agreement
from tests.protocol.two_servers import TwoServers, two_servers
from tests.protocol.village import FREE
from tests.protocol.wire import Published
from tests.protocol.world import ALICE, BOB, CLOUD, PACE, ROSA, launcher
from tests.server.cluster import Cluster
from tests.worlds.loops import blocking
from veiltab.common.release.state import ReleaseState
from veiltab.common.rpc.channel import connect
from veiltab.common.rpc.parties.identity import Party, load_identity

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
SURE = 1e-6  # level at which an answer is wrong


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    """Two curators and a researcher, who reach whichever server the balancer gives them."""
    with Cluster() as cluster, two_servers(tmp_path_factory.mktemp("two") / "study", cluster) as both:
        both.world.local.launcher = launcher(PACE)
        with both.world.local:
            both.world.start(ALICE, BOB, ROSA)
            yield both


@pytest.fixture
def fresh(two: TwoServers) -> TwoServers:
    """Both processes, running and reached."""
    two.send_to(0, 1)
    for number in (0, 1):
        two.restart(number)
    return two


def request(two: TwoServers) -> str:
    with two.world.client() as client:
        return str(client.request(FREE, epsilon="4", label=two.world.label()).id)


def check(two: TwoServers, release_id: str) -> dict[str, bytes]:
    """See a release end well; return what was published."""
    with two.world.client() as client:
        release = client.release(release_id)
        status = release.wait(60)
        assert (status.state, status.granted) == (ReleaseState.READY, FREE)
        assert agreement(release.estimate(), two.world.people.counts(FREE)) > SURE
    assert two.world.charges("alice").count(release_id) == two.world.charges("bob").count(release_id) == 1
    return two.published(release_id)


@blocking
async def served(two: TwoServers, number: int, release_id: str) -> dict[str, bytes]:

    local = two.world.local
    identity = load_identity(local.identity_folder(*ROSA), *ROSA)
    party = Party(study=local.study.id, role=CLOUD[0], name=CLOUD[1])
    channel = connect(identity, party, f"localhost:{two.ports[number]}")
    try:
        return {name: await Published.on(channel).column(release_id, name) for name in FREE}
    finally:
        await channel.close()


def nothing_but_the_publication(two: TwoServers, release_id: str) -> bool:
    with two.store() as store:
        return [store.published_file(store.session(release_id))] == list(two.folder(release_id).iterdir())


PERTURBING = [
    "veiltab.server.release.perturbation:_perturb:1",
    "veiltab.server.sharing.folders:ReleaseFolder.delete_outputs_through:1",
    "veiltab.server.release.perturbation:_write_columns:1",
    "veiltab.server.release.perturbation:perturb_chunk:1:after",
    "veiltab.server.release.perturbation:_write_columns:1:after",
    "veiltab.server.records.store:ServerStore.publish:1",
    # In the middle of the publishing transaction, which is undone.
    "veiltab.server.records.session:Session.published:2:after",
]


@pytest.mark.parametrize("point", PERTURBING)
def test_a_server_that_is_paused_while_it_perturbs_cannot_publish_after_another_did(
    two: TwoServers, point: str
) -> None:
    two.restart(0, point)
    two.restart(1)
    two.send_to(0)
    release_id = request(two)
    two.wait_until_stopped(0)
    assert two.running[0].poll() is None
    two.send_to(1)
    published = check(two, release_id)
    two.wake(0)
    two.wait_until(lambda: nothing_but_the_publication(two, release_id))
    two.wait_until(lambda: gave_up(two, 0, release_id))
    assert two.published(release_id) == served(two, 0, release_id) == served(two, 1, release_id) == published
    with two.store() as store:
        assert store.session(release_id).publication == 2
    assert [number for number in (0, 1) if publications(two, number, release_id)] == [1]


def gave_up(two: TwoServers, number: int, release_id: str) -> bool:
    lines = two.log(number).splitlines()
    return any("perturbation given up" in line and release_id in line for line in lines)


def publications(two: TwoServers, number: int, release_id: str) -> list[str]:
    lines = two.log(number).splitlines()
    return [line for line in lines if release_id in line and '"publish"' in line and '"done"' in line]


def test_uploads_are_split_over_both(fresh: TwoServers) -> None:
    """Alice's connection goes to one and Bob's to the other, in turns; the releases run at once."""
    two = fresh
    for curator in (ALICE, BOB):
        two.world.restart(curator)
    ids = [request(two) for _ in range(6)]
    for release_id in ids:
        check(two, release_id)
        two.wait_until(lambda release_id=release_id: nothing_but_the_publication(two, release_id))  # type: ignore[misc]
    taken = [two.log(number).count('"take column"') for number in (0, 1)]
    assert min(taken) >= 6, taken
    assert sum(len(publications(two, number, release_id)) for number in (0, 1) for release_id in ids) == 6


@pytest.mark.parametrize("after", [0.2, 0.6])
def test_a_database_that_is_restarted_in_the_middle_holds_a_release_up_and_no_more(
    fresh: TwoServers, after: float
) -> None:
    two = fresh
    release_id = request(two)
    time.sleep(after)
    two.cluster.stop()
    time.sleep(1)
    assert all(process.poll() is None for process in two.running.values())
    two.cluster.start()
    check(two, release_id)
    two.wait_until(lambda: nothing_but_the_publication(two, release_id))
    assert all(process.poll() is None for process in two.running.values())
