"""What a researcher's service says of itself, and what its store keeps for that."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import request_with
from tests.researcher.desks import rosas_driver
from veiltab.common.observe.progress import Stages
from veiltab.common.observe.status import SHOWN, waiting_lines
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.desk.own_status import observe
from veiltab.researcher.records.store import ResearcherStore

IDS = [f"{number:032x}" for number in range(1, 40)]


@pytest.fixture
def driver(tmp_path: Path, study: Study) -> Iterator[ResearcherDriver]:
    store = ResearcherStore(tmp_path, study)
    yield rosas_driver(study, store)
    store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda now: monkeypatch.setattr("veiltab.researcher.records.store.time.time", lambda: float(now))


def test_a_release_says_whom_it_waits_for(driver: ResearcherDriver, clock: Callable[[int], None]) -> None:
    driver.store.start(request_with(), "wages", 1000)
    driver.statuses[IDS[0]] = {
        "curator alice": (ReleaseState.APPROVED, ""),
        "curator bob": (ReleaseState.REQUESTED, "a person decides"),
        "server cloud": (ReleaseState.REQUESTED, "no connection"),
    }
    seen = observe(driver)
    (work,) = seen.work
    assert (work.kind, work.id, work.state, work.since) == ("release", IDS[0], "requested", 1000)
    assert work.about == "wages: sex, salary at epsilon 0.1"
    assert work.waiting_for == "curator bob: a person decides; server cloud: no connection"
    for party in ("curator alice", "curator bob"):
        driver.statuses[IDS[0]][party] = (ReleaseState.REQUESTED, "curator bob: a person decides.")
    assert observe(driver).work[0].waiting_for == work.waiting_for, "each party is named once"
    assert (seen.queues, seen.budgets) == ({"releases": 1}, ())
    clock(1500)
    driver.store.set_state(IDS[0], ReleaseState.APPROVED)
    clock(1600)
    driver.store.set_state(IDS[0], ReleaseState.APPROVED)
    assert observe(driver).work[0].since == 1500
    driver.store.finish(IDS[0], ReleaseState.DENIED, "no")
    (work,) = observe(driver).work
    assert (work.state, work.waiting_for, work.since) == ("denied", "no", 1600)
    assert observe(driver).queues == {"releases": 0}
    assert observe(driver).counts["release", "denied"] == 1


def test_what_the_service_does_itself_is_what_a_release_waits_for(driver: ResearcherDriver) -> None:
    now = [100.0]
    driver._stages = Stages(lambda: now[0])
    driver.store.start(request_with(), "", 1000)
    alice = "curator alice", (ReleaseState.PERTURBING, "curator bob: has not tested the server yet")
    driver.statuses[IDS[0]] = dict([alice])
    with driver._stages.stage(IDS[0]) as stage, stage.of("fetching columns", 200) as progress:
        assert driver.statuses_of(IDS[0]) == dict([alice])
        now[0] += 1
        progress.advance(150)
        assert driver.statuses_of(IDS[0]) == {
            "curator alice": (ReleaseState.PERTURBING, ""),
            "researcher rosa": (ReleaseState.REQUESTED, "fetching columns: 75 %"),
        }
        assert observe(driver).work[0].waiting_for == "researcher rosa: fetching columns: 75 %"
    assert driver.statuses_of(IDS[0]) == dict([alice])


def test_all_that_is_under_way_is_shown_and_the_last_that_ended(
    driver: ResearcherDriver, clock: Callable[[int], None]
) -> None:
    for place, release_id in enumerate(IDS):
        driver.store.start(request_with(release_id=release_id), f"label {place}", place)
    for place, release_id in enumerate(IDS[:30]):
        clock(1000 + place)
        driver.store.finish(release_id, ReleaseState.READY)
    assert [work.id for work in observe(driver).work] == IDS[30 - SHOWN :]


def test_a_party_that_says_why_it_waits_stands_there_once() -> None:
    waits = {
        "curator health": "curator registry: has not decided about the request yet.",
        "curator registry": "curator registry: a person decides about income.",
        "server cloud": "curator health: has not sent its columns yet",
        "researcher rosa": "fetching columns: 75 %",
    }
    assert waiting_lines(waits) == (
        "curator health: has not sent its columns yet",
        "curator registry: a person decides about income",
        "researcher rosa: fetching columns: 75 %",
    )
