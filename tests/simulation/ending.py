"""How a run must have ended once its faults were over."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from tests.simulation.parties import PEOPLE, SERVER
from tests.simulation.virtual import START
from veiltab.common.errors import VeiltabError
from veiltab.common.release.request import ReleaseRequest
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.curator.planning.checks import agreed_columns
from veiltab.curator.planning.plan_questions import plan_question
from veiltab.curator.planning.plans import planned_release
from veiltab.curator.progress.progress import DENIED
from veiltab.server.release.perturbation import PLACES, published_parts

if TYPE_CHECKING:
    from tests.simulation.deployment import Deployment


SURE = 1e-9  # level at which an amount of noise is wrong


def check_ends(run: "Deployment") -> dict[str, str]:
    """Return the last state of every release.

    Raises:
        AssertionError: an honest release that was charged is lost, or ended as it may not.
    """
    ends = {}
    for release, request in run.requests.items():
        stored = run.hosts[request.researcher].researcher.store.release(release)
        ends[release] = stored.state.value
        if run.plan.hostile or run.plan.restores:
            continue
        allowed = _allowed(run, request)
        said = f"{release} is {stored.state.value} ({stored.failure}; {_waits(run, release)}), not one of {allowed}"
        assert stored.state in allowed, said
        charged = [host.name for host in run.watch.curators if release in run.watch.charges.get(host.name, ())]
        if stored.state is ReleaseState.READY:
            assert len(charged) == run.plan.curators, f"{release} was released, and {charged} alone charged it"
            assert stored.spec is not None
            _check_result(run, stored.spec, request.researcher, stored.granted)
        elif request.deadline > START + 86_400:
            assert not charged, f"{release} was charged by {charged} and lost: {stored.failure}"
    if not run.plan.hostile and not run.plan.restores:
        assert not list(run.watch.leftovers()), list(run.watch.leftovers())
    return ends


def _waits(run: "Deployment", release: str) -> dict[str, str]:
    waits = {}
    for host in run.watch.curators:
        store = host.curator.store
        if store.releases.knows(release):
            stored = store.releases.release(release)
            waits[host.name] = f"{stored.state.value} {stored.waiting_for or stored.failure}"
    return waits


def _allowed(run: "Deployment", request: ReleaseRequest) -> set[ReleaseState]:
    """Return how a request may end, once every fault is over."""
    denied = frozenset(
        name
        for name in request.attributes
        if name == "denied" or (name == "held" and run.verdicts.get(request.release_id) == DENIED)
    )
    granted = frozenset(request.attributes) - denied
    try:
        columns = agreed_columns(request, run.village.study, granted, denied)
        planned_release(plan_question(request, columns, run.village.study, population=PEOPLE, alignment="0" * 32))
        expected = {ReleaseState.READY}
    except VeiltabError:
        expected = {ReleaseState.DENIED, ReleaseState.FAILED}
    if request.deadline < START + 86_400:
        expected |= {ReleaseState.EXPIRED, ReleaseState.DENIED, ReleaseState.FAILED}
    if run.plan.budget != "1000":
        expected |= {ReleaseState.DENIED}
    return expected


def _check_result(run: "Deployment", spec: TableSpec, researcher: str, granted: tuple[str, ...]) -> None:
    """See that the counted rows are those that were encrypted, but for noise of the due amount, and no canaries."""
    store = run.hosts[researcher].researcher.store
    columns = [spec.column(name) for name in granted]
    canaries = run.watch.canaries[spec.release_id]
    parts = published_parts(run.hosts[SERVER].disk / "releases" / spec.release_id / "published", spec)
    places = parts[PLACES].view("<i8") if spec.sampling.is_by_server else np.arange(spec.uploaded_rows)
    data = ~np.isin(places, canaries)
    rows = [run.watch.rows[spec.release_id, column.attribute] for column in columns]
    assert len(canaries) == spec.canaries
    assert all(len(one) == spec.published_rows and one.max() < c.size for one, c in zip(rows, columns, strict=True))
    path = store.files.histogram(spec.release_id)
    kept = {one.name for one in path.parent.iterdir()} - {"certificate"}
    assert kept == {path.name}, f"more than counts is kept of {spec.release_id}"
    counts = np.frombuffer(path.read_bytes(), "<i8")
    expected = np.zeros([column.size for column in columns], np.int64)
    np.add.at(expected, tuple(one[data] for one in rows), 1)
    assert np.array_equal(counts, expected.reshape(-1))
    changed = np.zeros(data.sum(), bool)
    for one, column in zip(rows, columns, strict=True):
        plain = run.watch.plain[spec.release_id, column.attribute]
        changed |= one[data] != plain[places[data] - np.searchsorted(canaries, places[data])]
    cells = np.prod([column.size for column in columns])
    chance = float(1 - spec.mechanism.retention) * (1 - 1 / cells)
    law = binom(len(changed), chance)
    rare = min(law.cdf(changed.sum()), law.sf(changed.sum() - 1))
    assert rare > SURE, f"{spec.release_id}: {changed.sum()} of {len(changed)} rows changed, at a rate of {chance}"
