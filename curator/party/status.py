"""A curator's observation, for its status and its metrics."""

from veiltab.common.errors import VeiltabError
from veiltab.common.observe.status import SHOWN, Activity, Budget, Observation
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.curator.budget.ledger import Ledger
from veiltab.curator.progress.release_record import CuratorRelease
from veiltab.curator.release.curator import Curator


def observe(curator: Curator) -> Observation:
    """Return a curator's current work and what it waits for; composing the remaining budget may take a while."""
    states = curator.store.releases.counts()
    counts = {state: states.get(state.value, 0) for state in ReleaseState}
    return Observation(
        work=(_alignment(curator), *map(_work, curator.store.releases.latest(SHOWN))),
        counts={("release", state.value): number for state, number in counts.items()},
        queues={
            "releases": sum(number for state, number in counts.items() if not state.finished),
            "held requests": curator.store.decisions.count_waiting_requests(),
        },
        budgets=(_budget(curator.ledger),),
    )


def _budget(ledger: Ledger) -> Budget:
    own, rest = ledger.budget, ledger.budget.rest
    return Budget(
        protects="respondents", epsilon=own.epsilon, left=rest.epsilon, delta=own.delta, left_delta=rest.delta
    )


def _alignment(curator: Curator) -> Activity:
    """Return the state of the alignment with the other curators."""
    try:
        population, _ = curator.alignment.result()
    except VeiltabError as error:
        about = curator.alignment.progress
        waiting_for = "" if about else str(error)
        return Activity(kind="alignment", id="", about=about, state="aligning", waiting_for=waiting_for, since=0)
    matched = None if curator.name == curator.study.hub else curator.store.alignments.matched()
    sentence = "" if matched is None else matched_sentence(curator.study, matched, curator.alignment.rows)
    about = "; ".join(filter(None, (f"{population} rows", sentence, curator.alignment.left_out)))
    return Activity(
        kind="alignment", id="", about=about, state="aligned", waiting_for="", since=0, n=population, matched=matched
    )


def matched_sentence(study: Study, matched: int, rows: int) -> str:
    """Say to a spoke alone how many of its own rows are of people whom the hub has, and what to look at if few are."""
    sentence = f"{matched} of the {rows} rows here are of people whom {study.hub} has"
    if 2 * matched >= rows:
        return sentence
    rules = "; ".join(curator.id_rule for curator in study.curators if not curator.identity)
    return f"{sentence}; if they should be more, compare how people are named{f': {rules}' if rules else ''}"


def _work(release: CuratorRelease) -> Activity:
    request = release.request
    tables = f"{len(request.tables)} tables of " if request.tables else ""
    return Activity(
        kind="release",
        id=request.release_id,
        about=f"{tables}{', '.join(request.attributes)} at epsilon {request.epsilon} for {request.researcher}",
        state=release.state.value,
        waiting_for=release.failure or release.waiting_for,
        since=release.since,
    )
