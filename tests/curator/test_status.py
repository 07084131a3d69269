"""What a curator says of itself, and what its store keeps for that."""

from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import TO_SPOKE, request_with, reserve, spec_with
from tests.curator.made_records import hold
from tests.worlds.states import curator_parts
from veiltab.common.errors import NotReadyError
from veiltab.common.observe.status import SHOWN, Activity
from veiltab.common.release.guarantees import guaranteed_epsilon
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study, study_from_bytes
from veiltab.curator.party.status import observe
from veiltab.curator.release.curator import Curator

IDS = [f"{number:032x}" for number in range(1, 40)]


@pytest.fixture
def parts(tmp_path: Path, study: Study) -> Iterator[Curator]:
    made = curator_parts(tmp_path, study, budget=Decimal("2.5"))
    yield made
    made.store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda now: monkeypatch.setattr("veiltab.curator.records.releases.time.time", lambda: float(now))


def releases(parts: Curator) -> list[Activity]:
    return [work for work in observe(parts).work if work.kind == "release"]


def test_an_idle_curator_has_its_whole_budget(parts: Curator) -> None:
    seen = observe(parts)
    (alignment,) = seen.work
    assert (alignment.kind, alignment.state) == ("alignment", "aligning")
    assert "has not aligned its table yet" in alignment.waiting_for
    with parts.alignment._stage.of("sorting tokens", 200) as progress:
        progress.advance(74)
        work = observe(parts).work[0]
        assert (work.about, work.waiting_for) == ("sorting tokens: 37 %", "")
        with pytest.raises(NotReadyError, match="curator alice: sorting tokens: 37 %"):
            parts.alignment.result()
    (budget,) = seen.budgets
    assert (budget.protects, budget.epsilon, budget.left) == ("respondents", Decimal("2.5"), Decimal("2.5"))
    assert seen.queues == {"releases": 0, "held requests": 0}
    assert set(seen.counts) == {("release", state.value) for state in ReleaseState}
    assert sum(seen.counts.values()) == 0


def test_a_hub_says_how_many_rows_there_are_and_knows_nothing_of_matches(parts: Curator) -> None:
    parts.store.alignments.set_alignment("", 45_222, "ab" * 16, 45_222)
    (alignment,) = observe(parts).work
    assert (alignment.state, alignment.about) == ("aligned", "45222 rows")
    assert (alignment.n, alignment.matched) == (45_222, None)
    parts.alignment.left_out = "3 of 9 rows left out, which miss age (2), hours (2)"
    (alignment,) = observe(parts).work
    assert alignment.about == "45222 rows; 3 of 9 rows left out, which miss age (2), hours (2)"


@pytest.mark.parametrize("matched", [6000, 5999])
def test_a_spoke_says_to_itself_how_many_of_its_own_people_the_hub_has(
    tmp_path: Path, study_bytes: bytes, matched: int
) -> None:
    for old, new in TO_SPOKE:
        study_bytes = study_bytes.replace(old, new)
    parts = curator_parts(tmp_path, study_from_bytes(study_bytes, "s.toml"))
    with closing(parts.store):
        parts.store.alignments.set_alignment("", 45_222, "ab" * 16, matched)
        parts.alignment.rows = 12_000
        (alignment,) = observe(parts).work
        assert (alignment.n, alignment.matched) == (45_222, matched)
        said = f"45222 rows; {matched} of the 12000 rows here are of people whom bob has"
        if matched < 6000:
            said += "; if they should be more, compare how people are named: alice has id by "
        assert alignment.about.startswith(said)
        assert (alignment.about == said) is (matched == 6000)


def test_a_release_says_since_when_it_waits_and_for_what(parts: Curator, clock: Callable[[int], None]) -> None:
    parts.store.releases.add(request_with(), 1000)
    parts.store.releases.set_waiting(IDS[0], "a person")
    (work,) = releases(parts)
    assert (work.id, work.state, work.waiting_for, work.since) == (IDS[0], "requested", "a person", 1000)
    assert work.about == "sex, salary at epsilon 0.1 for rosa"
    clock(1500)
    parts.store.releases.set_state(IDS[0], ReleaseState.APPROVED)
    clock(1700)
    parts.store.releases.set_waiting(IDS[0], "curator bob")
    (work,) = releases(parts)
    assert (work.state, work.waiting_for, work.since) == ("approved", "curator bob", 1500)
    parts.store.releases.set_state(IDS[0], ReleaseState.FAILED, "the disk")
    clock(1900)
    parts.store.releases.set_state(IDS[0], ReleaseState.READY)
    (work,) = releases(parts)
    assert (work.state, work.waiting_for, work.since) == ("failed", "the disk", 1700)


def test_what_is_reserved_is_not_left(parts: Curator) -> None:
    spec = spec_with()
    reserve(parts.ledger, spec)
    assert observe(parts).budgets[0].left == Decimal("2.5") - guaranteed_epsilon(spec)


def test_requests_that_wait_for_a_person_are_counted(parts: Curator) -> None:
    for release_id in IDS[:3]:
        hold(parts.store, request_with(release_id=release_id), "sex", "age")
    parts.store.releases.set_state(IDS[0], ReleaseState.EXPIRED)
    seen = observe(parts)
    assert seen.queues == {"releases": 2, "held requests": 2}
    assert seen.counts["release", "requested"] == 2
    assert seen.counts["release", "expired"] == 1


def test_all_that_is_under_way_is_shown_and_the_last_that_ended(parts: Curator, clock: Callable[[int], None]) -> None:
    for place, release_id in enumerate(IDS):
        parts.store.releases.add(request_with(release_id=release_id), place)
    for place, release_id in enumerate(IDS[:30]):
        clock(1000 + place)
        parts.store.releases.set_state(release_id, ReleaseState.READY)
    assert [work.id for work in releases(parts)] == IDS[30 - SHOWN :]
