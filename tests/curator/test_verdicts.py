import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.conftest import refuses, request_with
from tests.curator.made_records import hold
from tests.worlds.states import curator_state
from veiltab.common.core.texts.spelling import same_person_key
from veiltab.common.errors import ConflictError, InvalidInputError, NotFoundError
from veiltab.common.release.state import ReleaseState
from veiltab.curator.officer.open_state import OpenedState, open_state
from veiltab.curator.officer.persons import person_name
from veiltab.curator.officer.requests import view_of
from veiltab.curator.officer.requests_text import requests_text
from veiltab.curator.officer.verdicts import Outcome, approve, deny, waits_for
from veiltab.curator.progress.progress import APPROVED, DENIED, HELD
from veiltab.curator.records.decided import Decisions

ID, OTHER = "0" * 31 + "1", "1" * 32
ANA, BEN = "Ana Díaz", "Ben Ode"


@pytest.fixture
def own_state(tmp_path: Path, study_bytes: bytes) -> Iterator[OpenedState]:
    """A request that waits for two persons at alice."""
    (tmp_path / "study.toml").write_bytes(study_bytes)
    with closing(curator_state(tmp_path / "state")) as store:
        store.served.set_served_policy(None, 0, None, persons=2)
    with open_state(tmp_path / "study.toml", tmp_path / "state", None) as opened:
        hold(opened.store, request_with(attributes=("sex", "age")), "sex", "age")
        yield opened


def verdicts(own_state: OpenedState) -> dict[str, str]:
    return {one.attribute: one.verdict for one in own_state.store.decisions.decisions(ID)}


def test_two_persons_approve(own_state: OpenedState) -> None:
    before = int(time.time())
    first = approve(own_state, ID, person=ANA, reason="as agreed")
    assert first == Outcome(release_id=ID, missing={"age": 1, "sex": 1})
    assert verdicts(own_state) == {"sex": HELD, "age": HELD}
    second = approve(own_state, ID, person=BEN, reason="seen\nas well")
    assert second == Outcome(release_id=ID, approved=("age", "sex"))
    for decision in own_state.store.decisions.decisions(ID):
        assert (decision.verdict, decision.decided_by, decision.person) == (APPROVED, "person", BEN)
        assert (decision.reason, decision.time >= before) == ("seen as well", True)
    with pytest.raises(InvalidInputError, match=r"not held \(age is approved, sex is approved\)"):
        approve(own_state, ID, person="Cem Ak")


def test_an_approval_counts_attribute_by_attribute(own_state: OpenedState) -> None:
    assert approve(own_state, ID, ["sex"], person=ANA).missing == {"sex": 1}
    outcome = approve(own_state, ID, person=BEN)
    assert (outcome.approved, outcome.missing) == (("sex",), {"age": 1})
    # Without names, it is what this person has not approved yet.
    assert approve(own_state, ID, person=ANA).approved == ("age",)


@pytest.mark.parametrize("again", [ANA, "ana  díaz", " ANA DÍAZ ", "Ana Di\u0301az", "Ana Diaz", "\uff21na-Díaz"])
def test_a_person_counts_once_however_the_name_is_spelt(own_state: OpenedState, again: str) -> None:
    approve(own_state, ID, person=ANA)
    for attributes in ([], ["sex"]):
        with pytest.raises(ConflictError, match="has approved age, sex before"):
            approve(own_state, ID, attributes, person=again)
    assert verdicts(own_state) == {"sex": HELD, "age": HELD}
    assert not waits_for(own_state, ID, again)
    assert waits_for(own_state, ID, BEN)


def test_two_rows_of_one_person_count_as_one(own_state: OpenedState) -> None:
    approve(own_state, ID, ["sex"], person=ANA)
    row = "SELECT release_id, attribute, 'ANA DIAZ', time, reason, expires, request_digest FROM approval"
    own_state.store.connection.execute(f"INSERT INTO approval {row}")
    (status, _) = view_of(own_state.store.releases.release(ID), own_state).own
    assert ([one.person for one in status.approvals], status.missing) == ([ANA], 1)
    assert approve(own_state, ID, ["sex"], person=BEN).approved == ("sex",)


def test_an_approval_of_another_request_does_not_count(own_state: OpenedState) -> None:
    approve(own_state, ID, person=ANA)
    own_state.store.connection.execute("UPDATE release SET study_digest = 'of another study file'")
    assert approve(own_state, ID, person=BEN).missing == {"age": 1, "sex": 1}


def test_one_refusal_refuses_also_by_who_approved_before(own_state: OpenedState) -> None:
    approve(own_state, ID, person=ANA)
    assert deny(own_state, ID, ["sex"], person=ANA, reason="on second thoughts").denied == ("sex",)
    (decision,) = (one for one in own_state.store.decisions.decisions(ID) if one.attribute == "sex")
    assert (decision.verdict, decision.person, decision.reason) == (DENIED, ANA, "on second thoughts")
    assert approve(own_state, ID, person=BEN).approved == ("age",)
    assert verdicts(own_state) == {"sex": DENIED, "age": APPROVED}


