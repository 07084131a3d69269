"""The server's observation, for its status and its metrics."""

from collections import Counter
from decimal import ROUND_FLOOR, Context, Decimal
from functools import reduce

from veiltab.common.collection.round import Round, RoundState
from veiltab.common.observe.status import SHOWN, Budget, Observation, Work
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.server.records.session import Session
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore

_DOWN = Context(prec=100, rounding=ROUND_FLOOR)


def observe(
    study: Study, releases: Releases, sessions: ServerStore, collection: RoundKeeper, rounds: CollectionStore
) -> Observation:
    """Return the server's current work and what it waits for.

    Args:
        study: says what the nodes may spend.
        releases: what works on releases, and its store.
    """
    specs = rounds.rounds()
    standing = [rounds.status(spec.round_id) for spec in specs]
    found, rounds_found = sessions.counts(), Counter(status.state for status in standing)
    ended = [status for status in standing if status.state is RoundState.CLOSED]
    hidden = {status.round.round_id for status in ended[:-SHOWN]}
    shown = [status for status in standing if status.round.round_id not in hidden]
    return Observation(
        work=(
            *(
                _release(session, since, releases.progress_of(session.spec.release_id))
                for session, since in sessions.latest(SHOWN)
            ),
            *(_round(status.round, status.state, sum(status.reports), status.closed) for status in shown),
        ),
        counts={
            **{("release", state.value): found.get(state.value, 0) for state in ReleaseState},
            **{("round", state.value): rounds_found[state] for state in RoundState},
        },
        queues={"perturbations": releases.perturbing, "reports": collection.waiting},
        budgets=() if study.nodes is None else (_budget(study.nodes.budget_epsilon, specs),),
    )


def _release(session: Session, since: int, progress: str) -> Work:
    spec = session.spec
    missing = ", ".join(session.waiting_for) if session.state is ReleaseState.UPLOADING else ""
    names = ", ".join(column.attribute for column in spec.columns)
    return Work(
        kind="release",
        id=spec.release_id,
        about=f"{names} at epsilon {spec.epsilon} for {spec.researcher}",
        state=session.state.value,
        waiting_for=session.failure or (f"the columns {missing}" if missing else progress),
        since=since,
    )


def _round(spec: Round, state: RoundState, reports: int, closed: int) -> Work:
    return Work(
        kind="round",
        id=spec.round_id,
        about=f"{spec.question} at epsilon {spec.epsilon} for {spec.researcher}; {reports} reports counted",
        state=state.value,
        waiting_for="reports, until it is closed" if state is RoundState.OPEN else "",
        since=closed,
    )


def _budget(epsilon: Decimal, rounds: tuple[Round, ...]) -> Budget:
    """Return the remainder of a node's budget over all rounds."""
    return Budget(protects="nodes", epsilon=epsilon, left=reduce(_DOWN.subtract, (r.epsilon for r in rounds), epsilon))
