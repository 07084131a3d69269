"""The observation of a researcher's service, for its status and its metrics."""

from veiltab.common.observe.status import SHOWN, Activity, Observation, waiting_lines
from veiltab.common.release.state import ReleaseState
from veiltab.researcher.desk.driver import ResearcherDriver
from veiltab.researcher.records.releases import ResearcherRelease


def observe(driver: ResearcherDriver) -> Observation:
    """Return the current work of a researcher's service and the parties that it waits for."""
    states = driver.store.counts()
    counts = {state: states.get(state.value, 0) for state in ReleaseState}
    return Observation(
        work=tuple(_work(release, driver) for release in driver.store.latest(SHOWN)),
        counts={("release", state.value): number for state, number in counts.items()},
        queues={"releases": sum(number for state, number in counts.items() if not state.finished)},
    )


def _work(release: ResearcherRelease, driver: ResearcherDriver) -> Activity:
    request = release.request
    label = f"{release.label}: " if release.label else ""
    return Activity(
        kind="release",
        id=request.release_id,
        about=f"{label}{', '.join(request.attributes)} at epsilon {request.epsilon}",
        state=release.state.value,
        waiting_for=release.failure or ("" if release.state.finished else _waiting(driver, request.release_id)),
        since=release.since,
    )


def _waiting(driver: ResearcherDriver, release_id: str) -> str:
    """Return what the parties wait for, by their last answers."""
    statuses = driver.statuses_of(release_id)
    return "; ".join(waiting_lines({party: reason for party, (_, reason) in statuses.items() if reason}))
