"""The server's observation, for its status and its metrics."""

from veiltab.common.observe.status import SHOWN, Activity, Observation
from veiltab.common.release.state import ReleaseState
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases


def observe(releases: Releases, sessions: ServerStore) -> Observation:
    """Return the releases that the server works on, the last that ended, and what they wait for."""
    counts = sessions.counts()
    return Observation(
        work=tuple(
            _release(session, since, releases.progress_of(session.spec.release_id))
            for session, since in sessions.latest(SHOWN)
        ),
        counts={("release", state.value): counts.get(state.value, 0) for state in ReleaseState},
        queues={"perturbations": releases.perturbing},
    )


def _release(session: Session, since: int, progress: str) -> Activity:
    spec = session.spec
    missing = ", ".join(session.waiting_for) if session.state is ReleaseState.UPLOADING else ""
    names = ", ".join(column.attribute for column in spec.columns)
    return Activity(
        kind="release",
        id=spec.release_id,
        about=f"{names} at epsilon {spec.epsilon} for {spec.researcher}",
        state=session.state.value,
        waiting_for=session.failure or (f"the columns {missing}" if missing else progress),
        since=since,
    )