def test_the_earliest_expiry_counts(own_state: OpenedState) -> None:
    approve(own_state, ID, ["sex"], person=ANA, expires=2_000_000_000)
    approve(own_state, ID, ["sex"], person=BEN, expires=2_100_000_000)
    approve(own_state, ID, ["age"], person=ANA)
    approve(own_state, ID, ["age"], person=BEN)
    assert {one.attribute: one.expires for one in own_state.store.decisions.decisions(ID)} == {
        "sex": 2_000_000_000,
        "age": None,
    }


def test_the_number_of_persons_is_never_below_the_served_one(own_state: OpenedState, tmp_path: Path) -> None:
    for text, persons in (("persons = 1", 2), ("persons = 3", 3)):
        (tmp_path / "policy.toml").write_text(text)
        with open_state(tmp_path / "study.toml", tmp_path / "state", tmp_path / "policy.toml") as other:
            assert other.persons == persons
    own_state.store.served.set_served_policy(None, 0, None)
    assert own_state.persons == 1
    assert approve(own_state, ID, person=ANA).approved == ("age", "sex")


def test_nothing_is_decided_after_the_deadline_or_the_end(own_state: OpenedState) -> None:
    hold(own_state.store, request_with(release_id=OTHER, deadline=int(time.time()) - 1))
    for decide in (approve, deny):
        with refuses(InvalidInputError, where="release 00000000000000000000000000000001"):
            decide(own_state, ID, ["sex", "salary"], person=ANA, reason="of another curator")
        with pytest.raises(InvalidInputError, match="not held; the deadline passed"):
            decide(own_state, OTHER, ["sex"], person=ANA, reason="late")
    own_state.store.releases.set_state(ID, ReleaseState.EXPIRED)
    with refuses(InvalidInputError, where="release 00000000000000000000000000000001"):
        approve(own_state, ID, person=ANA)
    with pytest.raises(NotFoundError):
        approve(own_state, "2" * 32, person=ANA)
    assert not own_state.store.decisions.approvals(ID)


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_refusal_needs_a_reason(own_state: OpenedState, reason: str) -> None:
    with pytest.raises(InvalidInputError, match="no reason was given for the refusal"):
        deny(own_state, ID, person=ANA, reason=reason)
    assert verdicts(own_state) == {"sex": HELD, "age": HELD}


@pytest.mark.parametrize("name", ["", "  ", "-", "A" * 101, "Ana\x1b[2J", "Ana\u200bDiaz", "Ana\u202ezaiD"])
def test_what_is_no_name(own_state: OpenedState, name: str) -> None:
    for decide in (approve, deny):
        with refuses(InvalidInputError, where="person"):
            decide(own_state, ID, person=name, reason="none")
    with pytest.raises(InvalidInputError, match="the reason is longer"):
        deny(own_state, ID, person=ANA, reason=f"{name}\x00")
    assert verdicts(own_state) == {"sex": HELD, "age": HELD}


@pytest.mark.parametrize("invisible", "\u00ad\u034f\u115f\u1160\u17b4\u180b\u3164\ufe00\uffa0\U000e0100")
def test_what_is_not_seen_is_no_name_and_makes_no_other_person(own_state: OpenedState, invisible: str) -> None:
    for name in (f"{ANA}{invisible}", invisible):
        with pytest.raises(InvalidInputError, match="the person's name has no letters"):
            approve(own_state, ID, person=name)
    assert same_person_key(f"{ANA}{invisible}") == same_person_key(ANA)


@pytest.mark.parametrize(
    "name", ["\u0410na D\u00edaz", "An\u0430 D\u00edaz", "\u0391na", "\u13aana", "\ua4eena", "A\u00b5"]
)
def test_a_name_has_letters_of_one_script(own_state: OpenedState, name: str) -> None:
    with pytest.raises(InvalidInputError, match="mixes scripts"):
        approve(own_state, ID, person=name)


@pytest.mark.parametrize(
    "name",
    ["Анна Петрова", "Ἄννα", "José Łęcki-Ng", "田中 花子", "Tanaka 花子", "김하나", "אנה", "\uff21na 2", "Ana \u2167"],
)
def test_names_of_every_script_are_names(name: str) -> None:
    assert person_name(name) == unicodedata.normalize("NFC", name)


def test_names_are_kept_as_they_are_written() -> None:
    assert person_name("  Ana \t Di\u0301az ") == ANA


def test_who_approved_is_shown_to_the_second_person(own_state: OpenedState) -> None:
    approve(own_state, ID, ["sex"], person=ANA, reason="as agreed")
    view = view_of(own_state.store.releases.release(ID), own_state)
    sex, age = view.as_dict()["decisions"]
    (approval,) = sex["approvals"]
    assert (approval["person"], approval["reason"], sex["missing"]) == (ANA, "as agreed", 1)
    assert (age["approvals"], age["missing"], age["verdict"]) == ([], 2, HELD)
    text = requests_text((view,), own_state.ledger)
    assert f"sex held; approved by {ANA} (as agreed); 1 other person must approve it" in text
    assert "age held; 2 persons must approve it" in text


def test_a_failure_on_the_way_records_nothing(own_state: OpenedState, monkeypatch: pytest.MonkeyPatch) -> None:
    approve(own_state, ID, person=ANA)

    monkeypatch.setattr(Decisions, "record_decisions", Mock(side_effect=OSError(28, "no space left on device")))
    with pytest.raises(OSError, match="no space left"):
        approve(own_state, ID, person=BEN)
    assert [one.person for one in own_state.store.decisions.approvals(ID)] == [ANA, ANA]
