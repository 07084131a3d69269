"""What the server says of itself, and what its store keeps for that."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.common.collection.rounds import round_with
from tests.common.collection.rounds import study as poll
from tests.common.observe.collector import collecting
from tests.server.collection.opened_rounds import running
from tests.server.publishing import complete, spec_ahead
from veiltab.common.collection.oracles import Category
from veiltab.common.collection.tokens import token_digest
from veiltab.common.core import symbols
from veiltab.common.core.mechanism import perturb_chunk
from veiltab.common.observe.progress import Stages
from veiltab.common.observe.sinks import listening
from veiltab.common.observe.status import SHOWN, Observation
from veiltab.common.observe.tracing import Spans
from veiltab.common.release.state import ReleaseState
from veiltab.common.release.table_spec import TableSpec
from veiltab.common.rpc.parties.identity import Party, Role
from veiltab.common.study.file import Study
from veiltab.server.party.collecting import Collecting
from veiltab.server.party.status import observe
from veiltab.server.records.store import ServerStore
from veiltab.server.release.releases import Releases
from veiltab.server.rounds.rounds import RoundKeeper
from veiltab.server.rounds.rounds_store import CollectionStore
from veiltab.server.sharing.leases import Lease

IDS = [f"{number:032x}" for number in range(1, 40)]
SOLE = Lease(resource=IDS[0])


class Parts:
    """A server's stores, and what works on them."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.study = study
        self.sessions, self.rounds = ServerStore(folder), CollectionStore(folder)
        self.releases, self.collection = Releases(study, self.sessions), RoundKeeper(study, self.rounds)

    def seen(self) -> Observation:
        rounds = Collecting(self.study, self.rounds, self.collection, nullcontext())
        return observe(self.releases, self.sessions) | rounds.observe()

    def close(self) -> None:
        self.sessions.close()
        self.rounds.close()


@pytest.fixture
def parts(tmp_path: Path, study: Study) -> Iterator[Parts]:
    with closing(Parts(tmp_path, study)) as parts:
        yield parts


@pytest.fixture
def polling(tmp_path: Path) -> Iterator[Parts]:
    with closing(Parts(tmp_path, poll())) as parts:
        yield parts


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda now: monkeypatch.setattr("time.time", lambda: float(now))


def test_an_idle_server(parts: Parts) -> None:
    seen = parts.seen()
    assert (seen.work, seen.budgets) == ((), ())
    assert seen.queues == {"perturbations": 0, "reports": 0}
    assert set(seen.counts.values()) == {0}
    assert ("release", "ready") in seen.counts
    assert ("round", "open") in seen.counts


def test_a_release_says_which_columns_it_waits_for(parts: Parts, clock: Callable[[int], None]) -> None:
    clock(1000)
    parts.releases.open_release(spec_ahead(deadline=10_000), "alice")
    (work,) = parts.seen().work
    assert (work.kind, work.id, work.state, work.since) == ("release", IDS[0], "uploading", 1000)
    assert (work.about, work.waiting_for) == ("sex, salary at epsilon 0.1 for rosa", "the columns sex, salary")
    clock(1500)
    parts.sessions.complete_columns(IDS[0], {"sex": (hashlib.sha256().digest(), SOLE)})
    (work,) = parts.seen().work
    assert (work.waiting_for, work.since) == ("the columns salary", 1000), "it is in the same state as before"
    parts.sessions.end(parts.sessions.session(IDS[0]), ReleaseState.FAILED, "a symbol is outside its alphabet", SOLE)
    (work,) = parts.seen().work
    assert (work.state, work.waiting_for, work.since) == ("failed", "a symbol is outside its alphabet", 1500)
    assert parts.seen().counts["release", "failed"] == 1


