from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import request_with, spec_with
from tests.made_receipts import made_tests
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError
from veiltab.common.release.modes import Pad
from veiltab.common.release.state import ReleaseState
from veiltab.common.study.file import Study
from veiltab.researcher.records.desk_files import LONGEST_UNSYNCED
from veiltab.researcher.records.store import ResearcherStore

ID, OTHER, THIRD = "0" * 31 + "1", "0" * 31 + "2", "0" * 31 + "3"


@pytest.fixture
def store(tmp_path: Path, study: Study) -> Iterator[ResearcherStore]:
    with closing(ResearcherStore(tmp_path, study)) as store:
        yield store


def test_a_request_is_recorded(store: ResearcherStore) -> None:
    stored, continued = store.start(request_with(), "wages", 100)
    assert not continued
    assert (stored.request, stored.label, stored.created) == (request_with(), "wages", 100)
    assert (stored.state, stored.failure, stored.spec, stored.granted) == (ReleaseState.REQUESTED, "", None, ())
    assert store.release(ID) == store.release("wages") == stored
    assert store.releases() == (stored,)


def test_an_unfinished_release_that_asks_for_the_same_is_continued(store: ResearcherStore) -> None:
    store.start(request_with(), "", 100)
    again = request_with(release_id=OTHER, deadline=2_000_000_999)
    found, continued = store.start(again, "", 200)
    assert (found.request.release_id, continued) == (ID, True)
    for number, change in enumerate([{"epsilon": Decimal("0.2")}, {"partial": True}, {"sample": 5}, {"purpose": "x"}]):
        _, continued = store.start(replace(again, release_id=f"{number + 10:032x}", **change), "", 200)  # type: ignore[arg-type]
        assert not continued


@pytest.mark.parametrize("end", [state for state in ReleaseState if state.finished])
def test_a_finished_release_is_not_continued_without_a_label(store: ResearcherStore, end: ReleaseState) -> None:
    store.start(request_with(), "", 100)
    store.finish(ID, end, "why")
    assert (store.release(ID).state, store.release(ID).failure) == (end, "why")
    found, continued = store.start(request_with(release_id=OTHER), "", 200)
    assert (found.request.release_id, continued) == (OTHER, False)


def test_a_label_names_one_release_for_good(store: ResearcherStore) -> None:
    store.start(request_with(), "wages", 100)
    store.finish(ID, ReleaseState.READY)
    found, continued = store.start(request_with(release_id=OTHER), "wages", 200)
    assert (found.request.release_id, continued) == (ID, True)
    with pytest.raises(ConflictError, match="a release of this label asks for something else"):
        store.start(request_with(release_id=THIRD, epsilon=Decimal("0.2")), "wages", 200)
    unlabelled, continued = store.start(request_with(release_id=OTHER), "", 200)
    assert (unlabelled.request.release_id, continued) == (OTHER, False)
    other_label, continued = store.start(request_with(release_id=THIRD), "other", 200)
    assert (other_label.request.release_id, continued) == (THIRD, False)


def test_a_label_that_is_taken_says_what_differs(store: ResearcherStore) -> None:
    store.start(request_with(purpose="wages"), "wages", 100)
    differing = request_with(
        release_id=OTHER, epsilon=Decimal("0.2"), purpose="", delta=Decimal("1e-6"), pad=Pad.OTP, attributes=("sex",)
    )
    with pytest.raises(ConflictError) as refused:
        store.start(differing, "wages", 200)
    assert str(refused.value) == (
        "label wages: a release of this label asks for something else: attributes (sex salary, now sex), epsilon (0.1,"
        " now 0.2), purpose (wages, now none), pad (chacha20, now otp), delta (none, now 0.000001). Use another label."
    )


def test_an_id_names_one_request_for_good(store: ResearcherStore) -> None:
    store.start(request_with(), "wages", 100)
    store.finish(ID, ReleaseState.READY)
    for label in ("wages", ""):
        again, continued = store.start(request_with(), label, 200)
        assert (again.request.release_id, again.created, continued) == (ID, 100, True)
        with pytest.raises(ConflictError, match="a release of this id asks for something else"):
            store.start(request_with(epsilon=Decimal("0.2")), label, 200)


def test_an_id_goes_before_a_label_that_reads_like_it(store: ResearcherStore) -> None:
    store.start(request_with(), "", 100)
    store.start(request_with(release_id=OTHER), ID, 100)
    store.start(request_with(release_id=THIRD), OTHER, 100)
    for release_id in (ID, OTHER, THIRD):
        assert store.release(release_id).request.release_id == release_id


def test_a_release_is_named_by_the_beginning_of_its_id_unless_another_begins_so(store: ResearcherStore) -> None:
    first, second, third = (f"{beginning}{'0' * 28}" for beginning in ("ab12", "ab34", "cd12"))
    for release_id, label in ((first, "cd"), (second, ""), (third, "")):
        store.start(request_with(release_id=release_id), label, 100)
        store.finish(release_id, ReleaseState.READY)
    assert store.release("ab1").request.release_id == first
    assert store.release("cd").request.release_id == first  # its label
    assert store.release("cd1").request.release_id == third
    with pytest.raises(InvalidInputError, match=f"2 releases have this prefix. Give more of the id: {first}, {second}"):
        store.release("ab")