def test_a_release_says_how_far_its_perturbation_is(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [100.0], list[str]()
    monkeypatch.setattr(parts.releases, "_stages", Stages(lambda: now[0]))
    monkeypatch.setattr(symbols, "CHUNK", 100)
    spec: TableSpec = spec_ahead()
    complete(parts.sessions, spec, *(np.zeros(400, np.uint8) for _ in spec.columns))

    def watched(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - those of the function
        now[0] += 0.5
        said.append(parts.seen().work[0].waiting_for)
        perturb_chunk(*arguments, **options)

    monkeypatch.setattr("veiltab.server.release.perturbation.perturb_chunk", watched)
    asyncio.run(parts.releases._perturb_under(parts.sessions.leases.take(spec.release_id), spec.release_id))
    assert said == ["", *(f"perturbing columns: {share} %" for share in (25, 50, 75))]
    (work,) = parts.seen().work
    assert (work.state, work.waiting_for) == ("ready", "")


def test_all_that_is_under_way_is_shown_and_the_last_that_ended(parts: Parts, clock: Callable[[int], None]) -> None:
    for place, release_id in enumerate(IDS):
        clock(place + 1)
        parts.sessions.open_session(spec_ahead(release_id=release_id))
    for place, release_id in enumerate(IDS[:30]):
        clock(1000 + place)
        parts.sessions.end(parts.sessions.session(release_id), ReleaseState.EXPIRED, "late", Lease(resource=release_id))
    assert [work.id for work in parts.seen().work] == IDS[30 - SHOWN :]


# Rounds


def test_a_round_says_how_many_have_reported_and_what_nodes_may_still_be_asked(
    polling: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> tuple[Observation, Observation]:
        collection = polling.collection
        collection.open_round(round_with(), "rosa")
        digests = [token_digest(IDS[0], bytes([number] * 16)) for number in range(3)]
        collection.enrol(IDS[0], "north", b"".join(digests), "rosa")
        reports = [
            asyncio.create_task(collection.report(IDS[0], bytes([number] * 16), "north", Category(symbol=number)))
            for number in (0, 1, 1)
        ]
        await asyncio.sleep(0)
        waiting = polling.seen()
        async with running(collection):
            await asyncio.gather(*reports, return_exceptions=True)
        return waiting, polling.seen()

    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        with listening(Spans(Party(study="poll", role=Role.SERVER, name="cloud"))):
            waiting, counted = asyncio.run(scenario())
            polling.collection.close_round(IDS[0], "rosa")
    assert waiting.queues["reports"] == 3
    assert counted.queues["reports"] == 0
    (work,) = counted.work
    assert (work.kind, work.id, work.state) == ("round", IDS[0], "open")
    assert work.about == "value at epsilon 1 for rosa; 2 reports counted"
    assert work.waiting_for == "reports, until it is closed"
    (budget,) = counted.budgets
    assert (budget.protects, budget.epsilon, budget.left) == ("nodes", Decimal(4), Decimal(3))
    (closed,) = polling.seen().work
    assert (closed.state, closed.waiting_for, closed.since > 0) == ("closed", "", True)
    spans = {span.name: span for span in collector.spans()}
    assert set(spans) == {"open round", "enrol", "count reports", "close round"}
    # One of the three came with a token that was spent.
    assert spans["count reports"].facts["reports"] == 2
    assert {span.trace for span in spans.values()} == {IDS[0]}
    assert {spans[name].parent for name in ("enrol", "count reports")} == {spans["open round"].span}


def test_of_rounds_that_are_closed_the_last_are_shown(polling: Parts) -> None:
    for release_id in IDS[:14]:
        polling.rounds.open_round(round_with(round_id=release_id, epsilon=Decimal("0.1")), Decimal(4))
    for place, release_id in enumerate(IDS[:13]):
        polling.rounds.close_round(release_id, place + 1)
    seen = polling.seen()
    assert [work.id for work in seen.work] == IDS[13 - SHOWN : 14]
    assert (seen.counts["round", "open"], seen.counts["round", "closed"]) == (1, 13)
    assert seen.budgets[0].left == Decimal("2.6")