def test_an_unknown_release(store: ResearcherStore) -> None:
    store.start(request_with(), "", 100)
    for name in (OTHER, "wages", ""):
        with pytest.raises(NotFoundError, match="no such release"):
            store.release(name)
    store.start(request_with(release_id=THIRD), "wages", 100)
    with pytest.raises(NotFoundError, match=r"Did you mean 'wages'\?"):
        store.release("wage")


def test_what_is_known_outlives_the_process(tmp_path: Path, study: Study) -> None:
    store, spec = ResearcherStore(tmp_path, study), spec_with(canaries=50)
    store.start(request_with(), "wages", 100)
    store.set_state(ID, ReleaseState.UPLOADING)
    store.set_spec(spec)
    receipts = made_tests(spec).all_receipts()
    store.set_receipts(ID, receipts[:2])
    store.set_receipts(ID, receipts)
    store.set_measure(ID, {"a": 1.0, "b": 2.0}, {"x -> y": 1})
    store.record_counts(ID, ("sex", "salary"), {"b": 3.0}, {'it\'s "z"': 2})
    for curator, rows in (("alice", 3), ("bob", 0), ("alice", 4)):
        store.set_measure(ID, {}, left_out={curator: rows})
    store.close()
    again = ResearcherStore(tmp_path, study)
    read = again.release("wages")
    assert read.left_out == {"alice": 4, "bob": 0}
    assert (read.state, read.spec, read.granted) == (ReleaseState.READY, spec, ("sex", "salary"))
    assert read.receipts == receipts
    assert (read.seconds, read.bytes) == ({"a": 1.0, "b": 3.0}, {"x -> y": 1, 'it\'s "z"': 2})
    again.close()


FILES = ("sex.noisy", "sex.noisy.tmp", "sex.pad", "sex.pad.tmp", "sex.rows", "histogram.bin", "histogram.bin.tmp")


def with_files(store: ResearcherStore, *releases: str) -> Path:
    """Write every file that this version or an older one may have made of some releases; return their folder."""
    folder = store.files.histogram(ID).parent.parent
    for release_id in releases:
        (folder / release_id).mkdir(parents=True)
        for name in FILES:
            (folder / release_id / name).write_bytes(b"x")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_however_many_releases_are_over_no_statement_goes_through_them(store: ResearcherStore) -> None:
    statements = list[str]()
    store.connection.set_trace_callback(statements.append)
    for label in ("wages", ""):
        store.start(request_with(release_id=OTHER if label else ID), label, 100)
    assert store.unfinished() == (ID, OTHER)
    assert store.tables(ID) == ()
    store.record_counts(store.release("wages").request.release_id, ("sex",), {}, {})
    store.finish(ID, ReleaseState.FAILED)
    store.connection.set_trace_callback(None)
    plans = [row["detail"] for one in statements for row in store.connection.execute(f"EXPLAIN QUERY PLAN {one}")]
    assert [plan for plan in plans if "SCAN" in plan] == []
    assert len(plans) > len(statements) / 2


def test_of_a_release_that_is_over_its_counts_are_all_that_is_kept(store: ResearcherStore) -> None:
    folder = with_files(store, ID, OTHER)
    store.files.delete_columns(ID)
    assert names(folder / ID) == ["histogram.bin"]
    assert names(folder / OTHER) == sorted(FILES)
    store.files.delete_columns(THIRD)


@pytest.mark.parametrize("end", [state for state in ReleaseState if state.finished])
def test_at_the_start_rows_pads_and_what_a_crash_left_are_deleted(store: ResearcherStore, end: ReleaseState) -> None:
    store.start(request_with(), "", 100)
    store.finish(ID, end)
    store.start(request_with(release_id=OTHER), "other", 100)
    store.set_state(OTHER, ReleaseState.UPLOADING)
    folder = with_files(store, ID, OTHER, THIRD)
    for release_id in (ID, OTHER):
        with (folder / release_id / "age.noisy").open("wb") as file:
            file.truncate(LONGEST_UNSYNCED + 1)
    store.delete_leftovers()
    assert names(folder / ID) == ["histogram.bin"]
    # A failing power may have torn the short one, which was not synced.
    assert names(folder / OTHER) == ["age.noisy"]
    assert names(folder / THIRD) == ["histogram.bin"]
    store.delete_leftovers()


def test_a_release_is_read_without_any_accounting(
    store: ResearcherStore, forbid_accounting: Callable[[], None]
) -> None:
    store.start(request_with(), "", 100)
    store.set_spec(spec_with(delta=Decimal("1e-6")))
    forbid_accounting()
    assert store.releases() == store.latest(1) == (store.release(ID),)
